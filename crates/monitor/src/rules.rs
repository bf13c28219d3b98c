//! What replicas of different programs may say differently (`--tolerate FILE`).
//!
//! A line is a rule. `same "TEXT" "TEXT" ...`: the leader's text and that of each follower's program (the last one holds for
//! those behind it, too) are taken for the same. `leader "TEXT"`, `follower "TEXT"`: what contains that is written by the
//! leader's program alone, or by the followers' alone. `\n`, `\r`, `\t`, `\\`, `\"` and `\xHH` stand for bytes; `#` begins a comment.

use geryon_abi::layout::MAX_REPLICAS;
use geryon_abi::layout::same::{self, Text};
use std::str::FromStr;

/// What may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// A text in each replica, with one number in all of them.
    Same(Vec<Vec<u8>>),
    /// What stands between these is each program's own.
    Between(Vec<u8>, Vec<u8>),
    /// The leader's program alone writes what contains it, or those of the followers.
    Alone { leader: bool, text: Vec<u8> },
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// The texts of this replica's, as its agent wants them.
    pub fn of(&self, replica: usize) -> Vec<u8> {
        let texts = self.0.iter().filter_map(|rule| match rule {
            Rule::Same(texts) => Some(Text::Same(texts.get(replica).or(texts.last())?)),
            Rule::Between(from, to) => Some(Text::Between(from, to)),
            Rule::Alone { leader, text } => {
                (*leader == (replica == 0)).then_some(Text::Alone(text))
            }
        });
        let mut bytes = Vec::new();
        // (That there is room was looked at when they were read.)
        let written = same::written(texts, |b| bytes.push(b));
        written.map_or(Vec::new(), |()| bytes)
    }
}

/// Where two programs' bytes begin to differ in what these rules, as their agents have them, do not tolerate: in the one, and
/// in the other.
pub fn differing([x, y]: [&[u8]; 2], [of_x, of_y]: [&[u8]; 2]) -> Option<(usize, usize)> {
    #[derive(PartialEq)]
    enum Compared {
        Byte(u8),
        Text(u64),
        End,
    }
    fn all<'a>(bytes: &'a [u8], rules: &'a [u8]) -> impl Iterator<Item = (usize, Compared)> {
        let pieces = same::pieces(bytes, || same::texts(rules));
        let own = pieces.flat_map(|piece| {
            let bytes = (piece.at..).zip(piece.bytes.iter().map(|b| Compared::Byte(*b)));
            let text = piece.text.map(Compared::Text);
            bytes.chain(text.map(|text| (piece.at + piece.bytes.len(), text)))
        });
        own.chain([(bytes.len(), Compared::End)])
    }
    let mut pairs = all(x, of_x).zip(all(y, of_y));
    pairs.find_map(|((at, a), (other, b))| (a != b).then_some((at, other)))
}

impl FromStr for Rules {
    type Err = String;

    fn from_str(text: &str) -> Result<Rules, String> {
        let mut rules = Rules::default();
        for (n, line) in text.lines().enumerate() {
            let rule = rule(line).map_err(|why| format!("line {}: {why}", n + 1))?;
            rules.0.extend(rule);
        }
        let fits = |replica| !rules.of(replica).is_empty();
        match (0..MAX_REPLICAS).all(fits) {
            true => Ok(rules),
            false => Err(format!(
                "there is room for {} bytes in a program's texts",
                same::SAME_BYTES
            )),
        }
    }
}

/// What one line says; None: it has no rule.
fn rule(line: &str) -> Result<Option<Rule>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (word, mut rest) = line.split_at(line.find([' ', '\t', '"']).unwrap_or(line.len()));
    if !matches!(word, "same" | "between" | "leader" | "follower") {
        return Err(format!(
            "there is no rule {word:?}; there are: same \"TEXT\" \"TEXT\", between \"FROM\" \"TO\", leader \"TEXT\", follower \"TEXT\""
        ));
    }
    let mut texts = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            break;
        }
        let (text, behind) = quoted(rest)?;
        texts.push(text);
        rest = behind;
    }
    if texts.iter().any(Vec::is_empty) {
        return Err("an empty text is everywhere".into());
    }
    if word == "between" {
        let both = <[Vec<u8>; 2]>::try_from(texts);
        let [from, to] = both.map_err(|_| "two texts follow: what stands before, and behind")?;
        return Ok(Some(Rule::Between(from, to)));
    }
    match (word, texts.len()) {
        ("same", 2..) => Ok(Some(Rule::Same(texts))),
        ("same", _) => {
            Err("a text of the leader's program and one of each other one follow".into())
        }
        (_, 1) => Ok(texts.pop().map(|text| Rule::Alone {
            leader: word == "leader",
            text,
        })),
        _ => Err("one text follows".into()),
    }
}

/// A text in quotes, and what stands behind it.
fn quoted(from: &str) -> Result<(Vec<u8>, &str), String> {
    let mut rest = from
        .strip_prefix('"')
        .ok_or_else(|| format!("a text stands in quotes: {from:?}"))?;
    let mut bytes = Vec::new();
    loop {
        let at = rest
            .find(['"', '\\'])
            .ok_or("a text has no closing quote")?;
        bytes.extend(&rest.as_bytes()[..at]);
        let behind = &rest[at + 1..];
        if rest.as_bytes()[at] == b'"' {
            return Ok((bytes, behind));
        }
        let (byte, len) = match behind.as_bytes().first() {
            Some(b'n') => (b'\n', 1),
            Some(b't') => (b'\t', 1),
            Some(b'r') => (b'\r', 1),
            Some(c @ (b'\\' | b'"')) => (*c, 1),
            Some(b'x') => {
                let digits = behind
                    .get(1..3)
                    .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
                (byte.ok_or("\\x is followed by two hexadecimal digits")?, 3)
            }
            _ => return Err("behind \\ stands n, r, t, \\, \" or xHH".into()),
        };
        bytes.push(byte);
        rest = &behind[len..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    fn texts(rules: &Rules, replica: usize) -> Vec<Vec<u8>> {
        let bytes = rules.of(replica);
        let own = |text: Text<'_>| match text {
            Text::Same(bytes) | Text::Alone(bytes) => bytes.to_vec(),
            Text::Between(from, to) => [from, b"..", to].concat(),
        };
        same::texts(&bytes).map(own).collect()
    }

    #[test]
    fn rules_are_read() {
        let rules: Rules = "# versions\n\nsame \"6.2.7\" \"6.2.14\"\n same\t\"a\\\"\\x00\" \"b # c\" \"\\\\\" # the third\n"
            .parse()
            .expect("it is right");
        assert_eq!(texts(&rules, 0), [&b"6.2.7"[..], b"a\"\0"]);
        assert_eq!(texts(&rules, 1), [&b"6.2.14"[..], b"b # c"]);
        assert_eq!(texts(&rules, 2), [&b"6.2.14"[..], b"\\"]);
        let none: Rules = "".parse().expect("nothing is right");
        assert_eq!(texts(&none, 0), [b""; 0]);
    }

    #[test]
    fn what_one_writes_alone_is_its_own() {
        let rules = "leader \"old\"\nfollower \"new\"\nfollower \"newer\"";
        let rules: Rules = rules.parse().expect("it is right");
        assert_eq!(texts(&rules, 0), [b"old"]);
        assert_eq!(texts(&rules, 1), [&b"new"[..], b"newer"]);
        let bytes = rules.of(1);
        assert!(same::texts(&bytes).all(|t| matches!(t, Text::Alone(_))));
    }

    #[test]
    fn what_stands_between_is_the_same_rule_in_all() {
        let rules: Rules = "between \"pid:\" \"\\r\"".parse().expect("it is right");
        assert_eq!(texts(&rules, 0), [b"pid:..\r"]);
        assert_eq!(texts(&rules, 2), texts(&rules, 0));
    }

    #[test]
    fn what_differs_is_found_behind_what_may() {
        let rules: Rules = "same \"6.2.7\" \"6.2.14\"\nbetween \"pid:\" \";\""
            .parse()
            .expect("right");
        let of = [0, 1].map(|replica| rules.of(replica));
        let found = |x: &str, y: &str| differing([x.as_bytes(), y.as_bytes()], [&of[0], &of[1]]);
        assert_eq!(found("v6.2.7 pid:1;x", "v6.2.14 pid:20;x"), None);
        assert_eq!(found("v6.2.7 pid:1;x", "v6.2.14 pid:20;y"), Some((13, 15)));
        assert_eq!(found("v6.2.7", "v6.2.7"), Some((1, 1)));
        assert_eq!(found("6.2.7ab", "6.2.14a"), Some((6, 7)));
        assert_eq!(found("", ""), None);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = [
            ("same", "of each other one"),
            ("same \"a\"", "of each other one"),
            ("leader", "one text"),
            ("follower \"a\" \"b\"", "one text"),
            ("between \"a\"", "two texts"),
            ("between \"a\" \"\"", "empty"),
            ("same \"a\" \"", "no closing quote"),
            ("same a b", "stands in quotes"),
            ("like \"a\" \"b\"", "no rule \"like\""),
            ("same \"\" \"b\"", "empty"),
            ("same \"\\q\" \"b\"", "behind \\"),
            ("same \"\\x4\" \"b\"", "hexadecimal"),
            ("same \"\\x+4\" \"b\"", "hexadecimal"),
        ];
        for (line, why) in wrong {
            let said = format!("\n{line}").parse::<Rules>().expect_err(line);
            assert!(
                said.starts_with("line 2: ") && said.contains(why),
                "{line}: {said}"
            );
        }
        let long = format!("same \"{}\" \"b\"", "a".repeat(70_000));
        assert!(
            long.parse::<Rules>()
                .expect_err("too long")
                .contains("room")
        );
    }

    proptest! {
        #[test]
        fn nothing_is_too_odd_to_be_read(text in any::<String>(), tail in "same[ \"\\\\xn0-9a-f#é]*") {
            let _ = text.parse::<Rules>();
            let _ = tail.parse::<Rules>();
        }

        #[test]
        fn any_bytes_can_be_said(bytes in proptest::collection::vec(any::<u8>(), 1..50)) {
            let said: String = bytes.iter().map(|b| format!("\\x{b:02x}")).collect();
            let rules: Rules = format!("same \"{said}\" \"b\"").parse().expect("it is right");
            assert_eq!(texts(&rules, 0), [bytes]);
        }
    }
}
