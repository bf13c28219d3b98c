//! What a replica has by chance, as its agent is told.

use geryon_abi::layout::secrets::Words;
use geryon_tracee::RemoteMemory;

/// Where a field of the process's secrets lies.
#[macro_export]
macro_rules! secret_field {
    ($field:ident) => {
        $crate::private_field!(secrets)
            + std::mem::offset_of!(geryon_abi::layout::Secrets, $field) as u64
    };
}

/// What all replicas are shown, and what this one has taken; zeros where replicas do not differ on purpose, and where the process
/// is gone.
pub fn of(memory: &RemoteMemory) -> [Words; 2] {
    let words = |at| memory.words(at).unwrap_or_default();
    [words(secret_field!(shown)), words(secret_field!(own))]
}
