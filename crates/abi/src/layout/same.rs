//! What replicas of different programs may say differently: pieces of text, which lie behind the private structure: for each
//! what it means and its length (a 32-bit word) and its bytes; 0 ends them.

use super::{PRIVATE_BASE, PRIVATE_BYTES};

/// Where they lie.
pub const SAME_BASE: u64 = PRIVATE_BASE + PRIVATE_BYTES / 4 * 3;
/// Bytes of it.
pub const SAME_BYTES: u64 = 0x1_0000;
/// What the word's upper bits say: of [`Text::Same`], [`Text::Alone`], [`Text::Between`], whose second text follows.
const SAME: u32 = 0;
const ALONE: u32 = 1;
const BETWEEN: u32 = 2;
/// Where they begin.
const KIND_AT: u32 = 30;

/// What may differ. None of its texts is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// The n-th of these in one program is the n-th of them in the other.
    Same(&'a [u8]),
    /// What contains it the other programs do not write.
    Alone(&'a [u8]),
    /// What stands between these two, on one line, is each program's own.
    Between(&'a [u8], &'a [u8]),
}

/// Texts as they lie in memory. None: there is no room for so many.
pub fn written<'a>(texts: impl Iterator<Item = Text<'a>>, mut byte: impl FnMut(u8)) -> Option<()> {
    let mut left = SAME_BYTES as usize;
    let mut put = |kind: u32, bytes: &[u8]| {
        left = left.checked_sub(4 + bytes.len())?;
        let word = bytes.len() as u32 | kind << KIND_AT;
        word.to_le_bytes().into_iter().for_each(&mut byte);
        bytes.iter().copied().for_each(&mut byte);
        Some(())
    };
    for text in texts {
        match text {
            Text::Same(bytes) => put(SAME, bytes)?,
            Text::Alone(bytes) => put(ALONE, bytes)?,
            Text::Between(from, to) => {
                put(BETWEEN, from)?;
                put(BETWEEN, to)?;
            }
        }
    }
    put(SAME, &[])
}

/// The texts in memory that [`written`] has filled.
pub fn texts(memory: &[u8]) -> impl Iterator<Item = Text<'_>> {
    let mut left = memory;
    core::iter::from_fn(move || {
        let (kind, bytes) = next(&mut left)?;
        match kind {
            SAME => Some(Text::Same(bytes)),
            ALONE => Some(Text::Alone(bytes)),
            BETWEEN => Some(Text::Between(bytes, next(&mut left)?.1)),
            _ => None,
        }
    })
}

/// Take one piece. None: there is none.
fn next<'a>(left: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let (word, rest) = left.split_first_chunk()?;
    let word = u32::from_le_bytes(*word);
    let (bytes, rest) = rest.split_at_checked((word & !(u32::MAX << KIND_AT)) as usize)?;
    *left = rest;
    (!bytes.is_empty()).then_some((word >> KIND_AT, bytes))
}

impl Text<'_> {
    /// Does it begin here? Its bytes that are compared, and how many behind those are not.
    pub fn at(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        match *self {
            Text::Same(text) => bytes.starts_with(text).then_some((0, text.len())),
            Text::Alone(_) => None,
            Text::Between(from, to) => {
                let behind = bytes.strip_prefix(from)?;
                let ends = |at: &usize| behind[*at..].starts_with(to);
                let line = behind.iter().position(|b| *b == b'\n');
                let own = (0..=line.unwrap_or(behind.len())).find(ends)?;
                Some((from.len(), own))
            }
        }
    }

    /// The byte that it begins with; None: it is compared with nothing.
    fn first(&self) -> Option<u8> {
        match *self {
            Text::Same(text) | Text::Between(text, _) => text.first().copied(),
            Text::Alone(_) => None,
        }
    }
}

/// What is compared of some bytes: these, and then which of the texts stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Where it begins.
    pub at: usize,
    /// As they are.
    pub bytes: &'a [u8],
    /// Behind them; None: nothing does.
    pub text: Option<u64>,
}

/// All of it. (What one program writes alone has no number, for the other has none.)
pub fn pieces<'a, 't, T: Iterator<Item = Text<'t>>>(
    bytes: &'a [u8],
    texts: impl Fn() -> T,
) -> impl Iterator<Item = Piece<'a>> {
    let mut begins = [false; 256];
    let firsts = texts().filter_map(|text| text.first());
    firsts.for_each(|first| begins[usize::from(first)] = true);
    let mut begun = Some(0);
    core::iter::from_fn(move || {
        let at = begun?;
        let mut end = at;
        while let Some(rest) = bytes.get(end..).filter(|rest| !rest.is_empty()) {
            let compared = texts().filter(|text| text.first().is_some());
            let mut all = compared.zip(0..);
            let found = match begins[usize::from(rest[0])] {
                true => all.find_map(|(text, number)| Some((number, text.at(rest)?))),
                false => None,
            };
            if let Some((number, (compared, own))) = found {
                begun = Some(end + compared + own);
                return Some(Piece {
                    at,
                    bytes: &bytes[at..end + compared],
                    text: Some(number),
                });
            }
            end += 1;
        }
        begun = None;
        Some(Piece {
            at,
            bytes: &bytes[at..],
            text: None,
        })
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_was_written_is_read() {
        let long = [7; 3000];
        let all = [
            Text::Same(b"6.2.7"),
            Text::Alone(b"x"),
            Text::Between(b"$", b"\r\n# Server"),
            Text::Same(&long),
        ];
        let mut bytes = Vec::new();
        written(all.into_iter(), |b| bytes.push(b)).expect("room");
        assert_eq!(texts(&bytes).collect::<Vec<_>>(), all);
        assert_eq!(texts(&[]).count(), 0);
        assert_eq!(texts(&[0; 8]).count(), 0);
        assert_eq!(texts(&[9, 0, 0, 0, 1]).count(), 0, "it is cut off");
        assert_eq!(texts(&[1, 0, 0, 0x80, 1]).count(), 0, "half of it");
        let large = [Text::Same(&[1; SAME_BYTES as usize])];
        assert!(written(large.into_iter(), |_| ()).is_none());
    }

    #[test]
    fn what_is_between_is_on_one_line() {
        let text = Text::Between(b"$", b"\r\n# Server");
        assert_eq!(text.at(b"$3457\r\n# Server\r\n"), Some((1, 4)));
        assert_eq!(text.at(b"$\r\n# Server"), Some((1, 0)));
        assert_eq!(text.at(b"$5\r\nhello\r\n$1\r\n# Server"), None);
        assert_eq!(text.at(b"$3457\r\n# Ser"), None);
        assert_eq!(text.at(b"3457\r\n# Server"), None);
        assert_eq!(Text::Between(b"a", b"\n").at(b"a b\n"), Some((1, 2)));
        assert_eq!(Text::Same(b"6.2").at(b"6.2.7"), Some((0, 3)));
        assert_eq!(Text::Alone(b"6.2").at(b"6.2.7"), None);
    }

    #[test]
    fn bytes_and_texts_follow_one_another() {
        let texts = [
            Text::Alone(b"b"),
            Text::Same(b"1"),
            Text::Between(b"<", b">"),
        ];
        let found: Vec<_> = pieces(b"ab1<22>1", || texts.into_iter()).collect();
        let piece = |at, bytes, text| Piece { at, bytes, text };
        let all = [
            piece(0, &b"ab"[..], Some(0)),
            piece(3, b"<", Some(1)),
            piece(6, b">", Some(0)),
            piece(8, b"", None),
        ];
        assert_eq!(found, all);
        let none = || core::iter::empty();
        assert_eq!(
            pieces(b"x", none).collect::<Vec<_>>(),
            [piece(0, b"x", None)]
        );
        assert_eq!(pieces(b"", none).collect::<Vec<_>>(), [piece(0, b"", None)]);
    }
}
