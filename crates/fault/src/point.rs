//! An instruction that a fault waits for: `0x1139`, `count_bits`, `count_bits+0x5`,
//! `libc.so.6!malloc`.

use std::fmt;
use std::str::FromStr;

use crate::parse::{ParseError, number, wrong};

/// A name has so many bytes at most.
const NAME_BYTES: usize = 64;

/// A short text in place, so that faults can be copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

/// Where an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The file that has it, without its folder; None: the program.
    pub object: Option<Name>,
    /// The symbol from which is counted; None: an address as `nm` shows it.
    pub symbol: Option<Name>,
    /// Bytes behind the symbol, or the address.
    pub offset: u64,
}

impl Name {
    fn new(text: &str) -> Result<Name, ParseError> {
        let plain = |c: char| c.is_ascii_graphic() && !":,!+=".contains(c);
        if text.is_empty() || text.len() > NAME_BYTES || !text.chars().all(plain) {
            return wrong(format!(
                "{text:?} is no name of 1 to {NAME_BYTES} letters, without any of :,!+="
            ));
        }
        let mut bytes = [0; NAME_BYTES];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let len = text.len();
        Ok(Name { bytes, len })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // It was made of a text.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = &self.object {
            write!(f, "{}!", object.as_str())?;
        }
        match &self.symbol {
            None => write!(f, "{:#x}", self.offset),
            Some(symbol) if self.offset == 0 => f.write_str(symbol.as_str()),
            Some(symbol) => write!(f, "{}+{:#x}", symbol.as_str(), self.offset),
        }
    }
}

impl FromStr for Point {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Point, ParseError> {
        let (object, rest) = match text.split_once('!') {
            None => (None, text),
            Some((object, rest)) => (Some(Name::new(object)?), rest),
        };
        let (symbol, offset) = match rest.split_once('+') {
            Some((symbol, offset)) => (Some(Name::new(symbol)?), number(offset, u64::MAX)?),
            None if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                (None, number(rest, u64::MAX)?)
            }
            None => (Some(Name::new(rest)?), 0),
        };
        Ok(Point {
            object,
            symbol,
            offset,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_written_as_they_are_read() {
        for text in [
            "0x1139",
            "main",
            "main+0x5",
            "libc.so.6!malloc",
            "libc.so.6!malloc+0x10",
            "libc.so.6!0x1139",
            "_ZN3foo3barEv",
        ] {
            let point: Point = text.parse().expect(text);
            assert_eq!(point.to_string(), text);
        }
        let same: Point = "main+0".parse().expect("a point");
        assert_eq!(same.to_string(), "main");
    }

    #[test]
    fn what_is_none_is_told() {
        let long = "x".repeat(NAME_BYTES + 1);
        for text in ["", "!main", "a!", "main+", "main+x", "1x", "ma in", &long] {
            assert!(text.parse::<Point>().is_err(), "{text}");
        }
    }
}
