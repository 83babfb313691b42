//! Cosine similarities of embeddings, and their table beside the sentences.

use std::fmt;

/// The cosine of the angle between every two embeddings, `[sentences, sentences]`.
///
/// Embeddings have length 1, so the dot product is the cosine.
#[must_use]
pub fn matrix(embeddings: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(v, w)| v * w).sum();
    embeddings.iter().map(|x| embeddings.iter().map(|y| dot(x, y)).collect()).collect()
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
    fn columns_stand_under_their_numbers() {
        let similarities = &matrix(&[vec![1.0, 0.0], vec![0.6, -0.8]]);
        let sentences = &["One.".to_owned(), "Another.".to_owned()];
        let text = Table { sentences, similarities }.to_string();
        assert_eq!(text, "        1      2\n1   1.000  0.600   One.\n2   0.600  1.000   Another.\n");
    }
}
