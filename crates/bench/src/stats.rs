//! What many samples say: the median, how far they spread, and ratios.

use serde::Serialize;

/// A series of samples and what is said of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// In the order in which they were taken: one for each round.
    pub samples: Vec<f64>,
    /// The middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// The median distance from the median.
    pub mad: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
}

impl Series {
    /// `None` for no samples, or when one is not a number.
    pub fn new(samples: Vec<f64>) -> Option<Self> {
        let middle = median(&samples)?;
        let distances: Vec<f64> = samples.iter().map(|s| (s - middle).abs()).collect();
        let (min, max) = bounds(&samples)?;
        Some(Series {
            median: middle,
            mad: median(&distances)?,
            min,
            max,
            samples,
        })
    }

    /// How wide the samples lie, as a part of the median.
    pub fn relative_spread(&self) -> f64 {
        (self.max - self.min) / self.median
    }
}

/// How two series compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of the medians.
    pub value: f64,
    /// The smallest ratio of two samples of one round.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Ratio {
    /// `of` divided by `to`. Samples of one round were taken shortly after each
    /// other, so their ratios tell the spread. `None` when there is none.
    pub fn new(of: &Series, to: &Series) -> Option<Self> {
        let rounds = of.samples.iter().zip(&to.samples);
        let ratios: Vec<f64> = rounds.map(|(a, b)| a / b).collect();
        if ratios.iter().any(|ratio| !ratio.is_finite()) {
            return None;
        }
        let (min, max) = bounds(&ratios)?;
        let value = of.median / to.median;
        value.is_finite().then_some(Ratio { value, min, max })
    }
}

/// The median; `None` for no samples, or when one is not a number.
pub fn median(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() || samples.iter().any(|s| s.is_nan()) {
        return None;
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    })
}

fn bounds(samples: &[f64]) -> Option<(f64, f64)> {
    let min = samples.iter().copied().reduce(f64::min)?;
    let max = samples.iter().copied().reduce(f64::max)?;
    Some((min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples: &[f64]) -> Series {
        Series::new(samples.to_vec()).expect("samples")
    }

    #[test]
    fn the_median_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn there_is_no_median_of_nothing() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(Series::new(Vec::new()), None);
    }

    #[test]
    fn one_outlier_moves_the_bounds_only() {
        let series = series(&[10.0, 11.0, 9.0, 10.0, 100.0]);
        assert_eq!(series.median, 10.0);
        assert_eq!(series.mad, 1.0);
        assert_eq!((series.min, series.max), (9.0, 100.0));
        assert_eq!(series.relative_spread(), 9.1);
    }

    #[test]
    fn samples_keep_their_order() {
        assert_eq!(series(&[3.0, 1.0, 2.0]).samples, [3.0, 1.0, 2.0]);
    }

    #[test]
    fn a_ratio_is_of_medians_and_its_bounds_of_rounds() {
        // The machine was twice as slow in the last round, for both.
        let ratio = Ratio::new(&series(&[2.0, 2.2, 4.0]), &series(&[1.0, 1.0, 2.0]));
        let ratio = ratio.expect("finite");
        assert_eq!((ratio.value, ratio.min, ratio.max), (2.2, 2.0, 2.2));
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(Ratio::new(&series(&[1.0]), &series(&[0.0])), None);
    }
}
