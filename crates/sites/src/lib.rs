//! Places in programs at which threads race: loads and stores of memory that another thread uses at the same time, which
//! no lock or atomic instruction orders. Where threads run in parallel Geryon orders those that it is told of.
//!
//! ```text
//! detector's report --helgrind--> Race --module--> Module <--format--> files in folders --known--> Known
//! ```
//!
//! A place is known by the build (the build-id) of the file that it is in, and its link-time address there.
#![forbid(unsafe_code)]

mod built_in;
pub mod folders;
mod format;
pub mod helgrind;
mod known;
mod module;
mod store;

pub use format::{Damaged, parse};
pub use known::{Known, Unusable};
pub use module::{BuildId, Kind, Module, Site, build_id};
pub use store::{forget, keep};
