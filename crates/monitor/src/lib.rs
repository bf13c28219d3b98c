//! The monitor: the one process outside the replicas. It launches them, rewrites their code,
//! takes their signals, judges their differences and sees them off. Never on the fast path.

mod ask;
mod block;
mod checkpoint;
mod code;
mod converge;
mod cores;
mod descriptor;
mod image;
mod inject;
mod jobs;
mod journal;
mod kin;
mod launch;
mod layout;
mod limits;
mod maps;
mod meeting;
mod obey;
mod objects;
mod options;
mod order;
mod part;
mod plans;
mod points;
mod programs;
mod recover;
mod report;
mod rules;
mod run;
mod secrets;
mod segment;
mod setup;
mod shared;
mod signals;
mod stand_in;
mod state;
mod takeover;
mod verdict;
mod watch;
mod whom;

pub use ask::{Command, ask};
pub use inject::Watched;
pub use journal::{Totals, totals_of};
pub use options::{
    Often, OnDivergence, OnRace, Options, Order, Outcome, Replacements, Sabotage, SharedFiles,
    Variants, Verify, cores,
};
pub use plans::{Asked, folder as cache_folder};
pub use recover::can_populate;
pub use rules::Rules;
pub use run::run;
