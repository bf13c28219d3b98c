//! Links the image as image.ld says, without any library.
fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("set by cargo");
    let script = format!("-Wl,-T,{here}/image.ld");
    for arg in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        &script,
        "-Wl,-z,noexecstack",
        "-Wl,-z,separate-code",
        "-Wl,--build-id=none",
        "-Wl,--no-eh-frame-hdr",
    ] {
        println!("cargo:rustc-link-arg-bins={arg}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=image.ld");
}
