//! What Helgrind, valgrind's detector of races, has found (`--tool=helgrind --xml=yes`).
//!
//! Source: valgrind's docs/internals/xml-output-protocol4.txt.

use roxmltree::{Document, Node};

/// What a whole report ends with.
const END: &str = "</valgrindoutput>";
const ERROR_END: &str = "</error>";

/// One of the two accesses of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Address of the instruction in the process.
    pub at: u64,
    /// The function, if it is known.
    pub function: String,
    /// `file:line`, if they are known.
    pub line: String,
}

/// Two threads that use a word at the same time, one of which stores there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// Where they stand. The second one is not always known any more.
    pub accesses: Vec<Access>,
    /// What lies there, in Helgrind's words; empty: nothing is known.
    pub word: String,
}

/// Reads a report. What else Helgrind finds (locks in the wrong order) is left out. A report may break off, as that of a
/// process that was killed does.
///
/// # Errors
/// What is no such report.
pub fn races(xml: &str) -> Result<Vec<Race>, roxmltree::Error> {
    let broken_off = !xml.contains(END);
    // (What is whole in it ends with an error's end, or is nothing.)
    let whole = || xml.rfind(ERROR_END).map(|at| &xml[..at + ERROR_END.len()]);
    match (broken_off, whole()) {
        (true, Some(whole)) => Ok(of(&Document::parse(&format!("{whole}{END}"))?)),
        (true, None) => Ok(Vec::new()),
        (false, _) => Ok(of(&Document::parse(xml)?)),
    }
}

fn of(document: &Document) -> Vec<Race> {
    let errors = document.descendants().filter(|n| n.has_tag_name("error"));
    let of_races = errors.filter(|e| text(*e, "kind") == "Race");
    of_races.map(race).collect()
}

/// The stacks follow what is said of them.
fn race(error: Node) -> Race {
    let mut found = Race {
        accesses: Vec::new(),
        word: String::new(),
    };
    let mut is_access = false;
    for n in error.children().filter(Node::is_element) {
        match n.tag_name().name() {
            "xwhat" => is_access = true,
            "xauxwhat" | "auxwhat" => {
                let said = match n.tag_name().name() {
                    "auxwhat" => n.text().unwrap_or_default(),
                    _ => text(n, "text"),
                };
                is_access = said.starts_with("This conflicts with");
                if !is_access && found.word.is_empty() {
                    found.word = word(said).into();
                }
            }
            "stack" if is_access => {
                found.accesses.extend(
                    n.children()
                        .find(|f| f.has_tag_name("frame"))
                        .and_then(access),
                );
                is_access = false;
            }
            _ => {}
        }
    }
    found
}

/// What lies there: the address itself is another one in each run.
fn word(said: &str) -> &str {
    said.split_once(" is ").map_or("", |(_, what)| what)
}

fn access(frame: Node) -> Option<Access> {
    let digits = text(frame, "ip").strip_prefix("0x")?;
    let (file, line) = (text(frame, "file"), text(frame, "line"));
    Some(Access {
        at: u64::from_str_radix(digits, 16).ok()?,
        function: text(frame, "fn").into(),
        line: match file.is_empty() {
            true => String::new(),
            false => format!("{file}:{line}"),
        },
    })
}

fn text<'a>(node: Node<'a, '_>, child: &str) -> &'a str {
    let found = node.children().find(|n| n.has_tag_name(child));
    found.and_then(|n| n.text()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_accesses_and_the_word_are_found() {
        let xml = r#"<?xml version="1.0"?><valgrindoutput>
        <error><kind>LockOrder</kind><stack><frame><ip>0x1</ip></frame></stack></error>
        <error><kind>Race</kind>
          <xwhat><text>Possible data race during read of size 8 at 0x10C340 by thread #1</text></xwhat>
          <stack><frame><ip>0x1092B1</ip><fn>count&lt;int&gt;</fn><file>a.c</file><line>22</line></frame>
                 <frame><ip>0x2</ip></frame></stack>
          <xauxwhat><text>This conflicts with a previous write of size 8 by thread #2</text></xauxwhat>
          <stack><frame><ip>0x1092e0</ip></frame></stack>
          <auxwhat>Address 0x10c340 is 0 bytes inside a block of size 8 alloc'd</auxwhat>
          <stack><frame><ip>0x3</ip></frame></stack>
        </error></valgrindoutput>"#;
        let found = races(xml).expect("a report");
        let access = |at, function: &str, line: &str| Access {
            at,
            function: function.into(),
            line: line.into(),
        };
        let accesses = vec![
            access(0x1092b1, "count<int>", "a.c:22"),
            access(0x1092e0, "", ""),
        ];
        let word = "0 bytes inside a block of size 8 alloc'd".to_owned();
        assert_eq!(found, [Race { accesses, word }]);
        let (whole, _) = xml.split_once("</valgrindoutput>").expect("its end");
        let broken_off = format!("{whole}<error><kind>Race</kind><xwh");
        assert_eq!(races(&broken_off), Ok(found), "what stands before is kept");
        assert_eq!(races("<?xml version=\"1.0\"?><valgrindoutput>"), Ok(vec![]));
        assert!(races("<valgrindoutput><error></valgrindoutput>").is_err());
    }
}
