//! What arrives at the server: who asked for it. Each request of a client must arrive exactly once and in order, as it
//! was sent or as a script of lockward's in its place; whatever else lockward sends must be one of the few things that it
//! may send by itself.

use lockward::lock::script::Script;

use crate::fault::Fault;
use crate::net::Packet;
use crate::request::Meaning;
use crate::resp::{Reply, show_args};
use crate::server::Served;
use crate::server::commands::is;
use crate::server::keyspace::{By, Bytes, Tag};
use crate::world::{Upstream, World};

/// Which of lockward's scripts a request calls.
pub fn script_of(args: &[Bytes]) -> Option<Script> {
    let (name, what) = (args.first()?, args.get(1)?);
    let text = is(name, "EVAL");
    let sha = is(name, "EVALSHA");
    let calls = |script: &Script| {
        text && script.text().as_bytes() == what.as_slice() || sha && script.sha1().as_bytes() == what.as_slice()
    };
    Script::ALL.into_iter().find(calls)
}

/// The keys of a script call.
pub fn script_keys(args: &[Bytes]) -> &[Bytes] {
    let count: usize = args
        .get(2)
        .and_then(|count| String::from_utf8_lossy(count).parse().ok())
        .unwrap_or(0);
    args.get(3..3 + count).unwrap_or_default()
}

impl World {
    pub fn server_receives(&mut self, connection: u64, packet: Packet) {
        let Some(upstream) = self.upstreams.get(&connection).copied() else {
            return;
        };
        match packet {
            Packet::Data(bytes) => {
                self.server.receive(connection, &bytes);
                self.serve(connection, upstream);
            }
            Packet::Fin | Packet::Reset => {
                self.server.disconnect(connection);
                self.upstreams.remove(&connection);
                let (Upstream::Client { pipe, .. } | Upstream::Own { pipe, .. }) = upstream;
                self.send_end(pipe);
            }
        }
    }

    fn serve(&mut self, connection: u64, upstream: Upstream) {
        while self.violation.is_none()
            && let Some((args, raw)) = self.server.next_request(connection)
        {
            match upstream {
                Upstream::Own { proxy, pipe } => {
                    let tag = Tag {
                        by: By::Keeper(proxy),
                        keys: Vec::new(),
                    };
                    let served = self.server.serve(connection, args, tag);
                    self.read_journal();
                    self.send(pipe, &served.bytes);
                }
                Upstream::Client { client, pipe } => self.serve_client(connection, client, pipe, args, &raw),
            }
        }
        self.unblock();
    }

    fn serve_client(&mut self, connection: u64, client: usize, pipe: usize, args: Vec<Bytes>, raw: &[u8]) {
        if args.is_empty() {
            return;
        }
        let tag = match self.attribute(client, &args, raw) {
            Ok(tag) => tag,
            Err(why) => return self.violated("upstream", format!("{why}: {}", show_args(&args))),
        };
        let args = self.with_fault(args);
        let by = tag.by;
        if self.fault == Some(Fault::AcquireRetried) && script_of(&args) == Some(Script::Acquire) {
            let again = Tag {
                by,
                keys: tag.keys.clone(),
            };
            self.server.serve(connection, args.clone(), again);
            self.read_journal();
        }
        let served = self.server.serve(connection, args, tag);
        self.note(|| {
            let reply = served
                .reply
                .as_ref()
                .map_or_else(|| "(blocks)".to_owned(), Reply::to_string);
            format!("server: {by:?} {} -> {reply}", show_args(&served.args))
        });
        self.served(client, by, &served);
        self.read_journal();
        self.send(pipe, &served.bytes);
    }

    fn served(&mut self, client: usize, by: By, served: &Served) {
        if let By::Look(number) = by {
            self.requests[number].looked = served.reply == Some(Reply::Int(1));
            return;
        }
        let By::Request(number) = by else { return };
        let unknown = matches!(&served.reply, Some(Reply::Error(text)) if text.starts_with(b"NOSCRIPT"));
        self.clients[client].unknown_script = unknown && script_of(&served.args).is_some();
        if self.clients[client].unknown_script {
            self.coverage.healed += 1;
            return;
        }
        self.requests[number].server_reply.clone_from(&served.reply);
        if served.reply.as_ref().is_some_and(|reply| !reply.is_error()) {
            self.identity_changed(client, number);
        }
    }

    /// The client's request that arrives with these bytes, in these words.
    fn attribute(&mut self, client: usize, args: &[Bytes], raw: &[u8]) -> Result<Tag, String> {
        let extra = Tag {
            by: By::Extra,
            keys: Vec::new(),
        };
        self.skip_shielded(client, args, raw);
        let last = self.clients[client].last_seen;
        let next = self.clients[client].unseen.front().copied();
        if next.is_none_or(|next| self.requests[next].raw != raw) {
            // Asked ahead of a lock command: does the server let the client in?
            let asks = next.is_some_and(|next| self.takes_a_script(next));
            if asks && is(&args[0], "PING") && args.len() == 1 {
                return Ok(extra);
            }
            if let Some(number) = next.filter(|number| self.may_be_looked_at(*number, args)) {
                self.coverage.looked();
                return Ok(Tag {
                    by: By::Look(number),
                    keys: Vec::new(),
                });
            }
            match (script_of(args), last) {
                (Some(Script::Reconcile), Some(last)) => {
                    let keys = self.requests[last].locks.clone();
                    return Ok(Tag {
                        by: By::Reconcile(last),
                        keys,
                    });
                }
                (Some(_), Some(last)) if self.clients[client].unknown_script => {
                    self.clients[client].unknown_script = false;
                    return Ok(self.tag(last));
                }
                _ => {}
            }
        }
        let Some(next) = next else {
            return Err("nobody sent this".to_owned());
        };
        self.check_passage(next, args, raw)?;
        self.clients[client].unseen.pop_front();
        self.clients[client].last_seen = Some(next);
        Ok(self.tag(next))
    }

    /// Whether a script of lockward's goes in the place of this request.
    fn takes_a_script(&self, number: usize) -> bool {
        let request = &self.requests[number];
        !request.locks.is_empty() && !matches!(request.meaning, Meaning::Plain | Meaning::Flush)
    }

    fn tag(&self, number: usize) -> Tag {
        Tag {
            by: By::Request(number),
            keys: self.requests[number].locks.clone(),
        }
    }

    /// Whether this may be what becomes of the client's next request.
    pub fn check_passage(&self, number: usize, args: &[Bytes], raw: &[u8]) -> Result<(), String> {
        let request = &self.requests[number];
        let own = request.meaning == Meaning::Own;
        if request.raw == raw && !own {
            return Ok(());
        }
        if let Some(script) = script_of(args) {
            let keys = script_keys(args);
            if request.locks.is_empty() || !request.locks.iter().all(|key| keys.contains(key)) {
                return Err(format!(
                    "script {script:?} stands in for #{number}, whose keys it lacks"
                ));
            }
            return Ok(());
        }
        let answers_itself = own || request.local;
        let stands_in = answers_itself && is(&args[0], "PING")
            || request.in_multi && is(&args[0], "LOCKWARD.REFUSED")
            || request.name() == "CLIENT" && is(&args[1], "REPLY") && is(&args[2], "ON");
        if stands_in {
            Ok(())
        } else {
            Err(format!("#{number} was expected"))
        }
    }

    fn with_fault(&self, args: Vec<Bytes>) -> Vec<Bytes> {
        if self.fault == Some(Fault::PlainDel) && script_of(&args) == Some(Script::Release) {
            let locks = script_keys(&args).iter().filter(|key| self.plan.rule_of(key).is_some());
            return std::iter::once(b"DEL".to_vec()).chain(locks.cloned()).collect();
        }
        args
    }

    /// Answers blocked clients that have waited long enough, or whose list has come.
    pub fn unblock(&mut self) {
        while self.server.next_timeout().is_some()
            && let Some((connection, reply, bytes, tag)) = self.server.unblock()
        {
            if let By::Request(number) = tag.by {
                self.requests[number].server_reply = Some(reply);
            }
            if let Some(upstream) = self.upstreams.get(&connection).copied() {
                let (Upstream::Client { pipe, .. } | Upstream::Own { pipe, .. }) = upstream;
                self.send(pipe, &bytes);
                self.serve(connection, upstream);
            }
        }
        self.read_journal();
        self.plan_server();
    }

    fn identity_changed(&mut self, client: usize, number: usize) {
        let args = self.requests[number].args.clone();
        let text = |index: usize| {
            args.get(index)
                .map(|arg| String::from_utf8_lossy(arg).into_owned())
                .unwrap_or_default()
        };
        let has_leases = self.truth.incarnations.values().any(|inc| inc.client == client);
        let connection = &mut self.clients[client];
        match self.requests[number].name().as_str() {
            "AUTH" => connection.user = text(1),
            "CLIENT" if text(1).eq_ignore_ascii_case("SETNAME") => {
                connection.renamed |= has_leases;
                connection.name = text(2);
            }
            "HELLO" => {
                connection.resp = 3;
                if args.len() == 7 {
                    connection.user = text(3);
                    connection.name = text(6);
                }
            }
            _ => return,
        }
        connection.identity_since = self.now;
    }
}
