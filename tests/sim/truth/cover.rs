//! Which rows of the decision table and lines of the accounting a command reached: the row by the truth, the line by what
//! lockward's script reports.

use super::Current;
use crate::request::Meaning;
use crate::resp::Reply;
use crate::server::keyspace::{Bytes, Seen};
use crate::world::World;

impl World {
    pub(super) fn cover(&mut self, number: usize, current: &Current, reply: &Reply) {
        let meaning = self.requests[number].meaning;
        let report = report(reply);
        self.coverage.report(&report);
        if Meaning::TABLE.contains(&meaning) && !is_forwarded(&current.args) {
            let few = if meaning == Meaning::Release {
                self.requests[number].released().len()
            } else {
                usize::MAX
            };
            for (place, _) in current.places.iter().take(few) {
                self.coverage.table(meaning, *place);
            }
        }
        if meaning == Meaning::Release {
            for ((seen, (place, own_debt)), part) in current.seen.iter().zip(&current.places).zip(report.split(';')) {
                self.coverage.release(*place, *own_debt, part, has_doubt(seen));
            }
        }
        for (seen, part) in current.seen.iter().zip(report.split(';')) {
            if has_doubt(seen) && part.contains(" expired=") {
                self.coverage.doubt_returns();
            }
        }
    }
}

/// What one of lockward's scripts reports beside the reply.
fn report(reply: &Reply) -> String {
    match reply {
        Reply::Array(elements) => match elements.as_slice() {
            [Reply::Bulk(report), _] => String::from_utf8_lossy(report).into_owned(),
            _ => String::new(),
        },
        // A report that stands alone.
        Reply::Status(text) if text.starts_with(b"released ") || text.starts_with(b"pooled ") => {
            String::from_utf8_lossy(text).into_owned()
        }
        _ => String::new(),
    }
}

fn is_forwarded(args: &[Bytes]) -> bool {
    crate::serving::script_of(args).is_none()
}

/// Whether a payment under the lease in this record is doubtful.
fn has_doubt(seen: &Seen) -> bool {
    let names: Vec<&[u8]> = seen.record.iter().map(|(name, _)| name.as_slice()).collect();
    let unpaid = |number: &[u8]| names.iter().any(|name| name.strip_prefix(b"unpaid:") == Some(number));
    let token = names.contains(&b"token".as_slice());
    token
        && names
            .iter()
            .filter_map(|name| name.strip_prefix(b"debt:"))
            .any(|number| !unpaid(number))
}
