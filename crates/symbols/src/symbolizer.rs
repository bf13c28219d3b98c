//! The walk from frame to frame, and the modules that it has seen.

use std::collections::HashMap;

use crate::image::{NoMemory, ProcessMemory, read_u64};
use crate::maps::{Mapping, Maps};
use crate::module::{Module, Wanted};
use crate::unwind::{Registers, Site, Step};
use crate::{Frame, Memory, Regs};

/// The most modules that are kept parsed.
const MODULES_MAX: usize = 256;
/// How far before a return address its call may begin.
const CALL_MAX_BYTES: u64 = 7;

/// Which file a module is: device, inode, name.
type Key = ((u32, u32), u64, Option<String>);

/// Symbolises backtraces, keeping the parsed files between calls (and between processes).
#[derive(Default)]
pub struct Symbolizer {
    modules: HashMap<Key, Loaded>,
}

struct Loaded {
    /// None: there is nothing to find for `pid`.
    module: Option<Module>,
    pid: i32,
}

/// What stays the same during one backtrace.
struct Target<'a> {
    pid: i32,
    maps: Maps,
    memory: &'a dyn Memory,
    translate: &'a dyn Fn(u64) -> Option<u64>,
}

/// A frame's code, after translation.
struct Place<'a> {
    address: u64,
    /// Of an instruction that is being executed, rather than of one behind a call.
    exact: bool,
    mapping: Option<&'a Mapping>,
    module: Option<&'a Module>,
    bias: u64,
}

impl Place<'_> {
    /// An address inside the instruction, as the module counts it.
    fn lookup(&self) -> u64 {
        self.address
            .wrapping_sub(u64::from(!self.exact))
            .wrapping_sub(self.bias)
    }

    fn is_signal_frame(&self) -> bool {
        self.module
            .is_some_and(|module| module.tables().is_signal_frame(self.lookup()))
    }

    fn frame(&self, pc: u64, guessed: bool) -> Frame {
        let mut frame = Frame {
            pc,
            guessed,
            ..Frame::default()
        };
        let Some(mapping) = self.mapping else {
            return frame;
        };
        frame.module.clone_from(&mapping.name);
        let Some(module) = self.module else {
            frame.offset = if mapping.is_file() {
                self.address - mapping.start + mapping.offset
            } else {
                0
            };
            return frame;
        };
        frame.offset = self.address.wrapping_sub(self.bias);
        // A signal frame's code is returned to without having made a call.
        let lookup = if self.is_signal_frame() {
            frame.offset
        } else {
            self.lookup()
        };
        frame.function = module
            .function(lookup)
            .map(|(name, start)| format!("{name}+{:#x}", frame.offset.wrapping_sub(start)));
        frame.source = module.source(lookup);
        frame
    }
}

impl Symbolizer {
    /// One that has seen nothing yet.
    pub fn new() -> Symbolizer {
        Symbolizer::default()
    }

    /// The frames of a stopped thread, innermost first, at most `max`. `pid` may be a tid.
    ///
    /// `translate` maps an address in a trampoline to that of the original code which it stands
    /// for, and gives none for all others. It is asked for every frame. The stack pointer there
    /// must be what it would be in the original.
    ///
    /// The walk ends early where unwinding fails: a complete backtrace ends in `_start`, or in
    /// the C library's function that starts threads.
    pub fn backtrace(
        &mut self,
        pid: i32,
        regs: &Regs,
        memory: &dyn Memory,
        translate: &dyn Fn(u64) -> Option<u64>,
        max: usize,
    ) -> Vec<Frame> {
        let maps = Maps::of_process(pid).unwrap_or_default();
        let target = Target {
            pid,
            maps,
            memory,
            translate,
        };
        let mut registers = Registers::new(regs);
        let (mut exact, mut guessed) = (true, false);
        let mut frames = Vec::new();
        while frames.len() < max {
            let place = self.place(&target, registers.pc(), exact);
            frames.push(place.frame(registers.pc(), guessed));
            let signal = place.is_signal_frame();
            let caller = match unwind(&place, &registers, target.memory) {
                Some(Step::Outermost) => break,
                Some(Step::Caller(caller)) => {
                    guessed = false;
                    *caller
                }
                Some(Step::Broken) | None => {
                    guessed = true;
                    let Some(caller) = guess(&target, &registers, exact) else {
                        break;
                    };
                    caller
                }
            };
            // The stack shrinks, but that a handler may run on a stack of its own.
            let shrinks = caller.sp() > registers.sp() || signal;
            let runs =
                target.maps.is_executable(caller.pc()) || (target.translate)(caller.pc()).is_some();
            // A call through a wild pointer can be interrupted by its own fault.
            if !shrinks || !(runs || signal) {
                break;
            }
            registers = caller;
            exact = signal;
        }
        frames
    }

    /// What is at the instruction `pc` of a process, running or stopped.
    pub fn symbol_at(&mut self, pid: i32, pc: u64) -> Frame {
        let opened = ProcessMemory::open(pid);
        let memory: &dyn Memory = opened.as_ref().map_or(&NoMemory, |memory| memory);
        let maps = Maps::of_process(pid).unwrap_or_default();
        let target = Target {
            pid,
            maps,
            memory,
            translate: &|_| None,
        };
        self.place(&target, pc, true).frame(pc, false)
    }

    fn place<'a>(&'a mut self, target: &'a Target<'_>, pc: u64, exact: bool) -> Place<'a> {
        let mut place = Place {
            address: pc,
            exact,
            mapping: None,
            module: None,
            bias: 0,
        };
        if let Some(original) = (target.translate)(pc) {
            place.address = original;
        } else if !exact && let Some(original) = (target.translate)(pc.wrapping_sub(1)) {
            // The call was the trampoline's last instruction.
            (place.address, place.exact) = (original, true);
        }
        let inside = place.address.wrapping_sub(u64::from(!place.exact));
        place.mapping = target.maps.find(inside);
        if let Some(mapping) = place.mapping
            && let Some(module) = self.module(target, mapping)
            && let Some(bias) = module.bias(mapping)
        {
            (place.module, place.bias) = (Some(module), bias);
        }
        place
    }

    fn module(&mut self, target: &Target<'_>, mapping: &Mapping) -> Option<&Module> {
        let is_vdso = mapping.name.as_deref() == Some("[vdso]");
        if !mapping.is_file() && !is_vdso {
            return None;
        }
        let wanted = Wanted {
            pid: target.pid,
            maps: &target.maps,
            mapping,
            memory: target.memory,
        };
        let key = (mapping.device, mapping.inode, mapping.name.clone());
        let current = self
            .modules
            .get(&key)
            .is_some_and(|loaded| match &loaded.module {
                Some(module) => module.is_mapped_at(wanted),
                None => loaded.pid == target.pid,
            });
        if !current {
            if self.modules.len() >= MODULES_MAX {
                self.modules.clear();
            }
            let loaded = Loaded {
                module: Module::load(wanted),
                pid: target.pid,
            };
            self.modules.insert(key.clone(), loaded);
        }
        self.modules.get(&key)?.module.as_ref()
    }
}

fn unwind(place: &Place<'_>, registers: &Registers, memory: &dyn Memory) -> Option<Step> {
    let module = place.module?;
    let site = Site {
        registers,
        lookup: place.lookup(),
        bias: place.bias,
        memory,
    };
    let from_debug_file = || module.debug_tables()?.step(&site);
    module.tables().step(&site).or_else(from_debug_file)
}

/// A caller without unwind information: through the stack's top, where nothing can have been
/// pushed or a call's return address lies there, else by frame pointer.
fn guess(target: &Target<'_>, registers: &Registers, exact: bool) -> Option<Registers> {
    let sp = registers.sp();
    if exact {
        let top = read_u64(target.memory, sp)?;
        if is_return_address(target, top) {
            return Some(Registers::of_guess(
                top,
                sp.checked_add(8)?,
                registers.rbp(),
            ));
        }
    }
    let rbp = registers.rbp().filter(|&rbp| rbp >= sp && rbp % 8 == 0)?;
    let saved = read_u64(target.memory, rbp)?;
    let back = read_u64(target.memory, rbp.checked_add(8)?)?;
    is_return_address(target, back)
        .then(|| Registers::of_guess(back, rbp.wrapping_add(16), Some(saved)))
}

/// Whether a call instruction ends at `address`.
fn is_return_address(target: &Target<'_>, address: u64) -> bool {
    if !target.maps.is_executable(address) {
        return false;
    }
    let mut before = [0; CALL_MAX_BYTES as usize];
    if !target
        .memory
        .read(address.wrapping_sub(CALL_MAX_BYTES), &mut before)
    {
        return false;
    }
    let direct = before[2] == 0xe8;
    // `call r/m64` is ff /2, from two bytes to seven.
    let indirect = before
        .windows(2)
        .any(|pair| pair[0] == 0xff && pair[1] >> 3 & 7 == 2);
    direct || indirect
}
