//! Where the memory of a replica lies, as its agent is told.

use crate::private_field;
use anyhow::Result;
use geryon_abi::layout::Layout;
use geryon_tracee::RemoteMemory;

const WORD: u64 = 8;
const WORDS: usize = size_of::<Layout>() / WORD as usize;

/// Tell it.
///
/// # Errors
/// When the process is gone.
pub fn tell(memory: &RemoteMemory, layout: Layout) -> Result<()> {
    // SAFETY: three words, of which any are a layout.
    let words: [u64; WORDS] = unsafe { std::mem::transmute(layout) };
    for (i, word) in words.into_iter().enumerate() {
        memory.set_word(private_field!(layout) + WORD * i as u64, word)?;
    }
    Ok(())
}

/// What it was told.
///
/// # Errors
/// When the process is gone.
pub fn of(memory: &RemoteMemory) -> Result<Layout> {
    let words: [u64; WORDS] = memory.words(private_field!(layout))?;
    // SAFETY: three words, of which any are a layout.
    Ok(unsafe { std::mem::transmute::<[u64; WORDS], Layout>(words) })
}
