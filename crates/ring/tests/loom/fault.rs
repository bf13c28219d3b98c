//! What can be wrong with the world that the protocol runs in. Each fault leaves out or weakens one step;
//! a test says that the model notices. (Faults in the protocol's own text are tried by hand: the log of
//! changes has the table.)

/// A step that is left out or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    None,
    /// `head` is stored without release.
    PublishRelaxed,
    /// `head` is loaded without acquire.
    HeadRelaxed,
    /// The leader is not registered for the sleeper's barrier.
    LeaderUnregistered,
    /// The compiler may move the leader's look for sleepers before its store of the head.
    NoLightBarrier,
    /// The sleeper's barrier is none.
    NoBarrier,
    /// The sleeper's barrier is a fence of its own core alone.
    FenceForBarrier,
    /// The sleeper's flag is seen only when it sleeps, behind its last look.
    FlagBehindCheck,
    /// Nobody is woken who sleeps on `head`.
    NoWake,
    /// `tell_tail` stores without release.
    TellTailRelaxed,
    /// A tail is told that is one word ahead of what was read.
    TailAhead,
    /// `acknowledge` stores the tail without release.
    AcknowledgeTailRelaxed,
    /// `acknowledge` stores without the total order.
    AckUnordered,
    /// The leader sleeps without raising its flag in the total order.
    LeaderSleepsUnordered,
    /// The leader is woken, and the flag that it sleeps on stays up.
    FlagLeft,
    /// A copy joins before its tails are set.
    JoinsWithoutTail,
    /// Its source goes on before it has its seat.
    SourceGoesFirst,
    /// A copy joins without the flag that says that it sleeps.
    JoinsUnflagged,
    /// It does with the flag, but without the barrier behind that.
    JoinsWithoutBarrier,
    /// The monitor's wake-up of a successor comes before the question.
    WokenBeforeAsked,
    /// Two threads of a successor may both prepare it.
    BothPrepare,
}

/// Which word a word is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Name {
    Head,
    FollowerSleeps,
    LeaderSleeps,
    Tail,
    Ack,
    Joining,
    Promotion,
    Other,
}
