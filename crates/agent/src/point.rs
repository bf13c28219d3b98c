//! Places where a test has something go wrong, see [`geryon_abi::point`].

/// A place: one `nop`, and an entry in the table. What memory holds before and behind it is what it
/// holds in the source, for the compiler must not move anything past it.
macro_rules! point {
    ($id:ident) => {
        point!(number { geryon_abi::point::FaultPoint::$id as u32 })
    };
    (number $number:expr) => {
        // SAFETY: a `nop`; as a breakpoint, it is the monitor's.
        unsafe {
            core::arch::asm!(
                "771: nop",
                ".pushsection geryon_points, \"aR\"",
                ".long 771b - .",
                ".long {id}",
                ".popsection",
                id = const $number,
                options(nostack, preserves_flags)
            )
        }
    };
    // A place behind a call: its result, which may be another one.
    ($id:ident, $result:expr) => {{
        let mut result: i64 = $result;
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                "771: nop",
                ".pushsection geryon_points, \"aR\"",
                ".long 771b - .",
                ".long {id}",
                ".popsection",
                id = const geryon_abi::point::FaultPoint::$id as u32,
                inout("rax") result,
                options(nostack, preserves_flags)
            )
        };
        result
    }};
}

/// A place in assembly: `$operand` is the point's number.
macro_rules! point_in_assembly {
    ($operand:literal) => {
        concat!(
            "771: nop\n.pushsection geryon_points, \"aR\"\n.long 771b - .\n.long {",
            $operand,
            "}\n.popsection"
        )
    };
}
