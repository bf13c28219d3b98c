//! Parts of what is told as text: numbers, and what is said of what is none.

use std::fmt;

/// Why a text is no fault, with what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

pub(crate) type Result<T> = std::result::Result<T, ParseError>;

pub(crate) fn wrong<T>(text: impl Into<String>) -> Result<T> {
    Err(ParseError(text.into()))
}

/// A number up to `max`. Signs and blanks, which the standard library's parsers take, are refused.
pub(crate) fn number<T>(text: &str, max: T) -> Result<T>
where
    T: TryFrom<u64> + PartialOrd + fmt::Display + Copy,
{
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
        let value = u64::from_str_radix(digits, radix).ok();
        if let Some(n) = value
            .and_then(|n| T::try_from(n).ok())
            .filter(|n| *n <= max)
        {
            return Ok(n);
        }
    }
    wrong(format!("{text:?} is no number from 0 to {max}"))
}
