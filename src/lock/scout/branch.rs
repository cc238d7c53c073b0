//! A way on from a place in the tree of names: separators and a word, or all words that have no branch of their own. Counts
//! nothing and decides nothing.

use super::node::Node;
use super::words::{Step, Word};

/// One way on from a place.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub separator: Box<[u8]>,
    pub name: Name,
    pub node: Node,
}

/// The word of a branch.
#[derive(Clone, Debug)]
pub(super) enum Name {
    Lock(Box<[u8]>),
    Plain(Box<[u8]>),
    Constant(Box<[u8]>),
    Any(Takes),
}

/// What else belongs to a word that varies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Takes {
    /// Plain words.
    pub plain: bool,
    /// Numbers that were thought constant.
    pub constants: bool,
}

impl Name {
    fn of(word: Word<'_>) -> Name {
        match word {
            Word::Lock(text) => Name::Lock(text.into()),
            Word::Plain(text) => Name::Plain(text.into()),
            Word::Constant(text) => Name::Constant(text.into()),
            Word::Any => Name::Any(Takes::default()),
        }
    }

    fn is(&self, word: Word<'_>) -> bool {
        self.word() == word
    }

    pub(super) fn word(&self) -> Word<'_> {
        match self {
            Name::Lock(text) => Word::Lock(text),
            Name::Plain(text) => Word::Plain(text),
            Name::Constant(text) => Word::Constant(text),
            Name::Any(_) => Word::Any,
        }
    }
}

impl Takes {
    pub(super) fn word(self, word: Word<'_>) -> bool {
        match word {
            Word::Plain(_) => self.plain,
            Word::Constant(_) => self.constants,
            Word::Lock(_) | Word::Any => false,
        }
    }

    pub(super) fn and(self, other: Takes) -> Takes {
        Takes {
            plain: self.plain || other.plain,
            constants: self.constants || other.constants,
        }
    }
}

impl Branch {
    pub(super) fn new(step: &Step<'_>) -> Branch {
        Branch {
            separator: step.separator.into(),
            name: Name::of(step.word),
            node: Node::default(),
        }
    }

    pub(super) fn takes(&self, step: &Step<'_>) -> bool {
        matches!(self.name, Name::Any(takes) if takes.word(step.word)) && *self.separator == *step.separator
    }

    pub(super) fn is(&self, step: &Step<'_>) -> bool {
        self.name.is(step.word) && *self.separator == *step.separator
    }

    pub(super) fn step(&self) -> Step<'_> {
        Step {
            separator: &self.separator,
            word: self.name.word(),
        }
    }
}
