//! Making a fault in a stopped thread.

use anyhow::{Context, Result};
use geryon_fault::place::Maps;
use geryon_fault::{Target, registers, vector};
use geryon_tracee::{RemoteMemory, Stopped, xsave_offset};

/// Make it; Ok(Err): why it cannot be made.
pub fn strike(thread: Stopped, target: &Target) -> Result<Result<(), String>> {
    let mut regs = thread.regs()?;
    if registers::strike(&mut regs, target) {
        thread.set_regs(&regs)?;
        return Ok(Ok(()));
    }
    if let Target::Vector(v) = target {
        let mut area = thread.xstate()?;
        if !vector::strike(&mut area, *v, xsave_offset) {
            return Ok(Err("this processor has no such register".into()));
        }
        thread.set_xstate(&area)?;
        return Ok(Ok(()));
    }
    if !target.kind().hits_bare() {
        return Ok(Err("a bare run cannot be hit so".into()));
    }
    let proc = |file: &str| format!("/proc/{}/{file}", thread.0);
    let maps = geryon_tracee::text(proc("maps")).context("cannot read the mappings")?;
    let exe = std::fs::read_link(proc("exe")).context("cannot read the program's name")?;
    let place = Maps::parse(&maps).place(target, &exe.to_string_lossy(), regs.rsp, &[]);
    let Some((address, bit)) = place else {
        return Ok(Err("the program has no memory of that kind".into()));
    };
    let memory = RemoteMemory::open(thread.0)?;
    let mut byte = [0];
    memory.read(address, &mut byte)?;
    memory.write(address, &[byte[0] ^ (1 << bit)])?;
    Ok(Ok(()))
}
