//! Appends requests and replies to a buffer. Knows RESP2 and RESP3 where they differ, and nothing of what the frames
//! mean. Texts of simple strings and errors are cleaned of line ends; nothing else is checked.

use bytes::{BufMut, BytesMut};

/// The version of the protocol that a client has chosen with HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resp {
    /// RESP2, which every connection begins with.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// Appends a request of these arguments.
pub fn command<'a, I>(out: &mut BytesMut, args: I)
where
    I: IntoIterator<Item = &'a [u8]>,
    I::IntoIter: ExactSizeIterator,
{
    let args = args.into_iter();
    array(out, args.len());
    args.for_each(|arg| bulk(out, arg));
}

/// Appends the header of an array of `count` elements, which the caller appends.
pub fn array(out: &mut BytesMut, count: usize) {
    header(out, b'*', count);
}

/// Appends a bulk string.
pub fn bulk(out: &mut BytesMut, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.put_slice(bytes);
    out.put_slice(b"\r\n");
}

/// Appends a simple string; line ends in it become blanks.
pub fn simple(out: &mut BytesMut, text: &str) {
    line(out, b'+', text.as_bytes());
}

/// Appends an error, `text` with its code but without the minus sign; line ends in it become blanks. The text is bytes
/// since it may quote a key.
pub fn error(out: &mut BytesMut, text: &[u8]) {
    line(out, b'-', text);
}

/// Appends an integer.
pub fn integer(out: &mut BytesMut, value: i64) {
    out.put_u8(b':');
    if value < 0 {
        out.put_u8(b'-');
    }
    decimal(out, value.unsigned_abs());
    out.put_slice(b"\r\n");
}

/// Appends a null that stands for a bulk string.
pub fn null(out: &mut BytesMut, resp: Resp) {
    out.put_slice(match resp {
        Resp::Two => b"$-1\r\n",
        Resp::Three => b"_\r\n",
    });
}

/// Appends a null that stands for an array, as the answer to a refused EXEC.
pub fn null_array(out: &mut BytesMut, resp: Resp) {
    out.put_slice(match resp {
        Resp::Two => b"*-1\r\n",
        Resp::Three => b"_\r\n",
    });
}

fn header(out: &mut BytesMut, kind: u8, number: usize) {
    out.put_u8(kind);
    decimal(out, number as u64);
    out.put_slice(b"\r\n");
}

fn line(out: &mut BytesMut, kind: u8, text: &[u8]) {
    out.reserve(text.len() + 3);
    out.put_u8(kind);
    out.extend(
        text.iter()
            .map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }),
    );
    out.put_slice(b"\r\n");
}

/// Without `format!`, which costs more than the rest of a header.
fn decimal(out: &mut BytesMut, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut used = 0;
    for place in digits.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
        used += 1;
        if value == 0 {
            break;
        }
    }
    out.put_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(fill: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
        let mut out = BytesMut::new();
        fill(&mut out);
        out.to_vec()
    }

    #[test]
    fn a_command_is_an_array_of_bulks() {
        let args: [&[u8]; 3] = [b"SET", b"", b"a\r\nb\0"];
        assert_eq!(
            encoded(|out| command(out, args)),
            b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$5\r\na\r\nb\0\r\n"
        );
    }

    #[test]
    fn numbers_have_all_their_digits() {
        for value in [0, 7, 10, -1, 4096, i64::MAX, i64::MIN] {
            assert_eq!(encoded(|out| integer(out, value)), format!(":{value}\r\n").into_bytes());
        }
        assert_eq!(encoded(|out| array(out, 1_000_000)), b"*1000000\r\n");
    }

    #[test]
    fn a_text_cannot_end_its_line() {
        assert_eq!(
            encoded(|out| error(out, b"LOCKHELD lock 'a\r\n+OK' is held")),
            b"-LOCKHELD lock 'a  +OK' is held\r\n"
        );
        assert_eq!(encoded(|out| simple(out, "a\nb")), b"+a b\r\n");
    }

    #[test]
    fn nulls_follow_the_version() {
        assert_eq!(encoded(|out| null(out, Resp::Two)), b"$-1\r\n");
        assert_eq!(encoded(|out| null_array(out, Resp::Two)), b"*-1\r\n");
        assert_eq!(encoded(|out| null(out, Resp::Three)), b"_\r\n");
        assert_eq!(encoded(|out| null_array(out, Resp::Three)), b"_\r\n");
    }
}
