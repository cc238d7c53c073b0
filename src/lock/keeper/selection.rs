//! The least few of many, at a cost that does not grow with how many are wanted, and with room for twice as many. Knows
//! nothing of leases.

/// Below so many wanted the room is made larger, so that it is seldom tidied.
const LEAST_ROOM: usize = 256;

/// Collects the least of what it is offered.
#[derive(Debug)]
pub(super) struct Selection<T> {
    wanted: usize,
    /// Everything that can still be among the least: the least of all offered, and some more.
    kept: Vec<T>,
    /// `kept` begins with `wanted` items of which none is greater than this place's, and nothing greater is let in.
    full: bool,
}

impl<T: Ord> Selection<T> {
    /// The `wanted` least are collected.
    pub(super) fn new(wanted: usize) -> Self {
        Selection {
            wanted,
            kept: Vec::new(),
            full: false,
        }
    }

    /// How many are wanted.
    pub(super) fn wanted(&self) -> usize {
        self.wanted
    }

    pub(super) fn offer(&mut self, item: T) {
        let Some(last) = self.wanted.checked_sub(1) else {
            return;
        };
        if self.full && self.kept.get(last).is_some_and(|greatest| item > *greatest) {
            return;
        }
        self.kept.push(item);
        if self.kept.len() >= self.wanted.saturating_mul(2).max(LEAST_ROOM) {
            self.kept.select_nth_unstable(last);
            self.kept.truncate(self.wanted);
            self.full = true;
        }
    }

    /// The least, in order.
    pub(super) fn into_sorted(mut self) -> Vec<T> {
        if self.wanted > 0 && self.kept.len() > self.wanted {
            self.kept.select_nth_unstable(self.wanted - 1);
            self.kept.truncate(self.wanted);
        }
        self.kept.sort_unstable();
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_sorting_and_cutting_gives(items in prop::collection::vec(0u32..10_000, 0..3000), wanted in 0usize..700) {
            let mut selection = Selection::new(wanted);
            for item in &items {
                selection.offer(*item);
                prop_assert!(selection.kept.len() <= LEAST_ROOM.max(2 * wanted));
            }
            let mut expected = items;
            expected.sort_unstable();
            expected.truncate(wanted);
            prop_assert_eq!(selection.into_sorted(), expected);
        }
    }

    #[test]
    fn all_that_there_are_can_be_wanted() {
        let mut selection = Selection::new(usize::MAX);
        (0..1000).rev().for_each(|item| selection.offer(item));
        assert_eq!(selection.into_sorted(), (0..1000).collect::<Vec<_>>());
    }
}
