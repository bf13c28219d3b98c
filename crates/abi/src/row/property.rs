//! What is so of a call, or not.

/// What a row may say of its call beside its class and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// A signal can end it, so that it says EINTR (signal(7), and the pages of the calls). Others are made to their end, or
    /// anew: no program looks for EINTR from them.
    Interruptible,
    /// It puts bytes into what argument 0 names, and waits only where that has no room.
    Sends,
    /// As an output it changes a file if argument 0 names one.
    FileIfNamed,
    /// As an output it changes no file. (With neither nothing is known of it.)
    NoFile,
    /// It looks, or waits, and changes nothing: stat and its kin, poll, access, uname, getcwd, readlink, clocks, limits, attributes.
    Looks,
    /// So it does if its result is zero: an epoll that reports nothing.
    LooksAtNothing,
    /// It changes nothing, and tells what replicas of different programs need not ask in the same order. (What it tells does not
    /// depend on what the program has read or written before through a descriptor.)
    Unordered,
    /// It moves bytes between descriptor 0 of its arguments and memory.
    Transfers,
    /// It brings to the disk what is in descriptor 0 of its arguments, and what is mapped of it.
    Synchronises,
    /// It answers at once, whatever happens.
    Prompt,
    /// It will be over soon.
    Soon,
    /// The same, if descriptor 0 of its arguments can be read from at once.
    SoonIfReadable,
    /// The same, if that can be written to at once.
    SoonIfRoom,
    /// It sends a signal.
    Signals,
    /// A descriptor may be gone behind it.
    Closes,
    /// What it writes to a file can be written there again from memory.
    WritesAgain,
}

/// Those that a call has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties(u32);

impl Properties {
    /// These.
    pub const fn of(all: &[Property]) -> Properties {
        let mut bits = 0;
        let mut i = 0;
        while i < all.len() {
            bits |= 1 << all[i] as u32;
            i += 1;
        }
        Properties(bits)
    }

    /// Is it one of them?
    pub const fn has(self, one: Property) -> bool {
        self.0 >> one as u32 & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Property::{self, *};
    use crate::row::{Class, Kind, Row};
    use crate::table::ROWS;

    fn of(property: Property) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(move |row| row.is(property))
    }

    #[test]
    fn what_need_not_be_asked_in_order_is_told_by_arguments() {
        assert!(of(Unordered).count() > 20);
        for row in of(Unordered) {
            assert!(
                matches!(row.class, Class::Input | Class::Local),
                "{}",
                row.name
            );
            assert!(
                row.args.iter().all(|a| a.kind != Kind::ByCommand),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn what_changes_no_file_is_an_output_to_a_descriptor() {
        let all = || of(FileIfNamed).chain(of(NoFile));
        assert_eq!(all().count(), 8);
        assert!(all().all(|row| row.class == Class::Output && row.args[0].kind == Kind::Fd));
        assert!(of(FileIfNamed).all(|row| !row.is(NoFile)));
    }

    #[test]
    fn what_looks_is_no_output() {
        let is_output = |row: &Row| matches!(row.class, Class::Output | Class::Each);
        assert!(
            !of(Looks)
                .chain(of(LooksAtNothing))
                .chain(of(Prompt))
                .any(is_output)
        );
    }

    #[test]
    fn what_depends_on_a_descriptor_has_one() {
        for property in [
            Sends,
            Transfers,
            Synchronises,
            SoonIfReadable,
            SoonIfRoom,
            WritesAgain,
        ] {
            assert!(
                of(property).all(|row| row.args[0].kind == Kind::Fd),
                "{property:?}"
            );
            assert!(of(property).count() > 0);
        }
    }

    #[test]
    fn who_answers_at_once_is_not_interrupted() {
        assert!(of(Prompt).all(|row| !row.is(Interruptible)));
    }
}
