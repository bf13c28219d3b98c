//! A static chart of the ratios, for people who would rather look. Logarithmic
//! around 1: a bar to the right is slower, one to the left faster, and twice as
//! slow is as long as twice as fast.

use std::fmt::Write;

use crate::results::{Ratios, Results};
use crate::stats::Ratio;

const WIDTH: f64 = 960.0;
/// Where the bars begin and end; names are left of it and figures right.
const PLOT: (f64, f64) = (130.0, 850.0);
const TOP: f64 = 118.0;
const ROW: f64 = 40.0;
const BAR: f64 = 13.0;
const MARGIN: f64 = 24.0;
/// The axis reaches at least this far, so that small differences look small.
const AXIS_LEAST: (i32, i32) = (-1, 1);
/// And no further, in powers of two.
const AXIS_MOST: (i32, i32) = (-6, 12);

/// One colour of bars.
struct Kind {
    name: &'static str,
    colour: &'static str,
    ratio: fn(&Ratios) -> Option<&Ratio>,
}

const WITH_GERYON: [Kind; 2] = [
    Kind {
        name: "Geryon to native",
        colour: "#1f5f9e",
        ratio: |r| r.geryon_to_native.as_ref(),
    },
    Kind {
        name: "Geryon to copies",
        colour: "#d9822b",
        ratio: |r| r.geryon_to_copies.as_ref(),
    },
];
const NATIVE_ONLY: [Kind; 2] = [
    Kind {
        name: "copies to native",
        colour: "#6b7a89",
        ratio: |r| r.copies_to_native.as_ref(),
    },
    Kind {
        name: "one core to native",
        colour: "#4f9d69",
        ratio: |r| r.one_core_to_native.as_ref(),
    },
];

/// The chart, as a whole SVG file.
pub fn draw(results: &Results) -> String {
    let ratios = || results.workloads.iter().map(|measured| &measured.ratios);
    let geryon = ratios().any(|r| r.geryon_to_native.is_some() || r.geryon_to_copies.is_some());
    let kinds = if geryon { &WITH_GERYON } else { &NATIVE_ONLY };
    let shown: Vec<_> = results
        .workloads
        .iter()
        .filter(|measured| {
            kinds
                .iter()
                .any(|kind| (kind.ratio)(&measured.ratios).is_some())
        })
        .collect();
    let axis = Axis::around(ratios().flat_map(|r| kinds.iter().filter_map(|k| (k.ratio)(r))));
    let bottom = TOP + ROW * shown.len() as f64;
    let mut svg = String::new();
    head(&mut svg, results, kinds, bottom + 62.0);
    axis.draw(&mut svg, bottom);
    for (i, measured) in shown.iter().enumerate() {
        let top = TOP + ROW * i as f64;
        let middle = top + ROW / 2.0 + 4.5;
        text(
            &mut svg,
            (PLOT.0 - 12.0, middle),
            "text-anchor=\"end\"",
            measured.name,
        );
        for (kind, nth) in kinds.iter().zip([0.0, 1.0]) {
            if let Some(ratio) = (kind.ratio)(&measured.ratios) {
                let top = top + (ROW - 2.0 * BAR) / 2.0 + nth * BAR;
                axis.bar(&mut svg, top, ratio, kind.colour);
            }
        }
    }
    let missing: Vec<&str> = results
        .workloads
        .iter()
        .filter(|measured| measured.skipped.is_some() || !measured.failures.is_empty())
        .map(|measured| measured.name)
        .collect();
    if !missing.is_empty() {
        let note = format!("skipped or failed: {}", missing.join(", "));
        text(
            &mut svg,
            (MARGIN, bottom + 46.0),
            "font-size=\"12\" fill=\"#555f69\"",
            &note,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn head(svg: &mut String, results: &Results, kinds: &[Kind], height: f64) {
    let title = format!("Geryon bench: {} replicas", results.replicas);
    put(
        svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
             font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#1d2228\">\n\
             <title>{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ),
    );
    text(
        svg,
        (MARGIN, 32.0),
        "font-size=\"18\" font-weight=\"600\"",
        &title,
    );
    let circumstances = results.circumstances.line();
    text(
        svg,
        (MARGIN, 53.0),
        "font-size=\"12\" fill=\"#555f69\"",
        &circumstances,
    );
    let mut left = MARGIN;
    for kind in kinds {
        rectangle(svg, (left, 68.0), 13.0, kind.colour);
        text(svg, (left + 20.0, 79.0), "", kind.name);
        left += 170.0;
    }
    let spread = format!(
        "right of 1× is slower; line: smallest to largest of {} rounds",
        results.rounds
    );
    text(svg, (left, 79.0), "fill=\"#555f69\"", &spread);
}

/// A logarithmic axis from one power of two to another.
struct Axis {
    least: i32,
    most: i32,
}

impl Axis {
    /// An axis that has room for these ratios.
    fn around<'a>(ratios: impl Iterator<Item = &'a Ratio>) -> Self {
        let mut axis = Axis {
            least: AXIS_LEAST.0,
            most: AXIS_LEAST.1,
        };
        for ratio in ratios {
            axis.least = axis
                .least
                .min(ratio.min.log2().floor() as i32)
                .max(AXIS_MOST.0);
            axis.most = axis
                .most
                .max(ratio.max.log2().ceil() as i32)
                .min(AXIS_MOST.1);
        }
        axis
    }

    /// Where a ratio lies; at an end if it is beyond.
    fn x(&self, ratio: f64) -> f64 {
        let (least, most) = (f64::from(self.least), f64::from(self.most));
        let part = (ratio.log2().clamp(least, most) - least) / (most - least);
        PLOT.0 + part * (PLOT.1 - PLOT.0)
    }

    fn draw(&self, svg: &mut String, bottom: f64) {
        for power in self.least..=self.most {
            let ratio = f64::from(power).exp2();
            let x = self.x(ratio);
            let (colour, width) = if power == 0 {
                ("#1d2228", 1.4)
            } else {
                ("#dfe3e7", 1.0)
            };
            line(svg, (x, TOP - 6.0), (x, bottom + 4.0), colour, width);
            let label = format!("{ratio}×");
            for y in [TOP - 12.0, bottom + 20.0] {
                text(
                    svg,
                    (x, y),
                    "text-anchor=\"middle\" font-size=\"12\" fill=\"#555f69\"",
                    &label,
                );
            }
        }
    }

    fn bar(&self, svg: &mut String, top: f64, ratio: &Ratio, colour: &str) {
        let (one, end) = (self.x(1.0), self.x(ratio.value));
        rectangle(svg, (one.min(end), top), (one - end).abs().max(1.0), colour);
        let (middle, min, max) = (top + BAR / 2.0, self.x(ratio.min), self.x(ratio.max));
        line(svg, (min, middle), (max, middle), "#1d2228", 1.2);
        for x in [min, max] {
            line(svg, (x, middle - 3.0), (x, middle + 3.0), "#1d2228", 1.2);
        }
        let label = format!("{:.2}", ratio.value);
        let right = one.max(end).max(max) + 7.0;
        text(svg, (right, top + 11.0), "font-size=\"12\"", &label);
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    let ((x1, y1), (x2, y2)) = (from, to);
    put(
        svg,
        format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
             stroke=\"{colour}\" stroke-width=\"{width}\"/>\n"
        ),
    );
}

/// A rectangle as high as a bar.
fn rectangle(svg: &mut String, (x, y): (f64, f64), width: f64, colour: &str) {
    put(
        svg,
        format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" \
             fill=\"{colour}\"/>\n"
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

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Circumstances;
    use crate::results::tests::measured;
    use crate::results::{Config, Measured, SCHEMA};

    fn results(workloads: Vec<Measured>) -> Results {
        let mut circumstances = Circumstances::now(None);
        circumstances.cpu = "A & B <C> \"D\"".into();
        Results {
            schema: SCHEMA,
            circumstances,
            replicas: 3,
            rounds: 2,
            scale: 1.0,
            workloads,
        }
    }

    fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).expect("well-formed");
        let texts = document
            .descendants()
            .filter(|node| node.has_tag_name("text"));
        texts
            .filter_map(|node| node.text())
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn it_is_well_formed_and_names_everything() {
        let svg = draw(&results(vec![measured(&[
            (Config::Native, &[1.0, 1.1]),
            (Config::Copies, &[2.0, 2.1]),
            (Config::Geryon, &[3.0, 3.1]),
        ])]));
        let texts = texts(&svg);
        for expected in [
            "null-call",
            "Geryon to native",
            "2.90",
            "1.49",
            "4×",
            "0.5×",
        ] {
            assert!(
                texts.iter().any(|text| text == expected),
                "{expected} in {texts:?}"
            );
        }
        assert!(
            texts.iter().any(|text| text.contains("A & B <C>")),
            "{texts:?}"
        );
    }

    #[test]
    fn without_geryon_the_copies_are_drawn() {
        let series: [(Config, &[f64]); 2] = [(Config::Native, &[1.0]), (Config::Copies, &[2.0])];
        let texts = texts(&draw(&results(vec![measured(&series)])));
        assert!(
            texts.iter().any(|text| text == "copies to native"),
            "{texts:?}"
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let mut skipped = measured(&[]);
        skipped.skipped = Some("not installed".into());
        let texts = texts(&draw(&results(vec![skipped])));
        assert!(
            texts
                .iter()
                .any(|text| text == "skipped or failed: null-call"),
            "{texts:?}"
        );
    }

    #[test]
    fn nothing_measured_is_still_a_chart() {
        assert!(texts(&draw(&results(Vec::new()))).len() > 3);
    }

    #[test]
    fn nothing_lies_outside_whatever_the_ratio() {
        let svg = draw(&results(vec![measured(&[
            (Config::Native, &[1.0, 1.0]),
            (Config::Copies, &[1e9, 1e9]),
            (Config::Geryon, &[1e5, 1e-9]),
        ])]));
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        for node in document.descendants() {
            for name in ["x", "x1", "x2"] {
                let x: f64 = node
                    .attribute(name)
                    .map_or(0.0, |x| x.parse().expect("a number"));
                assert!((0.0..=WIDTH).contains(&x), "{name}={x}");
            }
        }
    }
}
