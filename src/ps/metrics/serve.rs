//! Serving metrics by HTTP, for Prometheus to scrape.

use anyhow::{Context, Result, anyhow};
use std::fmt;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tiny_http::{Header, Method, Request, Response, Server};

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PATH: &str = "/metrics";

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// All that HOST:PORT stands for.
    Tcp(String, Vec<SocketAddr>),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: is followed by a path".into()),
            Some(path) => Ok(Address::Unix(path.into())),
            None => {
                let all = text.to_socket_addrs();
                let all = all.map_err(|e| format!("ADDRESS is HOST:PORT or unix:PATH ({e})"))?;
                Ok(Address::Tcp(text.into(), all.collect()))
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(text, _) => f.write_str(text),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Answer with `text` as long as the process lives.
///
/// # Errors
/// When nobody can listen there.
pub fn serve(address: &Address, text: impl Fn() -> Result<String>) -> Result<()> {
    let server = match address {
        Address::Tcp(_, all) => Server::http(&all[..]),
        Address::Unix(path) => {
            remove_if_dead(path);
            Server::http_unix(path)
        }
    };
    let server = server
        .map_err(|e| anyhow!("{e}"))
        .with_context(|| format!("cannot listen at {address}"))?;
    match server.server_addr().to_ip() {
        Some(at) => eprintln!("geryon: metrics at http://{at}{PATH}"),
        None => eprintln!("geryon: metrics at {address}, {PATH}"),
    }
    for request in server.incoming_requests() {
        // (Who went away before the answer was there needs none.)
        let _ = answer(request, &text);
    }
    Ok(())
}

fn answer(request: Request, text: &impl Fn() -> Result<String>) -> std::io::Result<()> {
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(Response::from_string("only GET\n").with_status_code(405));
    }
    if request.url().split('?').next() != Some(PATH) {
        let found = Response::from_string(format!("see {PATH}\n")).with_status_code(404);
        return request.respond(found);
    }
    match text() {
        Ok(text) => {
            let kind = Header::from_bytes("Content-Type", CONTENT_TYPE);
            let response = Response::from_string(text);
            request.respond(response.with_header(kind.expect("it is ASCII")))
        }
        Err(e) => request.respond(Response::from_string(format!("{e:#}\n")).with_status_code(500)),
    }
}

/// A socket that a former process has left behind is in nobody's use.
fn remove_if_dead(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    let refused = |e: std::io::Error| e.kind() == std::io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(refused) {
        // (If it cannot be removed, listening fails, and says so.)
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_path() {
        let tcp: Address = "127.0.0.1:9100".parse().expect("an address");
        assert_eq!(tcp.to_string(), "127.0.0.1:9100");
        let unix: Address = "unix:/run/geryon".parse().expect("a path");
        assert_eq!(unix, Address::Unix("/run/geryon".into()));
        for wrong in ["", "unix:", "9100", "127.0.0.1", "127.0.0.1:x"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }
}
