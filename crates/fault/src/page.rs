//! A campaign as one page that needs nothing else: no script, no other file, no network.

use std::fmt::Write;

use crate::chart::{bars, colour, escape, histogram};
use crate::outcome::Outcome;
use crate::results::Side;
use crate::summary::{QUARTERS, Summary, quantiles, rated, shown, time};

const STYLE: &str = "\
body{font-family:system-ui,'DejaVu Sans',sans-serif;color:#1d2228;background:#fff;\
max-width:60rem;margin:2rem auto;padding:0 1.5rem;line-height:1.45}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #dfe3e7}\
th:first-child,td:first-child{text-align:left}tr.all td{font-weight:600}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem}dt{color:#555f69}dd{margin:0}\
ul.key{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.85rem}\
ul.key i{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem;vertical-align:-.05rem}\
code{font-size:.85rem;overflow-wrap:anywhere}svg{max-width:100%;height:auto}";
/// As many trials that went wrong are listed.
const LISTED_MAX: usize = 100;

/// The page.
pub fn render(summary: Summary<'_>) -> String {
    let campaign = summary.campaign;
    let line = std::iter::once(&campaign.program)
        .chain(&campaign.args)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n\
         <title>Geryon: faults in {0}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Faults injected into <code>{0}</code></h1>\n",
        escape(&line)
    );
    facts(&mut out, summary);
    key(&mut out, summary);
    for side in summary.sides() {
        outcomes(&mut out, summary, side);
    }
    times(
        &mut out,
        "Detection latency",
        "from the fault to its being noticed",
        &summary.detections(),
    );
    times(
        &mut out,
        "Replacement time",
        "from there to the new replica",
        &summary.replacements(),
    );
    bad(&mut out, summary);
    out + "</body>\n</html>\n"
}

fn facts(out: &mut String, summary: Summary<'_>) {
    let campaign = summary.campaign;
    out.push_str("<dl>\n");
    let mut fact = |name: &str, value: &str| {
        put(
            out,
            format_args!("<dt>{name}</dt><dd>{}</dd>\n", escape(value)),
        );
    };
    fact("replicas", &campaign.replicas.to_string());
    fact("trials", &campaign.trials.to_string());
    fact("seed", &campaign.seed.to_string());
    fact("time of the fault", &campaign.times.to_string());
    let spans = format!(
        "{} as replicas, {} bare",
        time(campaign.span_us),
        time(campaign.bare_span_us)
    );
    fact("golden run", &spans);
    for side in summary.sides() {
        for outcome in rated(side) {
            let rate = summary.rate(side, outcome);
            let (name, value) = rate.split_once(": ").unwrap_or((&rate, ""));
            fact(name, value);
        }
    }
    out.push_str(
        "</dl>\n<p>Rates are of the faults that were made, with their 95 % intervals.</p>\n",
    );
}

/// What the colours mean, of the outcomes that came.
fn key(out: &mut String, summary: Summary<'_>) {
    out.push_str("<ul class=\"key\">\n");
    let came = |o: &Outcome| summary.records.iter().any(|r| r.outcome == *o);
    for outcome in Outcome::ALL.into_iter().filter(came) {
        put(
            out,
            format_args!(
                "<li title=\"{}\"><i style=\"background:{}\"></i>{}</li>\n",
                escape(outcome.what()),
                colour(outcome),
                outcome.name()
            ),
        );
    }
    out.push_str("</ul>\n");
}

fn outcomes(out: &mut String, summary: Summary<'_>, side: Side) {
    let name = match side {
        Side::Geryon => "With Geryon",
        Side::Bare => "Without Geryon",
    };
    put(out, format_args!("<h2>{name}: outcome by target</h2>\n"));
    let rows: Vec<_> = summary
        .by_kind(side)
        .into_iter()
        .filter(|(_, tally)| tally.total() > 0)
        .map(|(kind, tally)| (kind.name(), tally))
        .collect();
    out.push_str(&bars(&format!("{name}: outcome by target"), &rows));
    let total = summary.tally(side);
    let columns = shown(&total);
    out.push_str("<table>\n<tr><th>target</th><th>trials</th>");
    for outcome in &columns {
        put(out, format_args!("<th>{}</th>", outcome.name()));
    }
    out.push_str("</tr>\n");
    let all = [("all", total)];
    for (kind, tally) in rows.iter().chain(&all) {
        let class = if *kind == "all" { " class=\"all\"" } else { "" };
        put(
            out,
            format_args!("<tr{class}><td>{kind}</td><td>{}</td>", tally.total()),
        );
        for outcome in &columns {
            put(out, format_args!("<td>{}</td>", tally.count(*outcome)));
        }
        out.push_str("</tr>\n");
    }
    put(
        out,
        format_args!("</table>\n<h2>{name}: outcome by quarter of the run</h2>\n"),
    );
    let names: [&str; QUARTERS] = ["first", "second", "third", "fourth"];
    let rows: Vec<_> = names.into_iter().zip(summary.by_quarter(side)).collect();
    out.push_str(&bars(
        &format!("{name}: outcome by quarter of the run"),
        &rows,
    ));
}

fn times(out: &mut String, name: &str, what: &str, times: &[u64]) {
    put(out, format_args!("<h2>{name}</h2>\n"));
    match (histogram(name, times), quantiles(times)) {
        (Some(svg), Some(line)) => {
            put(out, format_args!("<p>{what}: {}</p>\n{svg}", escape(&line)));
        }
        _ => put(out, format_args!("<p>{what}: no trial has told</p>\n")),
    }
}

fn bad(out: &mut String, summary: Summary<'_>) {
    let bad = summary.bad();
    if bad.is_empty() {
        return;
    }
    put(
        out,
        format_args!("<h2>What went wrong ({})</h2>\n<ol>\n", bad.len()),
    );
    for record in bad.iter().take(LISTED_MAX) {
        put(
            out,
            format_args!(
                "<li value=\"{}\">{}{}<br/><code>{}</code></li>\n",
                record.trial,
                record.outcome.name(),
                record
                    .note
                    .as_deref()
                    .map_or(String::new(), |n| format!(": {}", escape(n))),
                escape(&summary.command(record))
            ),
        );
    }
    out.push_str("</ol>\n");
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::tests::campaign;
    use crate::results::Record;
    use crate::results::tests::record;

    /// The page; it is well-formed XML, so that its tags are balanced.
    fn page(records: &[Record]) -> String {
        let mut campaign = campaign();
        campaign.args.push("<script>&\"'\u{7}".into());
        let page = render(Summary {
            campaign: &campaign,
            records,
        });
        let xml = page.strip_prefix("<!DOCTYPE html>\n").expect("a doctype");
        roxmltree::Document::parse(xml).expect("well-formed");
        page
    }

    fn many() -> Vec<Record> {
        let mut records = Vec::new();
        for (i, outcome) in (0..400).zip(Outcome::ALL.into_iter().cycle()) {
            for side in [Side::Geryon, Side::Bare] {
                records.push(record(i, side, outcome));
            }
        }
        records
    }

    #[test]
    fn everything_is_there() {
        let page = page(&many());
        for expected in [
            "With Geryon: outcome by target",
            "Without Geryon: outcome by quarter",
            "taken over",
            "Geryon SDC",
            "What went wrong (120)",
            "Detection latency",
            "no trial has told",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
    }

    #[test]
    fn it_needs_nothing_else() {
        let page = page(&many());
        for foreign in [
            "http", "<script", "<link", "<img", "src=", "@import", "url(",
        ] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn nothing_done_is_still_a_page() {
        assert!(page(&[]).contains("<h1>"));
    }
}
