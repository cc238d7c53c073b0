//! Bytes whose framing is at fault, or looks so: everything where a proxy and a server could disagree about where a
//! request ends. What is sound in between comes from `cases`.

use crate::cases::{Case, Kind, array, is_waiting, words};
use crate::framing::{self, Dice};
use crate::samples::{self, Look, SAMPLES};

/// Numbers as nobody should write them, and some that one may.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "-0",
    "-1",
    "-2",
    "+1",
    "+4",
    "01",
    "04",
    "004",
    " 4",
    "4 ",
    "4\t",
    "",
    "x",
    "4x",
    "0x4",
    "4.0",
    "4e0",
    "10",
    "11",
    "1048576",
    "1048577",
    "16384",
    "16385",
    "536870912",
    "536870913",
    "2147483647",
    "2147483648",
    "4294967297",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551617",
    "-9223372036854775808",
    "99999999999999999999999",
];
/// Ends of lines.
const ENDS: &[&[u8]] = &[
    b"\r\n", b"\r\n", b"\n", b"\r", b"\n\r", b"\r\r\n", b"\r\0", b"\rX", b"", b" \r\n",
];
/// What would be carried out if a side took the data of a value for requests.
const SMUGGLED: &[u8] = b"*3\r\n$3\r\nSET\r\n$8\r\nsmuggled\r\n$1\r\n1\r\n";
/// Inputs of 64 KB and more are a quarter of all bytes if they come more often.
const LARGE_ONE_IN: usize = 60;

/// A case whose framing is at fault.
pub fn case(dice: &mut Dice) -> Case {
    let bytes = match dice.below(9) {
        0 | 1 => framing::input(dice),
        2 => chosen(dice),
        3 | 4 => damaged(dice),
        5 => header(dice),
        6 => smuggled(dice),
        7 => ends(dice),
        _ => odd(dice),
    };
    Case {
        kind: Kind::Fault,
        bytes,
        look: Look::Exact,
        name: String::new(),
        waits: false,
    }
}

/// Not the lines of just 64 KB: the server takes them or not by how they are cut.
fn chosen(dice: &mut Dice) -> Vec<u8> {
    let all = framing::chosen();
    let large = dice.below(LARGE_ONE_IN) == 0;
    let fitting: Vec<&Vec<u8>> = all
        .iter()
        .filter(|bytes| (bytes.len() > 4096) == large && bytes.len() < 60_000)
        .collect();
    fitting[dice.below(fitting.len())].clone()
}

/// A sound request with bytes changed, put in, left out or doubled. None that sets an expiry: it could become a soon one.
fn damaged(dice: &mut Dice) -> Vec<u8> {
    let fitting = |line: &&&str| {
        !sets_an_expiry(line)
            && !is_waiting(line)
            && !line.starts_with("WAIT")
            // Without its subcommand it answers in the order of a hash table.
            && !line.starts_with("COMMAND")
            && samples::look(line) == Look::Exact
    };
    let lines: Vec<&&str> = SAMPLES.iter().filter(fitting).collect();
    let mut bytes = array(&words(lines[dice.below(lines.len())]));
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        let put = b"\r\n\0 *$:+-019\"'\\a\xff"[dice.below(17)];
        match dice.below(5) {
            0 if bytes.len() > 1 => {
                bytes.remove(at);
            }
            1 => bytes.insert(at, put),
            2 => bytes[at] = put,
            3 => {
                let piece = bytes[at..(at + 1 + dice.below(8)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ if at > 0 => bytes.truncate(at),
            _ => {}
        }
    }
    bytes
}

fn sets_an_expiry(line: &str) -> bool {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    ["EXPIRE", "SETEX", "GETEX"].iter().any(|part| name.contains(part))
        || words.any(|word| matches!(word, "EX" | "PX" | "EXAT" | "PXAT"))
}

fn number(dice: &mut Dice) -> &'static str {
    NUMBERS[dice.below(NUMBERS.len())]
}

fn header(dice: &mut Dice) -> Vec<u8> {
    let (one, two) = (number(dice), number(dice));
    match dice.below(6) {
        0 => format!("*{one}\r\n$4\r\nPING\r\n"),
        1 => format!("*1\r\n${one}\r\nPING\r\n"),
        2 => format!("*{one}\r\n${two}\r\nPING\r\n"),
        3 => format!("*2\r\n$4\r\nECHO\r\n${one}\r\nabcd\r\n"),
        4 => format!("*3\r\n$3\r\nSET\r\n$1\r\ns\r\n${one}\r\nx\r\n"),
        _ => format!(
            "{}{one}\r\n",
            ["*", "$", ":", "+", "-", "_", "%", "~", ">"][dice.below(9)]
        ),
    }
    .into_bytes()
}

/// A value that is a request, announced as longer or shorter than it is.
fn smuggled(dice: &mut Dice) -> Vec<u8> {
    let off = [0, 1, 2, 3, SMUGGLED.len()][dice.below(5)];
    let length = if dice.below(2) == 0 {
        SMUGGLED.len() + off
    } else {
        SMUGGLED.len() - off
    };
    let count = [2, 3, 3, 3, 4][dice.below(5)];
    let mut bytes = format!("*{count}\r\n$3\r\nSET\r\n$1\r\ns\r\n${length}\r\n").into_bytes();
    bytes.extend(SMUGGLED);
    bytes.extend(ENDS[dice.below(ENDS.len())]);
    bytes
}

/// Every line with another end.
fn ends(dice: &mut Dice) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut end = || {
        if dice.below(3) == 0 {
            ENDS[dice.below(ENDS.len())]
        } else {
            b"\r\n"
        }
    };
    for line in [&b"*2"[..], b"$4", b"ECHO", b"$2", b"hi"] {
        bytes.extend(line);
        bytes.extend(end());
    }
    bytes
}

fn odd(dice: &mut Dice) -> Vec<u8> {
    let fixed: &[&[u8]] = &[
        b"*1\r\n*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nECHO\r\n*1\r\n$1\r\na\r\n",
        b"*2\r\n$4\r\nECHO\r\n:1\r\n",
        b"*2\r\n$4\r\nECHO\r\n+a\r\n",
        b"*2\r\n$4\r\nECHO\r\n_\r\n",
        b"%1\r\n$4\r\nPING\r\n",
        b"$4\r\nPING\r\n",
        b"+PING\r\n",
        b"*1048577\r\n$4\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n$536870913\r\n",
        b"*1\r\n$536870912\r\nPING\r\n",
        b"*0\r\n*0\r\n*-1\r\n",
        b"\r\n\r\n\n",
        b" \r\n",
        b"GET  s \r\n",
        b"SET s \"a b\" \r\n",
        b"SET s 'a\\'b'\r\n",
        b"SET s \"\\x00\\x0d\\x0a\"\r\n",
        b"GET \"s\r\n",
        b"GET 's\r\n",
        b"PING PING\nPING\n",
        b"ECHO a\rECHO b\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Host: x\r\n",
        b"post\r\n",
        b"POSTS a\r\n",
        b"GET / HTTP/1.1\r\n",
        b"*1\r\n$4\r\nPOST\r\n",
        b"\x16\x03\x01\x02\r\n",
        b"*1\r\n$0\r\n\r\n",
        b"*2\r\n$0\r\n\r\n$0\r\n\r\n",
        b"\"\"\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\ns\r\n$5\r\n\0\xff\r\n\x01\r\n",
        b"*1\r\n$6\r\nPI\r\nNG\r\n",
        b"ECHO \x85\xa0\r\n",
        b"*11\r\n$4\r\nECHO\r\n",
        b"AUTH\r\n",
        b"*1\r\n$16385\r\n",
    ];
    if dice.below(LARGE_ONE_IN) == 0 {
        let length = (300 + dice.below(3)) * 1024;
        let begin: &[u8] = [&b"*"[..], b"*1\r\n$", b"ECHO "][dice.below(3)];
        return [begin, &vec![b'1'; length]].concat();
    }
    fixed[dice.below(fixed.len())].to_vec()
}
