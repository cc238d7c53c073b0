//! What a client hears: cuts replies out of its bytes, pairs each with its request, and has it checked.

use crate::client::State;
use crate::net::Packet;
use crate::proxy::TOKEN_MARK;
use crate::resp::{Reply, parse_reply, show, take};
use crate::server::keyspace::Bytes;
use crate::world::World;

impl World {
    pub fn client_receives(&mut self, client: usize, packet: Packet) {
        if self.clients[client].state == State::Closed {
            return;
        }
        match packet {
            Packet::Data(bytes) => self.clients[client].input.extend_from_slice(&bytes),
            Packet::Fin | Packet::Reset => return self.disconnected(client),
        }
        loop {
            let parsed = parse_reply(&self.clients[client].input);
            let (reply, len) = match parsed {
                Ok(Some(parsed)) => parsed,
                Ok(None) => return,
                Err(error) => return self.violated("3 replies", format!("client {client} gets {error}")),
            };
            let raw: Bytes = take(&mut self.clients[client].input, len);
            self.answered(client, &reply, &raw);
            if self.violation.is_some() || self.clients[client].state == State::Closed {
                return;
            }
        }
    }

    fn answered(&mut self, client: usize, reply: &Reply, raw: &[u8]) {
        if raw
            .windows(TOKEN_MARK.len())
            .any(|window| window == TOKEN_MARK.as_bytes())
        {
            return self.violated(
                "6 tokens",
                format!("client {client} sees an owner token in {}", show(raw)),
            );
        }
        let Some(number) = self.clients[client].awaiting.pop_front() else {
            if matches!(reply, Reply::Error(text) if text.starts_with(b"UPSTREAM")) {
                return;
            }
            return self.violated(
                "3 replies",
                format!("client {client} gets a reply to nothing: {}", show(raw)),
            );
        };
        self.note(|| format!("client {client} gets {reply} to #{number}"));
        if matches!(reply, Reply::Error(text) if text.starts_with(b"UPSTREAM")) {
            return self.lost(number);
        }
        let name = self.requests[number].name();
        if self.requests[number].in_multi && !matches!(name.as_str(), "EXEC" | "DISCARD") {
            return match reply {
                Reply::Status(text) if text == b"QUEUED" => self.clients[client].queued.push(number),
                Reply::Error(_) => self.task_hears(number, Some(reply)),
                _ => self.violated(
                    "3 replies",
                    format!("#{number} was not queued but answered with {reply}"),
                ),
            };
        }
        match name.as_str() {
            "EXEC" => self.executed(client, number, reply, raw),
            "DISCARD" => {
                for queued in std::mem::take(&mut self.clients[client].queued) {
                    self.task_hears(queued, None);
                }
            }
            _ if self.is_shielded(number) => self.check_shielded(number, reply, raw),
            _ => self.check_reply(number, reply, Some(raw)),
        }
        self.task_hears(number, Some(reply));
        if self.requests[number].last {
            self.hang_up(client);
        }
    }

    fn executed(&mut self, client: usize, number: usize, reply: &Reply, raw: &[u8]) {
        let queued = std::mem::take(&mut self.clients[client].queued);
        let Reply::Array(elements) = reply else {
            if !reply.is_error() && !matches!(reply, Reply::Null | Reply::NullArray) {
                self.violated("3 replies", format!("EXEC #{number} was answered with {}", show(raw)));
            }
            for queued in queued {
                if self.requests[queued].executed > 0 {
                    self.violated("3 replies", format!("#{queued} was executed, and EXEC says {reply}"));
                }
                self.task_hears(queued, None);
            }
            return;
        };
        if elements.len() != queued.len() {
            let text = format!(
                "EXEC #{number} has {} elements for {} commands",
                elements.len(),
                queued.len()
            );
            return self.violated("3 replies", text);
        }
        for (queued, element) in queued.into_iter().zip(elements) {
            self.check_reply(queued, element, None);
            self.task_hears(queued, Some(element));
        }
    }

    /// The other side has closed: nothing more is answered.
    fn disconnected(&mut self, client: usize) {
        if !self.clients[client].input.is_empty() {
            let cut = show(&self.clients[client].input);
            self.note(|| format!("client {client} was cut off at {cut}"));
        }
        let pipe = self.clients[client].to_proxy;
        self.clients[client].state = State::Closed;
        self.send_end(pipe);
        self.forget_unanswered(client);
    }
}
