//! The initial stack, as the kernel has laid it out for the program's first instruction: argc,
//! arguments, environment, auxiliary vector. The vDSO is hidden in it, and strings are added to
//! the environment.

use super::Installer;
use crate::private_field;
use anyhow::Result;
use geryon_abi::layout::{INJECTED_ENV, Layout, PRIVATE_BASE, PRIVATE_BYTES};
use geryon_tracee::RemoteMemory;
use std::ops::Range;

const AT_NULL: u64 = 0;
const AT_IGNORE: u64 = 1;
const AT_SYSINFO_EHDR: u64 = 33;
/// Where ld.so looks for settings.
const TUNABLES: &[u8] = b"GLIBC_TUNABLES=";
/// The longest setting of the user's that is kept, with its name.
const TUNABLES_BYTES: usize = 4096;
const PAGE: u64 = 4096;
const WORD: u64 = 8;

impl Installer<'_> {
    /// Hide the vDSO, and add our environment strings for ld.so.
    ///
    /// # Errors
    /// When the stack is not as the kernel lays it out.
    pub fn prepare_stack(&mut self, glibc: bool) -> Result<()> {
        let m = self.memory;
        let rsp = self.start.rsp;
        let mut stack = Words::at(m, rsp);
        let Initial { env, vector } = stack.initial()?;
        let end = vector.start - 1;
        let mut entries = stack.words[vector.clone()].to_vec();
        for (i, entry) in entries.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            if entry[0] == AT_SYSINFO_EHDR {
                entry[0] = AT_IGNORE;
                m.set_word(rsp + WORD * (vector.start + 2 * i) as u64, AT_IGNORE)?;
            }
        }
        self.tell_kernel(&entries, Layout::default());
        if !glibc {
            return Ok(());
        }
        let strings = injected(&user_tunables(m, &stack.words[env..end]));
        // Everything up to the environment's NULL moves down by as many words as are added
        // (two: the stack stays aligned).
        let mut moved = stack.words[..end].to_vec();
        moved.extend(self.place_strings(&strings)?);
        let new = rsp - WORD * INJECTED_ENV as u64;
        let bytes: Vec<u8> = moved.iter().flat_map(|w| w.to_le_bytes()).collect();
        m.write(new, &bytes)?;
        m.write(
            private_field!(env_injected),
            &(INJECTED_ENV as u32).to_le_bytes(),
        )?;
        m.set_word(private_field!(envp), new + WORD * env as u64)?;
        self.start.rsp = new;
        self.tracee.set_regs(&self.start)?;
        Ok(())
    }

    /// Strings go into the private structure's page range, behind the structure; their addresses.
    fn place_strings(&self, strings: &[String]) -> Result<Vec<u64>> {
        let base = PRIVATE_BASE + PRIVATE_BYTES / 2;
        let (mut bytes, mut addresses) = (Vec::new(), Vec::new());
        for s in strings {
            addresses.push(base + bytes.len() as u64);
            bytes.extend_from_slice(s.as_bytes());
            bytes.push(0);
        }
        self.memory.write(base, &bytes)?;
        Ok(addresses)
    }
}

/// Where things stand on the initial stack, in words.
pub(super) struct Initial {
    /// The environment; a zero ends it.
    pub(super) env: usize,
    /// The auxiliary vector's pairs, with the one that ends it.
    pub(super) vector: Range<usize>,
}

/// Words of a process from an address on, read page by page as they are asked for.
pub(super) struct Words<'a> {
    memory: &'a RemoteMemory,
    start: u64,
    pub(super) words: Vec<u64>,
}

impl<'a> Words<'a> {
    pub(super) fn at(memory: &'a RemoteMemory, start: u64) -> Words<'a> {
        Words {
            memory,
            start,
            words: Vec::new(),
        }
    }

    pub(super) fn get(&mut self, i: usize) -> Result<u64> {
        while i >= self.words.len() {
            let from = self.start + WORD * self.words.len() as u64;
            let len = (PAGE - from % PAGE).max(WORD) & !(WORD - 1);
            let mut bytes = vec![0; len as usize];
            self.memory.read(from, &mut bytes)?;
            self.words
                .extend(bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w)));
        }
        Ok(self.words[i])
    }

    /// Read the whole of the initial stack, where these begin: argc, then two arrays that end with a zero, then pairs.
    pub(super) fn initial(&mut self) -> Result<Initial> {
        let argc = self.get(0)? as usize;
        let env = argc.saturating_add(2);
        let mut at = env;
        while self.get(at)? != 0 {
            at += 1;
        }
        let start = at + 1;
        at = start;
        while self.get(at)? != AT_NULL {
            at += 2;
        }
        self.get(at + 1)?;
        Ok(Initial {
            env,
            vector: start..at + 2,
        })
    }
}

/// The user's own settings for ld.so, from the environment's strings, which the kernel has laid
/// one behind the other.
fn user_tunables(m: &RemoteMemory, env: &[u64]) -> String {
    let (Some(first), Some(last)) = (env.iter().min(), env.iter().max()) else {
        return String::new();
    };
    let mut block = vec![0; ((last | (PAGE - 1)) + 1 - first) as usize];
    if m.read(*first, &mut block).is_err() {
        block.clear();
    }
    env.iter()
        .filter(|p| {
            // One that crosses the block's end is looked at on its own.
            let string = block.get((*p - first) as usize..).unwrap_or_default();
            string.len() < TUNABLES.len() || string.starts_with(TUNABLES)
        })
        .find_map(|p| {
            let string = m.string(*p, TUNABLES_BYTES);
            let value = string.strip_prefix(TUNABLES)?;
            Some(String::from_utf8_lossy(value).into_owned())
        })
        .unwrap_or_default()
}

/// Environment strings for ld.so: settings that make glibc's choices a function of what is
/// ordered. Later settings win, so the user's own come first.
fn injected(user: &str) -> [String; INJECTED_ENV] {
    const OURS: &str = "glibc.malloc.mxfast=0:glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864:glibc.pthread.rseq=0:glibc.pthread.stack_cache_size=1099511627776";
    let joined = if user.is_empty() {
        OURS.to_owned()
    } else {
        format!("{user}:{OURS}")
    };
    [format!("GLIBC_TUNABLES={joined}"), "GERYON=1".to_owned()]
}
