//! Weights by name: from a seed, or from a safetensors file with the names of a Llama.
//!
//! Those of a seed are functions of the seed, the name and the index, so that tensors can be made in any order. Each tensor that is taken
//! is reported, because a file may have gigabytes. Weights of 4 bits are made from the others, in groups of [`GROUP`] along the rows.
//! Deliberately absent: files in several parts, files that are quantized already, and the tokens of text (tokenizers).

use crate::{Config, Error};
use titan::dispatch;
use titan::prelude::*;
use titan::safetensors::SafeTensors;

/// Weights of 4 bits that share a scale.
pub const GROUP: usize = 32;

/// Where the weights are from.
#[derive(Debug)]
pub enum Source<'a> {
    /// Made from a seed.
    Seed(u64),
    /// Read from a file.
    File(SafeTensors<'a>),
}

/// A tensor that has been taken, for the display of progress.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Its name.
    pub name: &'a str,
    /// Weights that have been taken, with this tensor.
    pub done: usize,
    /// Weights of the model.
    pub total: usize,
}

/// The weights of a decoder.
pub struct Weights<'a> {
    /// The sizes.
    pub config: Config,
    source: Source<'a>,
    report: Box<dyn FnMut(&Progress<'_>) + 'a>,
    done: usize,
}

impl std::fmt::Debug for Weights<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Weights").field("config", &self.config).field("source", &self.source).finish_non_exhaustive()
    }
}

impl<'a> Weights<'a> {
    /// The weights of a decoder of these sizes.
    #[must_use]
    pub fn new(config: Config, source: Source<'a>) -> Self {
        Self { config, source, report: Box::new(|_| ()), done: 0 }
    }

    /// Calls a function for each tensor that is taken.
    #[must_use]
    pub fn with_progress(mut self, report: impl FnMut(&Progress<'_>) + 'a) -> Self {
        self.report = Box::new(report);
        self
    }

    /// The scales of a norm, one for each column of the residual stream.
    ///
    /// # Errors
    /// If the file has no such tensor of this shape.
    pub fn norm(&mut self, name: &str) -> Result<Vec<f32>, Error> {
        self.take(name, &[self.config.hidden], |v| 1.0 + 0.1 * v)
    }

    /// A matrix of `rows` by `columns`. `scale` is the deviation of the numbers of a seed, relative to one that keeps the size of vectors.
    ///
    /// # Errors
    /// If the file has no such tensor of this shape.
    pub fn matrix(&mut self, name: &str, [rows, columns]: [usize; 2], scale: f64) -> Result<Vec<f32>, Error> {
        let deviation = scale / (columns as f64).sqrt();
        self.take(name, &[rows, columns], |v| v * deviation)
    }

    /// The table of embeddings, `[vocab, hidden]`.
    ///
    /// # Errors
    /// If the file has no such tensor of this shape.
    pub fn embedding(&mut self) -> Result<Vec<f32>, Error> {
        let Config { vocab, hidden, .. } = self.config;
        self.take("model.embed_tokens.weight", &[vocab, hidden], |v| v)
    }

    /// The matrix of logits, `[vocab, hidden]`: that of embeddings if a file has no other.
    ///
    /// # Errors
    /// If the file has no such tensor of this shape.
    pub fn head(&mut self) -> Result<Vec<f32>, Error> {
        const NAME: &str = "lm_head.weight";
        let Config { vocab, hidden, .. } = self.config;
        match &self.source {
            Source::File(file) if file.get(NAME).is_none() => self.embedding(),
            Source::File(_) | Source::Seed(_) => self.matrix(NAME, [vocab, hidden], 3.0),
        }
    }

    fn take(&mut self, name: &str, shape: &[usize], number: impl Fn(f64) -> f64) -> Result<Vec<f32>, Error> {
        let values = match &self.source {
            Source::Seed(seed) => {
                let numbers = Numbers::new(*seed, name);
                (0..shape.iter().product()).map(|i| number(numbers.get(i as u64)) as f32).collect()
            }
            Source::File(file) => read(file, name, shape)?,
        };
        self.done += values.len();
        (self.report)(&Progress { name, done: self.done, total: weights(&self.config) });
        Ok(values)
    }
}

/// The number of weights of a decoder.
#[must_use]
pub fn weights(config: &Config) -> usize {
    let Config { vocab, hidden, layers, heads, head_dim, intermediate, .. } = config;
    let attention = hidden * head_dim * (config.all_heads() + heads);
    2 * vocab * hidden + hidden + layers * (attention + 3 * hidden * intermediate + 2 * hidden)
}

fn read(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
    let tensor = file.load(&Device::cpu(), name)?;
    if tensor.shape() != shape {
        return Err(Error::Weights(format!("`{name}` has the shape {:?}, but {shape:?} is needed", tensor.shape())));
    }
    let values = dispatch!(match tensor.elem() {
        E in [f16, bf16, f32] => match shape.len() {
            1 => numbers(&tensor.into_tensor::<E, 1>()?.to_vec()?),
            _ => numbers(&tensor.into_tensor::<E, 2>()?.to_vec()?),
        },
    })?;
    Ok(values)
}

fn numbers<E: Float>(values: &[E]) -> Vec<f32> {
    values.iter().map(|v| v.cast::<f32>()).collect()
}

/// Weights of 4 bits: the value of a weight is `code · scale`, with a scale for each [`GROUP`] of codes.
#[derive(Debug)]
pub struct Quantized {
    /// From −8 to 7.
    pub codes: Vec<i8>,
    /// Rounded to the element type of the model.
    pub scales: Vec<f32>,
}

impl Quantized {
    /// The nearest codes, with the scale of a group such that its greatest weight has the code 7 or −7; `round` rounds scales to the
    /// element type of the model.
    #[must_use]
    pub fn of(values: &[f32], round: impl Fn(f32) -> f32) -> Self {
        let (mut codes, mut scales) = (Vec::with_capacity(values.len()), Vec::new());
        for group in values.chunks(GROUP) {
            let greatest = group.iter().fold(0.0f32, |most, v| most.max(v.abs()));
            let scale = round(greatest / 7.0);
            let code = |v: &f32| if scale > 0.0 { (v / scale).round().clamp(-8.0, 7.0) as i8 } else { 0 };
            codes.extend(group.iter().map(code));
            scales.push(scale);
        }
        Self { codes, scales }
    }
}

/// Numbers that a counter determines: uniform, with mean 0 and deviation 1.
#[derive(Debug)]
struct Numbers(u64);

impl Numbers {
    /// The numbers of a tensor, by the hash of its name (FNV-1a).
    fn new(seed: u64, name: &str) -> Self {
        let hash = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Self(mixed(seed) ^ name.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    fn get(&self, index: u64) -> f64 {
        let bits = mixed(self.0.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        ((bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0) * 3.0f64.sqrt()
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", 2014).
fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_seed_have_mean_0_and_deviation_1_and_differ_between_names() {
        let (a, b) = (Numbers::new(1, "a"), Numbers::new(1, "b"));
        let n = 100_000;
        let mean = (0..n).map(|i| a.get(i)).sum::<f64>() / n as f64;
        let square = (0..n).map(|i| a.get(i).powi(2)).sum::<f64>() / n as f64;
        let product = (0..n).map(|i| a.get(i) * b.get(i)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.02 && product.abs() < 0.02, "{mean} {square} {product}");
    }

    #[test]
    fn a_code_is_off_by_half_a_scale_at_most() {
        let numbers = Numbers::new(2, "w");
        let values: Vec<f32> = (0..256).map(|i| numbers.get(i) as f32).chain([0.0; 32]).collect();
        let Quantized { codes, scales } = Quantized::of(&values, |v| v);
        for (i, v) in values.iter().enumerate() {
            let scale = scales[i / GROUP];
            assert!((f32::from(codes[i]) * scale - v).abs() <= scale * 0.51, "{i}");
        }
    }

    #[test]
    fn all_weights_are_reported() {
        let mut last = (0, 0);
        let mut names = 0;
        let mut weights = Weights::new(Config::TINY, Source::Seed(3)).with_progress(|p| {
            last = (p.done, p.total);
            names += 1;
        });
        crate::parameters::Parameters::<f16>::load(&Device::cpu(), &mut weights, true).unwrap();
        drop(weights);
        assert_eq!((last.0, names), (last.1, 2 * 9 + 3));
    }
}
