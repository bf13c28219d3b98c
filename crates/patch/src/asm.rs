//! Appends code for known addresses; remembers the first address that cannot be reached.

use crate::Error;

/// The growing content of the trampoline area.
pub struct Asm {
    base: u64,
    bytes: Vec<u8>,
    error: Option<Error>,
}

impl Asm {
    pub fn new(base: u64) -> Asm {
        Asm {
            base,
            bytes: Vec::new(),
            error: None,
        }
    }

    /// Address of the next byte.
    pub fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn align(&mut self, to: usize) {
        let len = self.bytes.len().next_multiple_of(to);
        self.bytes.resize(len, 0xcc);
    }

    /// `opcode`, then the 32-bit distance from its end to `target`.
    pub fn relative(&mut self, opcode: &[u8], target: u64) {
        self.put(opcode);
        self.put(&[0; 4]);
        self.patch(self.here() - 4, self.here(), target);
    }

    /// Writes at `at` the 32-bit distance from `from` to `target`.
    pub fn patch(&mut self, at: u64, from: u64, target: u64) {
        let distance = match i32::try_from(target.wrapping_sub(from) as i64) {
            Ok(distance) => distance,
            Err(_) => {
                self.error
                    .get_or_insert(Error::OutOfReach { from, to: target });
                0
            }
        };
        let at = (at - self.base) as usize;
        self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Appends a short jump (`opcode`, 8-bit distance) whose target [`Asm::land`] sets.
    pub fn short(&mut self, opcode: u8) -> u64 {
        self.put(&[opcode, 0]);
        self.here()
    }

    /// The short jump that ends at `from` goes here.
    pub fn land(&mut self, from: u64) {
        let distance = i8::try_from(self.here() - from).expect("shapes are short");
        let at = (from - self.base) as usize - 1;
        self.bytes[at] = distance as u8;
    }

    /// An error found elsewhere.
    pub fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    pub fn finish(self) -> Result<Vec<u8>, Error> {
        self.error.map_or(Ok(self.bytes), Err)
    }
}
