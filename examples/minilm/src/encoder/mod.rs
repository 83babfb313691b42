//! The forward pass in kernels: on any device, without padding.
//!
//! ```text
//!   x = embed(ids)
//!   for each layer:
//!       qkv    = linear(x)                     query, key and value at once
//!       middle = add_norm(linear(attention(qkv)), x)
//!       x      = add_norm(linear(linear_gelu(middle)), middle)
//!   embedding = pool(x)
//! ```
//!
//! Parameters are copied to the device once. Activations have buffers that grow with the largest batch. Nothing waits
//! but the copy of the embeddings back to the host.

mod buffers;
mod parameters;
mod run;

use titan::{Device, Tensor};

use crate::kernels::attention::attention;
use crate::kernels::embed::embed;
use crate::kernels::linear::linear;
use crate::kernels::norm::add_norm;
use crate::kernels::pool::pool;
use crate::{Batch, Config, Encoder, Error, Weights};
use buffers::Buffers;
use parameters::{Layer, Parameters};
pub use run::Run;
pub(crate) use run::run;

/// The widest row and the widest head that the kernels' tiles hold: those of the published model.
const W: i32 = 384;
const D: i32 = 32;

/// An encoder whose every step is a kernel.
#[derive(Debug)]
pub struct TitanEncoder {
    config: Config,
    device: Device,
    run: Run,
    parameters: Parameters,
    buffers: Buffers,
}

/// The description of a batch for kernels.
struct Input {
    /// Token numbers, `[tokens]`.
    ids: Tensor<i32, 1>,
    /// Position of each token in its sentence, `[tokens]`.
    positions: Tensor<i32, 1>,
    /// First token of each sentence, and the end, `[sentences + 1]`.
    offsets: Tensor<i32, 1>,
    /// Tokens of the longest sentence.
    longest: i32,
}

impl TitanEncoder {
    /// An encoder that runs on a device, with a copy of the weights there.
    ///
    /// # Errors
    /// If the device has not enough memory.
    pub fn new(device: &Device, weights: &Weights) -> Result<Self, Error> {
        Self::with(device, Run::On(device.default_stream()), weights)
    }

    /// An encoder that runs the kernels' bodies as plain host code: what devices are compared with.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reference(weights: &Weights) -> Result<Self, Error> {
        Self::with(&Device::cpu(), Run::Reference, weights)
    }

    /// The device that holds the weights.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn with(device: &Device, run: Run, weights: &Weights) -> Result<Self, Error> {
        let config = weights.config().clone();
        let parameters = Parameters::upload(device, weights)?;
        let buffers = Buffers::empty(device, &config)?;
        Ok(Self { config, device: device.clone(), run, parameters, buffers })
    }

    /// Enqueues the forward pass; gives the embeddings, `[sentences, hidden]`.
    fn forward(&mut self, batch: &Batch) -> titan::Result<Tensor<f32, 2>> {
        let (n, sentences) = (batch.n_tokens(), batch.n_sentences());
        let Self { config, device, run, parameters: Parameters { tables, layers }, buffers } = self;
        buffers.reserve(device, config, n)?;
        let input = Input {
            ids: device.tensor(batch.ids(), [n])?,
            positions: device.tensor(batch.positions(), [n])?,
            offsets: device.tensor(batch.offsets(), [sentences + 1])?,
            longest: i32::try_from(batch.max_len()).unwrap_or(i32::MAX),
        };
        run!(
            run,
            embed::<4, W>(
                &input.ids,
                &input.positions,
                &tables.word,
                &tables.position,
                &tables.token_type,
                &tables.norm.scale,
                &tables.norm.shift,
                &mut buffers.x.slice_mut::<0>(0..n)?,
                eps(config),
            )
        )?;
        for layer in layers {
            layer.forward(run, config, &input, buffers)?;
        }
        let mut embeddings = device.zeros([sentences, config.hidden])?;
        run!(run, pool::<8, W>(&buffers.x.slice::<0>(0..n)?, &input.offsets, &mut embeddings))?;
        Ok(embeddings)
    }
}

impl Layer {
    /// `buffers.x` becomes the layer's output.
    fn forward(&self, run: &Run, config: &Config, input: &Input, buffers: &mut Buffers) -> titan::Result<()> {
        let n = input.ids.len();
        let (heads, dim) = (config.heads, config.head_dim());
        let (scale, eps) = ((dim as f32).sqrt().recip(), eps(config));
        let mut x = buffers.x.slice_mut::<0>(0..n)?;
        let mut qkv = buffers.qkv.slice_mut::<0>(0..n)?;
        let mut attended = buffers.attended.slice_mut::<0>(0..n)?;
        let mut branch = buffers.branch.slice_mut::<0>(0..n)?;
        let mut middle = buffers.middle.slice_mut::<0>(0..n)?;
        let mut wide = buffers.wide.slice_mut::<0>(0..n)?;

        run!(run, linear::<64, 64, 64, false>(&x, &self.qkv.weight, &self.qkv.bias, &mut qkv))?;
        run!(
            run,
            attention::<32, 32, D>(
                &qkv.reshape([n, 3, heads, dim])?,
                &input.offsets,
                &mut attended.reshape_mut([n, heads, dim])?,
                input.longest,
                scale,
            )
        )?;
        let map = &self.attention_output;
        run!(run, linear::<64, 64, 64, false>(&attended, &map.weight, &map.bias, &mut branch))?;
        let norm = &self.attention_norm;
        run!(run, add_norm::<4, W>(&branch, &x, &norm.scale, &norm.shift, &mut middle, eps))?;

        let map = &self.intermediate;
        run!(run, linear::<64, 64, 64, true>(&middle, &map.weight, &map.bias, &mut wide))?;
        let map = &self.output;
        run!(run, linear::<64, 64, 64, false>(&wide, &map.weight, &map.bias, &mut branch))?;
        let norm = &self.output_norm;
        run!(run, add_norm::<4, W>(&branch, &middle, &norm.scale, &norm.shift, &mut x, eps))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is meant")]
fn eps(config: &Config) -> f32 {
    config.eps as f32
}

impl Encoder for TitanEncoder {
    fn embed(&mut self, batch: &Batch) -> Result<Vec<Vec<f32>>, Error> {
        batch.check(&self.config)?;
        let embeddings = self.forward(batch)?.to_vec()?;
        Ok(embeddings.chunks_exact(self.config.hidden).map(<[f32]>::to_vec).collect())
    }
}
