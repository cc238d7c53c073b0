//! What is wrong with a configuration, and how the operator reads it: file, line, key, text. Finds nothing itself.

use std::fmt;
use std::path::PathBuf;

/// How many characters of a wrong word an error shows.
const SHOWN: usize = 60;

/// What was written, in printable characters and not too many of them.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Where a key or value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nowhere in particular: the file as a whole.
    File,
    /// A line of the file, from 1.
    Line(usize),
    /// A variable of the environment, by its name.
    Variable(String),
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Where.
    pub origin: Origin,
    /// Which key, with its path: `locks[0].pattern`. Empty where no key is meant.
    pub key: String,
    /// What is wrong and what would be right.
    pub text: String,
}

impl Fault {
    /// A fault of the file as a whole.
    pub fn of_file(text: String) -> Fault {
        Fault {
            origin: Origin::File,
            key: String::new(),
            text,
        }
    }
}

/// Everything that is wrong with a configuration, one line each when displayed:
/// `lockward.toml:12: locks[0].patern: unknown key; did you mean "pattern"?`
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigErrors {
    file: PathBuf,
    faults: Vec<Fault>,
}

impl ConfigErrors {
    pub(super) fn new(file: PathBuf, mut faults: Vec<Fault>) -> ConfigErrors {
        faults.sort();
        faults.dedup();
        ConfigErrors { file, faults }
    }

    /// The faults, in the order of the file, then of the variables.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match &fault.origin {
                Origin::File => write!(f, "{}: ", self.file.display())?,
                Origin::Line(line) => write!(f, "{}:{line}: ", self.file.display())?,
                Origin::Variable(name) => write!(f, "{}: ", name.escape_debug())?,
            }
            // A variable's name is its key already.
            if !fault.key.is_empty() && !matches!(fault.origin, Origin::Variable(_)) {
                write!(f, "{}: ", fault.key)?;
            }
            f.write_str(&fault.text)?;
        }
        Ok(())
    }
}
