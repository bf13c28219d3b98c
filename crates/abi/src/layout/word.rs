//! Words of a structure that several threads, or a thread and the monitor, use. Each access is a plain
//! load or store, which the compiler neither splits nor keeps in a register; what orders them is said where
//! they are.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

macro_rules! word {
    ($(#[doc = $doc:literal])+ $word:ident, $atomic:ident, $value:ident) => {
        $(#[doc = $doc])+
        #[repr(transparent)]
        #[derive(Debug, Default)]
        pub struct $word($atomic);

        impl $word {
            /// Its value.
            #[inline(always)]
            pub fn get(&self) -> $value {
                self.0.load(Ordering::Relaxed)
            }

            /// Change it.
            #[inline(always)]
            pub fn set(&self, value: $value) {
                self.0.store(value, Ordering::Relaxed);
            }
        }
    };
}

word!(
    /// 32 bits.
    Word32, AtomicU32, u32
);
word!(
    /// 64 bits.
    Word64, AtomicU64, u64
);
