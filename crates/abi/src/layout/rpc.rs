//! Numbers of the requests that the agent makes to the monitor: system-call numbers that
//! the kernel does not have, issued outside the gate so that the filter stops them.

/// First number.
pub const BASE: u64 = 0x4759_0000;
/// A replica differs: (address of [`super::Report`]).
pub const DIVERGENCE: u64 = BASE + 1;
/// Executable file mapping appeared: (address, length).
pub const MAPPED: u64 = BASE + 2;
/// Deliver signals at the application state in the thread's frame, each at the first instruction of the handler of
/// the one before: (frame, address of their siginfo, 2 for each but the first, and 1 if the frame is that of a point in
/// the midst of computation: `Frame::pad` holds r11, and the flags are as they were).
pub const DELIVER: u64 = BASE + 3;
/// Forked child starts: (sequence number of the fork in its parent, name of the socket to which the
/// new group's segment is sent, see [`super::letter`]); answers 1 in the leader (2: it fetches its
/// parent's leader's descriptors first), 0 in a follower, once its leader has come.
pub const CHILD: u64 = BASE + 4;
/// A vfork's child, in its parent's memory, starts: (slot).
pub const VFORKED: u64 = BASE + 9;
/// A message for the user: (address, length).
pub const MESSAGE: u64 = BASE + 5;
/// A vfork's child is about to have another program: (the id that the program sees).
pub const EXEC: u64 = BASE + 6;
/// Test hook, see `Private::sabotage`.
pub const SABOTAGED: u64 = BASE + 7;
/// Deliver signals on the user stack inside a hook: (how many beside the first one, address of their siginfo).
pub const DELIVER_HERE: u64 = BASE + 8;
/// Copy memory from the former leader, whose call wrote it, to the same address: (address, length).
pub const INHERIT: u64 = BASE + 10;
/// The former leader's descriptors: (address of an array of words, first index, its length);
/// answers how many words were written. A word is a descriptor, with bit 32 for close-on-exec.
pub const DESCRIPTORS: u64 = BASE + 11;
/// The program is about to send a signal that ends who gets it: (kind of target, target, signal).
pub const KILLS: u64 = BASE + 12;
/// What an id names: (id, which way, see [`super::who`]).
pub const WHO: u64 = BASE + 13;
/// A child that has ended: (address of a [`super::Reap`], the thread's slot); answers its id as the program knows
/// it, 0 when none has ended yet, or -ECHILD.
pub const REAP: u64 = BASE + 14;
/// The pair of sleeping replicas is in the way: (see [`super::outdated`]).
pub const OUTDATED: u64 = BASE + 15;
/// A new leader has not waited for this child yet: (its id as the program knows it).
pub const UNREAPED: u64 = BASE + 16;
/// Return from a handler and deliver signals at the application state that is restored then: (the
/// kernel's signal frame, address of their siginfo, how many beside the first one); does not answer.
pub const DELIVER_BEYOND: u64 = BASE + 17;
/// Behind a call that the monitor has made the thread make, see `geryon_injected`; does not answer.
pub const INJECTED: u64 = BASE + 18;
/// The thread in this slot has the turn, computes, and lets others wait: (slot).
pub const STARVES: u64 = BASE + 19;
/// Write to a file of a process below /proc: (address of a [`crate::proc_file::Writing`]).
pub const WRITES: u64 = BASE + 20;
/// A descriptor of another process: (its number or one of [`super::enclosed`], name of the socket to
/// which it is sent, whose, see there).
pub const FETCH: u64 = BASE + 21;
/// A process cannot go on: (what has failed, see [`super::failed`], the errno).
pub const FAILED: u64 = BASE + 22;
/// A forked child that shares its parent's descriptors needs none of its own any more.
pub const BEGUN: u64 = BASE + 23;
/// The leader is about to map a file of which each replica may be to have its own: (descriptor, flags and protection of
/// mmap); answers an object's number (see [`super::object`]), 0 where all map the file itself, -EAGAIN, or
/// another negative errno.
pub const SHARE: u64 = BASE + 24;
/// All replicas have mapped what the leader was told to be an object: (its number).
pub const SETTLED: u64 = BASE + 25;
/// The leader has changed a file by a call: (descriptor or all ones, first byte, how many).
pub const WROTE: u64 = BASE + 26;
/// All replicas have come to a call of the leader that gives up or synchronises what it maps of objects:
/// (first address, how many bytes, see [`super::object::compare`]); answers 0, or -EAGAIN while other threads run.
pub const COMPARE: u64 = BASE + 27;
/// The leader has unmapped or moved what it had mapped of objects; no other thread does meanwhile.
pub const UNMAPPED: u64 = BASE + 30;
/// A forked child asks what it may store to of its parent's objects: (where to, how many pairs of an address
/// and a length there is room for); answers how many there are.
pub const INHERITED: u64 = BASE + 28;
/// It is about to make memory writable: (address, length); answers 0 or an errno.
pub const MAY_WRITE: u64 = BASE + 29;
/// What the program calls a forked child that a lost replica's has led: (sequence number of the fork);
/// answers 0 when none has, and -EAGAIN where the one who asks has lost its own, so that there is none.
pub const NAMED: u64 = BASE + 31;
/// A follower that maps objects is about to end; answers 0, or -EAGAIN as long as the leader has not compared.
pub const ENDS: u64 = BASE + 32;
/// A call of a leader's forked process was not allowed to use memory that it was given (EFAULT), and the process
/// may not change what it has inherited of objects.
pub const FAULTED: u64 = BASE + 33;
/// A leader is about to attach a segment of System V: (its id, flags of shmat); answers an object's number, 0, or an
/// errno, as [`SHARE`] does.
pub const ATTACH: u64 = BASE + 34;
/// A new leader asks which of its epoll instances watch descriptors of signals: (where to, how many there is room for,
/// how many it knows); answers how many there are, each of four words: the instance, the descriptor, the events, the
/// data.
pub const WATCHES: u64 = BASE + 35;
/// A leader is about to send another process a signal: (number of the call, whom, signal; 0: the last one that its
/// thread has told of was not sent).
pub const SENDS: u64 = BASE + 36;
/// A leader's process has been given a signal that another one has sent it, or never will be: (signal, 0); or may have read
/// it from a descriptor: (signal, one more than that).
pub const CAME: u64 = BASE + 37;
/// The leader's thread is about to have another program, in a process with seccomp filters: (`Block::filter`).
pub const FILTERS: u64 = BASE + 38;
/// A leader's thread is about to be given this many of the signals that wait in its block, at once; does the next one
/// come with them? (what their handlers shut out, how many): answers 0; 1 if it does, and waits there, too; 2 if the
/// kernel has it, which gives it now. (All ones: it has not; all others are to wait again.)
pub const LETS_IN: u64 = BASE + 39;
/// A follower has ended its own child, for the leader's fork has failed: (sequence number of the fork).
pub const UNMADE: u64 = BASE + 40;
/// The leader's thread is about to have another program: (`Block::at_parents_end`).
pub const AT_PARENTS_END: u64 = BASE + 41;
/// A leader's thread has waited for a signal, and has it: (address of its siginfo or 0, the signal, who has made the call). What
/// it is to show is there afterwards; answers one of [`super::waited`], where who has made it stands, too.
pub const WAITED_FOR: u64 = BASE + 42;
/// The leader's process (or, in a vfork's child, that) wants the children that its descendants leave: (1; 0: no more). The
/// monitor says from then on who of its children has ended.
pub const REAPS_ORPHANS: u64 = BASE + 43;
/// A wait for a child that the process has not made, in this program, is in the log: (the child's id as the program knows it).
pub const ORPHAN_REAPED: u64 = BASE + 44;
/// Which process does a descriptor name: (the descriptor): its id in this replica or another one; 0: it is gone; an errno.
pub const PIDFD: u64 = BASE + 45;
/// A leader is about to close a descriptor; answers 0, or -EAGAIN as long as one that has led has it, too.
pub const LET_GO: u64 = BASE + 46;
/// The process is about to get its second thread, and its threads run in parallel from there on, see [`super::ascent`].
pub const ASCENT: u64 = BASE + 47;
/// The leader is about to make a call that clocks do not repeat: (what for, see [`super::ascent`]); answers 0: it is to wait until
/// it is in serial order; or an errno.
pub const DESCENT: u64 = BASE + 48;
/// One past the last.
pub const END: u64 = BASE + 49;
