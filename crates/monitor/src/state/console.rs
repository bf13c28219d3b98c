//! What is told of a run, and where it can be asked for something.

use crate::ask::Desk;
use crate::journal::Journal;
use geryon_symbols::Symbolizer;
use std::collections::HashSet;
use std::fs::File;

/// All ways on which a run and its user speak to one another.
pub struct Console {
    /// What is told of the run.
    pub journal: Journal,
    /// Messages said so far: each is said once.
    messages: HashSet<String>,
    /// Symbols of what was named in messages.
    pub symbolizer: Symbolizer,
    /// Tells why the program could not be executed; None after the first exec.
    pub exec_pipe: Option<File>,
    /// Where the run can be asked for something.
    pub desk: Desk,
}

impl Console {
    /// Nothing was said yet. `pipe` tells why the program could not be executed.
    pub(crate) fn new(journal: Journal, pipe: File) -> Console {
        Console {
            journal,
            messages: HashSet::new(),
            symbolizer: Symbolizer::new(),
            exec_pipe: Some(pipe),
            desk: Desk::open(),
        }
    }

    /// Say something that needs saying once.
    pub(crate) fn say(&mut self, text: &str) {
        if self.messages.insert(text.to_owned()) {
            eprintln!("geryon: {text}");
        }
    }
}
