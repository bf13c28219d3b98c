//! Memory of another process, through /proc/PID/mem (which also writes read-only code).

use crate::points;
use geryon_abi::point::FaultPoint;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;

/// An open /proc/PID/mem. It belongs to one address space: open it anew after every exec.
#[derive(Debug)]
pub struct RemoteMemory(File);

impl RemoteMemory {
    /// Open.
    ///
    /// # Errors
    /// ENOENT when the process is gone, EACCES where tracing is not allowed.
    pub fn open(pid: i32) -> Result<RemoteMemory> {
        if points::fails(FaultPoint::OpenFails) {
            return Err(Error::from_raw_os_error(libc::EMFILE));
        }
        Ok(RemoteMemory(
            File::options()
                .read(true)
                .write(true)
                .open(format!("/proc/{pid}/mem"))?,
        ))
    }

    /// Fill `buffer` from `address`.
    ///
    /// # Errors
    /// EIO when a part is not mapped.
    pub fn read(&self, address: u64, buffer: &mut [u8]) -> Result<()> {
        if points::fails(FaultPoint::MemoryShort) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.0.read_exact_at(buffer, address)
    }

    /// Write, whatever the protection says.
    ///
    /// # Errors
    /// EIO when a part is not mapped.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if points::fails(FaultPoint::MemoryUnwritable) {
            return Err(Error::from_raw_os_error(libc::EIO));
        }
        self.0.write_all_at(bytes, address)
    }

    /// One word.
    ///
    /// # Errors
    /// EIO when it is not mapped.
    pub fn word(&self, address: u64) -> Result<u64> {
        let mut w = [0; 8];
        self.read(address, &mut w)?;
        Ok(u64::from_le_bytes(w))
    }

    /// Several words.
    ///
    /// # Errors
    /// EIO when a part is not mapped.
    pub fn words<const N: usize>(&self, address: u64) -> Result<[u64; N]> {
        let mut bytes = [[0; 8]; N];
        self.read(address, bytes.as_flattened_mut())?;
        Ok(bytes.map(u64::from_le_bytes))
    }

    /// Write one word.
    ///
    /// # Errors
    /// EIO when it is not mapped.
    pub fn set_word(&self, address: u64, value: u64) -> Result<()> {
        self.write(address, &value.to_le_bytes())
    }

    /// Bytes up to a NUL or `max`.
    pub fn string(&self, address: u64, max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut chunk = [0u8; 64];
        while out.len() < max {
            let at = address.wrapping_add(out.len() as u64);
            let n = (64 - at as usize % 64).min(max - out.len());
            if self.read(at, &mut chunk[..n]).is_err() {
                break;
            }
            if let Some(end) = chunk[..n].iter().position(|b| *b == 0) {
                out.extend_from_slice(&chunk[..end]);
                return out;
            }
            out.extend_from_slice(&chunk[..n]);
        }
        out
    }
}
