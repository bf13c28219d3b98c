//! Words that several threads or replicas use at once: the processor's in a replica, a checker's under a
//! model.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A shared word. Its operations are those of `core::sync::atomic`, by the same names.
#[expect(missing_docs, reason = "see above")]
pub trait Atom {
    type Value: Copy + Eq;
    fn load(&self, order: Ordering) -> Self::Value;
    fn store(&self, value: Self::Value, order: Ordering);
    fn swap(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn compare_exchange(
        &self,
        current: Self::Value,
        new: Self::Value,
        success: Ordering,
        failure: Ordering,
    ) -> Result<Self::Value, Self::Value>;
    fn fetch_add(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn fetch_sub(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn fetch_or(&self, value: Self::Value, order: Ordering) -> Self::Value;
    fn fetch_and(&self, value: Self::Value, order: Ordering) -> Self::Value;
}

macro_rules! atom {
    ($atomic:ident, $value:ident) => {
        impl Atom for $atomic {
            type Value = $value;
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.swap(value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.fetch_add(value, order)
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.fetch_sub(value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.fetch_or(value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.fetch_and(value, order)
            }
        }
    };
}

atom!(AtomicU32, u32);
atom!(AtomicU64, u64);
