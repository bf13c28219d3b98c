//! Faults: which there are, how they are written, which a campaign makes, where in a process they
//! strike, and what came of them, as tables and as a page.
//!
//! Pure but for the results file: nothing here stops a thread or writes another process's memory.
//! Who does (the monitor, and the tracer of bare runs) takes the place from [`place`], the bit from
//! [`registers`] and [`vector`], and says in a [`journal`] what happened.
#![forbid(unsafe_code)]

pub mod campaign;
mod chart;
pub mod fault;
pub mod journal;
pub mod kind;
pub mod outcome;
pub mod overview;
pub mod page;
mod parse;
pub mod place;
pub mod point;
mod random;
pub mod registers;
pub mod results;
pub mod summary;
mod text;
pub mod vector;

pub use campaign::{Campaign, Times, Trial};
pub use fault::{Fault, Gpr, Target, Vector, When, Width};
pub use kind::Kind;
pub use outcome::Outcome;
pub use parse::ParseError;
pub use point::Point;
pub use results::{Record, Side};
