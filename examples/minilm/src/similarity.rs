//! Cosine similarities of embeddings, their table beside the sentences, and how far embeddings are from exact ones.

use std::fmt;

/// The cosine of the angle between every two embeddings, `[sentences, sentences]`.
///
/// Embeddings have length 1, so the dot product is the cosine.
#[must_use]
pub fn matrix(embeddings: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(v, w)| v * w).sum();
    embeddings.iter().map(|x| embeddings.iter().map(|y| dot(x, y)).collect()).collect()
}

/// 1 less the cosine of the angle between an embedding and what it should be: 0 if they point the same way.
#[must_use]
pub fn cosine_distance(found: &[f32], exact: &[f64]) -> f64 {
    let found: Vec<f64> = found.iter().copied().map(f64::from).collect();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(v, w)| v * w).sum::<f64>();
    1.0 - dot(&found, exact) / (dot(&found, &found) * dot(exact, exact)).sqrt()
}

/// The greatest difference between an element of an embedding and what it should be.
#[must_use]
pub fn greatest_difference(found: &[f32], exact: &[f64]) -> f64 {
    found.iter().zip(exact).map(|(f, e)| (f64::from(*f) - e).abs()).fold(0.0, f64::max)
}

/// The matrix as text: a numbered row a sentence, the sentence after its row.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The sentences, `[sentences]`.
    pub sentences: &'a [String],
    /// Their similarities, `[sentences, sentences]`.
    pub similarities: &'a [Vec<f32>],
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.sentences.len().to_string().len();
        write!(f, "{:digits$} ", "")?;
        for column in 1..=self.sentences.len() {
            write!(f, " {column:>6}")?;
        }
        writeln!(f)?;
        for (i, (sentence, row)) in self.sentences.iter().zip(self.similarities).enumerate() {
            write!(f, "{:>digits$} ", i + 1)?;
            for similarity in row {
                write!(f, " {similarity:>6.3}")?;
            }
            writeln!(f, "   {sentence}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_is_about_direction_and_difference_about_elements() {
        assert!((cosine_distance(&[2.0, 0.0], &[0.5, 0.0])).abs() < 1e-15);
        assert!((cosine_distance(&[0.0, 1.0], &[1.0, 0.0]) - 1.0).abs() < 1e-15);
        assert!((greatest_difference(&[1.0, -1.0], &[1.0, 0.5]) - 1.5).abs() < 1e-15);
    }

    #[test]
    fn columns_stand_under_their_numbers() {
        let similarities = &matrix(&[vec![1.0, 0.0], vec![0.6, -0.8]]);
        let sentences = &["One.".to_owned(), "Another.".to_owned()];
        let text = Table { sentences, similarities }.to_string();
        assert_eq!(text, "        1      2\n1   1.000  0.600   One.\n2   0.600  1.000   Another.\n");
    }
}
