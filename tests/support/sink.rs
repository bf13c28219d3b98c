//! Collects one stream of a program while it runs.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Collects one stream while the program runs.
pub(super) struct Sink {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Sink {
    pub(super) fn of(pipe: Option<impl Read + Send + 'static>) -> Sink {
        let mut pipe = pipe.expect("the stream is a pipe");
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 64 << 10];
            while let Ok(n @ 1..) = pipe.read(&mut chunk) {
                shared
                    .lock()
                    .expect("no holder panics")
                    .extend_from_slice(&chunk[..n]);
            }
        });
        Sink { bytes, reader }
    }

    pub(super) fn ends_with(&self, tail: &[u8]) -> bool {
        self.bytes.lock().expect("no holder panics").ends_with(tail)
    }

    /// All of it; whoever could still hold the other end has been killed.
    pub(super) fn finish(self) -> Vec<u8> {
        self.reader.join().expect("the reader does not panic");
        std::mem::take(&mut self.bytes.lock().expect("no holder panics"))
    }
}
