//! The SSE registers in memory: the sixteen lines that every stub needs which calls Rust code, or
//! leaves it, with the program's registers at stake.

/// Assembly: store xmm0 to xmm15 in the 256 bytes from the register `$base` on.
macro_rules! save_xmm {
    ($base:literal) => {
        concat!(
            ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n",
            "movups [",
            $base,
            " + \\i*16], xmm\\i\n",
            ".endr"
        )
    };
}

/// Assembly: load what `save_xmm` has stored.
macro_rules! load_xmm {
    ($base:literal) => {
        concat!(
            ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n",
            "movups xmm\\i, [",
            $base,
            " + \\i*16]\n",
            ".endr"
        )
    };
}

pub(crate) use {load_xmm, save_xmm};
