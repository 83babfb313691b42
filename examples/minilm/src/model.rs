//! The interface of implementations of the forward pass.

use crate::{Batch, Error};

/// A model that computes sentence embeddings from tokens.
///
/// `&mut self` so that an implementation may keep its device buffers between calls.
pub trait Encoder {
    /// One embedding a sentence, `[sentences, hidden]`, in the batch's order and each of length 1.
    ///
    /// # Errors
    /// Those of [`Batch::check`], and those of the implementation.
    fn embed(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, Error>;
}
