//! Where a thread of a halted leader stands, and how it can wait for its turn from there.

use crate::block_field;
use crate::image::Image;
use anyhow::Result;
use geryon_abi::frame::Frame;
use geryon_abi::layout::{carries, repeat, vforked, wait};
use geryon_tracee::{Regs, RemoteMemory};
use std::mem::offset_of;

const FUTEX: u64 = libc::SYS_futex as u64;

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Between two instructions of the program (a library's, a hooked function's original and what is written in the place of
    /// some of them are among these): it enters the agent from there.
    Computes,
    /// In the kernel, in a call that is logged: the agent asks for the turn before it logs what came of it.
    Waits,
    /// In a futex call that is not logged with clocks, and is in serial order: it makes the call anew. (A wait that ends
    /// without cause is what futex(2) allows, and one that makes another call finds the word changed.)
    WaitsUnlogged,
    /// It waits for serial order before a call, and asks for the turn when it is there.
    AboutToCall,
}

/// The thread with these registers: its block, and where it stands. `Err` with the reason when it stands elsewhere.
pub(super) fn of(
    regs: &Regs,
    memory: &RemoteMemory,
    image: &Image,
) -> Result<std::result::Result<(u64, Stand), &'static str>> {
    const MIDST: &str = "a thread of the leader is in the midst of something";
    let Some(block) = image.block_of(regs) else {
        return Ok(Err("a thread has no block yet"));
    };
    let half = |field: u64| Ok::<u32, anyhow::Error>(memory.word(block + field)? as u32);
    if memory.word(block + block_field!(this))? != block || half(block_field!(publishing))? != 0 {
        return Ok(Err("a thread is being born"));
    }
    if half(block_field!(vforked))? != vforked::NOT {
        return Ok(Err("a vfork's child has not executed its program yet"));
    }
    let frame = memory.word(block + block_field!(frame))?;
    let carries = half(block_field!(carries))?;
    if carries == carries::NOTED || carries == carries::GIVEN && frame == 0 {
        // In serial order signals go to the original function, which may not know of this wait yet.
        return Ok(Err("a thread goes on with a wait that was a follower's"));
    }
    if frame == 0 {
        return Ok(match image.contains(regs.rip) {
            true => Err(MIDST),
            false => Ok((block, Stand::Computes)),
        });
    }
    let waiting = half(block_field!(waiting))?;
    if half(block_field!(repeatable))? != repeat::NOTHING {
        // (Who waits for a confirmation does not ask for the turn behind it. There is nobody left to confirm, so that is over
        // the next time.)
        return Ok(match waiting {
            wait::KERNEL => Ok((block, Stand::Waits)),
            _ => Err(MIDST),
        });
    }
    if waiting == wait::DESCENT {
        return Ok(Ok((block, Stand::AboutToCall)));
    }
    let number = memory.word(frame + offset_of!(Frame, rax) as u64)?;
    let sleeps = regs.orig_rax as i64 >= 0 && (-516..=-512).contains(&(regs.rax as i64));
    Ok(match waiting == wait::KERNEL && number == FUTEX && sleeps {
        true => Ok((block, Stand::WaitsUnlogged)),
        false => Err(MIDST),
    })
}
