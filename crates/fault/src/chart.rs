//! Charts as SVG, for people who would rather look: stacked bars of outcomes, and histograms of
//! times.

use std::fmt::Write;

use crate::outcome::Outcome;
use crate::summary::{Tally, time};

const WIDTH: f64 = 760.0;
/// Where bars begin and end; names are left of it and figures right.
const PLOT: (f64, f64) = (90.0, 690.0);
const TOP: f64 = 8.0;
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;
/// A part of a bar that is narrower has no figure.
const FIGURE_LEAST: f64 = 16.0;
/// Height of a histogram's plot.
const HISTOGRAM: f64 = 150.0;
const SMALL: &str = "font-size=\"12\" fill=\"#555f69\"";

/// The colour of an outcome: calm where all went well, warm where it did not.
pub fn colour(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Missed => "#e3e6ea",
        Outcome::Masked => "#b4bdc6",
        Outcome::Detected => "#7fb2dd",
        Outcome::Dropped => "#9ccf9a",
        Outcome::Replaced => "#4f9d69",
        Outcome::TakenOver => "#1f5f9e",
        Outcome::Due => "#e8b04a",
        Outcome::Crash => "#a678b8",
        Outcome::Hang => "#8a5a2b",
        Outcome::Sdc => "#c8372d",
    }
}

/// A figure needs this colour to be read on the outcome's.
fn ink(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Replaced | Outcome::TakenOver | Outcome::Hang | Outcome::Sdc => "#ffffff",
        _ => "#1d2228",
    }
}

/// One bar for each row, as long as the others and parted by outcomes. Rows without trials have
/// none.
pub fn bars(title: &str, rows: &[(&str, Tally)]) -> String {
    let height = TOP * 2.0 + ROW * rows.len() as f64;
    let mut svg = head(title, height);
    for (i, (name, tally)) in rows.iter().enumerate() {
        let top = TOP + ROW * i as f64;
        let middle = top + BAR - 4.0;
        text(
            &mut svg,
            (PLOT.0 - 10.0, middle),
            "text-anchor=\"end\"",
            name,
        );
        bar(&mut svg, top, name, tally);
        let total = tally.total().to_string();
        text(&mut svg, (PLOT.1 + 8.0, middle), SMALL, &total);
    }
    svg + "</svg>\n"
}

fn bar(svg: &mut String, top: f64, name: &str, tally: &Tally) {
    let total = tally.total();
    let mut left = PLOT.0;
    for outcome in Outcome::ALL {
        let count = tally.count(outcome);
        if count == 0 {
            continue;
        }
        let width = (PLOT.1 - PLOT.0) * count as f64 / total as f64;
        let hint = format!("{name}: {} {count} of {total}", outcome.name());
        rectangle(svg, (left, top), (width, BAR), colour(outcome), &hint);
        if width >= FIGURE_LEAST {
            let attributes = format!(
                "text-anchor=\"middle\" font-size=\"12\" fill=\"{}\"",
                ink(outcome)
            );
            let at = (left + width / 2.0, top + BAR - 5.0);
            text(svg, at, &attributes, &count.to_string());
        }
        left += width;
    }
}

/// How often times lie between one power of two of microseconds and the next. None of no times.
pub fn histogram(title: &str, times_us: &[u64]) -> Option<String> {
    let power = |us: u64| us.max(1).ilog2();
    let first = power(*times_us.iter().min()?);
    let last = power(*times_us.iter().max()?);
    let mut counts = vec![0u64; (last - first + 1) as usize];
    for us in times_us {
        counts[(power(*us) - first) as usize] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let bottom = TOP + 16.0 + HISTOGRAM;
    let mut svg = head(title, bottom + 30.0);
    let width = ((PLOT.1 - PLOT.0) / counts.len() as f64).min(60.0);
    for (i, count) in counts.iter().enumerate() {
        let left = PLOT.0 + width * i as f64;
        let from = 1u64 << (first + i as u32);
        let middle = (left + width / 2.0, bottom + 18.0);
        // Labels need room: in a crowd every second bar has one.
        if width >= 48.0 || i % 2 == 0 {
            text(
                &mut svg,
                middle,
                &format!("text-anchor=\"middle\" {SMALL}"),
                &time(from),
            );
        }
        if *count == 0 {
            continue;
        }
        let height = HISTOGRAM * *count as f64 / most as f64;
        let hint = format!(
            "{} to {}: {count}",
            time(from),
            time(from.saturating_mul(2))
        );
        let place = (left + 1.0, bottom - height);
        rectangle(&mut svg, place, (width - 2.0, height), "#1f5f9e", &hint);
        let above = (left + width / 2.0, bottom - height - 4.0);
        text(
            &mut svg,
            above,
            "text-anchor=\"middle\" font-size=\"12\"",
            &count.to_string(),
        );
    }
    put(
        &mut svg,
        format_args!(
            "<line x1=\"{:.1}\" y1=\"{bottom:.1}\" x2=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#1d2228\"/>\n",
            PLOT.0, PLOT.1
        ),
    );
    Some(svg + "</svg>\n")
}

fn head(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         font-size=\"13\" fill=\"#1d2228\">\n<title>{}</title>\n",
        escape(title)
    )
}

fn rectangle(svg: &mut String, (x, y): (f64, f64), (w, h): (f64, f64), fill: &str, hint: &str) {
    let hint = escape(hint);
    put(
        svg,
        format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{fill}\">\
             <title>{hint}</title></rect>\n"
        ),
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), attributes: &str, content: &str) {
    let content = escape(content);
    put(
        svg,
        format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{content}</text>\n"),
    );
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes everything");
}

/// Text that XML and HTML take for text; control characters, which XML has no way to write, are
/// shown as a replacement.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Side;
    use crate::results::tests::record;

    fn inside(svg: &str) {
        let document = roxmltree::Document::parse(svg).expect("well-formed");
        for node in document.descendants() {
            let number = |name| -> f64 {
                let text = node.attribute(name);
                text.map_or(0.0, |x| x.parse().expect("a number"))
            };
            let right = number("x") + number("width");
            assert!((0.0..=WIDTH + 0.1).contains(&right), "{right}: {svg}");
        }
    }

    #[test]
    fn a_bar_is_parted_by_outcomes() {
        let records = [
            Outcome::Masked,
            Outcome::Masked,
            Outcome::Masked,
            Outcome::Sdc,
        ]
        .map(|outcome| record(0, Side::Geryon, outcome));
        let svg = bars(
            "a & b",
            &[("gpr", Tally::of(&records)), ("ip", Tally::default())],
        );
        inside(&svg);
        assert!(
            svg.contains("width=\"450.0\"") && svg.contains("width=\"150.0\""),
            "{svg}"
        );
        assert!(
            svg.contains("gpr: SDC 1 of 4") && svg.contains("a &amp; b"),
            "{svg}"
        );
    }

    #[test]
    fn times_of_all_sizes_have_room() {
        let all: Vec<u64> = (0..64).map(|i| 1 << i).collect();
        for times in [&all[..], &[0], &[u64::MAX], &[5, 6, 7, 1000]] {
            inside(&histogram("times", times).expect("times"));
        }
        assert_eq!(histogram("times", &[]), None);
        let svg = histogram("times", &[5, 6, 7, 1000]).expect("times");
        assert!(svg.contains("4 µs to 8 µs: 3"), "{svg}");
    }

    #[test]
    fn nothing_escapes() {
        assert_eq!(
            escape("<a b=\"c\">&\u{1b}"),
            "&lt;a b=&quot;c&quot;&gt;&amp;\u{fffd}"
        );
    }

    #[test]
    fn colours_are_told_apart() {
        for a in Outcome::ALL {
            for b in Outcome::ALL {
                assert_eq!(colour(a) == colour(b), a == b);
            }
        }
    }
}
