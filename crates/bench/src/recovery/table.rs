//! The table of `geryon bench recovery`.

use super::{Pages, Row, Sample, Scene};

/// Medians, in milliseconds.
pub const HEADER: &str = "\
medians in ms; pause: by the monitor, nap and write: the program's longest ones (quiet: before the kill),
most: the longest of all rounds, full: from the kill until all replicas were there again

                            |  fork | plain copies  | a follower is killed (of 3)        | the partner is killed (of 2)      | the leader is killed (of 3)
   MiB threads pages  quiet |       |    nap   most |  pause    nap   most  write   full |  pause    nap  write   full limit | promoted   nap  write   full";

/// One figure of a sample.
type Figure = fn(&Sample) -> Option<f64>;

/// What the copy of a leader may cost: so many forks, and so much for each thread.
const FORKS: f64 = 1.5;
const THREAD_US: f64 = 200.0;

/// All scenes of one guest.
pub fn line(rows: &[Row]) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let of = |scene: Scene| rows.iter().find(|r| r.scene == scene);
    let median = |scene: Scene, what: Figure| {
        let series = of(scene).and_then(|r| r.series(what));
        series.map(|s| s.median)
    };
    let most = |scene: Scene| {
        let samples = of(scene).into_iter().flat_map(|r| &r.samples);
        samples.map(|s| s.nap_us).reduce(f64::max)
    };
    let nap: Figure = |s| Some(s.nap_us);
    let write: Figure = |s| Some(s.write_us);
    let quiet = |s: &Sample| Some(s.quiet_nap_us.max(s.quiet_write_us));
    let pause: Figure = |s| s.source_pause_us;
    let full: Figure = |s| s.replaced_us;
    let fork = median(Scene::Fork, |s| s.fork_us);
    let limit = fork.map(|f| FORKS * f + THREAD_US * f64::from(first.shape.threads));
    let pages = match first.shape.pages {
        Pages::Small => "4k",
        Pages::Huge => "2M",
    };
    let ms = |us: Option<f64>| us.map_or("-".into(), |us| crate::results::figure(us / 1e3));
    let mut out = format!(
        "{:>6} {:>7} {:>5} {:>6} | {:>5} |",
        first.shape.mib,
        first.shape.threads,
        pages,
        ms(median(Scene::Follower, quiet)),
        ms(fork)
    );
    let cells = |values: &[Option<f64>]| -> String {
        let cell = |us: &Option<f64>| format!(" {:>6}", ms(*us));
        values.iter().map(cell).collect()
    };
    out += &cells(&[median(Scene::Copies, nap), most(Scene::Copies)]);
    out += " |";
    let follower = |what| median(Scene::Follower, what);
    out += &cells(&[
        follower(pause),
        follower(nap),
        most(Scene::Follower),
        follower(write),
        follower(full),
    ]);
    out += " |";
    out += &cells(&[pause, nap, write, full].map(|what| median(Scene::Partner, what)));
    out += &format!(" {:>5} |", ms(limit));
    out += &format!(" {:>8}", ms(median(Scene::Leader, |s| s.promoted_us)));
    out += &cells(&[nap, write, full].map(|what| median(Scene::Leader, what)));
    for row in rows {
        if let Some(why) = &row.skipped {
            out += &format!("\n  {:?} skipped: {why}", row.scene);
        }
        if !row.failures.is_empty() {
            out += &format!("\n  {:?}: {} runs failed", row.scene, row.failures.len());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::*;

    #[test]
    fn what_was_not_measured_is_a_dash_and_why() {
        let shape = Shape {
            mib: 10,
            threads: 4,
            pages: Pages::Small,
        };
        let row = |scene, skipped: Option<&str>| Row {
            shape,
            scene,
            samples: Vec::new(),
            failures: Vec::new(),
            skipped: skipped.map(Into::into),
        };
        let mut fork = row(Scene::Fork, None);
        fork.samples.push(Sample {
            fork_us: Some(2000.0),
            ..Sample::default()
        });
        let text = line(&[fork, row(Scene::Follower, Some("no memory"))]);
        assert!(text.contains("2.00 |") && text.contains("3.80 |"), "{text}");
        assert!(text.ends_with("Follower skipped: no memory"), "{text}");
    }
}
