//! A copy of a leader is to follow: its threads issue the calls anew that their originals are making,
//! and find in the log what came of them.

use super::copy::Place;
use super::waits;
use crate::image::Image;
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::{block_address, promotion, repeat, role, wait};
use geryon_tracee::{Regs, RemoteMemory};

/// A process that is copied leads, and the copy is to follow.
#[derive(Clone, Copy, Debug)]
pub struct Led {
    /// See [`Seat`](super::replica::Seat).
    pub testifies: bool,
}

/// Where a copy's thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumes {
    /// Where its original stood, outside of the agent, or at the beginning of what it makes anew.
    AsItIs,
    /// In the kernel, inside the original of a hooked function.
    Inside,
}

/// Make the registers those with which the copy of a leader's thread goes on. `Err` with the reason when
/// it stands where that cannot be said. `halted`: those of its original.
pub(super) fn thread(
    regs: &mut Regs,
    halted: &Regs,
    block: u64,
    memory: &RemoteMemory,
    image: &Image,
    led: Led,
) -> Result<std::result::Result<Resumes, String>> {
    let half = |field: u64| Ok::<u32, anyhow::Error>(memory.word(block + field)? as u32);
    let inside = memory.word(block + block_field!(frame))? != 0;
    // (In serial order nothing is logged of a hooked function, which may have begun before: a copy is where its source is.)
    let is_serial = memory.word(private_field!(serial))? as u32 != 0;
    let hooked = !is_serial && memory.word(block + block_field!(hook_rsp))? != 0;
    if !inside && !hooked && !image.contains(regs.rip) {
        return Ok(Ok(Resumes::AsItIs));
    }
    let waiting = half(block_field!(waiting))?;
    if inside && matches!(waiting, wait::ASCENT | wait::DESCENT) {
        // It has logged nothing of the call that it is about to make.
        regs.rip = image.symbol("geryon_again");
        return Ok(Ok(Resumes::AsItIs));
    }
    let waits = matches!(
        waiting,
        wait::KERNEL | wait::TURN | wait::KIN | wait::CONFIRM
    );
    let again = match half(block_field!(repeatable))? {
        repeat::CALL | repeat::END => "geryon_again",
        repeat::FIRST_TURN => "geryon_first_turn_again",
        repeat::LOOK => "geryon_look_again",
        _ => "",
    };
    if inside && !hooked && waits && !again.is_empty() {
        regs.rip = image.symbol(again);
        return Ok(Ok(Resumes::AsItIs));
    }
    if led.testifies
        && inside
        && !is_serial
        && waiting == wait::KERNEL
        && let Some(wait) = waits::of(halted, block, memory)?
    {
        return Ok(Ok(match wait {
            waits::Wait::Unlogged => {
                regs.rip = image.symbol("geryon_again");
                Resumes::AsItIs
            }
            waits::Wait::Hooked => Resumes::Inside,
            waits::Wait::OnCondition => {
                waits::end(regs, halted);
                Resumes::Inside
            }
        }));
    }
    Ok(Err(
        "a thread of the leader is in the midst of something".into()
    ))
}

/// What the copy's memory must show: a follower, at the places in the log where the leader was.
/// `living`: the blocks of its threads.
pub(super) fn memory(
    memory: &RemoteMemory,
    places: &[Place],
    living: &[(u64, Resumes)],
) -> Result<()> {
    let word = |at: u64, value: u32| memory.write(at, &value.to_le_bytes());
    word(private_field!(role), role::FOLLOWER)?;
    word(private_field!(promotion), promotion::NONE)?;
    word(private_field!(shares_files), 1)?;
    for p in places {
        let block = block_address(p.slot);
        for field in [
            block_field!(pos),
            block_field!(limit),
            block_field!(verified),
        ] {
            memory.set_word(block + field, p.pos)?;
        }
        memory.set_word(block + block_field!(published), 0)?;
        let resumes = living.iter().find(|l| l.0 == block).map(|l| l.1);
        // Who lives says itself when it comes to wait; it may have to compute until then.
        let released = match resumes {
            Some(_) => u64::MAX,
            None => p.pos,
        };
        memory.set_word(block + block_field!(released), released)?;
        for field in [
            // (What its source was given it finds in the log.)
            block_field!(given),
            block_field!(repeatable),
            block_field!(has_turn),
        ] {
            word(block + field, 0)?;
        }
        word(block + block_field!(begun), p.is_begun.into())?;
        memory.set_word(block + block_field!(signal_logged), 0)?;
        if resumes == Some(Resumes::Inside) {
            // The call that it is in goes on.
            continue;
        }
        // One in a call makes that anew without the turn that its original gave away since. (One that computes has the
        // turn, unless it was taken from its original, too.)
        if memory.word(block + block_field!(frame))? != 0 {
            word(block + block_field!(robbed), 1)?;
        }
        for field in [
            block_field!(flight),
            block_field!(waiting),
            block_field!(pending_count),
        ] {
            word(block + field, 0)?;
        }
    }
    Ok(())
}
