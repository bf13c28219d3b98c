//! One fault: what is hit, when, and whose.

use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::point::Point;

/// A register that is stuck is set again so often apart, in microseconds.
pub const STUCK_SAMPLE_US: u64 = 1000;
/// A fault in the stack hits so many bytes above the stack pointer at most.
pub const STACK_BYTES: u64 = 65536;
/// Bits of a general register.
pub const WORD_BITS: u32 = 64;
/// Bits of a byte of memory.
pub const BYTE_BITS: u32 = 8;

/// A fault, as `--fault` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fault {
    /// Counted from 0; replica 0 is the leader at the start.
    pub replica: u32,
    /// Modulo the number of the replica's living threads, in the order of their ids.
    pub thread: u64,
    /// When it strikes.
    pub when: When,
    /// What it hits.
    pub target: Target,
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So many microseconds after the program's exec.
    Delay {
        /// Microseconds.
        us: u64,
    },
    /// When the replica has written (as the leader) or read the n-th word of the log of the program's
    /// first process.
    Event {
        /// Counted from 1.
        nth: u64,
    },
    /// When an instruction is executed for the n-th time.
    Address {
        /// Which one.
        point: Point,
        /// Counted from 1.
        nth: u64,
    },
}

/// What a fault hits. A `number` is a random one: who injects takes it modulo the bytes there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A bit of a general register flips.
    Gpr {
        /// Which.
        register: Gpr,
        /// 0 to 63.
        bit: u32,
    },
    /// A bit of the flags flips.
    Flags {
        /// 0 to 63; the kernel lets only some of them be changed.
        bit: u32,
    },
    /// A bit of the instruction pointer flips.
    Ip {
        /// 0 to 63.
        bit: u32,
    },
    /// A bit of a vector register flips.
    Vector(Vector),
    /// A bit of the thread's stack flips, above the stack pointer.
    Stack {
        /// Chooses the byte.
        number: u64,
        /// 0 to 7.
        bit: u32,
    },
    /// A bit of the heap flips.
    Heap {
        /// Chooses the byte.
        number: u64,
        /// 0 to 7.
        bit: u32,
    },
    /// A bit of the program's variables flips.
    Data {
        /// Chooses the byte.
        number: u64,
        /// 0 to 7.
        bit: u32,
    },
    /// A bit of the program's code flips.
    Code {
        /// Chooses the byte.
        number: u64,
        /// 0 to 7.
        bit: u32,
    },
    /// A register has a value, whatever is written to it: it is set again at each sample.
    Stuck {
        /// Which.
        register: Gpr,
        /// What it has.
        value: u64,
        /// How often it is set, [`STUCK_SAMPLE_US`] apart; at least 1.
        samples: u32,
    },
    /// One instruction is left out.
    Skip,
    /// A SIGSEGV that cannot be blocked.
    Crash,
    /// The replica's threads stop for ever.
    Stop,
    /// The replica's threads stop for a while.
    Slow {
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// A bit of the log flips.
    Log {
        /// Chooses the byte, among those that are in use.
        number: u64,
        /// 0 to 7.
        bit: u32,
    },
    /// A bit of the page flips on which the replica says how far it is.
    Progress {
        /// Chooses the byte.
        number: u64,
        /// 0 to 7.
        bit: u32,
    },
    /// The monitor is killed.
    Monitor,
    /// A bit of the leader's next output flips after the replicas have confirmed it.
    Canary,
}

impl Target {
    /// The kind of target that it is.
    pub fn kind(self) -> Kind {
        match self {
            Target::Gpr { .. } => Kind::Gpr,
            Target::Flags { .. } => Kind::Flags,
            Target::Ip { .. } => Kind::Ip,
            Target::Vector(v) => match v.width {
                Width::Xmm => Kind::Xmm,
                Width::Ymm => Kind::Ymm,
                Width::Zmm => Kind::Zmm,
            },
            Target::Stack { .. } => Kind::Stack,
            Target::Heap { .. } => Kind::Heap,
            Target::Data { .. } => Kind::Data,
            Target::Code { .. } => Kind::Code,
            Target::Stuck { .. } => Kind::Stuck,
            Target::Skip => Kind::Skip,
            Target::Crash => Kind::Crash,
            Target::Stop => Kind::Stop,
            Target::Slow { .. } => Kind::Slow,
            Target::Log { .. } => Kind::Log,
            Target::Progress { .. } => Kind::Progress,
            Target::Monitor => Kind::Monitor,
            Target::Canary => Kind::Canary,
        }
    }
}

/// A bit of a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    /// As what it is addressed.
    pub width: Width,
    /// Below [`Width::registers`].
    pub number: u32,
    /// Below [`Width::bits`].
    pub bit: u32,
}

/// A width of vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// SSE.
    Xmm,
    /// AVX.
    Ymm,
    /// AVX-512.
    Zmm,
}

impl Width {
    /// All of them.
    pub const ALL: [Width; 3] = [Width::Xmm, Width::Ymm, Width::Zmm];

    /// As assembly has it.
    pub fn name(self) -> &'static str {
        match self {
            Width::Xmm => "xmm",
            Width::Ymm => "ymm",
            Width::Zmm => "zmm",
        }
    }

    /// Bits of a register.
    pub fn bits(self) -> u32 {
        match self {
            Width::Xmm => 128,
            Width::Ymm => 256,
            Width::Zmm => 512,
        }
    }

    /// Number of registers.
    pub fn registers(self) -> u32 {
        match self {
            Width::Xmm | Width::Ymm => 16,
            Width::Zmm => 32,
        }
    }
}

macro_rules! registers {
    ($($variant:ident $name:literal),* $(,)?) => {
        /// A general register.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the names are the processor's
        pub enum Gpr { $($variant),* }

        impl Gpr {
            /// All of them.
            pub const ALL: [Gpr; 16] = [$(Gpr::$variant),*];

            /// As assembly has it.
            pub fn name(self) -> &'static str {
                match self { $(Gpr::$variant => $name),* }
            }
        }
    };
}

registers! {
    Rax "rax", Rbx "rbx", Rcx "rcx", Rdx "rdx", Rsi "rsi", Rdi "rdi", Rbp "rbp", Rsp "rsp",
    R8 "r8", R9 "r9", R10 "r10", R11 "r11", R12 "r12", R13 "r13", R14 "r14", R15 "r15",
}
