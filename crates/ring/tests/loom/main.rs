//! The log's protocol, the code itself, under every interleaving that loom's model of memory allows.
//!
//! A lost wake-up is a deadlock, a word read too early or overwritten too early is a causality
//! violation. Each [`fault::Fault`] breaks one step of the world that the protocol runs in; its test says
//! that the model notices.

mod cores;
mod fault;
mod kin;
mod log;
mod promotion;
mod seats;
mod word;
mod world;

/// Forced switches between threads in one execution, enough for each fault to be noticed.
/// `LOOM_MAX_PREEMPTIONS` in the environment sets another bound.
const PREEMPTIONS: usize = 2;

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 10_000;
    builder.check(model);
}
