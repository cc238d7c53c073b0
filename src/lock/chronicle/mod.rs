//! What happened to the locks lately, and how it is spread: kept from the events, in bounded memory.

mod entry;
pub mod words;

pub use entry::{Entry, Granted, Happening, is_refusable};

use crate::event::{Event, What};

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Chronicle {
    events: u64,
    last: Option<Entry>,
}

impl Chronicle {
    /// Takes note of an event. Its number, if it is one of its own: a refusal belongs to its release.
    pub fn event(&mut self, event: &Event, waited_ms: Option<u64>) -> Option<u64> {
        if let (What::Refused(refusal), Some(last)) = (&event.what, &mut self.last)
            && last.refused(event, refusal)
        {
            return None;
        }
        self.events += 1;
        if !self.last.as_mut().is_some_and(|last| last.takes(self.events, event)) {
            self.last = Some(Entry::new(self.events, event, waited_ms));
        }
        Some(self.events)
    }
}
