//! The weights of a decoder in the memory of a device: matrices that have the same input are one.

use crate::weights::{GROUP, Quantized, Weights};
use crate::{Config, Error, kernels};
use titan::prelude::*;

/// A matrix `[outputs, inputs]`.
#[derive(Debug)]
pub enum Linear<T: Float> {
    /// Weights of the model's element type.
    Plain(Tensor<T, 2>),
    /// Weights of 4 bits, and a scale for each group of inputs, `[outputs, inputs / GROUP]`.
    W4(Tensor<i4, 2>, Tensor<T, 2>),
}

/// The parameters of a layer.
#[derive(Debug)]
pub struct Layer<T: Float> {
    /// Before attention.
    pub attention_norm: Tensor<T, 1>,
    /// Queries of all heads, then keys, then values.
    pub qkv: Linear<T>,
    /// From the heads to the residual stream.
    pub output: Linear<T>,
    /// Before the feed-forward block.
    pub feed_norm: Tensor<T, 1>,
    /// Gate, then up.
    pub gate_up: Linear<T>,
    /// From the feed-forward block to the residual stream.
    pub down: Linear<T>,
}

/// All parameters.
#[derive(Debug)]
pub struct Parameters<T: Float> {
    /// The rows of tokens.
    pub embedding: Tensor<T, 2>,
    /// The layers, in their order.
    pub layers: Vec<Layer<T>>,
    /// Before the logits.
    pub norm: Tensor<T, 1>,
    /// From the residual stream to logits.
    pub head: Linear<T>,
    /// Cosines of the angles, `[positions, head_dim / 2]`.
    pub cos: Tensor<f32, 2>,
    /// Their sines.
    pub sin: Tensor<f32, 2>,
}

impl<T: Float> Parameters<T> {
    /// Copies the weights to a device; those of the layers' matrices with 4 bits if `w4`.
    ///
    /// # Errors
    /// If a tensor is missing in the file or has another shape, or the device has not enough memory.
    pub fn load(device: &Device, weights: &mut Weights<'_>, w4: bool) -> Result<Self, Error> {
        let config = weights.config.clone();
        let [positions, half, table] = [config.positions, config.head_dim / 2, config.vocab];
        let angle = |[position, i]: [usize; 2]| position as f64 * config.rope_base.powf(-(i as f64) / half as f64);
        Ok(Self {
            embedding: device.tensor(rounded(&weights.embedding()?), [table, config.hidden])?,
            layers: (0..config.layers).map(|i| Layer::load(device, weights, i, w4)).collect::<Result<_, _>>()?,
            norm: device.tensor(rounded(&weights.norm("model.norm.weight")?), [config.hidden])?,
            head: Linear::upload(device, weights.head()?, [table, config.hidden], false)?,
            cos: device.from_fn([positions, half], |at| angle(at).cos() as f32)?,
            sin: device.from_fn([positions, half], |at| angle(at).sin() as f32)?,
        })
    }
}

impl<T: Float> Layer<T> {
    fn load(device: &Device, weights: &mut Weights<'_>, index: usize, w4: bool) -> Result<Self, Error> {
        let Config { hidden, heads, kv_heads, head_dim, intermediate, .. } = weights.config;
        let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        // Several matrices with the same input, and the deviation of each for weights from a seed: great scores make attention selective.
        let mut linear = |parts: &[(&str, usize, f64)], inputs: usize| {
            let mut rows = Vec::new();
            for (part, outputs, scale) in parts {
                rows.extend(weights.matrix(&name(part), [*outputs, inputs], *scale)?);
            }
            let outputs = rows.len() / inputs;
            Linear::upload(device, rows, [outputs, inputs], w4)
        };
        let attention =
            [("self_attn.q_proj", queries, 3.0), ("self_attn.k_proj", keys, 1.0), ("self_attn.v_proj", keys, 1.0)];
        Ok(Self {
            qkv: linear(&attention, hidden)?,
            output: linear(&[("self_attn.o_proj", hidden, 1.0)], queries)?,
            gate_up: linear(&[("mlp.gate_proj", intermediate, 1.0), ("mlp.up_proj", intermediate, 1.0)], hidden)?,
            down: linear(&[("mlp.down_proj", hidden, 1.0)], intermediate)?,
            attention_norm: device.tensor(rounded(&weights.norm(&name("input_layernorm"))?), [hidden])?,
            feed_norm: device.tensor(rounded(&weights.norm(&name("post_attention_layernorm"))?), [hidden])?,
        })
    }
}

impl<T: Float> Linear<T> {
    fn upload(device: &Device, values: Vec<f32>, [outputs, inputs]: [usize; 2], w4: bool) -> Result<Self, Error> {
        if !w4 {
            return Ok(Self::Plain(device.tensor(rounded(&values), [outputs, inputs])?));
        }
        if inputs % GROUP != 0 {
            return Err(Error::Weights(format!(
                "{inputs} inputs are not groups of {GROUP}, as weights of 4 bits need"
            )));
        }
        let Quantized { codes, scales } = Quantized::of(&values, |v| v.cast::<T>().cast());
        let codes: Vec<i4> = codes.into_iter().map(i4::from_i8).collect();
        let codes = device.tensor(codes, [outputs, inputs])?;
        Ok(Self::W4(codes, device.tensor(rounded(&scales), [outputs, inputs / GROUP])?))
    }

    /// Starts `y = x · weightᵀ`.
    ///
    /// # Errors
    /// Those of a launch.
    pub fn launch(&self, x: &Tensor<T, 2>, y: &mut Tensor<f32, 2>, stream: &Stream) -> titan::Result<()> {
        match (self, x.shape()[0] <= 32) {
            (Self::Plain(w), true) => kernels::linear::generic::<T, 16, 64, 64>(x, w, y).launch(stream),
            (Self::Plain(w), false) => kernels::linear::generic::<T, 64, 64, 64>(x, w, y).launch(stream),
            (Self::W4(w, s), true) => kernels::linear_w4::generic::<T, 16, 64, 64, 32>(x, w, s, y).launch(stream),
            (Self::W4(w, s), false) => kernels::linear_w4::generic::<T, 64, 64, 64, 32>(x, w, s, y).launch(stream),
        }
    }
}

fn rounded<T: Float>(values: &[f32]) -> Vec<T> {
    values.iter().map(|v| v.cast::<T>()).collect()
}
