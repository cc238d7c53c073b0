//! `lockward demo`: plays the founding bug with three clients, first straight on a server, then through lockward, and
//! prints both side by side. Starts neither server nor proxy (the caller hands in two endpoints), and blocks: it is a
//! client like any other, and knows nothing of the core.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// How long a single answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// A works so long, in milliseconds, on a lock of [`TTL_MS`]: it overruns.
const WORK_MS: u64 = 700;
const TTL_MS: u64 = 400;
const KEY: &str = "lock:demo";

/// Where a server or a proxy listens.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

/// One line of the play.
enum Step {
    /// A client's command and a note for each column, shown when the answer is the expected one.
    Ask {
        who: Who,
        command: Command,
        note: &'static str,
        direct: Expected,
        proxied: Expected,
    },
    /// Time passes.
    Work,
}

#[derive(Clone, Copy)]
enum Who {
    A,
    B,
    C,
}

#[derive(Clone, Copy)]
enum Command {
    /// `SET lock:demo 1 NX PX ttl`, the TTL in milliseconds.
    Acquire { ttl_ms: u64 },
    /// A bare `DEL lock:demo`.
    Release,
}

struct Expected {
    answer: Answer,
    meaning: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Ok,
    Nil,
    Number(i64),
    Other(String),
}

/// Plays the bug at both endpoints and writes the two columns, a verdict and the lines to repeat it by hand to `out`.
/// True if the bug showed at `direct` and was gone at `proxied`. Takes some 1.5 s. The proxy must have a rule that
/// matches `lock:demo`, with `owner = "connection"`: all three clients come from one address.
pub fn run(direct: &Endpoint, proxied: &Endpoint, out: &mut dyn Write) -> Result<bool, io::Error> {
    let script = script();
    writeln!(
        out,
        "A lock with a TTL, three clients, and the bare DEL that most programs release with."
    )?;
    writeln!(
        out,
        "A overruns its TTL, B takes the lock, then A is done and deletes the lock: B's lock.\n"
    )?;
    let left = play(&script, direct)?;
    clear(direct)?;
    let right = play(&script, proxied)?;
    let as_told = table(&script, &left, &right, out)?;
    verdict(as_told, out)?;
    by_hand(out)?;
    Ok(as_told)
}

fn script() -> Vec<Step> {
    let ask = |who, command, note, direct, proxied| Step::Ask {
        who,
        command,
        note,
        direct,
        proxied,
    };
    let expect = |answer, meaning| Expected { answer, meaning };
    vec![
        ask(
            Who::A,
            Command::Acquire { ttl_ms: TTL_MS },
            "",
            expect(Answer::Ok, ""),
            expect(Answer::Ok, ""),
        ),
        Step::Work,
        ask(
            Who::B,
            Command::Acquire { ttl_ms: 30_000 },
            "",
            expect(Answer::Ok, ""),
            expect(Answer::Ok, ""),
        ),
        ask(
            Who::A,
            Command::Release,
            "(A is late)",
            expect(Answer::Number(1), "B's lock is gone"),
            expect(Answer::Number(0), "B's lock stays"),
        ),
        ask(
            Who::C,
            Command::Acquire { ttl_ms: 30_000 },
            "",
            expect(Answer::Ok, "B and C both inside"),
            expect(Answer::Nil, "C has to wait"),
        ),
        ask(
            Who::B,
            Command::Release,
            "(B is done)",
            expect(Answer::Number(1), "this was C's lock"),
            expect(Answer::Number(1), "B gives up its own"),
        ),
    ]
}

/// The answers to the steps that ask, in order.
fn play(script: &[Step], endpoint: &Endpoint) -> io::Result<Vec<Answer>> {
    let mut clients = [
        Client::connect(endpoint)?,
        Client::connect(endpoint)?,
        Client::connect(endpoint)?,
    ];
    let mut answers = Vec::new();
    for step in script {
        match step {
            Step::Work => thread::sleep(Duration::from_millis(WORK_MS)),
            Step::Ask { who, command, .. } => {
                let [a, b, c] = &mut clients;
                let client = match who {
                    Who::A => a,
                    Who::B => b,
                    Who::C => c,
                };
                answers.push(client.ask(&command.words())?);
            }
        }
    }
    Ok(answers)
}

fn clear(endpoint: &Endpoint) -> io::Result<()> {
    Client::connect(endpoint)?.ask(&Command::Release.words()).map(|_| ())
}

fn table(script: &[Step], left: &[Answer], right: &[Answer], out: &mut dyn Write) -> io::Result<bool> {
    let mut as_told = true;
    let mut answers = left.iter().zip(right);
    writeln!(out, "     {:<42} {:<26} through lockward", "", "straight on the server")?;
    for step in script {
        match step {
            Step::Work => writeln!(out, "     ... A works for {WORK_MS} ms; its lock expires meanwhile ...")?,
            Step::Ask {
                who,
                command,
                note,
                direct,
                proxied,
            } => {
                let Some((was_direct, was_proxied)) = answers.next() else {
                    continue;
                };
                as_told &= *was_direct == direct.answer && *was_proxied == proxied.answer;
                let asked = format!("{} {note}", command.words().join(" "));
                let line = format!(
                    "  {who}  {asked:<42} {:<26} {}",
                    direct.cell(was_direct),
                    proxied.cell(was_proxied)
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
    }
    Ok(as_told)
}

fn verdict(as_told: bool, out: &mut dyn Write) -> io::Result<()> {
    if as_told {
        writeln!(
            out,
            "\nVerdict: straight on the server two clients held one lock; through lockward only one did."
        )
    } else {
        writeln!(
            out,
            "\nVerdict: NOT as it should be: the answers marked with ! differ from what was expected."
        )
    }
}

fn by_hand(out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nTo repeat it by hand, start lockward with this rule (three redis-cli on one machine are one"
    )?;
    writeln!(out, "address, so the connection must be the owner):\n")?;
    for line in ["[[locks]]", "pattern = \"lock:*\"", "owner = \"connection\""] {
        writeln!(out, "    {line}")?;
    }
    writeln!(
        out,
        "\nthen in three terminals, each with `redis-cli -p 6380` (or with the server's own port):\n"
    )?;
    let slow = Command::Acquire { ttl_ms: 5_000 }.words().join(" ");
    let next = Command::Acquire { ttl_ms: 60_000 }.words().join(" ");
    let release = Command::Release.words().join(" ");
    writeln!(out, "    A>  {slow:<36} wait 6 seconds")?;
    writeln!(out, "    B>  {next}")?;
    writeln!(out, "    A>  {release:<36} lockward: 0, the server: 1")?;
    writeln!(out, "    C>  {next:<36} lockward: (nil), the server: OK")
}

impl Command {
    fn words(self) -> Vec<String> {
        let words = match self {
            Command::Acquire { ttl_ms } => format!("SET {KEY} 1 NX PX {ttl_ms}"),
            Command::Release => format!("DEL {KEY}"),
        };
        words.split(' ').map(str::to_owned).collect()
    }
}

impl Expected {
    fn cell(&self, was: &Answer) -> String {
        match (*was == self.answer, self.meaning) {
            (false, _) => format!("{was} !"),
            (true, "") => was.to_string(),
            (true, meaning) => format!("{:<4} {meaning}", was.to_string()),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::A => "A",
            Who::B => "B",
            Who::C => "C",
        })
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Ok => f.write_str("OK"),
            Answer::Nil => f.write_str("nil"),
            Answer::Number(number) => write!(f, "{number}"),
            Answer::Other(line) => write!(f, "{}", line.chars().take(20).collect::<String>().escape_debug()),
        }
    }
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

struct Client {
    stream: BufReader<Stream>,
}

impl Client {
    fn connect(endpoint: &Endpoint) -> io::Result<Client> {
        let stream = match endpoint {
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ANSWER_LIMIT))?;
                Stream::Unix(stream)
            }
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(ANSWER_LIMIT))?;
                Stream::Tcp(stream)
            }
        };
        Ok(Client {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a command; its answer is one line, since nothing here is answered with a bulk that is not nil.
    fn ask(&mut self, words: &[String]) -> io::Result<Answer> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        match self.stream.get_mut() {
            Stream::Unix(stream) => stream.write_all(request.as_bytes())?,
            Stream::Tcp(stream) => stream.write_all(request.as_bytes())?,
        }
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        Ok(
            match (line, line.strip_prefix(':').and_then(|digits| digits.parse().ok())) {
                ("", _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                ("+OK", _) => Answer::Ok,
                ("$-1", _) => Answer::Nil,
                (_, Some(number)) => Answer::Number(number),
                _ => Answer::Other(line.to_owned()),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as the script expects them, with one exchanged.
    fn answers(column: fn(&Step) -> Option<Answer>, wrong: Option<usize>) -> Vec<Answer> {
        let mut answers: Vec<Answer> = script().iter().filter_map(column).collect();
        if let Some(place) = wrong {
            answers[place] = Answer::Other("-ERR something quite long that must be cut".into());
        }
        answers
    }

    fn direct(step: &Step) -> Option<Answer> {
        match step {
            Step::Ask { direct, .. } => Some(direct.answer.clone()),
            Step::Work => None,
        }
    }

    fn proxied(step: &Step) -> Option<Answer> {
        match step {
            Step::Ask { proxied, .. } => Some(proxied.answer.clone()),
            Step::Work => None,
        }
    }

    fn printed(wrong: Option<usize>) -> (bool, String) {
        let mut out = Vec::new();
        let as_told = table(&script(), &answers(direct, None), &answers(proxied, wrong), &mut out).unwrap();
        verdict(as_told, &mut out).unwrap();
        by_hand(&mut out).unwrap();
        (as_told, String::from_utf8(out).unwrap())
    }

    #[test]
    fn fits_a_hundred_columns_of_plain_text() {
        for wrong in [None, Some(2)] {
            let (_, text) = printed(wrong);
            for line in text.lines() {
                assert!(line.is_ascii() && line.len() <= 100, "{} columns: {line}", line.len());
            }
        }
    }

    #[test]
    fn the_verdict_follows_the_answers() {
        assert!(printed(None).0);
        assert!(printed(None).1.contains("through lockward only one did"));
        let (as_told, text) = printed(Some(2));
        assert!(!as_told && text.contains("NOT as it should be") && text.contains("-ERR something quite !"));
    }
}
