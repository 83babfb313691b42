//! The parameters in the memory of a device.

use titan::{Device, Result, Tensor};

use crate::{Config, Weights, weights};

/// A linear map: weight `[out, in]`, bias `[out]`.
#[derive(Debug)]
pub(super) struct Linear {
    pub(super) weight: Tensor<f32, 2>,
    pub(super) bias: Tensor<f32, 1>,
}

/// A layer norm, both `[hidden]`.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) scale: Tensor<f32, 1>,
    pub(super) shift: Tensor<f32, 1>,
}

/// The tables that turn tokens into vectors, each `[rows, hidden]`.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) word: Tensor<f32, 2>,
    pub(super) position: Tensor<f32, 2>,
    pub(super) token_type: Tensor<f32, 2>,
    pub(super) norm: Norm,
}

/// One encoder layer.
#[derive(Debug)]
pub(super) struct Layer {
    /// Query, key and value one below the other, `[3 * hidden, hidden]`: one product instead of three.
    pub(super) qkv: Linear,
    pub(super) attention_output: Linear,
    pub(super) attention_norm: Norm,
    pub(super) intermediate: Linear,
    pub(super) output: Linear,
    pub(super) output_norm: Norm,
}

/// All parameters.
#[derive(Debug)]
pub(super) struct Parameters {
    pub(super) tables: Tables,
    pub(super) layers: Vec<Layer>,
}

impl Parameters {
    /// Copies the weights to the device.
    pub(super) fn upload(device: &Device, weights: &Weights) -> Result<Self> {
        let (config, tables) = (weights.config(), weights.embeddings());
        let table = |t: &weights::Tensor, rows| device.tensor(&t.data, [rows, config.hidden]);
        let tables = Tables {
            word: table(&tables.word, config.vocab)?,
            position: table(&tables.position, config.max_positions)?,
            token_type: table(&tables.token_type, config.token_types)?,
            norm: Norm::upload(device, &tables.norm)?,
        };
        let layers = weights.layers().iter().map(|layer| Layer::upload(device, config, layer));
        Ok(Parameters { tables, layers: layers.collect::<Result<_>>()? })
    }
}

impl Layer {
    fn upload(device: &Device, config: &Config, layer: &weights::Layer) -> Result<Self> {
        let (hidden, wide) = (config.hidden, config.intermediate);
        let linear = |maps: &[&weights::Linear], inputs| Linear::upload(device, maps, inputs);
        Ok(Layer {
            qkv: linear(&[&layer.query, &layer.key, &layer.value], hidden)?,
            attention_output: linear(&[&layer.attention_output], hidden)?,
            attention_norm: Norm::upload(device, &layer.attention_norm)?,
            intermediate: linear(&[&layer.intermediate], hidden)?,
            output: linear(&[&layer.output], wide)?,
            output_norm: Norm::upload(device, &layer.output_norm)?,
        })
    }
}

impl Linear {
    /// Maps of the same inputs, whose outputs come one after the other.
    pub(super) fn upload(device: &Device, maps: &[&weights::Linear], inputs: usize) -> Result<Self> {
        let join = |part: fn(&weights::Linear) -> &weights::Tensor| {
            maps.iter().flat_map(|map| part(map).data.iter().copied()).collect::<Vec<_>>()
        };
        let (weight, bias) = (join(|map| &map.weight), join(|map| &map.bias));
        let outputs = bias.len();
        Ok(Linear { weight: device.tensor(&weight, [outputs, inputs])?, bias: device.tensor(&bias, [outputs])? })
    }
}

impl Norm {
    pub(super) fn upload(device: &Device, norm: &weights::LayerNorm) -> Result<Self> {
        let vector = |t: &weights::Tensor| device.tensor(&t.data, [t.data.len()]);
        Ok(Norm { scale: vector(&norm.weight)?, shift: vector(&norm.bias)? })
    }
}
