//! The command that is to be explained: one text, read as the server reads an inline command, or one argument of the
//! program for each argument of the command. Ends as the bytes that a client would send. Knows no commands.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bytes::BytesMut;

use crate::resp::args::Span;
use crate::resp::request::{RequestError, RequestScanner, Scanned};
use crate::resp::{Args, encode};

/// One command.
pub(super) struct Command {
    /// As a client would send it.
    pub raw: Vec<u8>,
    text: Vec<u8>,
    spans: Vec<Span>,
}

impl Command {
    /// Its arguments, the name first; at least one.
    pub(super) fn args(&self) -> Args<'_> {
        Args::new(&self.text, &self.spans)
    }

    fn of<'a>(raw: Vec<u8>, args: impl Iterator<Item = &'a [u8]>) -> Command {
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        for arg in args {
            let start = text.len();
            text.extend_from_slice(arg);
            spans.push(Span { start, end: text.len() });
        }
        Command { raw, text, spans }
    }
}

/// Reads the words of the command line.
///
/// # Errors
///
/// What is wrong with them, for the operator.
pub(super) fn command(words: &[OsString]) -> Result<Command, String> {
    match words {
        [] => Err("no command to explain; say for example: lockward explain 'SET lock:a 1 NX'".to_owned()),
        [line] => inline(line.as_bytes()),
        words => {
            let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let mut raw = BytesMut::new();
            encode::command(&mut raw, args.iter().copied());
            match RequestScanner::new().scan(&raw) {
                Err(error) => Err(unreadable(error)),
                Ok(_) => Ok(Command::of(raw.to_vec(), args.into_iter())),
            }
        }
    }
}

fn inline(line: &[u8]) -> Result<Command, String> {
    let line = line.trim_ascii_end();
    if line.contains(&b'\n') {
        return Err(
            "one command at a time: there is a line end in it (inside double quotes write it as \\n)".to_owned(),
        );
    }
    if line.first() == Some(&b'*') {
        return Err("no command begins with an asterisk when it is written on one line".to_owned());
    }
    let mut raw = line.to_vec();
    raw.extend_from_slice(b"\r\n");
    let mut scanner = RequestScanner::new();
    match scanner.scan(&raw) {
        Ok(Scanned::Request { .. }) => {
            let args: Vec<Vec<u8>> = scanner.args(&raw).iter().map(<[u8]>::to_vec).collect();
            Ok(Command::of(raw, args.iter().map(Vec::as_slice)))
        }
        Ok(Scanned::Empty { .. }) => command(&[]),
        Ok(Scanned::NeedMore) => Err("the line holds a NUL byte; inside double quotes write it as \\x00".to_owned()),
        Err(RequestError::UnbalancedQuotes) => Err(
            "unbalanced quotes: each \" and ' needs its end, and behind it a blank or the end of the line".to_owned(),
        ),
        Err(error) => Err(unreadable(error)),
    }
}

fn unreadable(error: RequestError) -> String {
    format!("the server would not read this and would close the connection: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let command = command(&words)?;
        Ok(command
            .args()
            .iter()
            .map(|arg| String::from_utf8_lossy(arg).into_owned())
            .collect())
    }

    #[test]
    fn one_text_is_a_line_and_several_are_arguments() {
        assert_eq!(
            read(&["SET 'lock a' \"1\\n\" NX "]).unwrap(),
            ["SET", "lock a", "1\n", "NX"]
        );
        assert_eq!(read(&["SET", "lock a", "'1'"]).unwrap(), ["SET", "lock a", "'1'"]);
        assert_eq!(read(&["PING"]).unwrap(), ["PING"]);
    }

    #[test]
    fn what_is_no_command_is_explained() {
        for (words, hint) in [
            (&[][..], "no command"),
            (&["  "], "no command"),
            (&["SET lock:a 'x"], "unbalanced quotes"),
            (&["SET \"lock\"a 1"], "unbalanced quotes"),
            (&["GET a\nGET b"], "one command"),
            (&["*1"], "asterisk"),
            (&["POST / HTTP/1.1"], "HTTP"),
            (&["post", "/"], "HTTP"),
        ] {
            let error = read(words).expect_err(hint);
            assert!(error.contains(hint), "{words:?}: {error}");
        }
    }
}
