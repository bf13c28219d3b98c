//! A copy of a leader is to follow: its threads issue the calls anew that their originals are making,
//! and find in the log what came of them.

use super::copy::Place;
use crate::image::Image;
use crate::{block_field, private_field};
use anyhow::Result;
use geryon_abi::layout::{block_address, promotion, repeat, role, wait};
use geryon_tracee::{Regs, RemoteMemory};

/// Make the registers those with which the copy of a leader's thread goes on. `Err` with the reason when
/// it stands where that cannot be said.
pub(super) fn thread(
    regs: &mut Regs,
    block: u64,
    memory: &RemoteMemory,
    image: &Image,
) -> Result<std::result::Result<(), String>> {
    let half = |field: u64| Ok::<u32, anyhow::Error>(memory.word(block + field)? as u32);
    let inside = memory.word(block + block_field!(frame))? != 0;
    let hooked = memory.word(block + block_field!(hook_rsp))? != 0;
    if !inside && !hooked && !image.contains(regs.rip) {
        return Ok(Ok(()));
    }
    let waits = matches!(
        half(block_field!(waiting))?,
        wait::KERNEL | wait::TURN | wait::KIN | wait::CONFIRM
    );
    let again = match half(block_field!(repeatable))? {
        repeat::CALL => "geryon_again",
        repeat::FIRST_TURN => "geryon_first_turn_again",
        repeat::LOOK => "geryon_look_again",
        _ => "",
    };
    if !inside || hooked || !waits || again.is_empty() {
        return Ok(Err(
            "a thread of the leader is in the midst of something".into()
        ));
    }
    regs.rip = image.symbol(again);
    Ok(Ok(()))
}

/// What the copy's memory must show: a follower, at the places in the log where the leader was.
/// `living`: the blocks of its threads.
pub(super) fn memory(memory: &RemoteMemory, places: &[Place], living: &[u64]) -> Result<()> {
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
        let asked_at = memory.word(block + block_field!(asleep_at))?;
        if asked_at != 0 && living.contains(&block) {
            for (i, w) in memory
                .words::<2>(block + block_field!(asleep_for))?
                .iter()
                .enumerate()
            {
                memory.set_word(asked_at + 8 * i as u64, *w)?;
            }
        }
        memory.set_word(block + block_field!(asleep_at), 0)?;
        // Who lives says itself when it comes to wait; it may have to compute until then.
        let released = if living.contains(&block) {
            u64::MAX
        } else {
            p.pos
        };
        memory.set_word(block + block_field!(released), released)?;
        // It makes its last call anew without the turn that its original gave away since.
        word(block + block_field!(robbed), 1)?;
        for field in [
            block_field!(flight),
            // (What its source was given it finds in the log.)
            block_field!(given),
            block_field!(repeatable),
            block_field!(waiting),
            block_field!(has_turn),
            block_field!(pending_count),
        ] {
            word(block + field, 0)?;
        }
        memory.set_word(block + block_field!(signal_logged), 0)?;
    }
    Ok(())
}
