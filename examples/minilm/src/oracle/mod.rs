//! The forward pass as plain loops over f64: what every other implementation is compared against.
//!
//! ```text
//!   x = norm(word[ids] + position[0..] + token_type[0])
//!   for each layer:
//!       x = norm(attention_output(attention(query(x), key(x), value(x))) + x)
//!       x = norm(output(gelu(intermediate(x))) + x)
//!   embedding = l2_normalise(mean of the rows of x)
//! ```
//!
//! Sentences are taken one by one, so there is no padding and no mask. Clear rather than fast: build with
//! `--release` for the published model.
//!
//! Reference: Devlin and others, "BERT: Pre-training of deep bidirectional transformers", 2018.

pub mod ops;

use crate::weights::Layer;
use crate::{Batch, Encoder, Error, Weights};
use ops::Matrix;

/// The reference implementation.
#[derive(Clone, Debug)]
pub struct Oracle {
    weights: Weights,
}

impl Oracle {
    /// An oracle of these weights.
    #[must_use]
    pub fn new(weights: Weights) -> Self {
        Self { weights }
    }

    /// The weights it computes with.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The embeddings before they are rounded to f32, `[sentences, hidden]`.
    ///
    /// # Errors
    /// Those of [`Batch::check`].
    pub fn embed_f64(&self, batch: &Batch) -> Result<Vec<Vec<f64>>, Error> {
        let states = self.states(batch)?;
        Ok(states.iter().map(|x| ops::l2_normalise(&ops::mean_pool(x))).collect())
    }

    /// The last layer's output for each sentence, `[tokens, hidden]` each.
    ///
    /// # Errors
    /// Those of [`Batch::check`].
    pub fn states(&self, batch: &Batch) -> Result<Vec<Matrix>, Error> {
        batch.check(self.weights.config())?;
        Ok(batch.sentences().map(|ids| self.sentence(ids)).collect())
    }

    fn sentence(&self, ids: &[i32]) -> Matrix {
        let rows: Vec<usize> = ids.iter().map(|id| id.unsigned_abs() as usize).collect();
        let (config, tables) = (self.weights.config(), self.weights.embeddings());
        let x = ops::layer_norm(&tables.norm, config.eps, &ops::lookup(tables, &rows));
        self.weights.layers().iter().fold(x, |x, layer| self.layer(layer, &x))
    }

    fn layer(&self, layer: &Layer, x: &Matrix) -> Matrix {
        let config = self.weights.config();
        let [query, key, value] = [&layer.query, &layer.key, &layer.value].map(|map| ops::linear(map, x));
        let attended = ops::attention(config.heads, &query, &key, &value);
        let sum = ops::add(ops::linear(&layer.attention_output, &attended), x);
        let x = ops::layer_norm(&layer.attention_norm, config.eps, &sum);
        let wide = ops::gelu(ops::linear(&layer.intermediate, &x));
        let sum = ops::add(ops::linear(&layer.output, &wide), &x);
        ops::layer_norm(&layer.output_norm, config.eps, &sum)
    }
}

impl Encoder for Oracle {
    fn embed(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, Error> {
        #[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is what the interface asks for")]
        let round = |row: Vec<f64>| row.into_iter().map(|x| x as f32).collect();
        Ok(self.embed_f64(batch)?.into_iter().map(round).collect())
    }
}
