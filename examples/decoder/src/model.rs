//! The forward pass: launches of kernels, for any element type, for prompts and for single tokens.
//!
//! ```text
//!   x = embed(tokens)
//!   for each layer:
//!       x += branch;  q = rope_to_cache(qkv(norm(x)));  branch = output(paged_attention(q))
//!       x += branch;  branch = down(swiglu(gate_up(norm(x))))
//!   next = argmax(head(norm(x + branch)))        of the last token of each sequence
//! ```
//!
//! Nothing waits: what reads the results does. Deliberately absent: buffers that are kept from step to step, and sampling.

use crate::batch::Batch;
use crate::kernels::{add_rms_norm, argmax, embed, last_rms_norm, paged_attention, rope_to_cache, swiglu};
use crate::parameters::Parameters;
use crate::{Cache, Config, Error, Weights};
use titan::dispatch;
use titan::prelude::*;

/// A decoder on a device.
#[derive(Debug)]
pub struct Model<T: Float> {
    config: Config,
    device: Device,
    parameters: Parameters<T>,
}

/// The results of a forward pass.
#[derive(Debug)]
pub struct Output {
    /// The logits behind the last token of each sequence, `[sequences, vocab]`.
    pub logits: Tensor<f32, 2>,
    /// The index of the greatest of them, `[sequences]`.
    pub next: Tensor<i32, 1>,
}

impl<T: Float> Model<T> {
    /// Copies the weights to a device; those of the layers' matrices with 4 bits if `w4`.
    ///
    /// # Errors
    /// If a weight is missing, or the device has not enough memory.
    pub fn load(device: &Device, weights: &mut Weights<'_>, w4: bool) -> Result<Self, Error> {
        let parameters = Parameters::load(device, weights, w4)?;
        Ok(Self { config: weights.config.clone(), device: device.clone(), parameters })
    }

    /// The device that holds the weights.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The sizes.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Starts a forward pass over the new tokens of some sequences, whose keys and values are added to the cache.
    ///
    /// # Errors
    /// Those of launches and allocations.
    pub fn forward(&self, batch: &Batch, cache: &mut Cache<T>) -> titan::Result<Output> {
        let Self { config, device, parameters: p } = self;
        let (n, d, dim) = (batch.tokens.len(), config.head_dim, config.head_dim as i32);
        let stream = &device.default_stream();
        let mut x = device.zeros([n, config.hidden])?;
        let mut branch = device.zeros([n, config.hidden])?;
        let mut normed = device.zeros([n, config.hidden])?;
        let mut qkv = device.zeros([n, config.all_heads() * d])?;
        let mut q = device.zeros::<T, 3>([n, config.heads, d])?;
        let mut attended = device.zeros([n, config.heads * d])?;
        let mut both = device.zeros([n, 2 * config.intermediate])?;
        let mut inner = device.zeros([n, config.intermediate])?;

        embed::generic::<T, 8, 128>(&batch.tokens, &p.embedding, &mut x).launch(stream)?;
        for (layer, (keys, values)) in p.layers.iter().zip(&mut cache.layers) {
            let norm = &layer.attention_norm;
            add_rms_norm::generic::<T, 128>(&branch, &mut x, norm, &mut normed, config.eps).launch(stream)?;
            layer.qkv.launch(&normed, &mut qkv, stream)?;
            let heads = qkv.reshape([n, config.all_heads(), d])?;
            let (positions, sequences, table) = (&batch.positions, &batch.sequences, &batch.table);
            dispatch!(rope_to_cache::<T::ELEM, 8, dim>(
                &heads, positions, sequences, table, &p.cos, &p.sin, &mut q, keys, values
            ))
            .launch(stream)?;
            let (offsets, lengths, scale) = (&batch.offsets, &batch.lengths, (d as f32).sqrt().recip());
            let mut out = attended.reshape_mut([n, config.heads, d])?;
            dispatch!(paged_attention::<T::ELEM, 16, 32, dim>(
                &q,
                keys,
                values,
                table,
                offsets,
                lengths,
                &mut out,
                batch.longest,
                scale
            ))
            .launch(stream)?;
            layer.output.launch(&attended, &mut branch, stream)?;

            let norm = &layer.feed_norm;
            add_rms_norm::generic::<T, 128>(&branch, &mut x, norm, &mut normed, config.eps).launch(stream)?;
            layer.gate_up.launch(&normed, &mut both, stream)?;
            let halves = both.reshape([n, 2, config.intermediate])?;
            swiglu::generic::<T, 8, 128>(&halves, &mut inner).launch(stream)?;
            layer.down.launch(&inner, &mut branch, stream)?;
        }
        let sequences = batch.lengths.len();
        let mut last = device.zeros([sequences, config.hidden])?;
        let mut logits = device.zeros([sequences, config.vocab])?;
        let mut next = device.zeros([sequences])?;
        last_rms_norm::generic::<T, 128>(&branch, &x, &batch.offsets, &p.norm, &mut last, config.eps).launch(stream)?;
        p.head.launch(&last, &mut logits, stream)?;
        argmax(&logits, &mut next).launch(stream)?;
        Ok(Output { logits, next })
    }
}
