//! Text to token numbers: BERT WordPiece, uncased.
//!
//! ```text
//!   "Embeddings!"  ──basic──>  embeddings !  ──wordpiece──>  [CLS] em ##bed ##ding ##s ! [SEP]
//! ```
//!
//! * A word is cut greedily: the longest piece of the vocabulary that it starts with, then the longest
//!   `##`-piece that the rest starts with, and so on. If a rest matches nothing, the whole word is `[UNK]`.
//! * The special tokens are recognised where the text spells them out, as the reference tokenizer does.
//! * A sentence longer than [`MAX_TOKENS`] is cut at the end, `[SEP]` stays.
//!
//! Written here rather than taken from the `tokenizers` crate: that one brings some eighty packages for what is
//! two hundred lines here. Absent on purpose: pairs, offsets into the text, decoding.
//!
//! Reference: Schuster and Nakajima, "Japanese and Korean voice search", 2012 (WordPiece).

mod basic;

use std::collections::BTreeMap;
use std::path::Path;

use crate::{Batch, Error};

/// The most tokens of a sentence, `[CLS]` and `[SEP]` included: the length the published model is used with.
pub const MAX_TOKENS: usize = 256;

/// The most characters of a word; a longer one is `[UNK]`.
const MAX_WORD_CHARS: usize = 100;

const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// A vocabulary, ready to cut text into its pieces.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    pieces: BTreeMap<String, i32>,
    pad: i32,
    unknown: i32,
    start: i32,
    end: i32,
}

impl Tokenizer {
    /// Reads a `vocab.txt`.
    ///
    /// # Errors
    /// [`Error::Read`], or those of [`Self::new`].
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::new(&text)
    }

    /// A tokenizer of this vocabulary: one token a line, its number is the line's, from 0.
    ///
    /// # Errors
    /// [`Error::VocabToken`] if a special token is absent.
    pub fn new(vocab: &str) -> Result<Self, Error> {
        let pieces: BTreeMap<String, i32> = vocab.lines().map(str::to_owned).zip(0..).collect();
        let mut numbers = [0; SPECIAL.len()];
        for (number, token) in numbers.iter_mut().zip(SPECIAL) {
            *number = *pieces.get(token).ok_or(Error::VocabToken { token })?;
        }
        let [pad, unknown, start, end, _mask] = numbers;
        Ok(Self { pieces, pad, unknown, start, end })
    }

    /// The number of `[PAD]`, for [`Batch::padded`].
    #[must_use]
    pub fn pad(&self) -> i32 {
        self.pad
    }

    /// The token numbers of one sentence, `[CLS]` first and `[SEP]` last, at most [`MAX_TOKENS`].
    #[must_use]
    pub fn encode(&self, sentence: &str) -> Vec<i32> {
        let mut ids = vec![self.start];
        let mut rest = sentence;
        while let Some((at, token)) = next_special(rest) {
            self.push_words(&rest[..at], &mut ids);
            ids.extend(self.pieces.get(token));
            rest = &rest[at + token.len()..];
        }
        self.push_words(rest, &mut ids);
        ids.truncate(MAX_TOKENS - 1);
        ids.push(self.end);
        ids
    }

    /// The token numbers of several sentences, packed.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`] if they are too many to count.
    pub fn batch<S: AsRef<str>>(&self, sentences: &[S]) -> Result<Batch, Error> {
        let ids: Vec<Vec<i32>> = sentences.iter().map(|sentence| self.encode(sentence.as_ref())).collect();
        Batch::pack(&ids)
    }

    fn push_words(&self, text: &str, ids: &mut Vec<i32>) {
        for word in basic::words(text) {
            match self.cut(&word) {
                Some(pieces) => ids.extend(pieces),
                None => ids.push(self.unknown),
            }
        }
    }

    /// The pieces of one word, or nothing if some rest of it matches no piece.
    fn cut(&self, word: &str) -> Option<Vec<i32>> {
        if word.chars().count() > MAX_WORD_CHARS {
            return None;
        }
        let mut ids = Vec::new();
        let mut start = 0;
        while start < word.len() {
            let (id, end) = self.longest_piece(word, start)?;
            ids.push(id);
            start = end;
        }
        Some(ids)
    }

    /// The longest piece that `word[start..]` starts with, and where it ends.
    fn longest_piece(&self, word: &str, start: usize) -> Option<(i32, usize)> {
        let mut piece = if start == 0 { String::new() } else { "##".to_owned() };
        let prefix = piece.len();
        piece.push_str(&word[start..]);
        while piece.len() > prefix {
            if let Some(id) = self.pieces.get(&piece) {
                return Some((*id, start + piece.len() - prefix));
            }
            piece.pop();
        }
        None
    }
}

/// The first special token spelt out in the text, and where it starts.
fn next_special(text: &str) -> Option<(usize, &'static str)> {
    SPECIAL.iter().filter_map(|token| Some((text.find(token)?, *token))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCAB: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nem\n##bed\n##ding\n##s\n##din\n!\na\n";

    fn check(text: &str, expected: &[i32]) {
        let tokenizer = Tokenizer::new(VOCAB).unwrap();
        assert_eq!(tokenizer.encode(text), expected, "{text:?}");
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces() {
        check("Embeddings!", &[2, 5, 6, 7, 8, 10, 3]);
        check("", &[2, 3]);
    }

    #[test]
    fn a_word_with_an_unknown_rest_is_unknown_as_a_whole() {
        check("embedx a", &[2, 1, 11, 3]);
        check(&"s".repeat(101), &[2, 1, 3]);
    }

    #[test]
    fn special_tokens_are_recognised_where_spelt_out() {
        check("a[SEP]a [MASK]", &[2, 11, 3, 11, 4, 3]);
        check("[sep]", &[2, 1, 1, 1, 3]);
    }

    #[test]
    fn a_long_sentence_keeps_its_end_marker() {
        let ids = Tokenizer::new(VOCAB).unwrap().encode(&"a ".repeat(300));
        assert_eq!((ids.len(), ids[0], ids[MAX_TOKENS - 2], ids[MAX_TOKENS - 1]), (MAX_TOKENS, 2, 11, 3));
    }

    #[test]
    fn a_vocabulary_without_a_special_token_is_refused() {
        let error = Tokenizer::new("[PAD]\n[UNK]\n[CLS]\n").unwrap_err();
        assert!(matches!(error, Error::VocabToken { token: "[SEP]" }), "{error}");
    }
}
