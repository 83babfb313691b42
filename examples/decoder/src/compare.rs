//! The comparison of generated tokens with the independent implementation.
//!
//! The reference reads the prompt and then the tokens that the model generated. At each step its own choice is compared with the model's.
//! So if all are equal, both generate the same text by themselves. Where the two greatest logits of the reference are closer to each
//! other than the model's arithmetic is exact, either of them is right: such steps are counted apart, and nothing else passes.

use crate::reference::{History, Reference};

/// The outcome for some sequences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    /// Steps of all sequences.
    pub steps: usize,
    /// Steps in which the model took the greatest logit of the reference.
    pub equal: usize,
    /// Steps in which it took one that is less by no more than the bound.
    pub near: usize,
    /// The greatest difference of a logit.
    pub error: f64,
    /// The greatest absolute value of a logit of the reference.
    pub greatest: f64,
}

impl Comparison {
    /// Whether every token is right.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.equal + self.near == self.steps
    }

    /// Adds a sequence: its prompt, the tokens that were generated, and the logits of each of those steps. Logits that are less than the
    /// greatest one by `bound` count as equal to it.
    pub fn add(&mut self, reference: &Reference, prompt: &[i32], tokens: &[i32], logits: &[Vec<f32>], bound: f64) {
        let mut history = History::default();
        let mut expected = Vec::new();
        let index = |token: &i32| usize::try_from(*token).unwrap_or(usize::MAX);
        prompt.iter().for_each(|token| expected = reference.next(&mut history, index(token)));
        for (token, logits) in tokens.iter().zip(logits) {
            let greatest = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let taken = expected.get(index(token)).copied().unwrap_or(f64::NEG_INFINITY);
            self.steps += 1;
            self.equal += usize::from(taken == greatest);
            self.near += usize::from(taken < greatest && greatest - taken <= bound);
            for (found, exact) in logits.iter().zip(&expected) {
                self.error = self.error.max((f64::from(*found) - exact).abs());
                self.greatest = self.greatest.max(exact.abs());
            }
            expected = reference.next(&mut history, index(token));
        }
    }
}
