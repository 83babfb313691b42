//! The dimensions of a BERT encoder that makes sentence embeddings.

/// The dimensions of a model; every tensor shape and every loop bound follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Encoder layers.
    pub layers: usize,
    /// Width of a token's vector, and of the embedding.
    pub hidden: usize,
    /// Attention heads; divides `hidden`.
    pub heads: usize,
    /// Width between the two linear maps of the feed-forward block.
    pub intermediate: usize,
    /// Rows of the word table: the number of tokens in the vocabulary.
    pub vocab: usize,
    /// Rows of the position table: the longest sequence, in tokens.
    pub max_positions: usize,
    /// Rows of the token-type table; single sentences use row 0 only.
    pub token_types: usize,
    /// Added to the variance in every layer norm.
    pub eps: f64,
}

impl Config {
    /// all-MiniLM-L6-v2 as published.
    pub const MINILM_L6: Self = Self {
        layers: 6,
        hidden: 384,
        heads: 12,
        intermediate: 1536,
        vocab: 30522,
        max_positions: 512,
        token_types: 2,
        eps: 1e-12,
    };

    /// A model small enough for tests in a debug build, with no two widths equal.
    pub const TINY: Self = Self {
        layers: 2,
        hidden: 24,
        heads: 3,
        intermediate: 40,
        vocab: 97,
        max_positions: 32,
        token_types: 2,
        eps: 1e-12,
    };

    /// Width of one attention head, `hidden / heads`.
    #[must_use]
    pub const fn head_dim(&self) -> usize {
        self.hidden / self.heads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_divide_the_hidden_width() {
        for config in [Config::MINILM_L6, Config::TINY] {
            assert_eq!(config.head_dim() * config.heads, config.hidden, "{config:?}");
        }
        assert_eq!(Config::MINILM_L6.head_dim(), 32);
    }
}
