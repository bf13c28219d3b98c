//! Variables that name the process which was started: a service manager passes sockets, and asks for signs of life,
//! by variables that count only in the process whose id they carry (`sd_listen_fds`, `sd_watchdog_enabled`). It has
//! started Geryon, and means the program: where they name Geryon they are made to name that.

use std::ffi::{CStr, CString, c_char};

/// Variables whose value is the id of the process that is meant.
const NAMED: [&[u8]; 3] = [b"LISTEN_PID=", b"WATCHDOG_PID=", b"SYSTEMD_EXEC_PID="];
/// What only the process itself can have: the inode of its pidfd, beside LISTEN_PID. Without it the id counts.
const LISTENER: (&[u8], &[u8]) = (b"LISTEN_PID=", b"LISTEN_PIDFDID=");
/// The digits of an id.
const DIGITS: usize = 10;

/// The program's environment.
pub struct Environment {
    strings: Vec<Vec<u8>>,
    /// Those whose values the child fills in: which, and where the value begins.
    open: Vec<(usize, usize)>,
    pointers: Vec<*const c_char>,
}

impl Environment {
    /// This process's environment, as it is for the program.
    pub fn new() -> Environment {
        let own = std::process::id();
        // SAFETY: the environment is a list of strings with a null pointer at its end, and no other thread changes it.
        unsafe {
            let mut at = environ;
            let strings = std::iter::from_fn(|| {
                let string = (!at.is_null() && !(*at).is_null()).then(|| CStr::from_ptr(*at))?;
                at = at.add(1);
                Some(string)
            });
            Environment::for_process(own, strings)
        }
    }

    /// `given` names the process `own`.
    fn for_process<'a>(own: u32, given: impl Iterator<Item = &'a CStr>) -> Environment {
        let own = own.to_string();
        let names_own = |s: &[u8], name: &[u8]| s.strip_prefix(name) == Some(own.as_bytes());
        let given: Vec<CString> = given.map(CStr::to_owned).collect();
        let listens = given.iter().any(|s| names_own(s.to_bytes(), LISTENER.0));
        let mut strings = Vec::with_capacity(given.len());
        let mut open = Vec::new();
        for string in given {
            if listens && string.to_bytes().starts_with(LISTENER.1) {
                continue;
            }
            let named = NAMED.iter().find(|n| names_own(string.to_bytes(), n));
            let mut string = string.into_bytes_with_nul();
            if let Some(name) = named {
                open.push((strings.len(), name.len()));
                string.resize(name.len() + DIGITS + 1, 0);
            }
            strings.push(string);
        }
        let pointers = strings.iter().map(|s| s.as_ptr().cast());
        let pointers = pointers.chain([std::ptr::null()]).collect();
        Environment {
            strings,
            open,
            pointers,
        }
    }

    /// Name the process `id`, and give what execve takes. It makes no call: the child of a fork may use it.
    pub fn of(&mut self, id: u32) -> *const *const c_char {
        for (at, value) in &self.open {
            let mut digits = [0; DIGITS];
            let mut rest = id;
            let mut first = DIGITS;
            while rest != 0 {
                first -= 1;
                digits[first] = b'0' + (rest % 10) as u8;
                rest /= 10;
            }
            let digits = &digits[first..];
            self.strings[*at][*value..*value + digits.len()].copy_from_slice(digits);
        }
        self.pointers.as_ptr()
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

#[cfg(test)]
mod tests {
    use super::Environment;
    use std::ffi::CStr;

    fn seen(variables: &[&CStr]) -> Vec<String> {
        let mut environment = Environment::for_process(4321, variables.iter().copied());
        let mut at = environment.of(1_234_567_890);
        let mut out = Vec::new();
        // SAFETY: a list of strings with a null pointer at its end, which lives as long as `environment`.
        unsafe {
            while !(*at).is_null() {
                out.push(CStr::from_ptr(*at).to_str().unwrap().to_owned());
                at = at.add(1);
            }
        }
        out
    }

    #[test]
    fn what_names_geryon_names_the_program() {
        let given = [
            c"A=4321",
            c"LISTEN_PID=4321",
            c"no variable",
            c"LISTEN_PIDFDID=99",
            c"WATCHDOG_PID=4321",
            c"B=x=y",
        ];
        let wanted = [
            "A=4321",
            "LISTEN_PID=1234567890",
            "no variable",
            "WATCHDOG_PID=1234567890",
            "B=x=y",
        ];
        assert_eq!(seen(&given), wanted);
    }

    #[test]
    fn what_names_another_one_stays() {
        let given = [c"LISTEN_PID=432", c"LISTEN_PIDFDID=99"];
        assert_eq!(seen(&given), ["LISTEN_PID=432", "LISTEN_PIDFDID=99"]);
    }
}
