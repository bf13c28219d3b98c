//! Faults in what the replicas of a group share: the log, and the lines on which they say how far
//! they are.

use crate::segment::Segment;
use std::sync::atomic::{AtomicU64, Ordering};

const WORD_BYTES: u64 = 8;
/// A follower's tail and its acknowledgement.
const LINE_WORDS: u64 = 2;

/// Flip a bit of a word that was published and not overwritten yet. False: there is none.
pub fn flip_log(segment: &Segment, number: u64, bit: u32) -> bool {
    let rings: Vec<(usize, u64, u64)> = used(segment)
        .map(|(slot, head)| (slot, head, head.min(segment.ring_words() as u64)))
        .collect();
    let words = rings.iter().map(|r| r.2).sum::<u64>();
    let Some((mut nth, bit)) = nth(number, bit, words) else {
        return false;
    };
    for (slot, head, len) in rings {
        if nth < len {
            flip(segment.log_word(slot, head - len + nth), bit);
            return true;
        }
        nth -= len;
    }
    false
}

/// Flip a bit of what a replica says of itself in one of the rings in use. False: there is none.
pub fn flip_progress(segment: &Segment, replica: usize, number: u64, bit: u32) -> bool {
    let slots: Vec<usize> = used(segment).map(|(slot, _)| slot).collect();
    let Some((nth, bit)) = nth(number, bit, slots.len() as u64 * LINE_WORDS) else {
        return false;
    };
    let line = &segment.ring(slots[(nth / LINE_WORDS) as usize]).followers[replica];
    let words = [&line.tail, &line.ack];
    flip(words[(nth % LINE_WORDS) as usize], bit);
    true
}

/// How many words of the log were written; or read, by this follower.
pub fn words(segment: &Segment, follower: Option<usize>) -> u64 {
    used(segment)
        .map(|(slot, head)| match follower {
            None => head,
            Some(replica) => {
                let line = &segment.ring(slot).followers[replica];
                line.tail.load(Ordering::Acquire).min(head)
            }
        })
        .sum()
}

/// Rings with their heads.
fn used(segment: &Segment) -> impl Iterator<Item = (usize, u64)> {
    let touched = segment.touched().into_iter();
    touched
        .map(|slot| (slot, segment.ring(slot).head.load(Ordering::Acquire)))
        .filter(|(_, head)| *head != 0)
}

/// Which word and bit of it a byte's number, modulo their number, and its bit mean.
fn nth(number: u64, bit: u32, words: u64) -> Option<(u64, u32)> {
    let byte = number.checked_rem(words * WORD_BYTES)?;
    Some((byte / WORD_BYTES, (byte % WORD_BYTES) as u32 * 8 + bit))
}

fn flip(word: &AtomicU64, bit: u32) {
    word.fetch_xor(1 << bit, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_modulo() {
        assert_eq!(nth(0, 3, 2), Some((0, 3)));
        assert_eq!(nth(9, 3, 2), Some((1, 11)));
        assert_eq!(nth(16, 7, 2), Some((0, 7)));
        assert_eq!(nth(5, 0, 0), None);
    }

    #[test]
    fn only_what_is_in_use_is_hit() {
        // Rings of whole pages, as a control page wants to be aligned.
        let segment = Segment::new(512, 3, 7, 0, false).expect("a segment");
        assert!(!flip_log(&segment, 5, 1) && !flip_progress(&segment, 1, 5, 1));
        segment.ring(4).head.store(2, Ordering::SeqCst);
        assert!(flip_log(&segment, 9, 1));
        assert_eq!(segment.log_word(4, 1).load(Ordering::SeqCst), 1 << 9);
        assert!(flip_progress(&segment, 1, 8, 0));
        assert_eq!(segment.ring(4).followers[1].ack.load(Ordering::SeqCst), 1);
        assert_eq!((words(&segment, None), words(&segment, Some(2))), (2, 0));
    }
}
