//! What is computed between the kernels, in the memory of a device.

use titan::{Device, Result, Tensor};

use crate::Config;

/// Room for the activations of some number of tokens; a batch uses the first rows.
#[derive(Debug)]
pub(super) struct Buffers {
    /// A layer's input and output, `[tokens, hidden]`.
    pub(super) x: Tensor<f32, 2>,
    /// Query, key and value, `[tokens, 3 * hidden]`.
    pub(super) qkv: Tensor<f32, 2>,
    /// The result of attention, `[tokens, hidden]`.
    pub(super) attended: Tensor<f32, 2>,
    /// A block's output before it is added to its input, `[tokens, hidden]`.
    pub(super) branch: Tensor<f32, 2>,
    /// The attention block's output, `[tokens, hidden]`.
    pub(super) middle: Tensor<f32, 2>,
    /// Between the two maps of the feed-forward block, `[tokens, intermediate]`.
    pub(super) wide: Tensor<f32, 2>,
}

impl Buffers {
    /// Room for no tokens yet.
    pub(super) fn empty(device: &Device, config: &Config) -> Result<Self> {
        Self::new(device, config, 0)
    }

    /// Makes room for this many tokens, if there is not enough: then twice as much as there was, or more.
    pub(super) fn reserve(&mut self, device: &Device, config: &Config, tokens: usize) -> Result<()> {
        let [room, _] = self.x.shape();
        if room < tokens {
            *self = Self::new(device, config, tokens.max(2 * room))?;
        }
        Ok(())
    }

    fn new(device: &Device, config: &Config, tokens: usize) -> Result<Self> {
        let (hidden, wide) = (config.hidden, config.intermediate);
        Ok(Buffers {
            x: device.zeros([tokens, hidden])?,
            qkv: device.zeros([tokens, 3 * hidden])?,
            attended: device.zeros([tokens, hidden])?,
            branch: device.zeros([tokens, hidden])?,
            middle: device.zeros([tokens, hidden])?,
            wide: device.zeros([tokens, wide])?,
        })
    }
}
