//! How descriptors of the monitor come into a replica. A process that has given up its privileges, or
//! has another root, may not open what is the monitor's: so it makes a datagram socket, has the kernel
//! name it, and tells the monitor that name; the monitor sends the descriptors there.

/// `AF_UNIX`, as the kernel takes it for "find a name yourself".
pub const AF_UNIX: u64 = 1;
/// Type of such a socket: datagrams, close-on-exec.
pub const SOCKET_TYPE: u64 = 2 | 0o2_000_000;
/// Bytes of the address of such a socket: the family, a NUL, and five digits that the kernel has found. So a
/// name is one word.
pub const NAME_BYTES: u64 = 8;
/// Bytes of the address with which the kernel is asked for one.
pub const FAMILY_BYTES: u64 = 2;
/// Flags with which a letter is fetched: it is there already; its descriptors are closed at an exec.
pub const RECEIVE_FLAGS: u64 = 0x40 | 0x4000_0000;
/// Descriptors in a letter, at most.
pub const MAX_ENCLOSED: usize = 2;

/// `SOL_SOCKET` and, above it, `SCM_RIGHTS`.
const RIGHTS: u64 = 1 | 1 << 32;
/// Words of a `msghdr`.
const HEADER: usize = 7;
const IOVEC: usize = HEADER;
const SENDER: usize = IOVEC + 2;
const CONTROL: usize = SENDER + 1;
const CONTROL_WORDS: usize = 3;
const PAYLOAD: usize = CONTROL + CONTROL_WORDS;
/// Words of a [`Letter`].
pub const LETTER_WORDS: usize = PAYLOAD + 1;

/// What the monitor answers to: a copy of a process shares its socket, and must not take the other's letter.
pub const fn asked(fd: u32, whose: u64) -> u64 {
    fd as u64 | (whose + 1) << 32
}

/// What recvmsg(2) is given, with everything that it points to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letter(pub [u64; LETTER_WORDS]);

impl Letter {
    /// Nothing is received yet; it lies at this address.
    pub fn at(address: u64) -> Letter {
        let to = |word: usize| address + 8 * word as u64;
        let mut words = [0; LETTER_WORDS];
        words[0] = to(SENDER);
        words[1] = NAME_BYTES;
        words[2] = to(IOVEC);
        words[3] = 1;
        words[4] = to(CONTROL);
        words[5] = 8 * CONTROL_WORDS as u64;
        words[IOVEC] = to(PAYLOAD);
        words[IOVEC + 1] = 8;
        Letter(words)
    }

    /// The descriptor number `nth` that came with it; None when it is not from `sender`, answers something
    /// else than what was asked, or has none.
    pub const fn enclosed(&self, sender: u64, asked: u64, nth: usize) -> Option<u32> {
        let bytes = self.0[CONTROL];
        let whole = self.0[5] >= bytes && bytes >= 16 + 4 * (nth as u64 + 1);
        let ours = self.0[1] as u32 as u64 == NAME_BYTES && self.0[SENDER] == sender;
        let ours = ours && self.0[PAYLOAD] == asked;
        if nth >= MAX_ENCLOSED || !whole || !ours || self.0[CONTROL + 1] != RIGHTS {
            return None;
        }
        Some((self.0[CONTROL + 2] >> (32 * nth)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_sends_is_not_believed() {
        let mut letter = Letter::at(0x1000);
        assert_eq!(letter.enclosed(7, 3, 0), None);
        letter.0[SENDER] = 7;
        letter.0[PAYLOAD] = 3;
        letter.0[5] = 24;
        letter.0[CONTROL] = 20;
        letter.0[CONTROL + 1] = RIGHTS;
        letter.0[CONTROL + 2] = 5 | 6 << 32;
        assert_eq!(letter.enclosed(7, 3, 0), Some(5));
        assert_eq!(letter.enclosed(7, 3, 1), None);
        letter.0[CONTROL] = 24;
        assert_eq!(letter.enclosed(7, 3, 1), Some(6));
        assert_eq!(letter.enclosed(8, 3, 0), None);
        assert_eq!(letter.enclosed(7, 4, 0), None);
    }
}
