//! Looking into complete and incomplete replies, by example.

use super::*;

#[test]
fn the_first_word_of_pushes_and_messages() {
    for (input, kind, count, word) in [
        (&b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n"[..], b'>', 3, &b"message"[..]),
        (b"*3\r\n$9\r\nsubscribe\r\n", b'*', 3, b"subscribe"),
        (b">2\r\n+invalidate\r\n", b'>', 2, b"invalidate"),
        (b"*1\r\n$0\r\n\r\n", b'*', 1, b""),
    ] {
        assert_eq!(
            leading_word(input),
            Leading::Word { kind, count, word },
            "{}",
            input.escape_ascii()
        );
    }
}

#[test]
fn a_word_that_is_not_there_yet() {
    let whole = b"*3\r\n$7\r\nmessage";
    for end in 0..whole.len() {
        assert_eq!(leading_word(&whole[..end]), Leading::NeedMore, "{end}");
    }
    for end in 0..b">2\r\n+invalidate\r".len() {
        assert_eq!(leading_word(&b">2\r\n+invalidate\r"[..end]), Leading::NeedMore, "{end}");
    }
}

#[test]
fn what_has_no_first_word() {
    for input in [
        &b"+OK\r\n"[..],
        b"$1",
        b"%1\r\n+a\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"*x\r\n",
        b"*1\r\n:1\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$33\r\n",
        b"*1\r\n*1\r\n",
        b"*1\r\n+xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ] {
        assert_eq!(
            leading_word(input),
            Leading::Other { kind: input[0] },
            "{}",
            input.escape_ascii()
        );
    }
}

#[test]
fn the_elements_of_an_aggregate_are_whole_frames() {
    let frame = b"*4\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n$-1\r\n|1\r\n+k\r\n+v\r\n:2\r\n";
    let found = elements(frame).expect("complete");
    assert_eq!((found.kind(), found.announced()), (b'*', 4));
    let parts: Vec<&[u8]> = found.collect();
    assert_eq!(
        parts,
        [
            &b"$1\r\na\r\n"[..],
            b"*2\r\n:1\r\n*0\r\n",
            b"$-1\r\n",
            b"|1\r\n+k\r\n+v\r\n:2\r\n"
        ]
    );
    assert_eq!(elements(b"%1\r\n+a\r\n:1\r\n").expect("complete").announced(), 1);
    assert_eq!(
        elements(b"%1\r\n+a\r\n:1\r\n")
            .expect("complete")
            .collect::<Vec<_>>()
            .len(),
        2
    );
    assert_eq!(elements(b"~0\r\n").expect("complete").next(), None);
}

#[test]
fn only_one_complete_aggregate_has_elements() {
    for frame in [
        &b""[..],
        b"+OK\r\n",
        b"*-1\r\n",
        b"*1\r\n",
        b"*1\r\n:1\r\n:2\r\n",
        b"*1\r\nx\r\n",
        b"$1\r\na\r\n",
        b"_\r\n",
    ] {
        assert!(elements(frame).is_none(), "{}", frame.escape_ascii());
    }
}

#[test]
fn the_text_of_an_element() {
    for (element, text) in [
        (&b"$5\r\na\r\nbc\r\n"[..], Some(&b"a\r\nbc"[..])),
        (b"$0\r\n\r\n", Some(b"")),
        (b"+OK\r\n", Some(b"OK")),
        (b":-7\r\n", Some(b"-7")),
        (b"$-1\r\n", None),
        (b"$4\r\nabc\r\n", None),
        (b"$3\r\nabc", None),
        (b"_\r\n", None),
        (b"-ERR\r\n", None),
        (b"*0\r\n", None),
        (b"", None),
    ] {
        assert_eq!(bulk(element), text, "{}", element.escape_ascii());
    }
}
