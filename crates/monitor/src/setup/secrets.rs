//! Each follower's C library is to take other words by chance than the leader's (`--variants full`): what guards return
//! addresses and kept ones in one replica is wrong in the others.

use super::Installer;
use super::stack::{Initial, Words as Stack};
use crate::secret_field;
use anyhow::{Context, Result};
use geryon_abi::layout::secrets::Words;
use std::io::Error;

/// Entry of the auxiliary vector.
const AT_RANDOM: u64 = 25;
const BYTES: usize = size_of::<Words>();
/// So many bytes the kernel gives at once.
const POOL_BYTES: usize = 64;

impl Installer<'_> {
    /// The leader's words, which its agent is told. `takes_both`: its C library is glibc.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn note_secrets(&self, takes_both: bool) -> Result<Words> {
        let words = self.memory.words(self.random()?)?;
        self.memory
            .set_word(secret_field!(takes_both), takes_both.into())?;
        self.put(secret_field!(shown), words)?;
        self.put(secret_field!(own), words)?;
        Ok(words)
    }

    /// The program of this copy finds others, until its C library has taken them.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn take_secrets(&self, own: Words) -> Result<()> {
        let at = self.random()?;
        self.put(at, own)?;
        self.put(secret_field!(own), own)?;
        self.memory.set_word(secret_field!(at), at)?;
        Ok(())
    }

    fn random(&self) -> Result<u64> {
        let mut stack = Stack::at(self.memory, self.start.rsp);
        let Initial { vector, .. } = stack.initial()?;
        let mut entries = stack.words[vector].as_chunks::<2>().0.iter();
        let random = entries.find(|entry| entry[0] == AT_RANDOM);
        Ok(random.context("the kernel gives no AT_RANDOM")?[1])
    }

    fn put(&self, at: u64, words: Words) -> Result<()> {
        let bytes = words.map(u64::to_le_bytes);
        Ok(self.memory.write(at, bytes.as_flattened())?)
    }
}

/// Words by chance, no byte of which is that of any of the others: who learns those byte by byte, or overwrites some
/// bytes, is right in one replica at most with the first of them.
///
/// # Errors
/// When the kernel gives none.
pub fn draw(others: &[Words]) -> Result<Words> {
    let others: Vec<[u8; BYTES]> = others.iter().map(|o| bytes(*o)).collect();
    let mut pool = Vec::new();
    let mut drawn = [0; BYTES];
    for (i, byte) in drawn.iter_mut().enumerate() {
        loop {
            let Some(found) = pool.pop() else {
                pool.extend(by_chance()?);
                continue;
            };
            if others.iter().all(|other| other[i] != found) {
                *byte = found;
                break;
            }
        }
    }
    let (words, _) = drawn.as_chunks();
    Ok([words[0], words[1]].map(u64::from_le_bytes))
}

fn bytes(words: Words) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
    bytes
}

fn by_chance() -> Result<[u8; POOL_BYTES]> {
    let mut bytes = [0; POOL_BYTES];
    // SAFETY: the kernel writes so many bytes to a local variable.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got {
        -1 => Err(Error::last_os_error()).context("getrandom"),
        // (So few are given whole.)
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geryon_abi::layout::MAX_REPLICAS;

    #[test]
    fn no_two_replicas_have_a_byte_in_common() {
        for _ in 0..64 {
            let mut all = vec![draw(&[]).expect("the kernel gives some")];
            while all.len() < MAX_REPLICAS {
                all.push(draw(&all).expect("the kernel gives some"));
            }
            for (i, one) in all.iter().enumerate() {
                for other in &all[..i] {
                    let same = bytes(*one).iter().zip(bytes(*other)).any(|(a, b)| *a == b);
                    assert!(!same, "{one:x?} {other:x?}");
                }
            }
        }
    }
}
