//! What clone is asked for: which of it works, and which of it is refused, by its flags alone and so in all
//! replicas alike.

/// Memory is shared.
pub const CLONE_VM: u64 = 0x100;
/// Working directory, root and umask are shared.
pub const CLONE_FS: u64 = 0x200;
/// Descriptors are shared.
pub const CLONE_FILES: u64 = 0x400;
/// The parent waits until the child has its own program, or has ended.
pub const CLONE_VFORK: u64 = 0x4000;
/// A thread of the process.
pub const CLONE_THREAD: u64 = 0x1_0000;
/// The id is stored where the third argument says.
pub const CLONE_PARENT_SETTID: u64 = 0x10_0000;
/// The kernel clears the word that the fourth argument names when the child ends.
pub const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
/// The id is stored there in the child's memory.
pub const CLONE_CHILD_SETTID: u64 = 0x100_0000;

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_PTRACE: u64 = 0x2000;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_UNTRACED: u64 = 0x80_0000;
/// Mount, control group, UTS, IPC, user, process id, network.
const NAMESPACES: u64 = 0x7e02_0000;
const EPERM: i64 = -1;
const EINVAL: i64 = -22;

/// How the program's threads and processes come to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Birth {
    /// A thread of this process.
    Thread,
    /// A process with memory of its own.
    Fork,
    /// A process in this one's memory until it has another program; this one waits.
    Vfork,
}

/// What these flags ask for, or the errno with which that is refused.
pub fn judge(flags: u64) -> Result<Birth, i64> {
    if flags & NAMESPACES != 0 {
        // As where a user may have none.
        return Err(EPERM);
    }
    // A child that is not its maker's, or is named by a descriptor that the log does not have.
    if flags & (CLONE_PARENT | CLONE_PIDFD) != 0 {
        return Err(EINVAL);
    }
    if flags & CLONE_VM == 0 {
        return Ok(Birth::Fork);
    }
    if flags & CLONE_VFORK != 0 && flags & CLONE_THREAD == 0 {
        return Ok(Birth::Vfork);
    }
    let whole = CLONE_THREAD | CLONE_FILES | CLONE_FS;
    if flags & whole == whole && flags & CLONE_VFORK == 0 {
        return Ok(Birth::Thread);
    }
    // Memory without all the rest.
    Err(EINVAL)
}

/// What the kernel is asked for. The program has no tracer: what concerns one would only take its child
/// from the monitor's hands.
pub fn traced(flags: u64) -> u64 {
    flags & !(CLONE_UNTRACED | CLONE_PTRACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_get_what_they_ask_for() {
        // As in glibc and musl: pthread_create, fork, posix_spawn.
        assert_eq!(judge(0x3d_0f00), Ok(Birth::Thread));
        assert_eq!(judge(0x7d_0f00), Ok(Birth::Thread));
        assert_eq!(judge(0x120_0011), Ok(Birth::Fork));
        assert_eq!(judge(0x4111), Ok(Birth::Vfork));
        assert_eq!(judge(0x11 | CLONE_FILES | CLONE_FS), Ok(Birth::Fork));
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for namespace in [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000] {
            assert_eq!(judge(namespace | 0x11), Err(EPERM));
        }
        for namespace in [0x2000_0000, 0x4000_0000] {
            assert_eq!(judge(namespace | 0x11), Err(EPERM));
        }
        assert_eq!(judge(CLONE_PARENT | 0x11), Err(EINVAL));
        assert_eq!(judge(CLONE_PIDFD | 0x11), Err(EINVAL));
        assert_eq!(judge(CLONE_VM | 0x11), Err(EINVAL));
        assert_eq!(judge(0x3d_0f00 & !CLONE_FILES), Err(EINVAL));
    }

    #[test]
    fn nobody_leaves_the_monitor() {
        assert_eq!(traced(0x11 | CLONE_UNTRACED | CLONE_PTRACE), 0x11);
    }
}
