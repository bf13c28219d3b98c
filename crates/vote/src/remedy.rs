//! What is done to replicas when a verdict is spoken.

use crate::ballot::Blame;
use crate::policy::OnDivergence;

/// That.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The run stops: replicas that differ on purpose have done different things.
    Alarm,
    /// The run stops, as the user wants it to.
    StopAsAsked,
    /// A follower is taken out.
    TakeOut(usize),
    /// The leader is, and a follower leads.
    Depose(usize),
    /// The run stops: nobody could be named.
    Stop,
}

/// What a verdict leads to. `asked_out`: somebody has asked for the end of who is to blame.
pub fn remedy(
    blame: Blame,
    asked_out: bool,
    has_variants: bool,
    on_divergence: OnDivergence,
) -> Remedy {
    if has_variants && !asked_out {
        return Remedy::Alarm;
    }
    let stops = on_divergence == OnDivergence::Stop && !asked_out;
    match blame {
        Blame::Unnamed => Remedy::Stop,
        _ if stops => Remedy::StopAsAsked,
        Blame::Follower(replica) => Remedy::TakeOut(replica),
        Blame::Leader(replica) => Remedy::Depose(replica),
    }
}
