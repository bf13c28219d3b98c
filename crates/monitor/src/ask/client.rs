//! Asking.

use super::{Command, address, peer};
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A monitor looks several times a second; it may be kept from that for a while.
const PATIENCE: Duration = Duration::from_secs(30);

/// Ask the run of this monitor; what it says it does.
///
/// # Errors
/// When it cannot be reached, or does not do it; the text says why.
pub fn ask(monitor: i32, command: Command) -> Result<String> {
    let nobody = || {
        format!(
            "process {monitor} is no run of Geryon's that can be asked\n  try: geryon ps, which lists them"
        )
    };
    let address = address(monitor as u32)?;
    let mut stream = UnixStream::connect_addr(&address).with_context(nobody)?;
    if peer(&stream).is_none_or(|(pid, _)| pid != monitor) {
        // Somebody else listens under its name.
        bail!(nobody());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .context("the run has not answered")?;
    match answer.trim_end().split_once(' ') {
        Some(("ok", said)) => Ok(said.into()),
        Some(("no", why)) => bail!("the run does not do that: {why}"),
        _ => bail!("the run has ended"),
    }
}
