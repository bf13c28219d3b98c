//! Replicas of different programs: each has its memory where its own kernel puts it, and as much as it asks for. Nothing
//! of that is logged but that a file of the leader's is mapped, for which a follower needs the leader's descriptor.

use super::{failed, unreserved};
use crate::call;
use crate::gate::real;
use geryon_abi::layout::Layout;
use geryon_abi::row::Row;

/// What the log says of a result that may be an address.
pub fn logged(layout: Layout, result: i64) -> u64 {
    match layout.is_unrelated() && failed(result) {
        true => result as u64,
        false => layout.name(result as u64),
    }
}

/// Make the call, which is this replica's own affair.
pub fn map(row: &Row, args: [u64; 6]) -> i64 {
    let nr = row.nr as u64;
    call::check_asked(row, &args);
    let result = real(call::number_of(row), unreserved(nr, args));
    crate::access::mappings_change();
    if !failed(result) {
        crate::shared::changed(nr, &args, result as u64, false);
    }
    result
}
