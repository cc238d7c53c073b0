//! Compares the command table with what real servers say of themselves: every command of `COMMAND` has a row with the
//! server's arity, and the places of the keys are those of `COMMAND GETKEYS`, for generic arguments of several lengths
//! and for the samples below. Runs only those that write one key, to see which: it does not say what commands do.

mod real_server;

use std::collections::BTreeSet;

use lockward::command::{self, Keys, Row};
use lockward::resp::{Args, Span};
use real_server::RealServer;
use redis::{Connection, ErrorKind, ServerErrorKind, Value};

/// Commands whose keys no generic arguments find, several samples for each form. `""` is an empty argument. A server
/// that does not have the command skips the line.
const SAMPLES: &[&str] = &[
    "BLMPOP 0 1 a LEFT",
    "BLMPOP 0 3 a b c RIGHT COUNT 2",
    "BZMPOP 1.5 2 a b MAX",
    "EVAL return 0",
    "EVAL return 1 a",
    "EVAL return 2 a b c d",
    "EVAL return 3 a b",
    "EVAL return -1 a",
    "EVAL return x a",
    "EVALSHA sha 2 a b c",
    "EVALSHA_RO sha 1 a",
    "EVAL_RO return 1 a x",
    "FCALL f 2 a b c",
    "FCALL_RO f 1 a",
    "GEORADIUS a 1 2 3 m",
    "GEORADIUS a 1 2 3 m WITHDIST COUNT 5 ANY ASC STORE d",
    "GEORADIUS a 1 2 3 m storedist d",
    "GEORADIUSBYMEMBER a x 3 m",
    "GEORADIUSBYMEMBER a x 3 m STORE d",
    "GEORADIUSBYMEMBER a x 3 m COUNT 1 STOREDIST d",
    "LMPOP 1 a LEFT",
    "LMPOP 2 a b RIGHT COUNT 3",
    "LMPOP 0 a LEFT",
    "MIGRATE h 1 a 0 10",
    "MIGRATE h 1 a 0 10 COPY REPLACE",
    "MIGRATE h 1 \"\" 0 10 KEYS a",
    "MIGRATE h 1 \"\" 0 10 COPY REPLACE KEYS a b c",
    "MIGRATE h 1 \"\" 0 10 AUTH p KEYS a b",
    "MIGRATE h 1 \"\" 0 10 AUTH2 u p KEYS a b",
    "MSETEX 1 a 1",
    "MSETEX 2 a 1 b 2 EX 10 NX",
    "MSETEX 3 a 1 b 2",
    "SDIFFCARD 2 a b",
    "SINTERCARD 1 a",
    "SINTERCARD 2 a b LIMIT 10",
    "SINTERCARD 3 a b",
    "SORT a",
    "SORT a STORE d",
    "SORT a BY w_* LIMIT 0 5 GET # GET d_* DESC ALPHA STORE d",
    "SORT a STORE d STORE e",
    "SORT a BY store STORE d",
    "SUNIONCARD 2 a b LIMIT 3",
    "XREAD STREAMS a 0",
    "XREAD COUNT 5 BLOCK 100 STREAMS a b 0 $",
    "XREAD streams STREAMS 0",
    "XREAD COUNT 5 a 0",
    "XREADGROUP GROUP g w STREAMS a >",
    "XREADGROUP GROUP g w COUNT 1 BLOCK 0 NOACK STREAMS a b c > > >",
    "XREADGROUP GROUP streams w STREAMS a >",
    "ZDIFF 2 a b WITHSCORES",
    "ZDIFFSTORE d 2 a b",
    "ZINTER 1 a",
    "ZINTERCARD 2 a b LIMIT 1",
    "ZINTERSTORE d 2 a b WEIGHTS 1 2 AGGREGATE MAX",
    "ZMPOP 2 a b MIN",
    "ZUNION 3 a b c",
    "ZUNIONSTORE d 1 a",
    "ZUNIONSTORE d 2 a b WEIGHTS 1 2",
    "ZUNIONSTORE d 3 a b",
];

/// Where a row is meant to be wider than some server: `ZRANK … WITHSCORE` came with Redis 7.2, and Redis before 8.4
/// gives the vector sets no arity.
fn wider_on_purpose(name: &str, arity: i64) -> bool {
    matches!((name, arity), ("zrank" | "zrevrank", 3)) || (name.starts_with('v') && arity == -1)
}

#[test]
fn the_table_agrees_with_redis() {
    agree(&mut Server::start(&real_server::redis()));
}

#[test]
fn the_table_agrees_with_valkey() {
    agree(&mut Server::start(&real_server::valkey()));
}

/// Requests that write one key, each run where `a` is a list, `z` a sorted set of places, `h` a HyperLogLog.
const WRITES: &[&str] = &[
    "SORT a STORE d",
    "SORT a STORE d STORE e",
    "SORT a STORE limit STORE e",
    "SORT a STORE store",
    "SORT a BY store STORE d",
    "GEORADIUS z 1 2 3 km STORE d STOREDIST e",
    "GEORADIUS z 1 2 3 km COUNT 1 STOREDIST d STORE e",
    "GEORADIUS z 1 2 3 km STORE store",
    "GEORADIUSBYMEMBER z x 3 km STORE d",
    "GEOSEARCHSTORE d z FROMMEMBER x BYRADIUS 3 km",
    "ZRANGESTORE d z 0 -1",
    "ZUNIONSTORE d 1 z",
    "ZINTERSTORE d 2 z z",
    "ZDIFFSTORE d 1 z",
    "BITOP NOT d h",
    "PFMERGE d h",
    "PFMERGE d",
    "COPY a d",
];

#[test]
fn targets_are_the_keys_that_redis_writes() {
    let mut server = Server::start(&real_server::redis());
    for line in WRITES {
        for prepare in ["FLUSHALL", "RPUSH a 1 2", "GEOADD z 1 2 x", "PFADD h x"] {
            server.run(&words(prepare)).unwrap();
        }
        let request = words(line);
        server.run(&request).unwrap_or_else(|error| panic!("{line}: {error}"));
        let Ok(Value::Array(keys)) = server.run(&words("KEYS *")) else {
            panic!("KEYS gave no array")
        };
        let new: Vec<String> = keys
            .iter()
            .map(text)
            .filter(|key| !["a", "z", "h"].contains(&key.as_str()))
            .collect();
        assert_eq!(new, [our_target(&request)], "{line}");
    }
}

fn agree(server: &mut Server) {
    let mut faults = Vec::new();
    let mut with_keys = BTreeSet::new();
    let commands = server.commands();
    assert!(commands.len() > 200, "COMMAND lists {} commands", commands.len());
    for listed in &commands {
        match command::lookup(listed.name.as_bytes()).1 {
            None => faults.push(format!("{}: no row", listed.name)),
            Some(row) if i64::from(row.arity) != listed.arity && !wider_on_purpose(row.name, listed.arity) => {
                faults.push(format!(
                    "{}: arity {}, the server's is {}",
                    row.name, row.arity, listed.arity
                ));
            }
            Some(_) => {}
        }
    }
    let generic = commands.iter().flat_map(|listed| listed.generic_requests());
    let samples = SAMPLES.iter().map(|line| words(line));
    for request in generic.chain(samples) {
        if !commands
            .iter()
            .any(|listed| listed.name.eq_ignore_ascii_case(&request[0]))
        {
            continue;
        }
        let (ours, theirs) = (our_keys(&request), server.keys(&request));
        if !theirs.is_empty() {
            with_keys.insert(request[0].to_ascii_lowercase());
        }
        if ours != theirs && !unknown_to_getkeys(&request) {
            faults.push(format!(
                "{}: keys {ours:?}, the server's are {theirs:?}",
                request.join(" ")
            ));
        }
    }
    // Each command that can have keys has been seen with some.
    for listed in &commands {
        let row = command::lookup(listed.name.as_bytes()).1;
        let keyed = row.is_some_and(|row| !matches!(row.keys, Keys::None)) && listed.name != "debug";
        if keyed && !with_keys.contains(&listed.name) {
            faults.push(format!("{}: no sample with keys", listed.name));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// `DEBUG OBJECT key` and its like read keys, and `PFMERGE d` without sources writes one; `COMMAND GETKEYS` knows
/// neither.
fn unknown_to_getkeys(request: &[String]) -> bool {
    request[0] == "debug" || (request[0] == "pfmerge" && request.len() == 2)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace()
        .map(|word| if word == "\"\"" { "" } else { word }.to_string())
        .collect()
}

/// Hands the request to `read` with its row, in the shape that the proxy sees.
fn with_row<T>(request: &[String], read: impl Fn(&Row, Args<'_>) -> T) -> Option<T> {
    let mut bytes = Vec::new();
    let mut spans = Vec::new();
    for argument in request {
        let start = bytes.len();
        bytes.extend_from_slice(argument.as_bytes());
        spans.push(Span {
            start,
            end: bytes.len(),
        });
    }
    let row = command::lookup(request[0].as_bytes()).1?;
    Some(read(row, Args::new(&bytes, &spans)))
}

fn our_keys(request: &[String]) -> Vec<String> {
    let mut keys: Vec<usize> = with_row(request, |row, args| command::keys(row, args).collect()).unwrap_or_default();
    keys.sort_unstable();
    keys.into_iter().map(|at| request[at].clone()).collect()
}

fn our_target(request: &[String]) -> String {
    let target = with_row(request, command::target).flatten();
    target.map_or_else(|| "none".into(), |at| request[at].clone())
}

/// One entry of `COMMAND`.
struct Listed {
    name: String,
    arity: i64,
    subcommands: Vec<Listed>,
}

impl Listed {
    fn read(entry: &Value) -> Listed {
        let Value::Array(fields) = entry else {
            panic!("COMMAND gave {entry:?}")
        };
        let subcommands = match fields.get(9) {
            Some(Value::Array(entries)) => entries.iter().map(Listed::read).collect(),
            _ => Vec::new(),
        };
        let name = text(&fields[0]).to_ascii_lowercase();
        let Value::Int(arity) = fields[1] else {
            panic!("COMMAND gave {entry:?}")
        };
        Listed {
            name,
            arity,
            subcommands,
        }
    }

    /// The command with arguments `1`, `k2`, `k3` … of the fewest and some more numbers of them; the first is a number
    /// for the sake of `CLUSTERSCAN` and `SELECT`, which is a fine key as well. Of each subcommand likewise.
    fn generic_requests(&self) -> Vec<Vec<String>> {
        let mut requests = Vec::new();
        for subcommand in &self.subcommands {
            requests.extend(subcommand.generic_requests());
        }
        let fewest = self.arity.unsigned_abs() as usize;
        let most = if self.arity < 0 { fewest + 4 } else { fewest };
        for count in fewest..=most {
            let mut request: Vec<String> = self.name.split('|').map(str::to_string).collect();
            while request.len() < count {
                request.push(if request.len() == 1 {
                    "1".into()
                } else {
                    format!("k{}", request.len())
                });
            }
            requests.push(request);
        }
        requests
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        other => panic!("not a text: {other:?}"),
    }
}

/// A server of our own and a connection to it.
struct Server {
    _process: RealServer,
    connection: Connection,
}

impl Server {
    fn start(program: &str) -> Server {
        let process = RealServer::start(program);
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", process.port())).unwrap();
        let connection = client.get_connection().expect("the server listens");
        Server {
            _process: process,
            connection,
        }
    }

    fn run(&mut self, request: &[String]) -> redis::RedisResult<Value> {
        redis::cmd(&request[0]).arg(&request[1..]).query(&mut self.connection)
    }

    fn commands(&mut self) -> Vec<Listed> {
        let entries: Vec<Value> = redis::cmd("COMMAND").query(&mut self.connection).unwrap();
        entries.iter().map(Listed::read).collect()
    }

    /// The keys by `COMMAND GETKEYS`, in the order in which they stand; none where it answers with an error.
    fn keys(&mut self, request: &[String]) -> Vec<String> {
        let answer = redis::cmd("COMMAND")
            .arg("GETKEYS")
            .arg(request)
            .query(&mut self.connection);
        let mut keys: Vec<String> = match answer {
            Ok(keys) => keys,
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError) => Vec::new(),
            Err(error) => panic!("{}: {error}", request.join(" ")),
        };
        let place = |key: &String| request.iter().skip(1).position(|argument| argument == key);
        keys.sort_by_key(place);
        keys
    }
}
