//! What a person or a script meets at the command line: bad input, exit statuses, signals,
//! closed and full streams, an ordinary user. `Program` gives each run its time limit and
//! finds what it leaves behind.

mod alike;
mod begun;
mod bounds;
#[path = "../support/command.rs"]
mod command;
mod ctl;
mod ends;
#[allow(dead_code)] // these tests know how the guest is run
#[path = "../support/guest.rs"]
mod guest;
mod metrics;
mod order;
mod pages;
mod programs;
mod ps;
mod release;
mod reports;
mod scan;
mod sites;
#[allow(dead_code)] // numbers of replicas and busy loops matter to the other tests only
#[path = "../support/mod.rs"]
mod support;
mod trace;
mod usage;
mod user;
mod variants;
mod verdicts;
