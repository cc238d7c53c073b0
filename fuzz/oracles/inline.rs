//! Inline requests: the arguments are those of `sdssplitargs`, and they survive being quoted and split again. The
//! splitter is no public part of lockward, so one whole line goes through the request scanner.

use lockward::resp::request::{RequestError, RequestScanner, Scanned};

use super::cuts::Cuts;
use super::naive_request::{Unsplit, split};

/// The line ends where the input does, or before the first byte that would end it.
pub fn check(input: &[u8]) {
    let Some(cuts) = Cuts::read(input) else { return };
    let end = cuts.bytes.iter().position(|byte| matches!(byte, b'\n' | 0));
    let line = &cuts.bytes[..end.unwrap_or(cuts.bytes.len())];
    if line.first() == Some(&b'*') {
        return;
    }
    let ours = scanned(line, cuts.ends());
    let theirs = split(line.strip_suffix(b"\r").unwrap_or(line));
    match (&theirs, &ours) {
        (Ok(theirs), Ok(ours)) => assert_eq!(theirs, ours, "Redis reads {}", line.escape_ascii()),
        (Ok(theirs), Err(RequestError::CrossProtocol)) => {
            let name: Vec<u8> = theirs[0].to_ascii_lowercase();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            assert!(
                name == b"post" || name == b"host:",
                "no browser: {}",
                line.escape_ascii()
            );
        }
        (Err(Unsplit::Unbalanced | Unsplit::Unclear), Err(RequestError::UnbalancedQuotes)) => {}
        _ => panic!("Redis reads {theirs:?}, lockward {ours:?} in {}", line.escape_ascii()),
    }
    if let Ok(arguments) = ours
        && !arguments.is_empty()
    {
        let quoted = quoted(&arguments);
        assert_eq!(
            scanned(&quoted, core::iter::empty()),
            Ok(arguments),
            "quoted: {}",
            quoted.escape_ascii()
        );
    }
}

/// The arguments of a line that comes in packets; none of a blank one.
fn scanned(line: &[u8], ends: impl Iterator<Item = usize>) -> Result<Vec<Vec<u8>>, RequestError> {
    let all = [line, b"\n"].concat();
    let mut scanner = RequestScanner::new();
    for end in ends.filter(|end| *end <= line.len()) {
        assert_eq!(
            scanner.scan(&all[..end]),
            Ok(Scanned::NeedMore),
            "a line has no end at {end}"
        );
    }
    match scanner.scan(&all)? {
        Scanned::Empty { len } => {
            assert_eq!(len, all.len());
            Ok(Vec::new())
        }
        Scanned::Request { len } => {
            assert_eq!((len, scanner.inline(), scanner.canonical()), (all.len(), true, false));
            assert_eq!(scanner.ambiguous(), line.contains(&0xff));
            Ok(scanner.args(&all).iter().map(<[u8]>::to_vec).collect())
        }
        Scanned::NeedMore => panic!("a whole line is not enough: {}", line.escape_ascii()),
    }
}

/// Every byte as `\xHH`, every second argument in the other quotes where these can hold it.
fn quoted(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut line = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        line.push(b' ');
        let plain = |byte: &u8| !matches!(byte, b'\'' | b'\\' | b'\n' | b'\r' | 0);
        if index % 2 == 1 && argument.iter().all(plain) {
            line.extend([b"'", &argument[..], b"'"].concat());
            continue;
        }
        line.push(b'"');
        argument
            .iter()
            .for_each(|byte| line.extend(format!("\\x{byte:02x}").bytes()));
        line.push(b'"');
    }
    line
}
