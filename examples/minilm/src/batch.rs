//! Token numbers of several sentences, packed one after the other without padding.
//!
//! ```text
//!   ids      [tokens]          101 7592 102 | 101 2204 2851 2088 102
//!   offsets  [sentences + 1]   0              3                        8
//!   max_len  5
//! ```
//!
//! Sentence `s` owns `ids[offsets[s]..offsets[s + 1]]`. Numbers are `i32` because that is what kernels load.

use crate::{Config, Error};

/// The tokens of several sentences, packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    ids: Vec<i32>,
    offsets: Vec<i32>,
    max_len: usize,
}

/// The same tokens as a rectangle, for implementations that need one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padded {
    /// Token numbers, `[sentences, width]` row-major; past a sentence's length, the padding token.
    pub ids: Vec<i32>,
    /// Tokens of each sentence, `[sentences]`; attention looks at no more than these.
    pub lengths: Vec<i32>,
    /// Columns of `ids`: the tokens of the longest sentence.
    pub width: usize,
}

impl Batch {
    /// Packs the token numbers of each sentence.
    ///
    /// # Errors
    /// [`Error::NoTokens`] for an empty sentence, [`Error::BatchTooLarge`] if offsets overflow `i32`.
    pub fn pack<S: AsRef<[i32]>>(sentences: &[S]) -> Result<Self, Error> {
        let mut batch = Self { ids: Vec::new(), offsets: vec![0], max_len: 0 };
        for (sentence, ids) in sentences.iter().map(AsRef::as_ref).enumerate() {
            if ids.is_empty() {
                return Err(Error::NoTokens { sentence });
            }
            batch.ids.extend_from_slice(ids);
            batch.offsets.push(i32::try_from(batch.ids.len()).map_err(|_| Error::BatchTooLarge)?);
            batch.max_len = batch.max_len.max(ids.len());
        }
        Ok(batch)
    }

    /// Token numbers of all sentences, `[tokens]`.
    #[must_use]
    pub fn ids(&self) -> &[i32] {
        &self.ids
    }

    /// Where each sentence starts in [`Self::ids`], and where the last one ends: `[sentences + 1]`, from 0.
    #[must_use]
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// Tokens of the longest sentence; 0 for no sentences.
    #[must_use]
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Number of sentences.
    #[must_use]
    pub fn n_sentences(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of tokens of all sentences.
    #[must_use]
    pub fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// The token numbers of each sentence, in order.
    pub fn sentences(&self) -> impl Iterator<Item = &[i32]> {
        let mut rest = self.ids.as_slice();
        self.offsets.windows(2).map(move |pair| {
            let (sentence, tail) = rest.split_at((pair[1] - pair[0]).unsigned_abs() as usize);
            rest = tail;
            sentence
        })
    }

    /// Position of each token within its own sentence, `[tokens]`.
    #[must_use]
    pub fn positions(&self) -> Vec<i32> {
        self.offsets.windows(2).flat_map(|pair| 0..pair[1] - pair[0]).collect()
    }

    /// The same tokens as a rectangle filled up with `pad`.
    #[must_use]
    pub fn padded(&self, pad: i32) -> Padded {
        let width = self.max_len;
        let mut ids = Vec::with_capacity(self.n_sentences() * width);
        for sentence in self.sentences() {
            ids.extend_from_slice(sentence);
            ids.resize(ids.len() + width - sentence.len(), pad);
        }
        let lengths = self.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        Padded { ids, lengths, width }
    }

    /// Checks that a model of these dimensions can embed the batch, so that implementations need not.
    ///
    /// # Errors
    /// [`Error::TooLong`] or [`Error::TokenRange`] for the first sentence that does not fit.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        for (sentence, ids) in self.sentences().enumerate() {
            if ids.len() > config.max_positions {
                return Err(Error::TooLong { sentence, tokens: ids.len(), positions: config.max_positions });
            }
            let in_table = |id: &i32| usize::try_from(*id).is_ok_and(|row| row < config.vocab);
            if let Some(&id) = ids.iter().find(|id| !in_table(id)) {
                return Err(Error::TokenRange { sentence, id, vocab: config.vocab });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Batch {
        Batch::pack(&[vec![1, 7, 2], vec![1, 8, 9, 10, 2]]).unwrap()
    }

    #[test]
    fn sentences_are_packed_without_padding() {
        let batch = two();
        assert_eq!(batch.ids(), [1, 7, 2, 1, 8, 9, 10, 2]);
        assert_eq!(batch.offsets(), [0, 3, 8]);
        assert_eq!(batch.positions(), [0, 1, 2, 0, 1, 2, 3, 4]);
        assert_eq!((batch.n_sentences(), batch.n_tokens(), batch.max_len()), (2, 8, 5));
        assert_eq!(batch.sentences().collect::<Vec<_>>(), [&[1, 7, 2][..], &[1, 8, 9, 10, 2]]);
    }

    #[test]
    fn no_sentences_make_an_empty_batch() {
        let batch = Batch::pack::<Vec<i32>>(&[]).unwrap();
        assert_eq!((batch.n_sentences(), batch.max_len(), batch.offsets()), (0, 0, &[0][..]));
    }

    #[test]
    fn padding_fills_the_rectangle() {
        let padded = two().padded(0);
        assert_eq!(padded.ids, [1, 7, 2, 0, 0, 1, 8, 9, 10, 2]);
        assert_eq!((padded.lengths, padded.width), (vec![3, 5], 5));
    }

    #[test]
    fn a_sentence_without_tokens_is_refused() {
        let error = Batch::pack(&[vec![1, 2], vec![]]).unwrap_err();
        assert!(matches!(error, Error::NoTokens { sentence: 1 }), "{error}");
    }

    #[test]
    fn tokens_outside_the_tables_are_refused() {
        two().check(&Config::TINY).unwrap();
        for id in [-1, 97] {
            let error = Batch::pack(&[[1, id]]).unwrap().check(&Config::TINY).unwrap_err();
            assert!(matches!(error, Error::TokenRange { sentence: 0, vocab: 97, .. }), "{error}");
        }
        let error = Batch::pack(&[vec![1; 33]]).unwrap().check(&Config::TINY).unwrap_err();
        assert!(matches!(error, Error::TooLong { tokens: 33, positions: 32, .. }), "{error}");
    }
}
