//! Builds the agent's image (an excluded package with its own target directory) and names it
//! for embedding.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let package = here.join("../agent-so");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let target = out.join("agent-target");
    for dir in [
        "../agent-so/src",
        "../agent-so/build.rs",
        "../agent-so/image.ld",
        "../agent-so/Cargo.toml",
        "../agent/src",
        "../ring/src",
        "../abi/src",
    ] {
        println!("cargo:rerun-if-changed={}", here.join(dir).display());
    }
    let status = Command::new(std::env::var_os("CARGO").expect("set by cargo"))
        .arg("build")
        .arg("--release")
        .arg("--quiet")
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // Flags and wrappers meant for the workspace (coverage, clippy) must not reach the image.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the agent's image does not build");
    println!(
        "cargo:rustc-env=GERYON_AGENT_IMAGE={}",
        target.join("release/geryon-agent").display()
    );
}
