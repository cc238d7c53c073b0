//! Reads server-sent events (WHATWG HTML, section 9.2.6) out of bytes that come in any pieces: lines ended by CR LF, LF
//! or CR, comments, several `data` lines, a byte order mark. Bounded: a message or line beyond the limit is an error.
//! Reconnects nothing, so it passes over `retry`.

use std::collections::VecDeque;

use thiserror::Error;

/// The most bytes of one message, a line under way included.
const MAX_MESSAGE: usize = 16 << 20;

/// One message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The last `id` that was said, in this message or before it.
    pub id: String,
    /// Its kind; `message` where none was said.
    pub event: String,
    /// Its lines of data, with line ends between them.
    pub data: String,
}

/// The stream says more in one message than is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a message of more than {0} bytes")]
pub struct TooLong(usize);

/// Reads a stream from its beginning.
#[derive(Debug)]
pub struct Reader {
    limit: usize,
    line: Vec<u8>,
    /// The last line ended with CR: an LF right behind it belongs to that.
    after_cr: bool,
    /// Nothing but the first line can begin with a byte order mark.
    begun: bool,
    id: Vec<u8>,
    event: Vec<u8>,
    data: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader::with_limit(MAX_MESSAGE)
    }
}

impl Reader {
    /// A reader that holds at most so many bytes of one message.
    pub fn with_limit(limit: usize) -> Reader {
        Reader {
            limit,
            line: Vec::new(),
            after_cr: false,
            begun: false,
            id: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Takes the next bytes and appends the messages that they complete.
    ///
    /// # Errors
    ///
    /// A message is longer than the limit; the reader is of no use then.
    pub fn read(&mut self, mut bytes: &[u8], sink: &mut VecDeque<Message>) -> Result<(), TooLong> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(rest) = bytes.strip_prefix(b"\n")
            {
                bytes = rest;
                continue;
            }
            let end = memchr::memchr2(b'\r', b'\n', bytes);
            let (piece, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.held() + piece.len() > self.limit {
                return Err(TooLong(self.limit));
            }
            self.line.extend_from_slice(piece);
            let Some((ending, rest)) = rest.split_first() else {
                break;
            };
            self.after_cr = *ending == b'\r';
            bytes = rest;
            let line = std::mem::take(&mut self.line);
            self.take(&line, sink);
            // The buffer is used again, if it is not one of the rare huge ones.
            if line.capacity() <= 64 * 1024 {
                self.line = line;
                self.line.clear();
            }
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.line.len() + self.data.len() + self.event.len() + self.id.len()
    }

    fn take(&mut self, line: &[u8], sink: &mut VecDeque<Message>) {
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            return self.dispatch(sink);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(colon) => line.split_at(colon),
            None => (line, &b":"[..]),
        };
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event = value.to_vec(),
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"id" if !value.contains(&0) => self.id = value.to_vec(),
            _ => {}
        }
    }

    fn dispatch(&mut self, sink: &mut VecDeque<Message>) {
        let event = std::mem::take(&mut self.event);
        let mut data = std::mem::take(&mut self.data);
        if data.pop().is_none() {
            return;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        sink.push_back(Message {
            id: text(&self.id),
            event: if event.is_empty() {
                "message".to_owned()
            } else {
                text(&event)
            },
            data: text(&data),
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(id: &str, event: &str, data: &str) -> Message {
        Message {
            id: id.to_owned(),
            event: event.to_owned(),
            data: data.to_owned(),
        }
    }

    fn read(pieces: &[&[u8]]) -> Vec<Message> {
        let (mut reader, mut sink) = (Reader::default(), VecDeque::new());
        for piece in pieces {
            reader.read(piece, &mut sink).expect("short enough");
        }
        sink.into()
    }

    /// The standard's own examples.
    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(
            read(&[b"data: YHOO\ndata: +2\ndata: 10\n\n"]),
            [message("", "message", "YHOO\n+2\n10")]
        );
        assert_eq!(
            read(&[b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"]),
            [
                message("1", "message", "first event"),
                message("", "message", "second event"),
                message("", "message", " third event")
            ]
        );
        assert_eq!(
            read(&[b"data\n\ndata\ndata\n\ndata:"]),
            [message("", "message", ""), message("", "message", "\n")]
        );
        assert_eq!(read(&[b"data:test\n\ndata: test\n\n"]).len(), 2);
    }

    #[test]
    fn fields_and_line_ends() {
        assert_eq!(
            read(&[b"\xef\xbb\xbfevent: lock\r\nid: 7\rdata: {}\n\r\n"]),
            [message("7", "lock", "{}")]
        );
        assert_eq!(read(&[b"event: x\n\ndata: y\n\n"]), [message("", "message", "y")]);
        assert_eq!(
            read(&[b"id: 1\0\nunknown: z\ndata: y\n\n"]),
            [message("", "message", "y")]
        );
        assert_eq!(read(&[b"data: a\r", b"\n\r", b"\n"]), [message("", "message", "a")]);
        assert_eq!(read(&[b"data: a\n"]), []);
        assert_eq!(read(&[b"retry: 250\ndata: a\n\n"]), [message("", "message", "a")]);
    }

    #[test]
    fn a_message_has_a_longest_length() {
        let mut sink = VecDeque::new();
        let mut reader = Reader::with_limit(32);
        assert_eq!(reader.read(b"data: 12345678901234567890\n\n", &mut sink), Ok(()));
        assert_eq!(reader.read(&[b'x'; 33], &mut sink), Err(TooLong(32)));
        let mut reader = Reader::with_limit(32);
        let many = b"data: 123456\n".repeat(10);
        assert_eq!(reader.read(&many, &mut sink), Err(TooLong(32)));
        assert_eq!(sink.len(), 1);
    }

    /// The same, written down as the standard says it, on the whole text at once.
    fn oracle(text: &[u8]) -> Vec<Message> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
        let (mut id, mut event, mut data, mut found) = (String::new(), String::new(), String::new(), Vec::new());
        let complete = text.rfind('\n').map_or("", |end| &text[..end + 1]);
        for line in complete.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match (line, field) {
                ("", _) => {
                    let kind = if event.is_empty() { "message" } else { &event };
                    if let Some(data) = data.strip_suffix('\n') {
                        found.push(message(&id, kind, data));
                    }
                    event.clear();
                    data.clear();
                }
                (_, "event") => event = value.to_owned(),
                (_, "data") => data += &format!("{value}\n"),
                (_, "id") if !value.contains('\0') => id = value.to_owned(),
                _ => {}
            }
        }
        found
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => Just("data: x"),
            2 => Just("data"),
            2 => Just("event: lock"),
            2 => Just("id: 3"),
            1 => Just(": comment"),
            1 => Just("\u{feff}"),
            2 => Just(":"),
            1 => Just("é"),
            1 => Just(" "),
            1 => Just("\0"),
            6 => Just("\n"),
            4 => Just("\r\n"),
            3 => Just("\r"),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in stream(), cuts in prop::collection::vec(0_usize..200, 0..12)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.push(0);
            cuts.push(text.len());
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), oracle(&text));
        }

        #[test]
        fn no_bytes_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20)) {
            let (mut reader, mut sink) = (Reader::with_limit(64), VecDeque::new());
            for piece in &pieces {
                if reader.read(piece, &mut sink).is_err() {
                    break;
                }
                prop_assert!(reader.held() <= 64);
            }
        }
    }
}
