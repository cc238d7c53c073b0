//! A connection to a real server for the lease tests, which pipelines. Reads RESP2 into plain values; checks nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use bytes::BytesMut;
use lockward::lock::call::Call;
use lockward::resp::encode;

use crate::real_server::{self, RealServer};

/// A server of our own.
pub struct Server(RealServer);

impl Server {
    /// Starts one: `redis` or `valkey`.
    pub fn start(kind: &str) -> Server {
        let program = match kind {
            "redis" => real_server::redis(),
            _ => real_server::valkey(),
        };
        Server(RealServer::start(&program))
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// A new connection.
    pub fn connect(&self) -> Connection {
        let stream = self.0.connect();
        let reader = BufReader::with_capacity(1 << 16, stream.try_clone().expect("a second handle"));
        Connection {
            stream,
            reader,
            out: BytesMut::new(),
        }
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Status(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Value>),
}

impl Value {
    pub fn integer(&self) -> i64 {
        match self {
            Value::Integer(value) => *value,
            other => panic!("no integer: {other:?}"),
        }
    }

    pub fn array(&self) -> &[Value] {
        match self {
            Value::Array(values) => values,
            other => panic!("no array: {other:?}"),
        }
    }

    pub fn text(&self) -> String {
        match self {
            Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Status(text) | Value::Error(text) => text.clone(),
            other => format!("{other:?}"),
        }
    }

    /// The report of a lock script, if there is one, and the client's own reply.
    pub fn split(&self, call: &Call) -> (Option<String>, Value) {
        match self {
            Value::Array(parts) => (Some(parts[0].text()), parts[1].clone()),
            Value::Status(text) => match call.report_alone(format!("+{text}").as_bytes()) {
                Some((_, reply)) => {
                    assert_eq!(reply, b":1\r\n");
                    (Some(text.clone()), Value::Integer(1))
                }
                None => (None, self.clone()),
            },
            other => (None, other.clone()),
        }
    }

    /// The reply of `TIME` in milliseconds.
    pub fn milliseconds(&self) -> i64 {
        let parts: Vec<i64> = self
            .array()
            .iter()
            .map(|part| part.text().parse().expect("a number"))
            .collect();
        parts[0] * 1000 + parts[1] / 1000
    }
}

/// Requests are collected in `out`, sent together, and their replies read one by one.
pub struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    pub out: BytesMut,
}

impl Connection {
    pub fn command(&mut self, words: &[&str]) {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        encode::command(&mut self.out, words);
    }

    pub fn send(&mut self) {
        self.stream.write_all(&self.out).expect("the server reads");
        self.out.clear();
    }

    pub fn ask(&mut self, words: &[&str]) -> Value {
        self.command(words);
        self.send();
        self.read()
    }

    pub fn read(&mut self) -> Value {
        let line = self.line();
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        match kind {
            "+" => Value::Status(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            ":" => Value::Integer(number()),
            "$" | "*" if number() < 0 => Value::Nil,
            "$" => {
                let length = usize::try_from(number()).expect("a length");
                let mut bytes = vec![0; length + 2];
                self.reader.read_exact(&mut bytes).expect("the server writes");
                bytes.truncate(length);
                Value::Bulk(bytes)
            }
            "*" => Value::Array((0..number()).map(|_| self.read()).collect()),
            other => panic!("unknown reply {other}{rest}"),
        }
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let read = self.reader.read_until(b'\n', &mut line).expect("the server writes");
            assert!(read > 0, "the server closed the connection");
        }
        line.truncate(line.len() - 2);
        String::from_utf8_lossy(&line).into_owned()
    }
}
