//! Links the image at its fixed address (`geryon_abi::layout::AGENT_BASE`; the monitor checks
//! that they agree), without any library.
fn main() {
    for arg in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--image-base=0x2fe500000000",
        "-Wl,-z,noexecstack",
        "-Wl,-z,separate-code",
        "-Wl,--build-id=none",
        "-Wl,--no-eh-frame-hdr",
    ] {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
