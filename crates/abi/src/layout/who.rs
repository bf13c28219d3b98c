//! Which way an id is translated.

/// From the program's to the process's that it names now.
pub const OWN: u64 = 0;
/// From a process's to the program's.
pub const SHOWN: u64 = 1;
/// The asking process's parent, as the program knows it; 0 when that is outside.
pub const PARENT: u64 = 2;
/// From the program's to the asking replica's own; 0 when it has none of that name.
pub const MINE: u64 = 3;
/// Asked by who is about to lead in place of another one: the process group that it is to enter; 0: none.
pub const JOINS: u64 = 4;
/// Is the asking process in another session than its leader, or than the lost one was? (1)
pub const APART: u64 = 7;
/// The program has put the process into a process group; 0: the asking one has entered that of its predecessor.
pub const MOVED: u64 = 8;
/// A process group, from the program's to the one that it names now.
pub const GROUP: u64 = 5;
/// The same from a group's to the program's.
pub const SHOWN_GROUP: u64 = 6;
/// That of the process which the program calls so, as the program knows it; 0: there is no such process.
pub const GROUP_OF: u64 = 9;
/// As [`GROUP`]; 0: nobody is in such a group.
pub const GROUP_THERE: u64 = 10;
