//! The sizes of a decoder, of which every shape follows.

use crate::Error;
use titan::safetensors::SafeTensors;

/// The sizes of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Decoder layers.
    pub layers: usize,
    /// Heads of queries; a multiple of `kv_heads`.
    pub heads: usize,
    /// Heads of keys and of values.
    pub kv_heads: usize,
    /// Width of a head: 16, 64 or 128, for which there are kernels.
    pub head_dim: usize,
    /// Width of the feed-forward block.
    pub intermediate: usize,
    /// Positions for which there are angles: the longest sequence.
    pub positions: usize,
    /// The base of the angles of the rotary embedding.
    pub rope_base: f64,
    /// Added to the mean square in every norm.
    pub eps: f32,
}

impl Config {
    /// A decoder for tests: three query heads to a key head, and widths that are not multiples of all tiles.
    pub const TINY: Self = Self {
        vocab: 301,
        hidden: 96,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 16,
        intermediate: 160,
        positions: 512,
        rope_base: 10_000.0,
        eps: 1e-5,
    };

    /// A decoder with the proportions of published ones, for measurements on a CPU.
    pub const SMALL: Self = Self {
        vocab: 2048,
        hidden: 512,
        layers: 4,
        heads: 8,
        kv_heads: 4,
        head_dim: 64,
        intermediate: 1408,
        positions: 1024,
        rope_base: 10_000.0,
        eps: 1e-5,
    };

    /// Heads of queries, keys and values together.
    #[must_use]
    pub const fn all_heads(&self) -> usize {
        self.heads + 2 * self.kv_heads
    }

    /// The sizes that the tensors of a file have. What shapes do not say is taken from `self`: `head_dim`, `positions`, `rope_base` and `eps`.
    ///
    /// # Errors
    /// If a tensor of a Llama is missing in the file, or its shape does not fit `head_dim`.
    pub fn of_file(&self, file: &SafeTensors<'_>) -> Result<Self, Error> {
        let shape = |name: &str| match file.get(name).map(|info| info.shape[..].to_vec()).as_deref() {
            Some([rows, columns]) => Ok((*rows, *columns)),
            other => Err(Error::Weights(format!("the file has no matrix `{name}`, but {other:?}"))),
        };
        let (vocab, hidden) = shape("model.embed_tokens.weight")?;
        let (queries, _) = shape("model.layers.0.self_attn.q_proj.weight")?;
        let (keys, _) = shape("model.layers.0.self_attn.k_proj.weight")?;
        let (intermediate, _) = shape("model.layers.0.mlp.gate_proj.weight")?;
        let layers = (0..).take_while(|i| file.get(&format!("model.layers.{i}.input_layernorm.weight")).is_some());
        let (heads, kv_heads) = (queries / self.head_dim, keys / self.head_dim);
        if kv_heads == 0 || heads % kv_heads != 0 || keys % self.head_dim != 0 || queries % self.head_dim != 0 {
            return Err(Error::Weights(format!(
                "{queries} rows of queries and {keys} of keys are not heads of {}: give the width of a head",
                self.head_dim
            )));
        }
        Ok(Self { vocab, hidden, layers: layers.count(), heads, kv_heads, intermediate, ..self.clone() })
    }
}
