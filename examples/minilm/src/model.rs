//! The boundary behind which an implementation of the forward pass plugs in.

use crate::{Batch, Error};

/// Something that turns tokens into sentence embeddings.
///
/// `&mut self` so that an implementation may keep its device buffers between calls.
pub trait Encoder {
    /// One embedding a sentence, `[sentences, hidden]`, in the batch's order and each of length 1.
    ///
    /// # Errors
    /// Those of [`Batch::check`], and whatever stops the implementation's own machinery.
    fn embed(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, Error>;
}
