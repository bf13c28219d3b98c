//! Inputs, generated: the same bytes for the same size, on every machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const WIDTH: usize = 640;
const HEIGHT: usize = 360;
/// Words of the language of the text.
const VOCABULARY: usize = 6000;
/// Where any generator starts.
const SEED: u64 = 0x6765_7279_6f6e;

/// splitmix64: small, and good enough to be no pattern for a compressor.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// An index that is small more often, as words of a language are.
    fn skewed(&mut self, bound: usize) -> usize {
        let bound = self.below(bound) + 1;
        let bound = self.below(bound) + 1;
        self.below(bound)
    }
}

/// Writes text of `bytes` bytes: sentences of invented words.
pub fn text(path: &Path, bytes: u64) -> io::Result<()> {
    let mut random = Random(SEED);
    let words: Vec<Vec<u8>> = (0..VOCABULARY).map(|_| word(&mut random)).collect();
    let mut out = BufWriter::new(File::create(path)?);
    let mut left = bytes;
    let mut sentence = Vec::new();
    while left > 0 {
        sentence.clear();
        for i in 0..4 + random.below(16) {
            if i > 0 {
                sentence.push(b' ');
            }
            match random.below(40) {
                0 => write!(sentence, "{}", random.below(10_000))?,
                _ => sentence.extend_from_slice(&words[random.skewed(VOCABULARY)]),
            }
        }
        sentence[0] = sentence[0].to_ascii_uppercase();
        sentence.extend_from_slice(if random.below(4) == 0 { b".\n" } else { b". " });
        let part = sentence
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        out.write_all(&sentence[..part])?;
        left -= part as u64;
    }
    out.flush()
}

fn word(random: &mut Random) -> Vec<u8> {
    let mut word = Vec::new();
    for _ in 0..1 + random.below(4) {
        word.push(b"bcdfghklmnprstvw"[random.below(16)]);
        word.push(b"aeiou"[random.below(5)]);
        if random.below(3) == 0 {
            word.push(b"lnrst"[random.below(5)]);
        }
    }
    word
}

/// Writes a YUV4MPEG film of `frames` frames: a moving gradient, a box that moves
/// against it, and a little noise, so that an encoder has to search and to code.
pub fn film(path: &Path, frames: u64) -> io::Result<()> {
    let mut random = Random(SEED);
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420jpeg")?;
    let mut row = vec![0; WIDTH];
    for frame in 0..usize::try_from(frames).unwrap_or(usize::MAX) {
        writeln!(out, "FRAME")?;
        let (left, top) = (frame * 5 % (WIDTH - 80), frame * 3 % (HEIGHT - 80));
        for y in 0..HEIGHT {
            for (x, pixel) in row.iter_mut().enumerate() {
                let inside = (left..left + 80).contains(&x) && (top..top + 80).contains(&y);
                let base = match inside {
                    true => 200 - (x - left) / 2,
                    false => ((x + 2 * frame) ^ (y + frame)) % 160 + 16,
                };
                *pixel = (base + random.below(8)) as u8;
            }
            out.write_all(&row)?;
        }
        for plane in 0..2 {
            for y in 0..HEIGHT / 2 {
                for (x, pixel) in row[..WIDTH / 2].iter_mut().enumerate() {
                    *pixel = (96 + (x + frame * (plane + 1)) / 8 % 48 + y / 16) as u8;
                }
                out.write_all(&row[..WIDTH / 2])?;
            }
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;

    #[test]
    fn text_is_as_long_as_asked_and_always_the_same() {
        let scratch = Scratch::new().expect("scratch");
        let (one, two) = (scratch.path().join("1"), scratch.path().join("2"));
        text(&one, 10_000).expect("text");
        text(&two, 20_000).expect("text");
        let (one, two) = (fs::read(one).expect("1"), fs::read(two).expect("2"));
        assert_eq!((one.len(), two.len()), (10_000, 20_000));
        assert_eq!(one, two[..10_000]);
        assert!(
            one.iter()
                .all(|byte| byte.is_ascii_graphic() || b" \n".contains(byte))
        );
    }

    #[test]
    fn a_film_has_its_frames() {
        let scratch = Scratch::new().expect("scratch");
        let path = scratch.path().join("film");
        film(&path, 2).expect("film");
        let bytes = fs::read(path).expect("film");
        let header = bytes
            .iter()
            .position(|byte| *byte == b'\n')
            .expect("a header")
            + 1;
        let frame = "FRAME\n".len() + WIDTH * HEIGHT * 3 / 2;
        assert_eq!(bytes.len(), header + 2 * frame);
    }
}
