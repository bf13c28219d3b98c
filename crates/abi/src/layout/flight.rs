//! How far a leader's logged call is, so that its successor neither repeats nor omits it.

/// None is under way, or its record is published.
pub const NONE: u32 = 0;
/// The call is made; whether it has happened the registers tell.
pub const BEGUN: u32 = 1;
/// It has returned (twice `BEGUN`: the gate shifts the word).
pub const RETURNED: u32 = 2;
/// Its record is being put into the ring.
pub const LOGGING: u32 = 3;
/// The record is whole up to `Block::flight_end`.
pub const LOGGED: u32 = 4;
/// The rest of a write that came back short is being written: `Block::flight_done` bytes are out,
/// and what the registers tell.
pub const FINISHING: u32 = 8;
/// That has returned (twice `FINISHING`): besides, what is noted is out.
pub const FINISHED: u32 = 16;
/// All together has the result `Block::flight_total`.
pub const SUMMED: u32 = 32;
/// A write to a full pipe waits for room; `Block::flight_done` bytes of it are out.
pub const AWAITING_ROOM: u32 = 64;
/// That has ended (twice `AWAITING_ROOM`), and no more is written yet.
pub const AWAITED_ROOM: u32 = 128;

/// `Block::flight_entered`: the gate for calls that may sleep.
pub const AT_BLOCKING: u32 = 1;
/// The gate for calls that answer at once.
pub const AT_ANSWERING: u32 = 2;
