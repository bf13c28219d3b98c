//! Examples by hand, and properties over random votes. The oracle of the
//! properties counts with a map and knows nothing of the code under test.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// As many replicas as the properties try.
const REPLICAS_MAX: usize = 9;

fn records(votes: &[Vote]) -> Vec<Record> {
    votes
        .iter()
        .zip(0..)
        .map(|(vote, replica)| Record::new(replica, *vote))
        .collect()
}

fn outvoted(majority: Vote, minority: &[u32]) -> Verdict {
    Verdict::Outvoted {
        majority,
        minority: minority.iter().copied().map(ReplicaId).collect(),
    }
}

#[test]
fn two_replicas_agree_or_not() {
    use Vote::{Crash, Digest, Exit, Missing};
    assert_eq!(
        judge(&records(&[Digest(1), Digest(1)])),
        Verdict::Agree(Digest(1))
    );
    for other in [Digest(2), Crash(1), Exit(1), Missing] {
        assert_eq!(
            judge(&records(&[Digest(1), other])),
            Verdict::NoMajority,
            "{other:?}"
        );
    }
}

#[test]
fn three_replicas_name_the_one_that_differs() {
    use Vote::{Crash, Digest, Exit, Missing};
    for bad in [Digest(2), Crash(11), Exit(0), Missing] {
        let verdict = judge(&records(&[bad, Digest(1), Digest(1)]));
        assert_eq!(verdict, outvoted(Digest(1), &[0]), "{bad:?}");
    }
    assert_eq!(
        judge(&records(&[Digest(1), Crash(6), Crash(6)])),
        outvoted(Crash(6), &[0])
    );
}

#[test]
fn the_same_number_of_another_kind_is_another_vote() {
    let votes = [Vote::Digest(1), Vote::Crash(1), Vote::Exit(1)];
    assert_eq!(judge(&records(&votes)), Verdict::NoMajority);
}

#[test]
fn missing_replicas_cannot_outvote() {
    use Vote::{Digest, Missing};
    assert_eq!(
        judge(&records(&[Missing, Missing, Missing])),
        Verdict::NoMajority
    );
    assert_eq!(
        judge(&records(&[Digest(1), Missing, Missing])),
        Verdict::NoMajority
    );
    assert_eq!(judge(&records(&[Missing])), Verdict::NoMajority);
}

#[test]
fn a_relative_majority_is_none() {
    let votes = [1, 1, 2, 3, 4].map(Vote::Digest);
    assert_eq!(judge(&records(&votes)), Verdict::NoMajority);
    assert_eq!(
        judge(&records(&[1, 1, 2, 2].map(Vote::Digest))),
        Verdict::NoMajority
    );
}

#[test]
fn one_replica_agrees_with_itself_and_none_with_nobody() {
    assert_eq!(
        judge(&records(&[Vote::Exit(3)])),
        Verdict::Agree(Vote::Exit(3))
    );
    assert_eq!(judge(&[]), Verdict::NoMajority);
}

#[test]
fn two_of_three_confirm_before_the_third_arrives() {
    let arrived = records(&[Vote::Digest(1), Vote::Digest(1)]);
    assert_eq!(confirmed(&arrived, 3), Some(Vote::Digest(1)));
    assert_eq!(confirmed(&arrived, 4), None);
}

#[test]
#[should_panic(expected = "replica 1 votes twice")]
fn voting_twice_is_refused() {
    let twice = Record::new(1, Vote::Digest(1));
    judge(&[twice, twice]);
}

fn any_vote() -> impl Strategy<Value = Vote> {
    // Few values, so that equal ones are frequent.
    prop_oneof![
        4 => (0u64..3).prop_map(Vote::Digest),
        1 => (0i32..3).prop_map(Vote::Crash),
        1 => (0i32..3).prop_map(Vote::Exit),
        1 => Just(Vote::Missing),
    ]
}

fn any_votes() -> impl Strategy<Value = Vec<Vote>> {
    prop::collection::vec(any_vote(), 0..=REPLICAS_MAX)
}

proptest! {
    #[test]
    fn the_verdict_is_what_counting_says(votes in any_votes()) {
        let mut counts: HashMap<Vote, usize> = HashMap::new();
        for vote in &votes {
            *counts.entry(*vote).or_default() += 1;
        }
        counts.remove(&Vote::Missing);
        let winner = counts.into_iter().find(|(_, count)| 2 * count > votes.len());
        let expected = match winner {
            None => Verdict::NoMajority,
            Some((vote, count)) if count == votes.len() => Verdict::Agree(vote),
            Some((majority, _)) => {
                let ids = (0u32..).zip(&votes).filter(|(_, v)| **v != majority);
                outvoted(majority, &ids.map(|(id, _)| id).collect::<Vec<_>>())
            }
        };
        prop_assert_eq!(judge(&records(&votes)), expected);
    }

    #[test]
    fn order_has_no_influence(
        (plain, mixed) in any_votes()
            .prop_map(|votes| records(&votes))
            .prop_flat_map(|plain| (Just(plain.clone()), Just(plain).prop_shuffle())),
    ) {
        prop_assert_eq!(judge(&plain), judge(&mixed));
    }

    #[test]
    fn a_confirmed_vote_stays_whatever_follows(votes in any_votes(), seen in 0..=REPLICAS_MAX) {
        let all = records(&votes);
        let seen = seen.min(all.len());
        if let Some(vote) = confirmed(&all[..seen], all.len()) {
            prop_assert_eq!(confirmed(&all, all.len()), Some(vote));
            prop_assert_ne!(judge(&all), Verdict::NoMajority);
        }
    }

    #[test]
    fn one_faulty_replica_of_three_or_more_never_wins(
        replicas in 3..=REPLICAS_MAX, bad in any_vote(), who in 0..REPLICAS_MAX,
    ) {
        let good = Vote::Digest(99);
        let mut votes = vec![good; replicas];
        let who = who % replicas;
        votes[who] = bad;
        let expected = outvoted(good, &[u32::try_from(who).expect("small")]);
        prop_assert_eq!(judge(&records(&votes)), expected);
    }
}
