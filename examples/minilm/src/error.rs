//! What can go wrong outside `fetch`: a sentence and the fix each.

use std::path::PathBuf;

/// Why a model could not be loaded or a batch not be embedded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A published file is absent or of the wrong size.
    #[error("`{}` is missing or incomplete; run `cargo run --release -p minilm -- fetch`", path.display())]
    AssetMissing {
        /// Where it should be.
        path: PathBuf,
    },

    /// A file could not be read.
    #[error("`{}` cannot be read; check that it exists and that you may read it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// The weights are not in safetensors format.
    #[error("the weights are not a safetensors file; run `cargo run --release -p minilm -- fetch` again")]
    NotSafetensors(#[source] safetensors::SafeTensorError),

    /// A tensor is absent.
    #[error("the weights have no tensor `{name}` of shape {expected:?}; use the file of a BERT encoder")]
    TensorMissing {
        /// The tensor's name in the file.
        name: String,
        /// The shape the configuration asks for.
        expected: Vec<usize>,
    },

    /// A tensor has another shape than the configuration asks for.
    #[error("tensor `{name}` has shape {found:?}, the configuration needs {expected:?}; use the file's own dimensions")]
    TensorShape {
        /// The tensor's name in the file.
        name: String,
        /// The shape the configuration asks for.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },

    /// A tensor's elements are not f32.
    #[error("tensor `{name}` has elements of type {found:?}, only F32 is read; convert the file to F32")]
    TensorType {
        /// The tensor's name in the file.
        name: String,
        /// The element type in the file.
        found: safetensors::Dtype,
    },

    /// The vocabulary lacks a token the tokenizer itself needs.
    #[error("the vocabulary has no token `{token}`; use the `vocab.txt` of an uncased BERT model")]
    VocabToken {
        /// The missing token.
        token: &'static str,
    },

    /// A token number is outside the word table.
    #[error("token number {id} of sentence {sentence} is not in 0..{vocab}; use the model's own vocabulary")]
    TokenRange {
        /// Index of the sentence in the batch.
        sentence: usize,
        /// The token number.
        id: i32,
        /// Rows of the word table.
        vocab: usize,
    },

    /// A sentence has no tokens at all.
    #[error("sentence {sentence} has no tokens; give at least the `[CLS]` and `[SEP]` that the tokenizer adds")]
    NoTokens {
        /// Index of the sentence in the batch.
        sentence: usize,
    },

    /// A sentence is longer than the position table.
    #[error("sentence {sentence} has {tokens} tokens, the model has {positions} positions; shorten it")]
    TooLong {
        /// Index of the sentence in the batch.
        sentence: usize,
        /// Its tokens.
        tokens: usize,
        /// Rows of the position table.
        positions: usize,
    },

    /// A device could not do what it was asked.
    #[error(transparent)]
    Titan(#[from] titan::Error),

    /// The batch has more tokens than an offset can count.
    #[error("the batch has more than {} tokens in all; embed the sentences in several batches", i32::MAX)]
    BatchTooLarge,
}
