//! What both sides are told: batches of cases, made from a seed. A case is a command that is right, one that is wrong, a
//! sequence, or bytes whose framing is at fault. Behind each case stands a marker, so that what is answered to it can be
//! told apart, and so that a fault which swallows what follows is seen. Sends nothing.

use crate::commands::Commands;
use crate::faults;
use crate::framing::Dice;
use crate::samples::{self, Look};
use crate::sequences;

/// What kind of case it is, for the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// As the command's documentation has it.
    Right,
    /// A command with wrong arguments, or a wrong number of them.
    Wrong,
    /// Several commands that change what the connection is.
    Sequence,
    /// Bytes with a fault in their framing.
    Fault,
}

/// One case.
pub struct Case {
    pub kind: Kind,
    pub bytes: Vec<u8>,
    pub look: Look,
    /// Its command, as far as it has one.
    pub name: String,
    /// It may wait for a moment at the server.
    pub waits: bool,
}

/// A row of cases in one go, with all around it.
pub struct Batch {
    pub bytes: Vec<u8>,
    pub cases: Vec<Case>,
    /// What is echoed behind what every batch begins with.
    pub begun: Option<Vec<u8>>,
    /// What is echoed behind each case.
    pub markers: Vec<Vec<u8>>,
    /// Where each case ends, its marker included.
    pub ends: Vec<usize>,
    /// It wants a new connection.
    pub fresh: bool,
    /// Its client does not log in before the end.
    pub logged_out: bool,
    /// Where the cases begin, behind what every batch begins with.
    pub begin: usize,
    /// The answer to the last request.
    pub end: Vec<u8>,
    pub waits: bool,
}

/// Words that stand in for an argument.
const TOKENS: &[&[u8]] = &[
    b"s",
    b"n",
    b"l",
    b"h",
    b"t",
    b"z",
    b"x",
    b"g",
    b"none",
    b"",
    b"0",
    b"-1",
    b"100000",
    b"9223372036854775807",
    b"1.5",
    b"nan",
    b"(1",
    b"\0",
    b"\r\n",
    b"\xff\xfe",
    b"a b",
    b"*1\r\n$4\r\nPING\r\n",
    b"COUNT",
    b"LIMIT",
    b"NX",
    b"GET",
    b"STORE",
    b"+inf",
    b"[a",
    b"f",
    b"lock",
    b"{",
    b"\"'\\",
];
/// A right use of these is not changed: it would wait, or answer with what no two servers have alike.
const UNCHANGED: &[&str] = &[
    "scan",
    "wait",
    "xread",
    "xreadgroup",
    "command",
    "lolwut",
    "dump",
    "spop",
    "set",
    "setex",
    "psetex",
    "getex",
    "expire",
    "pexpire",
    "hexpire",
    "hpexpire",
    "hgetex",
    "hsetex",
    "msetex",
    "sort",
    "restore",
    "shutdown",
    "config",
    "keys",
    "hello",
    "memory",
    "latency",
    "slowlog",
    "acl",
    "client",
    "xadd",
    "function",
    "xclaim",
];
/// With what clients log in, where they have to.
pub const PASSWORD: &str = "differential-password";

impl Batch {
    /// The batch of a number. Where there is a password, each one is said on a new connection, and every second one by a
    /// client that is not logged in.
    pub fn new(number: u64, commands: &Commands, password: bool) -> Batch {
        let mut dice = Dice::new(number);
        let mut bytes = Vec::new();
        let logged_out = password && dice.below(2) == 0;
        if password && !logged_out {
            bytes.extend(array(&words(&format!("AUTH {PASSWORD}"))));
        }
        if !logged_out {
            sequences::PRELUDE
                .iter()
                .for_each(|line| bytes.extend(array(&words(line))));
        }
        let marker = format!("begun{number}");
        let begun = (!logged_out).then(|| bulk(&marker));
        if begun.is_some() {
            bytes.extend(array(&words(&format!("ECHO {marker}"))));
        }
        let begin = bytes.len();
        let faulty = dice.below(5) < 3;
        // A server ends who is not logged in and has 1 KB of answers to read, so nobody logs out behind some.
        let most = if logged_out { 5 } else { 32 };
        let count = if faulty {
            1 + dice.below(5)
        } else {
            2 + dice.below(most)
        };
        let at_fault = if faulty { dice.below(count) } else { count };
        let (mut cases, mut markers, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..count {
            let case = if index == at_fault {
                faults::case(&mut dice)
            } else {
                sound(&mut dice, commands)
            };
            if password && !logged_out && logs_out(&case.bytes) {
                continue;
            }
            bytes.extend(&case.bytes);
            let marker = format!("m{number}-{index}");
            bytes.extend(array(&words(&format!("ECHO {marker}"))));
            markers.push(bulk(&marker));
            ends.push(bytes.len());
            cases.push(case);
        }
        let end = format!("end{number}");
        if !password {
            bytes.extend(array(&words("RESET")));
        } else if logged_out {
            bytes.extend(array(&words(&format!("AUTH {PASSWORD}"))));
        }
        bytes.extend(array(&words(&format!("ECHO {end}"))));
        let waits = cases.iter().any(|case| case.waits);
        Batch {
            bytes,
            cases,
            begun,
            markers,
            ends,
            fresh: password,
            logged_out,
            begin,
            end: bulk(&end),
            waits,
        }
    }
}

fn logs_out(bytes: &[u8]) -> bool {
    bytes.windows(5).any(|word| word.eq_ignore_ascii_case(b"RESET"))
}

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

fn sound(dice: &mut Dice, commands: &Commands) -> Case {
    match dice.below(16) {
        0 => sequence(dice),
        1..=6 => generic(dice, commands),
        _ => sample(dice),
    }
}

fn sequence(dice: &mut Dice) -> Case {
    let lines = sequences::SEQUENCES[dice.below(sequences::SEQUENCES.len())];
    let bytes = lines.iter().flat_map(|line| array(&words(line))).collect();
    let look = lines
        .iter()
        .map(|line| samples::look(line))
        .max()
        .unwrap_or(Look::Exact);
    Case {
        kind: Kind::Sequence,
        bytes,
        look,
        name: lines[0].to_ascii_lowercase(),
        waits: false,
    }
}

fn sample(dice: &mut Dice) -> Case {
    let line = samples::SAMPLES[dice.below(samples::SAMPLES.len())];
    let mut request = words(line);
    let name = line.split(' ').next().unwrap_or_default().to_ascii_lowercase();
    let waits = is_waiting(line);
    let changed = dice.below(3) == 0 && !waits && !UNCHANGED.contains(&name.as_str());
    if changed {
        change(dice, &mut request);
    }
    let kind = if changed { Kind::Wrong } else { Kind::Right };
    // A changed one may be another command's form: what it answers is looked at as before.
    Case {
        kind,
        bytes: written(dice, request),
        look: samples::look(line),
        name,
        waits,
    }
}

/// Whether the line has a timeout in it.
pub fn is_waiting(line: &str) -> bool {
    line.contains("0.01") || line.contains("BLOCK")
}

fn change(dice: &mut Dice, request: &mut Vec<Vec<u8>>) {
    let at = 1 + dice.below(request.len());
    match dice.below(5) {
        0 if at < request.len() => {
            request.remove(at);
        }
        1 if at < request.len() => request[at] = token(dice),
        2 if request.len() > 2 => {
            let other = 1 + dice.below(request.len() - 1);
            let one = at.min(request.len() - 1);
            request.swap(one, other);
        }
        3 => request.truncate(at),
        _ => request.insert(at.min(request.len()), token(dice)),
    }
}

/// Any command of the tables, with about as many arguments as it takes.
fn generic(dice: &mut Dice, commands: &Commands) -> Case {
    let command = &commands.said[dice.below(commands.said.len())];
    let mut request: Vec<Vec<u8>> = command.name.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    let fewest = usize::from(command.arity.unsigned_abs());
    let count = if command.only_wrong {
        dice.below(fewest)
    } else {
        (fewest + dice.below(5)).saturating_sub(1)
    };
    while request.len() < count {
        request.push(token(dice));
    }
    let look = samples::look(&command.name);
    Case {
        kind: Kind::Wrong,
        bytes: written(dice, request),
        look,
        name: command.name.clone(),
        waits: false,
    }
}

fn token(dice: &mut Dice) -> Vec<u8> {
    // Mostly keys, so that commands get further than their arguments.
    let most = if dice.below(2) == 0 { 9 } else { TOKENS.len() };
    TOKENS[dice.below(most)].to_vec()
}

/// As an array or as a line, its name in any case.
fn written(dice: &mut Dice, mut request: Vec<Vec<u8>>) -> Vec<u8> {
    match dice.below(3) {
        0 => request[0].make_ascii_lowercase(),
        1 => request[0].iter_mut().for_each(|byte| {
            if dice.below(2) == 0 {
                *byte = byte.to_ascii_lowercase();
            }
        }),
        _ => {}
    }
    if dice.below(6) == 0 {
        inline(dice, &request)
    } else {
        array(&request)
    }
}

/// A request as an array.
pub fn array(request: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", request.len()).into_bytes();
    for argument in request {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

fn inline(dice: &mut Dice, request: &[Vec<u8>]) -> Vec<u8> {
    let mut line = Vec::new();
    for argument in request {
        let plain = !argument.is_empty()
            && argument
                .iter()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'));
        if plain && (dice.below(4) > 0 || argument[0] == b'*') {
            line.extend(argument);
        } else {
            line.push(b'"');
            argument.iter().for_each(|byte| match byte {
                b' '..=b'~' if !matches!(byte, b'"' | b'\\') => line.push(*byte),
                _ => line.extend(format!("\\x{byte:02x}").bytes()),
            });
            line.push(b'"');
        }
        line.extend([&b" "[..], b"\t", b"  "][dice.below(3)]);
    }
    line.extend([&b"\r\n"[..], b"\n"][dice.below(2)]);
    line
}

/// The words of a line: between blanks, `""` an empty one, quotes around a word left away.
pub fn words(line: &str) -> Vec<Vec<u8>> {
    line.split(' ')
        .map(|word| word.trim_matches('"').as_bytes().to_vec())
        .collect()
}
