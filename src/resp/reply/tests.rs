//! The reply scanner by example: types, streaming, and the bound on its work, stack and memory.

use super::*;

/// Scans `input` in chunks of `size` bytes, offering again what was not taken: where the reply ends.
fn end_in_chunks(scanner: &mut ReplyScanner, input: &[u8], size: usize) -> Result<Option<usize>, ReplyError> {
    let (mut start, mut end) = (0, 0);
    while end < input.len() {
        end = (end + size).min(input.len());
        let step = scanner.scan(&input[start..end])?;
        start += step.taken;
        if step.done {
            return Ok(Some(start));
        }
    }
    Ok(None)
}

#[track_caller]
fn complete(reply: &[u8]) {
    let input = [reply, b"+next\r\n"].concat();
    for size in [1, 2, 3, 7, input.len()] {
        let end = end_in_chunks(&mut ReplyScanner::new(), &input, size);
        assert_eq!(end, Ok(Some(reply.len())), "{} by {size}", reply.escape_ascii());
    }
}

#[test]
fn every_type_of_both_versions() {
    for reply in [
        &b"+OK\r\n"[..],
        b"+\r\n",
        b"-ERR unknown command '\xff'\r\n",
        b"+a\rb\nc\r\r\n",
        b":-42\r\n",
        b"$5\r\nab\r\nc\r\n",
        b"$0\r\n\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*3\r\n:1\r\n$-1\r\n*2\r\n+a\r\n*-1\r\n",
        b"_\r\n",
        b"#t\r\n",
        b",3.14\r\n",
        b",-inf\r\n",
        b"(3492890328409238509324850943850943825024385\r\n",
        b"!21\r\nSYNTAX invalid syntax\r\n",
        b"=8\r\ntxt:Some\r\n",
        b"~2\r\n+a\r\n~0\r\n",
        b"%2\r\n+a\r\n:1\r\n+b\r\n%0\r\n",
        b">3\r\n+message\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n|1\r\n+a\r\n*1\r\n+b\r\n:2\r\n",
    ] {
        complete(reply);
    }
}

#[test]
fn what_is_no_reply_is_refused() {
    for (input, error) in [
        (&b"x\r\n"[..], ReplyError::UnknownType(b'x')),
        (b"*1\r\n\r\n", ReplyError::UnknownType(b'\r')),
        (b"$x\r\n", ReplyError::InvalidLength),
        (b"$?\r\n", ReplyError::InvalidLength),
        (b"$-2\r\n", ReplyError::InvalidLength),
        (b"%-1\r\n", ReplyError::InvalidLength),
        (b"*1\rx", ReplyError::InvalidLength),
        (b"*9999999999999999999999999999999999", ReplyError::InvalidLength),
        (
            b"*3\r\n%9223372036854775807\r\n%9223372036854775807\r\n",
            ReplyError::TooManyElements,
        ),
    ] {
        for size in [1, input.len()] {
            let end = end_in_chunks(&mut ReplyScanner::new(), input, size);
            assert_eq!(end, Err(error), "{} by {size}", input.escape_ascii());
        }
    }
}

#[test]
fn a_line_waits_until_it_is_complete_and_a_bulk_does_not() {
    let mut scanner = ReplyScanner::new();
    assert!(scanner.at_start());
    assert_eq!(scanner.scan(b"*2\r\n-NOSCR"), Ok(Step { taken: 4, done: false }));
    assert!(!scanner.at_start());
    assert_eq!(scanner.scan(b"-NOSCRIPT No\r"), Ok(Step { taken: 0, done: false }));
    assert_eq!(
        scanner.scan(b"-NOSCRIPT No\r\n$10\r\n012"),
        Ok(Step { taken: 22, done: false })
    );
    assert_eq!(scanner.scan(b"3456789"), Ok(Step { taken: 7, done: false }));
    assert_eq!(scanner.scan(b"\r\n+OK\r\n"), Ok(Step { taken: 2, done: true }));
    scanner.next();
    assert!(scanner.at_start());
    assert_eq!(scanner.scan(b"+OK\r\n"), Ok(Step { taken: 5, done: true }));
}

#[test]
fn a_very_long_line_streams() {
    let line = [&b"+"[..], &b"x\r".repeat(LINE_HELD_MAX), b"\r\n"].concat();
    complete_in(&line, 1000);
    complete_in(&line, 1001);
    let mut scanner = ReplyScanner::new();
    let step = scanner.scan(&line[..LINE_HELD_MAX + 1]);
    assert_eq!(
        step,
        Ok(Step {
            taken: LINE_HELD_MAX + 1,
            done: false
        })
    );
}

#[track_caller]
fn complete_in(reply: &[u8], size: usize) {
    let mut scanner = ReplyScanner::new();
    assert_eq!(end_in_chunks(&mut scanner, reply, size), Ok(Some(reply.len())));
    assert!(
        scanner.examined < 3 * reply.len(),
        "{} for {}",
        scanner.examined,
        reply.len()
    );
}

#[test]
fn depth_costs_nothing() {
    for depth in [8_000, 1_000_000] {
        let nested = [&b"*1\r\n".repeat(depth)[..], b":1\r\n"].concat();
        complete_in(&nested, nested.len());
        complete_in(&nested, 7);
    }
}

#[test]
fn announced_lengths_cost_nothing() {
    let mut scanner = ReplyScanner::new();
    let bomb = b"*9223372036854775807\r\n*9223372036854775807\r\n$9223372036854775807\r\nx";
    assert_eq!(
        scanner.scan(bomb),
        Ok(Step {
            taken: bomb.len(),
            done: false
        })
    );
}

#[test]
fn a_line_in_single_bytes_is_searched_once() {
    let line = [&b"-"[..], &b"x".repeat(LINE_HELD_MAX - 10), b"\r\n"].concat();
    complete_in(&line, 1);
}
