//! Quantiles of measured values.

/// The value below which the given part of the sorted values lies.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}
