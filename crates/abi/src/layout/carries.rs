//! A thread's wait on a condition variable that was begun in a follower which leads by now.

/// It has none.
pub const NOTHING: u32 = 0;
/// Who signals finds it noted in the agent.
pub const NOTED: u32 = 1;
/// It is the original function's, which knows of it as soon as the thread makes a call there.
pub const GIVEN: u32 = 2;
