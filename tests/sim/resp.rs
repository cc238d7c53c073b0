//! The protocol as a server and a client of it see it, written for the simulator and independent of lockward's own
//! scanners: whole values, small inputs, no care for speed.

use std::fmt;

/// The arguments of a request, its name first.
pub type Words = Vec<Vec<u8>>;

/// One reply as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    Null,
    NullArray,
    Array(Vec<Reply>),
    /// Field and value by turns; a flat array in RESP2.
    Map(Vec<Reply>),
}

impl Reply {
    pub fn ok() -> Reply {
        Reply::Status(b"OK".to_vec())
    }

    pub fn error(text: &str) -> Reply {
        Reply::Error(text.as_bytes().to_vec())
    }

    pub fn bool(value: bool) -> Reply {
        Reply::Int(i64::from(value))
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    pub fn is_nil(&self) -> bool {
        matches!(self, Reply::Null)
    }

    pub fn is_ok(&self) -> bool {
        matches!(self, Reply::Status(text) if text == b"OK")
    }

    /// Appends the bytes in this version of the protocol.
    pub fn encode(&self, resp: u8, out: &mut Vec<u8>) {
        match self {
            Reply::Status(text) => line(b'+', text, out),
            Reply::Error(text) => line(b'-', text, out),
            Reply::Int(number) => line(b':', number.to_string().as_bytes(), out),
            Reply::Bulk(bytes) => bulk(bytes, out),
            Reply::Null if resp == 3 => out.extend_from_slice(b"_\r\n"),
            Reply::NullArray if resp == 3 => out.extend_from_slice(b"_\r\n"),
            Reply::Null => out.extend_from_slice(b"$-1\r\n"),
            Reply::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Reply::Map(elements) if resp == 3 => aggregate(b'%', elements.len() / 2, elements, resp, out),
            Reply::Array(elements) | Reply::Map(elements) => aggregate(b'*', elements.len(), elements, resp, out),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        self.encode(3, &mut bytes);
        f.write_str(&show(&bytes))
    }
}

fn line(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn bulk(bytes: &[u8], out: &mut Vec<u8>) {
    line(b'$', bytes.len().to_string().as_bytes(), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn aggregate(kind: u8, count: usize, elements: &[Reply], resp: u8, out: &mut Vec<u8>) {
    line(kind, count.to_string().as_bytes(), out);
    for element in elements {
        element.encode(resp, out);
    }
}

/// Takes the first bytes off, without a look at each of them.
pub fn take(bytes: &mut Vec<u8>, len: usize) -> Vec<u8> {
    let rest = bytes.split_off(len);
    std::mem::replace(bytes, rest)
}

/// A request of these arguments.
pub fn request<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = Vec::new();
    line(b'*', args.len().to_string().as_bytes(), &mut out);
    for arg in args {
        bulk(arg.as_ref(), &mut out);
    }
    out
}

fn find_line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    // No line of the simulator's has a carriage return in it.
    let end = memchr::memchr(b'\r', bytes)?;
    (bytes.get(end + 1) == Some(&b'\n')).then_some((&bytes[..end], end + 2))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// One request and how many bytes it is; `Ok(None)` while it is incomplete. An inline command is split at blanks.
pub fn parse_request(bytes: &[u8]) -> Result<Option<(Words, usize)>, String> {
    let Some((first, mut at)) = find_line(bytes) else {
        return Ok(None);
    };
    if first.first() != Some(&b'*') {
        let words = first.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        return Ok(Some((words.map(<[u8]>::to_vec).collect(), at)));
    }
    let count = number(&first[1..]).ok_or("bad count")?;
    let mut args = Vec::new();
    for _ in 0..count {
        let Some((header, used)) = find_line(&bytes[at..]) else {
            return Ok(None);
        };
        if header.first() != Some(&b'$') {
            return Err(format!("expected $, got {}", show(header)));
        }
        let length = number(&header[1..])
            .and_then(|length| usize::try_from(length).ok())
            .ok_or("bad length")?;
        at += used;
        if bytes.len() < at + length + 2 {
            return Ok(None);
        }
        args.push(bytes[at..at + length].to_vec());
        at += length + 2;
    }
    Ok(Some((args, at)))
}

/// One reply and how many bytes it is; `Ok(None)` while it is incomplete.
pub fn parse_reply(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let Some((header, mut at)) = find_line(bytes) else {
        return Ok(None);
    };
    let Some((kind, text)) = header.split_first() else {
        return Err("an empty line".to_owned());
    };
    let count = || number(text).ok_or_else(|| format!("bad number in {}", show(header)));
    let reply = match kind {
        b'+' => Reply::Status(text.to_vec()),
        b'-' => Reply::Error(text.to_vec()),
        b':' => Reply::Int(count()?),
        b'_' => Reply::Null,
        b'$' if count()? < 0 => Reply::Null,
        b'*' if count()? < 0 => Reply::NullArray,
        b'$' => {
            let length = count()? as usize;
            if bytes.len() < at + length + 2 {
                return Ok(None);
            }
            let value = bytes[at..at + length].to_vec();
            if &bytes[at + length..at + length + 2] != b"\r\n" {
                return Err("a bulk string without its end".to_owned());
            }
            at += length + 2;
            Reply::Bulk(value)
        }
        b'*' | b'%' => {
            let total = count()? * if *kind == b'%' { 2 } else { 1 };
            let mut elements = Vec::new();
            for _ in 0..total {
                let Some((element, used)) = parse_reply(&bytes[at..])? else {
                    return Ok(None);
                };
                elements.push(element);
                at += used;
            }
            if *kind == b'%' {
                Reply::Map(elements)
            } else {
                Reply::Array(elements)
            }
        }
        _ => return Err(format!("no reply: {}", show(header))),
    };
    Ok(Some((reply, at)))
}

/// Bytes as text, shortened.
pub fn show(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(160)].escape_ascii().to_string();
    if bytes.len() > 160 {
        format!("{shown}… ({} bytes)", bytes.len())
    } else {
        shown
    }
}

/// A request as text, each argument shortened.
pub fn show_args<A: AsRef<[u8]>>(args: &[A]) -> String {
    let words = args.iter().map(|arg| {
        let arg = arg.as_ref();
        if arg.len() > 60 {
            format!("<{} bytes>", arg.len())
        } else {
            arg.escape_ascii().to_string()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
