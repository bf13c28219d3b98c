//! A replica's memory moves to its own layout (`--variants`), before the program's first instruction: the kernel
//! has put the program, ld.so and the stack somewhere, and nothing knows these addresses yet but registers,
//! the stack's first words and the kernel.

use super::Installer;
use super::stack::{Initial, Words};
use crate::layout;
use crate::maps::AddressSpace;
use crate::options::Variants;
use crate::private_field;
use anyhow::{Result, bail};
use geryon_abi::layout::Layout;
use geryon_abi::layout::place::{Moves, VECTOR_ADDRESSES};
use geryon_tracee::memory_layout;
use std::path::PathBuf;

/// What the kernel has mapped for itself. It is hidden, and would lie at the same address in all replicas.
const KERNELS: [&[u8]; 3] = [b"[vdso]", b"[vvar]", b"[vvar_vclock]"];

impl Installer<'_> {
    /// Unmap what the kernel maps at an address of its own choice, and what is hidden anyway: it cannot be told
    /// apart in two replicas.
    ///
    /// # Errors
    /// When an injected call fails.
    pub fn unmap_kernels(&self) -> Result<()> {
        for (start, len, name) in AddressSpace::open(self.tracee.0)?.all()? {
            if KERNELS.contains(&&name[..]) {
                self.inject(libc::SYS_munmap, [start, len, 0, 0, 0, 0], "unmap the vDSO")?;
            }
        }
        Ok(())
    }

    /// The layout in which the kernel has laid out the program, for replicas that differ so.
    pub fn first_layout(&self, variants: Variants) -> Layout {
        /// Where the heap starts, and the stack.
        const HEAP: usize = 4;
        const STACK: usize = 6;
        match variants {
            Variants::None => Layout::default(),
            Variants::Code => {
                let [heap, stack] =
                    memory_layout(self.tracee.0).map_or([0; 2], |l| [l[HEAP], l[STACK]]);
                Layout::new(0, Moves::Images { heap, stack })
            }
            Variants::Data | Variants::Full => Layout::new(0, Moves::All),
        }
    }

    /// The file whose code lies where it cannot be moved from, if there is one: it is linked for a fixed address.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn fixed(&self, layout: Layout) -> Result<Option<PathBuf>> {
        let code = AddressSpace::open(self.tracee.0)?.code(0, u64::MAX)?;
        let fixed = code.into_iter().find(|m| !layout.moves(m.start));
        Ok(fixed.map(|m| m.path))
    }

    /// Move all of it, and say so where it is known.
    ///
    /// # Errors
    /// When an injected call fails, or the kernel cannot be told where the heap is to be.
    pub fn take_layout(&mut self, layout: Layout) -> Result<()> {
        for (start, len, _) in AddressSpace::open(self.tracee.0)?.all()? {
            if layout.moves(start) {
                let how = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
                let args = [start, len, len, how, layout.place(start), 0];
                self.inject(libc::SYS_mremap, args, "move a mapping")?;
            }
        }
        layout::tell(self.memory, layout)?;
        let envp = self.memory.word(private_field!(envp))?;
        self.memory
            .set_word(private_field!(envp), layout.place(envp))?;
        self.start.rip = layout.place(self.start.rip);
        self.start.rsp = layout.place(self.start.rsp);
        let vector = self.correct_stack(layout)?;
        if !self.tell_kernel(&vector, layout) {
            bail!(
                "the kernel does not let the heap move (prctl PR_SET_MM_MAP; is CONFIG_CHECKPOINT_RESTORE missing?): no --variants here"
            );
        }
        self.tracee.set_regs(&self.start)?;
        Ok(())
    }

    /// The addresses on the initial stack: arguments, environment, auxiliary vector. That vector.
    fn correct_stack(&self, layout: Layout) -> Result<Vec<u64>> {
        let mut stack = Words::at(self.memory, self.start.rsp);
        let Initial { vector, .. } = stack.initial()?;
        let mut words = stack.words[..vector.end].to_vec();
        for word in &mut words[1..vector.start] {
            *word = layout.place(*word);
        }
        for entry in words[vector.clone()].as_chunks_mut::<2>().0 {
            if VECTOR_ADDRESSES.contains(&entry[0]) {
                entry[1] = layout.place(entry[1]);
            }
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        self.memory.write(self.start.rsp, &bytes)?;
        Ok(words[vector].to_vec())
    }

    fn inject(&self, nr: i64, args: [u64; 6], what: &str) -> Result<u64> {
        self.call(self.image.symbol("geryon_blocking_syscall"), nr, args, what)
    }
}
