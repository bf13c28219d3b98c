//! The verdict on a replica that is gone or must go: it died, it hangs, it ended unlike the others.

use crate::ballot::{Blame, NAMING};
use crate::difference::PAIR;
use crate::policy::OnDivergence;
use crate::sentence;

/// What is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Which one.
    pub replica: usize,
    /// It leads.
    pub leads: bool,
    /// Replicas that take part, itself included.
    pub total: usize,
    /// It is gone: no vote is needed.
    pub is_certain: bool,
    /// It was not killed from outside.
    pub own_fault: bool,
    /// Somebody has asked for its end.
    pub asked_out: bool,
    /// Copies that were asked have said that it is wrong.
    pub is_arbitrated: bool,
    /// They are still being asked.
    pub is_arbitrating: bool,
    /// Replicas differ on purpose.
    pub has_variants: bool,
    /// Others can go on without it, or it is known how it was to end.
    pub succeeds: bool,
    /// `--on-divergence`.
    pub on_divergence: OnDivergence,
}

/// What the loss means for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The run stops: one that was asked who is right was lost.
    Unsettled,
    /// The run stops: nobody else has its layout.
    Irreplaceable,
    /// Somebody is named, or nobody can be; and that in words.
    Blamed(Blame, String),
}

/// What the run stops with when one who was asked who is right is lost.
pub const UNSETTLED: &str =
    "stopped: it could not be found out who is right, for one who was asked was lost";

const TWO_DIFFER: &str = "stopped: two replicas differ, and no majority says who is wrong; run with -n 3 to name the faulty replica, or with --on-divergence leader to go on all the same";

impl Loss {
    /// Is who is lost named by it?
    pub fn is_named_by_others(self) -> bool {
        self.total >= NAMING
    }

    /// Decide what follows.
    pub fn settle(self) -> Settlement {
        if self.is_arbitrating && !self.is_arbitrated {
            return Settlement::Unsettled;
        }
        if self.has_variants && !self.own_fault && !self.asked_out {
            return Settlement::Irreplaceable;
        }
        let (replica, total) = (self.replica, self.total);
        // Where one of two hangs, or does what none may do, that is no question of whom to believe.
        let goes_on = self.on_divergence == OnDivergence::Leader;
        let is_named = self.is_named_by_others() || self.is_certain || goes_on;
        if self.leads && self.succeeds && is_named {
            let text = format!("replica {} led; another one takes over", replica + 1);
            Settlement::Blamed(Blame::Leader(replica), text)
        } else if !self.leads && is_named {
            let how = match self.asked_out {
                true => "taken out",
                false if total < NAMING => "lost",
                false => "outvoted",
            };
            let left = match total {
                _ if self.is_arbitrated => PAIR,
                _ => total.saturating_sub(1),
            };
            let text = format!(
                "replica {} of {total} is {how}; going on with {}",
                replica + 1,
                sentence::replicas(left)
            );
            Settlement::Blamed(Blame::Follower(replica), text)
        } else {
            Settlement::Blamed(Blame::Unnamed, TWO_DIFFER.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Loss, Settlement};
    use crate::{Blame, OnDivergence};

    const LOSS: Loss = Loss {
        replica: 1,
        leads: false,
        total: 3,
        is_certain: false,
        own_fault: true,
        asked_out: false,
        is_arbitrated: false,
        is_arbitrating: false,
        has_variants: false,
        succeeds: true,
        on_divergence: OnDivergence::Replace,
    };

    fn blame(loss: Loss) -> Option<Blame> {
        match loss.settle() {
            Settlement::Blamed(blame, _) => Some(blame),
            _ => None,
        }
    }

    #[test]
    fn one_of_two_must_be_gone_for_certain() {
        assert_eq!(blame(LOSS), Some(Blame::Follower(1)));
        let two = Loss { total: 2, ..LOSS };
        assert_eq!(blame(two), Some(Blame::Unnamed));
        let gone = Loss {
            is_certain: true,
            ..two
        };
        assert_eq!(blame(gone), Some(Blame::Follower(1)));
        let believed = Loss {
            on_divergence: OnDivergence::Leader,
            ..two
        };
        assert_eq!(blame(believed), Some(Blame::Follower(1)));
    }

    #[test]
    fn a_leader_goes_only_where_another_one_can_lead() {
        let leads = Loss {
            leads: true,
            ..LOSS
        };
        assert_eq!(blame(leads), Some(Blame::Leader(1)));
        let last = Loss {
            succeeds: false,
            ..leads
        };
        assert_eq!(blame(last), Some(Blame::Unnamed));
    }

    #[test]
    fn who_was_asked_is_not_missed_without_an_answer() {
        let asked = Loss {
            is_arbitrating: true,
            ..LOSS
        };
        assert_eq!(asked.settle(), Settlement::Unsettled);
        let guilty = Loss {
            is_arbitrated: true,
            ..asked
        };
        assert_eq!(blame(guilty), Some(Blame::Follower(1)));
    }
}
