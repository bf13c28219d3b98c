//! Places in monitor and agent where things can go wrong, by name. A test has the n-th passing of one
//! fail (`geryon run --fail-at`, hidden; `tests/points.rs` goes through all of them).
//!
//! A place in the agent is one `nop`, and an entry in a table of the image that says where: nothing is
//! loaded and nothing is compared. To arm it the monitor writes a breakpoint over the `nop` in the
//! replica's copy of the image. A place in the monitor is a call of its own.

/// Section of the agent's image that says where its places are: for each two signed 32-bit numbers, how
/// far the place is from its entry, and which [`FaultPoint`] it is.
pub const SECTION: &str = "geryon_points";

/// What happens at a place when its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The replica's process is killed there.
    Dies,
    /// What has just been called there has this result instead of its own, which is undone or was none.
    Gives(i64),
    /// Of a write's bytes the kernel takes half, as if the monitor had halted the thread in its middle.
    Halves,
    /// The call that is about to be made is not made, and has this result.
    Skips(i64),
    /// The program is sent a SIGWINCH, to the thread that is there.
    Signals,
    /// The thread that is there sleeps for up to a millisecond, by chance: again and again, at one passing
    /// out of so many on average.
    Delays,
    /// The monitor's own code does it.
    Monitor,
}

macro_rules! points {
    ($($(#[doc = $doc:literal])+ $id:ident = $name:literal, $deed:expr;)*) => {
        /// A place where something can go wrong: what goes wrong there, and what must come of it. Where
        /// nothing is said of that: of three replicas another one leads, or the lost one is replaced,
        /// and the program's output and status are those that it has natively.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum FaultPoint {
            $($(#[doc = $doc])+ $id,)*
        }

        impl FaultPoint {
            /// All, in the order of their numbers.
            pub const ALL: &[FaultPoint] = &[$(FaultPoint::$id),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(FaultPoint::$id => $name,)*
                }
            }

            /// What happens there.
            pub fn deed(self) -> Deed {
                match self {
                    $(FaultPoint::$id => $deed,)*
                }
            }
        }
    };
}

points! {
    /// Leader: a call begins (its note says so) and is not made.
    CallBegun = "call-begun", Deed::Dies;
    /// Leader: the kernel has returned from a call, and its result is in no note.
    CallReturned = "call-returned", Deed::Dies;
    /// Leader: the first note of a call's result is made, and its state is as before.
    CallNoted = "call-noted", Deed::Dies;
    /// Leader: the state of a call's note has changed, and its second note is not made.
    CallHalfNoted = "call-half-noted", Deed::Dies;
    /// Leader: a call is made, and nothing of its record is written.
    CallUnlogged = "call-unlogged", Deed::Dies;
    /// Leader: a part of the words of a call's record is written.
    RecordTorn = "record-torn", Deed::Dies;
    /// Leader: a call's record is whole, and not published.
    RecordUnpublished = "record-unpublished", Deed::Dies;
    /// Leader: a call's record is published, and its note still says that it is under way.
    RecordPublished = "record-published", Deed::Dies;
    /// Leader: the words of what is to be confirmed are written, and not published.
    RendezvousUnpublished = "rendezvous-unpublished", Deed::Dies;
    /// Leader: they are published, and the confirmations were not waited for.
    RendezvousPublished = "rendezvous-published", Deed::Dies;
    /// Leader: they are confirmed, and what was to be confirmed has not happened.
    RendezvousConfirmed = "rendezvous-confirmed", Deed::Dies;
    /// Leader: a write to a full pipe is about to wait for room.
    RoomAwaited = "room-awaited", Deed::Dies;
    /// Leader: of a write that came back short the rest is about to be written.
    RestBegun = "rest-begun", Deed::Dies;
    /// Leader: the rest is written, and the sum is noted, but for the state.
    RestSummed = "rest-summed", Deed::Dies;
    /// Leader: the words of a lock's record are written, and not published.
    TickUnpublished = "tick-unpublished", Deed::Dies;
    /// Leader: a lock's record is published, and its clock has not advanced.
    TickUnadvanced = "tick-unadvanced", Deed::Dies;
    /// Leader: the outcome of a function that took no lock is written, and not published.
    OutcomeUnpublished = "outcome-unpublished", Deed::Dies;
    /// Leader: an atomic instruction is done, and its record is not published.
    AtomicUnpublished = "atomic-unpublished", Deed::Dies;
    /// Leader: an atomic instruction's record is published, and its clock has not advanced.
    AtomicUnadvanced = "atomic-unadvanced", Deed::Dies;
    /// Leader: a memory call is made, and has no record.
    MemoryUnlogged = "memory-unlogged", Deed::Dies;
    /// Leader: a memory call's record is published, and the section's clock has not advanced.
    MemoryUnticked = "memory-unticked", Deed::Dies;
    /// Leader: a thread is made, and its birth has no record.
    BirthUnlogged = "birth-unlogged", Deed::Dies;
    /// Leader: a part of the words of a birth's record is written.
    BirthTorn = "birth-torn", Deed::Dies;
    /// Leader: a birth's record is published, and the newborn does not know it.
    BirthUnborn = "birth-unborn", Deed::Dies;
    /// Leader: a thread's end is announced and published, and the section's clock has not advanced.
    DeathUnticked = "death-unticked", Deed::Dies;
    /// A process is forked, and its parent has neither logged that nor read of it.
    ForkUnlogged = "fork-unlogged", Deed::Dies;
    /// A forked child has done nothing yet.
    ChildNew = "child-new", Deed::Dies;
    /// A forked child knows its group, and has not mapped its segment.
    ChildUnmapped = "child-unmapped", Deed::Dies;
    /// A forked child is about to greet, or to read its leader's greeting.
    ChildUngreeted = "child-ungreeted", Deed::Dies;
    /// Leader: the program's exec is confirmed, and not made.
    ExecConfirmed = "exec-confirmed", Deed::Dies;
    /// An exit is confirmed, and the process is about to end.
    ExitConfirmed = "exit-confirmed", Deed::Dies;
    /// Leader, serial order: a thread has given its turn away, and nobody can take it yet.
    TurnReleased = "turn-released", Deed::Dies;
    /// Leader, serial order: a turn is taken, and its record is not published.
    TurnUnpublished = "turn-unpublished", Deed::Dies;
    /// Leader: a signal is about to be logged.
    SignalUnlogged = "signal-unlogged", Deed::Dies;
    /// Leader: a signal is logged, and still waits in its queue.
    SignalQueued = "signal-queued", Deed::Dies;
    /// Leader: a flag says that it sleeps until a follower gets on, and it does not yet.
    LeaderSleepy = "leader-sleepy", Deed::Dies;
    /// Leader: a record is written, and not published; follower: a record is read, or done; a process is about
    /// to be forked; a forked child is about to ask for its group, or knows it and follows it not yet. Others
    /// go on beside the one that sleeps there: what two cores hide becomes likely. Nothing must come of it.
    RecordDelayed = "record-delayed", Deed::Delays;
    /// A thread was made, and its creator has not noted its id.
    ThreadMade = "thread-made", Deed::Delays;

    /// Follower: it is about to write to its line of the control page (`publishing` is set).
    Acknowledging = "acknowledging", Deed::Dies;
    /// Follower: one of the two words of its line is written.
    HalfAcknowledged = "half-acknowledged", Deed::Dies;
    /// Follower: it has confirmed, and the leader was not woken.
    Acknowledged = "acknowledged", Deed::Dies;
    /// Follower: a flag says that it sleeps until there is a record, and it does not yet.
    FollowerSleepy = "follower-sleepy", Deed::Dies;
    /// Follower: a lock is taken, and its clock has not advanced.
    TickFollowed = "tick-followed", Deed::Dies;
    /// Follower: a memory call is repeated, and the section's clock has not advanced.
    MemoryRepeated = "memory-repeated", Deed::Dies;
    /// Follower, serial order: a turn is taken, and nobody was told.
    TurnTaken = "turn-taken", Deed::Dies;
    /// Follower: a signal was read from the log, and its handler has not begun.
    SignalRead = "signal-read", Deed::Dies;

    /// Successor: one of its threads prepares it to lead, and nothing is prepared.
    PromotionBegun = "promotion-begun", Deed::Dies;
    /// Successor: everything is prepared, and it is not said that it leads.
    PromotionPrepared = "promotion-prepared", Deed::Dies;
    /// Leader: a wait is answered, as the monitor knows, and that is not in the log (behind a takeover: in no note either).
    WaitAnswered = "wait-answered", Deed::Dies;
    /// Successor: it has made the former leader's call its own, and its record is not written.
    LegacyTaken = "legacy-taken", Deed::Dies;

    /// Follower: memory cannot be mapped where the leader's was.
    RepeatFails = "repeat-fails", Deed::Gives(-12);
    /// Follower: a thread cannot be made.
    ThreadFails = "thread-fails", Deed::Gives(-11);
    /// Follower: a process cannot be forked.
    ForkFails = "fork-fails", Deed::Skips(-11);
    /// A forked child cannot map its group's segment.
    SegmentFails = "segment-fails", Deed::Gives(-12);
    /// Follower: a descriptor of the leader's cannot be fetched.
    FetchFails = "fetch-fails", Deed::Gives(-24);
    /// Leader: the kernel takes half of a write's bytes, as if it were halted in its middle: the agent
    /// writes the rest.
    WriteHalved = "write-halved", Deed::Halves;
    /// A call that may block comes back interrupted (EINTR), and no signal is for the program: it is
    /// made again.
    CallInterrupted = "call-interrupted", Deed::Skips(-4);
    /// Leader: a signal comes right before a call that may block.
    SignalBeforeCall = "signal-before-call", Deed::Signals;
    /// Leader: a signal comes between the two halves of a rendezvous.
    SignalInRendezvous = "signal-in-rendezvous", Deed::Signals;
    /// Leader: a signal comes when a call is made and not logged.
    SignalBehindCall = "signal-behind-call", Deed::Signals;
    /// Leader: a signal comes when a lock is taken and not logged.
    SignalInLock = "signal-in-lock", Deed::Signals;

    /// The monitor cannot read a replica's memory: the file is at its end, as that of a process which
    /// has lost its memory.
    MemoryShort = "memory-short", Deed::Monitor;
    /// The monitor cannot write to a replica's memory (EIO).
    MemoryUnwritable = "memory-unwritable", Deed::Monitor;
    /// A process is killed between its stop and the monitor's look at its registers.
    LookKilled = "look-killed", Deed::Monitor;
    /// A process is killed when a signal has stopped it, and the monitor does not know that yet.
    StopKilled = "stop-killed", Deed::Monitor;
    /// A process is killed between its stop and the moment at which the monitor lets it go on.
    ResumeKilled = "resume-killed", Deed::Monitor;
    /// A leader's process is killed when another one has told that it is about to send it a signal, and has not sent it.
    AddresseeKilled = "addressee-killed", Deed::Monitor;
    /// The monitor has no descriptor left for a replica's memory. The run may stop, with a message and
    /// status 125.
    OpenFails = "open-fails", Deed::Monitor;
    /// There is no memory for a group's segment. The run may stop, with a message and status 125.
    SegmentUnmapped = "segment-unmapped", Deed::Monitor;
    /// There is no descriptor for a group's segment, or for the agent's image. The run may stop, with a
    /// message and status 125.
    MemfdFails = "memfd-fails", Deed::Monitor;
    /// The program's process cannot be forked. The run stops, with a message and status 125.
    LaunchFails = "launch-fails", Deed::Monitor;
    /// A replacement cannot be forked (EAGAIN).
    CopyFails = "copy-fails", Deed::Monitor;
    /// A thread of a replacement cannot be made.
    CopyThreadFails = "copy-thread-fails", Deed::Monitor;
    /// A line of the journal cannot be written: it ends there, and it is said.
    JournalFails = "journal-fails", Deed::Monitor;
    /// The report cannot be written: it is said.
    ReportFails = "report-fails", Deed::Monitor;
    /// The source of a replacement is killed when it is halted.
    SourceHalted = "source-halted", Deed::Monitor;
    /// The source of a replacement is killed when the copy is forked.
    SourceCopied = "source-copied", Deed::Monitor;
    /// The leader is killed when its follower's copy is forked.
    LeaderBeside = "leader-beside", Deed::Monitor;
    /// A replacement is killed before its threads are made.
    CopyForked = "copy-forked", Deed::Monitor;
    /// A replacement is killed when it has joined, and does not run yet.
    CopyJoined = "copy-joined", Deed::Monitor;
    /// A follower is killed between the verdict on the leader and the takeover.
    SecondLost = "second-lost", Deed::Monitor;
    /// The successor is killed when it is chosen.
    SuccessorChosen = "successor-chosen", Deed::Monitor;
    /// The successor is killed when the former leader's remains were examined.
    SuccessorExamined = "successor-examined", Deed::Monitor;
    /// The successor is killed when it has replayed everything, and is about to be asked.
    SuccessorReplayed = "successor-replayed", Deed::Monitor;
    /// The successor is killed when it was asked.
    SuccessorAsked = "successor-asked", Deed::Monitor;
    /// The successor is killed when it leads, and has not used all that it was given.
    SuccessorLeads = "successor-leads", Deed::Monitor;
    /// The run goes over from clocks to serial order. (Passed each time that the monitor has served what there was.)
    OrderChanges = "order-changes", Deed::Monitor;
}

impl FaultPoint {
    /// The one of this name.
    pub fn named(name: &str) -> Option<FaultPoint> {
        FaultPoint::ALL.iter().find(|p| p.name() == name).copied()
    }

    /// Are its passings counted from the program's start on? (Before that there are no replicas, and
    /// whatever goes wrong ends the run.)
    pub fn waits_for_start(self) -> bool {
        use FaultPoint as P;
        matches!(
            self,
            P::MemoryShort
                | P::MemoryUnwritable
                | P::LookKilled
                | P::StopKilled
                | P::ResumeKilled
                | P::OrderChanges
        )
    }

    /// The one of this number.
    pub fn numbered(number: u32) -> Option<FaultPoint> {
        FaultPoint::ALL.get(number as usize).copied()
    }
}
