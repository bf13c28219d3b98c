//! The log's protocol: the leader's thread appends words to a ring, its followers read them.
//!
//! It is single producer, many consumers:
//!
//! * the leader writes slots, then stores `head` (release);
//! * a follower loads `head` (acquire), reads slots, then stores its `tail` (release);
//! * the leader overwrites a slot only when every living follower's `tail` has passed it;
//! * `ack` is the position up to which a follower has verified outputs.
//!
//! The code is that which runs in the replicas ([`lead`], [`follow`]), and is written against three
//! traits: shared words ([`word::Atom`]), the memory that they lie in ([`memory`]) and whoever runs it
//! ([`world`]). The agent gives it the processor's words, futex calls and barriers; `tests/loom` gives it a
//! checker's, which tries every order, and breaks them one by one to see that it notices.
#![no_std]

pub mod follow;
pub mod kin;
pub mod lead;
pub mod mapped;
pub mod memory;
pub mod roll;
pub mod seats;
pub mod succeed;
pub mod word;
pub mod world;

pub use mapped::Ring;
