//! The decoder in candle, as candle's own models of this kind are written: a cache that is concatenated, heads of keys that are repeated.
//!
//! Deliberately absent: ragged batches, which candle's models do not have; all prompts of a batch have the same length.

use candle_core::{D, DType, Device, Result, Tensor};
use decoder::{Config, Weights};
use std::time::{Duration, Instant};

struct Layer {
    attention_norm: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    feed_norm: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
}

/// The decoder on candle's CPU device.
pub(crate) struct Model {
    config: Config,
    dtype: DType,
    embedding: Tensor,
    layers: Vec<Layer>,
    norm: Tensor,
    head: Tensor,
    cos: Tensor,
    sin: Tensor,
}

/// Keys and values of each layer, `[batch, kv_heads, positions, head_dim]`.
type Cache = Vec<Option<(Tensor, Tensor)>>;

impl Model {
    pub(crate) fn load(
        weights: &mut Weights<'_>,
        dtype: DType,
    ) -> std::result::Result<Self, Box<dyn std::error::Error>> {
        let config = weights.config.clone();
        let Config { vocab, hidden, heads, kv_heads, head_dim, intermediate, positions, .. } = config;
        let matrix = |values: Vec<f32>, rows: usize| {
            let columns = values.len() / rows;
            Tensor::from_vec(values, (rows, columns), &Device::Cpu)?.to_dtype(dtype)
        };
        let vector = |values: Vec<f32>| Tensor::new(values, &Device::Cpu)?.to_dtype(dtype);
        let mut layers = Vec::new();
        for i in 0..config.layers {
            let name = |part: &str| format!("model.layers.{i}.{part}.weight");
            let mut linear = |part: &str, outputs: usize, inputs: usize, scale: f64| {
                let values = weights.matrix(&name(part), [outputs, inputs], scale)?;
                Ok::<_, Box<dyn std::error::Error>>(matrix(values, outputs)?)
            };
            layers.push(Layer {
                query: linear("self_attn.q_proj", heads * head_dim, hidden, 3.0)?,
                key: linear("self_attn.k_proj", kv_heads * head_dim, hidden, 1.0)?,
                value: linear("self_attn.v_proj", kv_heads * head_dim, hidden, 1.0)?,
                output: linear("self_attn.o_proj", hidden, heads * head_dim, 1.0)?,
                gate: linear("mlp.gate_proj", intermediate, hidden, 1.0)?,
                up: linear("mlp.up_proj", intermediate, hidden, 1.0)?,
                down: linear("mlp.down_proj", hidden, intermediate, 1.0)?,
                attention_norm: vector(weights.norm(&name("input_layernorm"))?)?,
                feed_norm: vector(weights.norm(&name("post_attention_layernorm"))?)?,
            });
        }
        let half = head_dim / 2;
        let angle = |i: usize| (i / half) as f64 * config.rope_base.powf(-((i % half) as f64) / half as f64);
        let table = |f: fn(f64) -> f64| matrix((0..positions * half).map(|i| f(angle(i)) as f32).collect(), positions);
        Ok(Self {
            embedding: matrix(weights.embedding()?, vocab)?,
            norm: vector(weights.norm("model.norm.weight")?)?,
            head: matrix(weights.head()?, vocab)?,
            cos: table(f64::cos)?,
            sin: table(f64::sin)?,
            layers,
            dtype,
            config,
        })
    }

    /// The next token of each sequence after these, `[batch, new tokens]`, at positions from `first` on.
    fn forward(&self, tokens: &Tensor, first: usize, cache: &mut Cache) -> Result<Tensor> {
        let (batch, new) = tokens.dims2()?;
        let Config { hidden, .. } = self.config;
        let mut x = self.embedding.index_select(&tokens.flatten_all()?, 0)?.reshape((batch, new, hidden))?;
        for (layer, cached) in self.layers.iter().zip(cache) {
            let y = self.rms_norm(&x, &layer.attention_norm)?;
            x = (x + self.attention(layer, &y, first, cached)?)?;
            let y = self.rms_norm(&x, &layer.feed_norm)?;
            let inner = (linear(&y, &layer.gate)?.silu()? * linear(&y, &layer.up)?)?;
            x = (x + linear(&inner, &layer.down)?)?;
        }
        let last = self.rms_norm(&x.narrow(1, new - 1, 1)?.contiguous()?, &self.norm)?;
        linear(&last, &self.head)?.to_dtype(DType::F32)?.argmax(D::Minus1)
    }

    fn attention(
        &self,
        layer: &Layer,
        y: &Tensor,
        first: usize,
        cached: &mut Option<(Tensor, Tensor)>,
    ) -> Result<Tensor> {
        let (batch, new, _) = y.dims3()?;
        let Config { heads, kv_heads, head_dim, .. } = self.config;
        let split = |x: Tensor, heads: usize| x.reshape((batch, new, heads, head_dim))?.transpose(1, 2)?.contiguous();
        let query = self.rotated(&split(linear(y, &layer.query)?, heads)?, first)?;
        let mut key = self.rotated(&split(linear(y, &layer.key)?, kv_heads)?, first)?;
        let mut value = split(linear(y, &layer.value)?, kv_heads)?;
        if let Some((keys, values)) = cached {
            key = Tensor::cat(&[&*keys, &key], 2)?;
            value = Tensor::cat(&[&*values, &value], 2)?;
        }
        *cached = Some((key.clone(), value.clone()));
        let repeat = |x: Tensor| {
            let positions = x.dim(2)?;
            Tensor::cat(&vec![&x; heads / kv_heads], 2)?.reshape((batch, heads, positions, head_dim))
        };
        let (key, value) = (repeat(key)?, repeat(value)?);
        let scores = (query.matmul(&key.t()?)? / (head_dim as f64).sqrt())?.to_dtype(DType::F32)?;
        let positions = scores.dim(3)?;
        let hidden = |i: usize| if i % positions > first + i / positions { f32::NEG_INFINITY } else { 0.0 };
        let mask = Tensor::from_vec((0..new * positions).map(hidden).collect(), (new, positions), &Device::Cpu)?;
        let scores = if new == 1 { scores } else { scores.broadcast_add(&mask)? };
        let powers = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
        let share = powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)?.to_dtype(self.dtype)?;
        let out = share.matmul(&value.contiguous()?)?.transpose(1, 2)?.reshape((batch, new, heads * head_dim))?;
        linear(&out, &layer.output)
    }

    fn rotated(&self, heads: &Tensor, first: usize) -> Result<Tensor> {
        let (_, _, new, dim) = heads.dims4()?;
        let (cos, sin) = (self.cos.narrow(0, first, new)?, self.sin.narrow(0, first, new)?);
        let (lo, hi) = (heads.narrow(3, 0, dim / 2)?, heads.narrow(3, dim / 2, dim / 2)?);
        let a = (lo.broadcast_mul(&cos)? - hi.broadcast_mul(&sin)?)?;
        let b = (hi.broadcast_mul(&cos)? + lo.broadcast_mul(&sin)?)?;
        Tensor::cat(&[a, b], 3)
    }

    fn rms_norm(&self, x: &Tensor, scale: &Tensor) -> Result<Tensor> {
        let x = x.to_dtype(DType::F32)?;
        let square = x.sqr()?.mean_keepdim(D::Minus1)?;
        let normed = x.broadcast_div(&(square + f64::from(self.config.eps))?.sqrt()?)?;
        normed.to_dtype(self.dtype)?.broadcast_mul(scale)
    }

    /// Generates tokens for prompts of the same length: the tokens of each, and the time of all but the first of them.
    pub(crate) fn generate(&self, prompts: &[Vec<i32>], steps: usize) -> Result<(Vec<Vec<i32>>, Duration)> {
        let length = prompts.first().map_or(0, Vec::len);
        let ids: Vec<u32> = prompts.iter().flatten().map(|token| token.cast_unsigned()).collect();
        let mut tokens = Tensor::from_vec(ids, (prompts.len(), length), &Device::Cpu)?;
        let mut cache: Cache = self.layers.iter().map(|_| None).collect();
        let (mut generated, mut first, mut since) = (vec![Vec::new(); prompts.len()], 0, Instant::now());
        for step in 0..steps {
            let new = tokens.dim(1)?;
            tokens = self.forward(&tokens, first, &mut cache)?;
            first += new;
            let next = tokens.flatten_all()?.to_vec1::<u32>()?;
            generated.iter_mut().zip(next).for_each(|(all, token)| all.push(token.cast_signed()));
            if step == 0 {
                since = Instant::now();
            }
        }
        Ok((generated, since.elapsed()))
    }
}

/// `x · weightᵀ` for `x` of `[batch, tokens, inputs]`.
fn linear(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let (batch, new, inputs) = x.dims3()?;
    x.reshape((batch * new, inputs))?.matmul(&weight.t()?)?.reshape((batch, new, weight.dim(0)?))
}
