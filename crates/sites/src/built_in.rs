//! Places in builds of Debian 12 that Geryon brings along. How each file was made stands in it.

use crate::{Module, parse};

const FILES: [(&str, &str); 2] = [
    (
        "debian12-openblas-0.3.21.sites",
        include_str!("../sites/debian12-openblas-0.3.21.sites"),
    ),
    (
        "debian12-python3.11.sites",
        include_str!("../sites/debian12-python3.11.sites"),
    ),
];

/// Each file's name, and what it says. (A test reads them all.)
pub fn all() -> impl Iterator<Item = (&'static str, Vec<Module>)> {
    FILES
        .into_iter()
        .map(|(name, text)| (name, parse(text).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_can_be_read_and_say_something() {
        for (name, text) in FILES {
            let modules = parse(text).expect(name);
            assert!(modules.iter().any(|m| !m.sites.is_empty()), "{name}");
        }
        assert_eq!(all().count(), FILES.len());
    }
}
