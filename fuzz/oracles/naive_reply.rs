//! Where a reply of RESP2 or RESP3 ends, read naively: each element calls for the next. Over bytes that have all come;
//! gives up where they nest deeper than it dares to call itself.

/// What stands at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A whole reply ends here.
    End(usize),
    /// It goes on behind what is there.
    More,
    /// It is none.
    Wrong,
    /// Nested too deep to say.
    Deep,
}

const DEEPEST: usize = 100;
/// A header line is no longer, in bytes, its end not counted.
const HEADER_MAX: usize = 32;

/// Reads the reply that begins at `at`. `announced` adds up the elements of all its aggregates.
pub fn read(bytes: &[u8], at: usize, depth: usize, announced: &mut u128) -> Read {
    if depth > DEEPEST {
        return Read::Deep;
    }
    let Some(kind) = bytes.get(at) else { return Read::More };
    let per_count = match kind {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {
            let end = bytes[at..].windows(2).position(|pair| pair == b"\r\n");
            return end.map_or(Read::More, |end| Read::End(at + end + 2));
        }
        b'$' | b'=' | b'!' => 0,
        b'*' | b'~' | b'>' => 1,
        b'%' | b'|' => 2,
        _ => return Read::Wrong,
    };
    let (number, begin) = match header(bytes, at) {
        Ok(header) => header,
        Err(read) => return read,
    };
    if number == -1 && matches!(kind, b'$' | b'*') {
        return Read::End(begin);
    }
    let Ok(number) = u64::try_from(number) else {
        return Read::Wrong;
    };
    if per_count == 0 {
        let end = begin as u128 + u128::from(number) + 2;
        return if end <= bytes.len() as u128 {
            Read::End(end as usize)
        } else {
            Read::More
        };
    }
    let count = u128::from(number) * per_count;
    *announced += count;
    let mut next = begin;
    // An attribute is not the reply: that stands behind it.
    for _ in 0..count + u128::from(*kind == b'|') {
        match read(bytes, next, depth + 1, announced) {
            Read::End(end) => next = end,
            other => return other,
        }
    }
    Read::End(next)
}

fn header(bytes: &[u8], at: usize) -> Result<(i64, usize), Read> {
    let line = &bytes[at..bytes.len().min(at + HEADER_MAX)];
    let Some(end) = line.iter().position(|byte| *byte == b'\r') else {
        return Err(if line.len() < HEADER_MAX {
            Read::More
        } else {
            Read::Wrong
        });
    };
    let text = String::from_utf8_lossy(&line[1..end]).into_owned();
    let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
    match (number, bytes.get(at + end + 1)) {
        (Some(number), Some(b'\n')) => Ok((number, at + end + 2)),
        (Some(_), None) => Err(Read::More),
        _ => Err(Read::Wrong),
    }
}
