//! The contract between monitor and agent: the system-call table, the layout of
//! the memory both see, and the records of the log. No logic that could differ
//! between the two sides lives anywhere else.
#![no_std]
#![forbid(unsafe_code)]

pub mod annotation;
pub mod frame;
pub mod hooks;
pub mod layout;
pub mod outcome;
pub mod point;
pub mod proc_file;
pub mod record;
pub mod row;
pub mod table;
