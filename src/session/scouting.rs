//! Commands that look like lock operations on keys that no rule matches: noted for the scout on their way through.
//! Changes nothing about them, and waits for no answer.

use super::Session;
use super::requests::Request;
use crate::command::{self, Role, Row};
use crate::lock::scout::{KEYS_LIMIT, LONGEST_KEY, Mark, Sight};

impl Session {
    /// Notes a command none of whose keys is a lock. Where nobody has acquired such a key of late this costs a hash for
    /// each key, and for a plain write less.
    pub(super) fn sight(&mut self, row: &Row, request: &Request<'_>) {
        let sight = match row.role {
            Role::Lock(idiom) => Sight::of(idiom, request.args),
            _ => return self.sight_script(row, request),
        };
        // The key comes first in all of these; to ask the table again would cost more than all the rest.
        match sight {
            Some(sight @ Sight::Release) => {
                for key in request.args.iter().skip(1).take(KEYS_LIMIT) {
                    self.sight_key(sight, key);
                }
            }
            Some(sight) => self.sight_key(sight, request.args.get(1).unwrap_or_default()),
            None => {}
        }
    }

    fn sight_script(&mut self, row: &Row, request: &Request<'_>) {
        for index in command::keys(row, request.args).take(KEYS_LIMIT) {
            self.sight_key(Sight::Script, request.args.get(index).unwrap_or_default());
        }
    }

    fn sight_key(&mut self, sight: Sight, key: &[u8]) {
        if key.is_empty() {
            return;
        }
        if let Sight::Acquire { .. } = sight {
            let stranger = self.asks_login && !self.logged_in;
            if stranger || self.monitoring || self.policy.rules.decides(key) {
                return;
            }
            if key.len() <= LONGEST_KEY {
                self.policy.sieve.note(Mark::of(key));
            }
        } else if key.len() > LONGEST_KEY || !self.policy.sieve.has(Mark::of(key)) || self.monitoring {
            return;
        }
        self.sightings.push(sight, key);
    }
}
