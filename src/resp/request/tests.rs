//! The request scanner by example: framing, limits and the bound on its work. Generated input is in
//! `tests/scanner_split.rs` and, against real servers, `tests/scanner_server.rs`.

use super::headers::LINE_MAX;
use super::*;

/// Scans all of `input` at once: the requests' arguments, then what ended it.
fn all(input: &[u8]) -> (Vec<Vec<Vec<u8>>>, Result<usize, RequestError>) {
    all_with(&mut RequestScanner::new(), input)
}

fn all_with(scanner: &mut RequestScanner, input: &[u8]) -> (Vec<Vec<Vec<u8>>>, Result<usize, RequestError>) {
    let mut requests = Vec::new();
    let mut at = 0;
    loop {
        match scanner.scan(&input[at..]) {
            Ok(Scanned::NeedMore) => return (requests, Ok(input.len() - at)),
            Ok(Scanned::Empty { len }) => at += len,
            Ok(Scanned::Request { len }) => {
                requests.push(scanner.args(&input[at..]).iter().map(<[u8]>::to_vec).collect());
                scanner.next();
                at += len;
            }
            Err(error) => return (requests, Err(error)),
        }
    }
}

#[track_caller]
fn requests(input: &[u8], expected: &[&[&[u8]]]) {
    let expected: Vec<Vec<Vec<u8>>> = expected
        .iter()
        .map(|request| request.iter().map(|arg| arg.to_vec()).collect())
        .collect();
    assert_eq!(all(input), (expected, Ok(0)), "{}", input.escape_ascii());
}

#[track_caller]
fn refused(input: &[u8], error: RequestError) {
    assert_eq!(all(input).1, Err(error), "{}", input.escape_ascii());
}

#[test]
fn requests_of_both_kinds_follow_each_other() {
    requests(
        b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n*1\r\n$0\r\n\r\n  \r\n*0\r\n\n*-1\r\nGET \"a b\"\n",
        &[&[b"GET", b"a"], &[b"PING"], &[b""], &[b"GET", b"a b"]],
    );
}

#[test]
fn line_ends_are_as_loose_as_in_redis() {
    requests(b"*1\rX$4\rYPINGZZPING\r\r\n", &[&[b"PING"], &[b"PING"]]);
    requests(b"*1\r\0$2\r\r\r\n\r\n", &[&[b"\r\n"]]);
}

#[test]
fn numbers_are_as_strict_as_in_redis() {
    for count in [
        "+1",
        "01",
        "",
        "-",
        "-0",
        " 1",
        "1 ",
        "x",
        "2147483648",
        "99999999999999999999",
        "1\0",
    ] {
        refused(format!("*{count}\r\n").as_bytes(), RequestError::InvalidMultibulkLength);
    }
    for length in ["+4", "04", "-1", "-0", "", "4 ", "536870913", "4\0"] {
        refused(
            format!("*1\r\n${length}\r\nPING\r\n").as_bytes(),
            RequestError::InvalidBulkLength,
        );
    }
    for open in [
        "*2147483647\r\n",
        "*1\r\n$536870912\r\n",
        "*1",
        "*1\r",
        "*+1",
        "*1\r\n$04",
        "*1\r\n:1",
        "*1\r\n:1\r",
    ] {
        assert_eq!(all(open.as_bytes()), (vec![], Ok(open.len())), "{open}");
    }
}

#[test]
fn an_argument_begins_with_a_dollar() {
    for got in [b'X', b':', b'\n', b'\r', 0, 0xff] {
        refused(
            &[b"*1\r\n", &[got][..], b"1\r\n"].concat(),
            RequestError::ExpectedDollar(got),
        );
    }
    let reply = |got| RequestError::ExpectedDollar(got).reply().map(|line| line.to_vec());
    assert_eq!(
        reply(b'X').as_deref(),
        Some(&b"-ERR Protocol error: expected '$', got 'X'\r\n"[..])
    );
    assert_eq!(
        reply(b'\n').as_deref(),
        Some(&b"-ERR Protocol error: expected '$', got ' '\r\n"[..])
    );
}

#[test]
fn a_line_has_64_kilobytes() {
    let fill = |start: &[u8], length: usize| [start, &vec![b'1'; length - start.len()]].concat();
    for (before, start, error) in [
        (&b""[..], &b"*"[..], RequestError::MultibulkCountTooBig),
        (b"*1\r\n", b"$", RequestError::BulkCountTooBig),
        (b"*1\r\n", b"X", RequestError::BulkCountTooBig),
        (b"", b"PING ", RequestError::InlineTooBig),
        (b"", b"PING\0\n", RequestError::InlineTooBig),
    ] {
        let open = [before, &fill(start, LINE_MAX)].concat();
        assert_eq!(all(&open), (vec![], Ok(open.len())));
        refused(&[before, &fill(start, LINE_MAX + 1)].concat(), error);
        refused(&[before, &fill(start, LINE_MAX + 1), b"\r\n"].concat(), error);
    }
    let longest = [&fill(b"PING ", LINE_MAX)[..], b"\n"].concat();
    assert_eq!(all(&longest).1, Ok(0));
}

#[test]
fn before_authentication_a_request_is_small() {
    let mut scanner = RequestScanner::new();
    scanner.set_authenticated(false);
    let bulk = |length: usize| [format!("*1\r\n${length}\r\n").as_bytes(), &vec![b'x'; length], b"\r\n"].concat();
    assert_eq!(
        all_with(&mut scanner, b"*11\r\n").1,
        Err(RequestError::UnauthenticatedMultibulkLength)
    );
    scanner.next();
    assert_eq!(
        all_with(&mut scanner, &bulk(16_385)).1,
        Err(RequestError::UnauthenticatedBulkLength)
    );
    scanner.next();
    assert_eq!(all_with(&mut scanner, &bulk(16_384)).1, Ok(0));
    assert_eq!(all_with(&mut scanner, &b"*10\r\n$1\r\na\r\n"[..]).1, Ok(12));
    scanner.next();
    scanner.set_authenticated(true);
    assert_eq!(all_with(&mut scanner, &bulk(16_385)).1, Ok(0));
}

#[test]
fn a_browser_is_turned_away_without_a_word() {
    for request in [
        &b"POST / HTTP/1.1\r\n"[..],
        b"Host: example\r\n",
        b"\"post\\x00x\"\n",
        b"*1\r\n$5\r\nhOsT:\r\n",
        b"*1\r\n$6\r\npOsT\0x\r\n",
    ] {
        refused(request, RequestError::CrossProtocol);
    }
    assert_eq!(RequestError::CrossProtocol.reply(), None);
    requests(
        b"Host a\r\nPOSTS\r\nPUBLISH\r\n",
        &[&[b"Host", b"a"], &[b"POSTS"], &[b"PUBLISH"]],
    );
}

#[test]
fn an_error_stays() {
    let mut scanner = RequestScanner::new();
    for input in [&b"*x\r\n"[..], b"*x\r\nPING\r\n"] {
        assert_eq!(scanner.scan(input), Err(RequestError::InvalidMultibulkLength));
    }
    let mut scanner = RequestScanner::new();
    for _ in 0..2 {
        assert_eq!(scanner.scan(b"POST\r\n"), Err(RequestError::CrossProtocol));
    }
}

#[test]
fn arguments_can_be_seen_before_the_request_is_complete() {
    let mut scanner = RequestScanner::new();
    let input = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\nabc";
    assert_eq!(scanner.announced(), 0);
    assert_eq!(scanner.scan(input), Ok(Scanned::NeedMore));
    assert_eq!(scanner.announced(), 3);
    let args: Vec<&[u8]> = scanner.args(input).iter().collect();
    assert_eq!(args, [&b"SET"[..], b"k"]);
    assert_eq!(scanner.looked_at(), input.len());
}

#[test]
fn what_is_looked_at_stops_before_an_incomplete_header() {
    let mut scanner = RequestScanner::new();
    assert_eq!(scanner.scan(b"*2\r\n$3\r\nGET\r\n$1"), Ok(Scanned::NeedMore));
    assert_eq!(scanner.looked_at(), 13);
    scanner.stream();
    assert_eq!(scanner.scan_stream(b"$1"), Ok(Streamed { taken: 0, done: false }));
    assert_eq!(
        scanner.scan_stream(b"$10\r\n01234"),
        Ok(Streamed { taken: 10, done: false })
    );
    assert_eq!(scanner.scan_stream(b"56789\r"), Ok(Streamed { taken: 6, done: false }));
    assert_eq!(
        scanner.scan_stream(b"\nPING\r\n"),
        Ok(Streamed { taken: 1, done: true })
    );
    scanner.next();
    assert_eq!(scanner.scan(b"PING\r\n"), Ok(Scanned::Request { len: 6 }));
}

#[test]
fn streaming_begins_with_an_announced_array_only() {
    let mut scanner = RequestScanner::new();
    for input in [&b""[..], b"*", b"*1"] {
        assert_eq!(scanner.scan(input), Ok(Scanned::NeedMore));
        scanner.stream();
        assert!(!scanner.streaming());
    }
    assert_eq!(scanner.scan(b"*1\r\n"), Ok(Scanned::NeedMore));
    scanner.stream();
    assert!(scanner.streaming());
    assert_eq!(scanner.scan_stream(b"$x\r\n"), Err(RequestError::InvalidBulkLength));
}

#[test]
fn announced_lengths_take_no_memory() {
    let mut scanner = RequestScanner::new();
    assert_eq!(scanner.scan(b"*2147483647\r\n$536870912\r\nx"), Ok(Scanned::NeedMore));
    assert_eq!(scanner.spans.capacity(), 0);
    assert_eq!(scanner.text.capacity(), 0);
}

#[test]
fn memory_of_an_unusual_request_is_given_back() {
    let mut scanner = RequestScanner::new();
    let input = [&b"*5000\r\n"[..], &b"$1\r\nx\r\n".repeat(5000)].concat();
    assert_eq!(scanner.scan(&input), Ok(Scanned::Request { len: input.len() }));
    assert_eq!(scanner.args(&input).len(), 5000);
    scanner.next();
    assert!(scanner.spans.capacity() <= KEPT_SPANS);
    let input = [&b"ECHO "[..], &b"x".repeat(50_000), b"\n"].concat();
    assert_eq!(scanner.scan(&input), Ok(Scanned::Request { len: input.len() }));
    scanner.next();
    assert!(scanner.text.capacity() <= KEPT_TEXT);
}

#[test]
fn work_is_linear_in_the_bytes_whatever_the_packets() {
    let mut input = b"*400000\r\n".to_vec();
    for index in 0..400_000 {
        let text = index.to_string();
        input.extend_from_slice(format!("${}\r\n{text}\r\n", text.len()).as_bytes());
    }
    let mut scanner = RequestScanner::new();
    for end in (7..input.len()).step_by(7) {
        assert_eq!(scanner.scan(&input[..end]), Ok(Scanned::NeedMore));
    }
    assert_eq!(scanner.scan(&input), Ok(Scanned::Request { len: input.len() }));
    assert_eq!(scanner.args(&input).get(399_999), Some(&b"399999"[..]));
    assert!(
        scanner.examined < 2 * input.len(),
        "{} for {}",
        scanner.examined,
        input.len()
    );
}

#[test]
fn a_line_in_single_bytes_is_searched_once() {
    for start in [&b"PING "[..], b"*"] {
        let mut input = start.to_vec();
        input.resize(LINE_MAX, b'1');
        let mut scanner = RequestScanner::new();
        for end in 1..=input.len() {
            assert_eq!(scanner.scan(&input[..end]), Ok(Scanned::NeedMore));
        }
        assert!(scanner.examined < 2 * input.len(), "{}", scanner.examined);
    }
}
