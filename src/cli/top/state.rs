//! What `lockward top` shows and what keys do to it, as plain values: no terminal, no socket, no clock.

use crate::admin::api::{Lock, LockDetail, LocksQuery, Snapshot, Sort};

/// So many rows are asked for; what lies behind is told by the head.
pub(super) const ROWS: u32 = 500;
/// A search is no longer.
const LONGEST_SEARCH: usize = 200;

/// What the reader pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Left,
    Right,
    /// Ctrl-C, or the end of the input.
    Quit,
}

/// What has to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    /// The table is to be asked for anew.
    AskAnew,
    /// The lock that is looked at is to be asked for.
    AskDetail,
    Quit,
}

/// What is in front.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Front {
    Table,
    /// A search is being written.
    Search(String),
    /// One lock.
    Detail(Box<Detail>),
}

/// One lock that is looked at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Detail {
    pub database: u32,
    pub key_encoded: String,
    /// What came, or why nothing did.
    pub found: Option<Result<LockDetail, String>>,
    /// So many lines are above the window.
    pub scrolled: usize,
}

/// Everything that is shown.
pub(super) struct View {
    pub address: String,
    pub query: LocksQuery,
    pub front: Front,
    pub snapshot: Option<Snapshot>,
    /// Since the snapshot, in milliseconds.
    pub later_ms: u64,
    pub paused: bool,
    /// Why nothing new comes.
    pub trouble: Option<String>,
    /// The row that is chosen, from 0.
    pub chosen: usize,
    /// Rows that fit; told by the last drawing.
    pub page: usize,
}

impl View {
    pub(super) fn new(address: &str, query: LocksQuery) -> View {
        View {
            address: address.to_owned(),
            query: LocksQuery {
                limit: Some(ROWS),
                ..query
            },
            front: Front::Table,
            snapshot: None,
            later_ms: 0,
            paused: false,
            trouble: None,
            chosen: 0,
            page: 1,
        }
    }

    /// The rows there are.
    pub(super) fn locks(&self) -> &[Lock] {
        self.snapshot.as_ref().map_or(&[], |snapshot| &snapshot.table.locks)
    }

    /// A new table has come. The choice follows its lock, where that is still there.
    pub(super) fn take(&mut self, snapshot: Snapshot) {
        self.trouble = None;
        if self.paused {
            return;
        }
        let name = |lock: &Lock| (lock.database, lock.key_encoded.clone());
        let before = self.locks().get(self.chosen).map(name);
        self.snapshot = Some(snapshot);
        self.later_ms = 0;
        let place = self.locks().iter().position(|lock| Some(name(lock)) == before);
        self.choose(place.unwrap_or(self.chosen));
    }

    /// Time has passed since the table came.
    pub(super) fn later(&mut self, later_ms: u64) {
        if !self.paused {
            self.later_ms = later_ms;
        }
    }

    fn choose(&mut self, row: usize) {
        self.chosen = row.min(self.locks().len().saturating_sub(1));
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: Key) -> Action {
        match (&mut self.front, key) {
            (_, Key::Quit) => Action::Quit,
            (Front::Search(_), _) => self.press_in_search(key),
            (Front::Detail(_), _) => self.press_in_detail(key),
            (Front::Table, _) => self.press_in_table(key),
        }
    }

    fn press_in_table(&mut self, key: Key) -> Action {
        match key {
            Key::Letter('q') => return Action::Quit,
            Key::Letter('s') | Key::Right => return self.sort_by(1),
            Key::Letter('S') | Key::Left => return self.sort_by(3),
            Key::Letter('w') => {
                self.query.warned = !self.query.warned;
                return self.ask_anew();
            }
            Key::Letter('p' | ' ') => {
                self.paused = !self.paused;
                // What came meanwhile was left out.
                return if self.paused { Action::Nothing } else { Action::AskAnew };
            }
            Key::Letter('/') => self.front = Front::Search(self.query.pattern.clone().unwrap_or_default()),
            Key::Escape if self.query.pattern.is_some() => {
                self.query.pattern = None;
                return self.ask_anew();
            }
            Key::Enter => {
                let Some(lock) = self.locks().get(self.chosen) else {
                    return Action::Nothing;
                };
                self.front = Front::Detail(Box::new(Detail {
                    database: lock.database,
                    key_encoded: lock.key_encoded.clone(),
                    found: None,
                    scrolled: 0,
                }));
                return Action::AskDetail;
            }
            Key::Up | Key::Letter('k') => self.choose(self.chosen.saturating_sub(1)),
            Key::Down | Key::Letter('j') => self.choose(self.chosen + 1),
            Key::PageUp => self.choose(self.chosen.saturating_sub(self.page)),
            Key::PageDown => self.choose(self.chosen + self.page),
            Key::Home => self.choose(0),
            Key::End => self.choose(usize::MAX),
            Key::Letter(_) | Key::Escape | Key::Backspace | Key::Quit => {}
        }
        Action::Nothing
    }

    fn sort_by(&mut self, steps: usize) -> Action {
        const ORDER: [Sort; 4] = [Sort::Age, Sort::Waiters, Sort::Ttl, Sort::Key];
        let place = ORDER.iter().position(|sort| *sort == self.query.sort).unwrap_or(0);
        self.query.sort = ORDER.get((place + steps) % ORDER.len()).copied().unwrap_or_default();
        self.ask_anew()
    }

    /// Other rows are wanted, so a pause is over.
    fn ask_anew(&mut self) -> Action {
        self.paused = false;
        self.chosen = 0;
        Action::AskAnew
    }

    fn press_in_search(&mut self, key: Key) -> Action {
        let Front::Search(text) = &mut self.front else {
            return Action::Nothing;
        };
        match key {
            Key::Letter(letter) if !letter.is_control() && text.len() < LONGEST_SEARCH => text.push(letter),
            Key::Backspace => {
                text.pop();
            }
            Key::Enter => {
                self.query.pattern = Some(std::mem::take(text)).filter(|text| !text.is_empty());
                self.front = Front::Table;
                return self.ask_anew();
            }
            Key::Escape => self.front = Front::Table,
            _ => {}
        }
        Action::Nothing
    }

    fn press_in_detail(&mut self, key: Key) -> Action {
        let Front::Detail(detail) = &mut self.front else {
            return Action::Nothing;
        };
        let scrolled = detail.scrolled;
        match key {
            Key::Letter('q') => return Action::Quit,
            Key::Escape | Key::Enter | Key::Backspace | Key::Left => self.front = Front::Table,
            Key::Letter('p' | ' ') => {
                self.paused = !self.paused;
                return if self.paused { Action::Nothing } else { Action::AskAnew };
            }
            Key::Up | Key::Letter('k') => detail.scrolled = scrolled.saturating_sub(1),
            Key::Down | Key::Letter('j') => detail.scrolled = scrolled + 1,
            Key::PageUp => detail.scrolled = scrolled.saturating_sub(self.page),
            Key::PageDown => detail.scrolled = scrolled + self.page,
            Key::Home => detail.scrolled = 0,
            Key::Letter(_) | Key::End | Key::Right | Key::Quit => {}
        }
        Action::Nothing
    }

    /// What was asked for one lock has come; of another lock it is left out.
    pub(super) fn take_detail(&mut self, database: u32, key_encoded: &str, found: Result<LockDetail, String>) {
        if let Front::Detail(detail) = &mut self.front
            && detail.database == database
            && detail.key_encoded == key_encoded
            && !(self.paused && detail.found.is_some())
        {
            detail.found = Some(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::api::LockList;

    fn lock(key: &str) -> Lock {
        Lock {
            key: key.to_owned(),
            key_encoded: key.to_owned(),
            ..Lock::default()
        }
    }

    fn snapshot(keys: &[&str]) -> Snapshot {
        Snapshot {
            table: LockList {
                locks: keys.iter().map(|key| lock(key)).collect(),
                ..LockList::default()
            },
            ..Snapshot::default()
        }
    }

    fn view(keys: &[&str]) -> View {
        let mut view = View::new("here:1", LocksQuery::default());
        view.take(snapshot(keys));
        view
    }

    #[test]
    fn keys_change_what_is_asked_for() {
        let mut view = view(&["a"]);
        for sort in [Sort::Waiters, Sort::Ttl, Sort::Key, Sort::Age] {
            assert_eq!(view.press(Key::Right), Action::AskAnew);
            assert_eq!(view.query.sort, sort);
        }
        assert_eq!(view.press(Key::Left), Action::AskAnew);
        assert_eq!(view.query.sort, Sort::Key);
        assert_eq!(view.press(Key::Letter('w')), Action::AskAnew);
        assert!(view.query.warned);
        assert_eq!(view.press(Key::Letter('q')), Action::Quit);
    }

    #[test]
    fn a_search_is_written_and_taken_back() {
        let mut view = view(&["a"]);
        for key in [Key::Letter('/'), Key::Letter('q'), Key::Letter('x'), Key::Backspace] {
            assert_eq!(view.press(key), Action::Nothing);
        }
        assert_eq!(view.press(Key::Enter), Action::AskAnew);
        assert_eq!(view.query.pattern.as_deref(), Some("q"));
        assert_eq!(view.press(Key::Escape), Action::AskAnew);
        assert_eq!(view.query.pattern, None);
        for _ in 0..2 * LONGEST_SEARCH {
            view.press(Key::Letter('/'));
        }
        assert!(matches!(&view.front, Front::Search(text) if text.len() == LONGEST_SEARCH));
    }

    #[test]
    fn the_choice_follows_its_lock_and_stays_inside() {
        let mut view = view(&["a", "b", "c"]);
        view.press(Key::Down);
        view.take(snapshot(&["c", "x", "b"]));
        assert_eq!(view.chosen, 2);
        view.take(snapshot(&["c"]));
        assert_eq!(view.chosen, 0);
        view.press(Key::End);
        view.press(Key::PageDown);
        assert_eq!(view.chosen, 0);
        view.take(snapshot(&[]));
        assert_eq!(view.press(Key::Enter), Action::Nothing);
    }

    #[test]
    fn a_pause_keeps_the_table_as_it_is() {
        let mut view = view(&["a"]);
        assert_eq!(view.press(Key::Letter('p')), Action::Nothing);
        view.take(snapshot(&["b"]));
        view.later(5_000);
        assert_eq!((view.locks()[0].key.as_str(), view.later_ms), ("a", 0));
        assert_eq!(view.press(Key::Letter('p')), Action::AskAnew);
        view.take(snapshot(&["b"]));
        assert_eq!(view.locks()[0].key, "b");
    }

    #[test]
    fn one_lock_is_looked_at() {
        let mut view = view(&["a", "b"]);
        view.press(Key::Down);
        assert_eq!(view.press(Key::Enter), Action::AskDetail);
        view.take_detail(0, "a", Err("another".to_owned()));
        assert!(matches!(&view.front, Front::Detail(detail) if detail.found.is_none() && detail.key_encoded == "b"));
        view.take_detail(0, "b", Ok(LockDetail::default()));
        assert!(matches!(&view.front, Front::Detail(detail) if detail.found.is_some()));
        assert_eq!(view.press(Key::Escape), Action::Nothing);
        assert_eq!(view.front, Front::Table);
    }
}
