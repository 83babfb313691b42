//! An independent implementation, to compare tokens with: plain loops over `f64`, one token of one sequence at a time, a plain cache.
//!
//! It shares the weights and the codes of 4 bits with the model, and nothing else: no kernel, no tensor, no rounding of TITAN's. Weights
//! are rounded to the element type of the model, as the model's are. Deliberately absent: the rounding of activations. What the model
//! rounds on the way (operands of matrix products, the cache) is a part of the difference that is measured.

use crate::weights::{GROUP, Quantized, Weights};
use crate::{Config, Error};

/// A floating-point format, to which weights are rounded.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Bits behind the point of the significand.
    bits: i32,
    /// The exponent of the least normal number.
    least: i32,
}

impl Format {
    /// IEEE 754 binary16.
    pub const F16: Self = Self { bits: 10, least: -14 };
    /// The upper half of binary32.
    pub const BF16: Self = Self { bits: 7, least: -126 };

    /// The nearest number of the format, even among equals; numbers too large for the format are not expected.
    #[must_use]
    pub fn round(self, v: f32) -> f32 {
        if v == 0.0 {
            return v;
        }
        let v = f64::from(v);
        let exponent = (v.abs().log2().floor() as i32).max(self.least);
        let unit = 2.0f64.powi(exponent - self.bits);
        ((v / unit).round_ties_even() * unit) as f32
    }
}

/// A matrix `[outputs, inputs]`, row by row.
#[derive(Debug)]
struct Matrix {
    rows: Vec<f32>,
    inputs: usize,
}

impl Matrix {
    fn times(&self, x: &[f64]) -> Vec<f64> {
        let product = |row: &[f32]| row.iter().zip(x).map(|(w, v)| f64::from(*w) * v).sum();
        self.rows.chunks_exact(self.inputs).map(product).collect()
    }
}

#[derive(Debug)]
struct Layer {
    attention_norm: Vec<f32>,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    output: Matrix,
    feed_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// A decoder of plain loops.
#[derive(Debug)]
pub struct Reference {
    config: Config,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    head: Matrix,
}

/// The keys and values of one sequence: of each layer, position by position, head by head.
#[derive(Clone, Debug, Default)]
pub struct History {
    keys: Vec<Vec<f64>>,
    values: Vec<Vec<f64>>,
    length: usize,
}

impl Reference {
    /// Takes the weights, rounded to a format; those of the layers' matrices by way of 4 bits if `w4`.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn load(weights: &mut Weights<'_>, format: Format, w4: bool) -> Result<Self, Error> {
        let config = weights.config.clone();
        let hidden = config.hidden;
        let plain = |values: Vec<f32>, inputs| Matrix { rows: rounded(values, format), inputs };
        Ok(Self {
            embedding: plain(weights.embedding()?, hidden),
            layers: (0..config.layers).map(|i| Layer::load(weights, i, format, w4)).collect::<Result<_, _>>()?,
            norm: rounded(weights.norm("model.norm.weight")?, format),
            head: plain(weights.head()?, hidden),
            config,
        })
    }

    /// The logits behind a token, which is added to the sequence.
    #[must_use]
    pub fn next(&self, history: &mut History, token: usize) -> Vec<f64> {
        let Config { hidden, layers, eps, .. } = self.config;
        history.keys.resize(layers, Vec::new());
        history.values.resize(layers, Vec::new());
        let mut x: Vec<f64> = self.embedding.rows[token * hidden..][..hidden].iter().map(|v| f64::from(*v)).collect();
        for (index, layer) in self.layers.iter().enumerate() {
            let y = norm(&x, &layer.attention_norm, eps);
            let attended = self.attention(layer, index, history, &y);
            add(&mut x, &layer.output.times(&attended));
            let y = norm(&x, &layer.feed_norm, eps);
            let gate = layer.gate.times(&y);
            let inner: Vec<f64> =
                gate.iter().zip(layer.up.times(&y)).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            add(&mut x, &layer.down.times(&inner));
        }
        history.length += 1;
        self.head.times(&norm(&x, &self.norm, eps))
    }

    fn attention(&self, layer: &Layer, index: usize, history: &mut History, y: &[f64]) -> Vec<f64> {
        let Config { heads, kv_heads, head_dim, .. } = self.config;
        let (keys, values) = (&mut history.keys[index], &mut history.values[index]);
        let query = self.rotated(layer.query.times(y), history.length);
        keys.extend(self.rotated(layer.key.times(y), history.length));
        values.extend(layer.value.times(y));
        let mut out = Vec::with_capacity(heads * head_dim);
        for (head, q) in query.chunks_exact(head_dim).enumerate() {
            let at = |position: usize| (position * kv_heads + head / (heads / kv_heads)) * head_dim;
            let score = |position: usize| {
                let dot: f64 = q.iter().zip(&keys[at(position)..]).map(|(a, b)| a * b).sum();
                dot / (head_dim as f64).sqrt()
            };
            let scores: Vec<f64> = (0..=history.length).map(score).collect();
            let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|s| (s - greatest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            out.extend((0..head_dim).map(|e| {
                powers.iter().enumerate().map(|(position, p)| p / sum * values[at(position) + e]).sum::<f64>()
            }));
        }
        out
    }

    /// The rotary embedding of all heads of a token: element `i` of the first half of a head and element `i` of the second are a pair.
    fn rotated(&self, mut heads: Vec<f64>, position: usize) -> Vec<f64> {
        let half = self.config.head_dim / 2;
        for head in heads.chunks_exact_mut(self.config.head_dim) {
            for i in 0..half {
                let angle = position as f64 / self.config.rope_base.powf(i as f64 / half as f64);
                let (a, b) = (head[i], head[i + half]);
                head[i] = a * angle.cos() - b * angle.sin();
                head[i + half] = b * angle.cos() + a * angle.sin();
            }
        }
        heads
    }
}

impl Layer {
    fn load(weights: &mut Weights<'_>, index: usize, format: Format, w4: bool) -> Result<Self, Error> {
        let Config { hidden, heads, kv_heads, head_dim, intermediate, .. } = weights.config;
        let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let mut matrix = |part: &str, outputs, inputs, scale| {
            let values = weights.matrix(&name(part), [outputs, inputs], scale)?;
            let rows = if w4 { through_4_bits(&values, format) } else { rounded(values, format) };
            Ok::<_, Error>(Matrix { rows, inputs })
        };
        Ok(Self {
            query: matrix("self_attn.q_proj", queries, hidden, 3.0)?,
            key: matrix("self_attn.k_proj", keys, hidden, 1.0)?,
            value: matrix("self_attn.v_proj", keys, hidden, 1.0)?,
            output: matrix("self_attn.o_proj", hidden, queries, 1.0)?,
            gate: matrix("mlp.gate_proj", intermediate, hidden, 1.0)?,
            up: matrix("mlp.up_proj", intermediate, hidden, 1.0)?,
            down: matrix("mlp.down_proj", hidden, intermediate, 1.0)?,
            attention_norm: rounded(weights.norm(&name("input_layernorm"))?, format),
            feed_norm: rounded(weights.norm(&name("post_attention_layernorm"))?, format),
        })
    }
}

fn rounded(mut values: Vec<f32>, format: Format) -> Vec<f32> {
    values.iter_mut().for_each(|v| *v = format.round(*v));
    values
}

fn through_4_bits(values: &[f32], format: Format) -> Vec<f32> {
    let Quantized { codes, scales } = Quantized::of(values, |v| format.round(v));
    codes.iter().enumerate().map(|(i, code)| format.round(f32::from(*code) * scales[i / GROUP])).collect()
}

fn norm(x: &[f64], scale: &[f32], eps: f32) -> Vec<f64> {
    let square = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    let root = (square + f64::from(eps)).sqrt();
    x.iter().zip(scale).map(|(v, s)| v / root * f64::from(*s)).collect()
}

fn add(x: &mut [f64], branch: &[f64]) {
    x.iter_mut().zip(branch).for_each(|(x, b)| *x += b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_round_to_the_nearest_number_and_to_even() {
        let cases =
            [(1.0, 1.0), (1.0 + 1.0 / 2048.0, 1.0), (1.0 + 3.0 / 2048.0, 1.0 + 2.0 / 1024.0), (-0.1, -0.099975586)];
        for (v, expected) in cases {
            assert_eq!(Format::F16.round(v), expected, "{v}");
        }
        assert_eq!(Format::F16.round(2.0f32.powi(-24) * 1.4), 2.0f32.powi(-24));
        assert_eq!(Format::BF16.round(1.0 + 1.0 / 256.0), 1.0);
        assert_eq!(Format::BF16.round(1.0 + 3.0 / 256.0), 1.0 + 2.0 / 128.0);
    }
}
