//! The command line.
fn main() {
    let args: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let n: u32 = args[0].to_str().unwrap().parse().unwrap();
    let o = geryon_monitor::Options {
        replicas: n,
        program: args[1].clone().into(),
        args: args[1..].to_vec(),
        verify: geryon_monitor::Verify::Output,
        report: None,
        sabotage: None,
        patch: std::env::var_os("NOPATCH").is_none(),
    };
    let r = geryon_monitor::run(o);
    eprintln!("{r:?}");
}
