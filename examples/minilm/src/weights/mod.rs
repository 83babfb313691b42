//! The parameters of the model: named f32 tensors of checked shape.
//!
//! | field of [`Layer`]   | name in the file, after `encoder.layer.N.` | weight                   |
//! |----------------------|--------------------------------------------|--------------------------|
//! | `query`              | `attention.self.query`                     | `[hidden, hidden]`       |
//! | `key`                | `attention.self.key`                       | `[hidden, hidden]`       |
//! | `value`              | `attention.self.value`                     | `[hidden, hidden]`       |
//! | `attention_output`   | `attention.output.dense`                   | `[hidden, hidden]`       |
//! | `attention_norm`     | `attention.output.LayerNorm`               | `[hidden]`               |
//! | `intermediate`       | `intermediate.dense`                       | `[intermediate, hidden]` |
//! | `output`             | `output.dense`                             | `[hidden, intermediate]` |
//! | `output_norm`        | `output.LayerNorm`                         | `[hidden]`               |
//!
//! Every one has a `bias` as long as the weight's first axis. All tensors are row-major; a linear map's weight
//! is `[out, in]`, so it computes `y[o] = bias[o] + sum over i of weight[o, i] * x[i]`. The other tensors of a
//! file (the pooler, the position numbers) are ignored.

mod file;
mod random;

use std::path::Path;

use crate::{Config, Error};

/// One named tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name in a safetensors file.
    pub name: String,
    /// Its axes, outermost first.
    pub shape: Vec<usize>,
    /// Its elements: as many as the product of the axes.
    pub data: Vec<f32>,
}

/// A linear map.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: Tensor,
    /// `[out]`.
    pub bias: Tensor,
}

/// The scale and shift of a layer norm.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerNorm {
    /// Scale, `[hidden]`.
    pub weight: Tensor,
    /// Shift, `[hidden]`.
    pub bias: Tensor,
}

/// The tables that turn tokens into vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// `[vocab, hidden]`.
    pub word: Tensor,
    /// `[max_positions, hidden]`.
    pub position: Tensor,
    /// `[token_types, hidden]`.
    pub token_type: Tensor,
    /// Applied to the sum of the three rows.
    pub norm: LayerNorm,
}

/// One encoder layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Query projection; head `h` owns outputs `h * head_dim..(h + 1) * head_dim`, here and in `key`, `value`.
    pub query: Linear,
    /// Key projection.
    pub key: Linear,
    /// Value projection.
    pub value: Linear,
    /// Applied to the heads' outputs, side by side.
    pub attention_output: Linear,
    /// Applied to the attention block's output plus its input.
    pub attention_norm: LayerNorm,
    /// Widens; gelu follows.
    pub intermediate: Linear,
    /// Narrows.
    pub output: Linear,
    /// Applied to the feed-forward block's output plus its input.
    pub output_norm: LayerNorm,
}

/// All parameters of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    config: Config,
    embeddings: Embeddings,
    layers: Vec<Layer>,
}

impl Weights {
    /// Reads a safetensors file.
    ///
    /// # Errors
    /// [`Error::Read`], or those of [`Self::from_safetensors`].
    pub fn load(path: &Path, config: &Config) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::from_safetensors(&bytes, config)
    }

    /// Reads the bytes of a safetensors file.
    ///
    /// # Errors
    /// [`Error::NotSafetensors`], [`Error::TensorMissing`], [`Error::TensorShape`] or [`Error::TensorType`].
    pub fn from_safetensors(bytes: &[u8], config: &Config) -> Result<Self, Error> {
        let mut file = file::File::parse(bytes)?;
        Self::gather(config, &mut |name, shape, _role| file.read(name, shape))
    }

    /// Weights for a test that needs no download: the same seed gives the same bits on every machine.
    #[must_use]
    pub fn random(config: &Config, seed: u64) -> Self {
        let mut random = random::SplitMix64::new(seed);
        let drawn: Result<Self, std::convert::Infallible> =
            Self::gather(config, &mut |_name, shape, role| Ok(random.fill(shape, role)));
        match drawn {
            Ok(weights) => weights,
        }
    }

    /// The dimensions every tensor was checked against.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tables that turn tokens into vectors.
    #[must_use]
    pub fn embeddings(&self) -> &Embeddings {
        &self.embeddings
    }

    /// The encoder layers, `[layers]`, in the order they are applied.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Every tensor, in a fixed order.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let Embeddings { word, position, token_type, norm } = &self.embeddings;
        let tables = [word, position, token_type, &norm.weight, &norm.bias];
        tables.into_iter().chain(self.layers.iter().flat_map(Layer::tensors))
    }

    /// Asks `source` for every tensor in a fixed order.
    fn gather<E>(config: &Config, source: &mut Source<'_, E>) -> Result<Self, E> {
        let hidden = config.hidden;
        let mut table = |name: &str, rows: usize| {
            tensor(source, format!("embeddings.{name}.weight"), vec![rows, hidden], Role::Table)
        };
        let word = table("word_embeddings", config.vocab)?;
        let position = table("position_embeddings", config.max_positions)?;
        let token_type = table("token_type_embeddings", config.token_types)?;
        let norm = norm(source, "embeddings.LayerNorm", hidden)?;
        let embeddings = Embeddings { word, position, token_type, norm };
        let layers = (0..config.layers).map(|n| Layer::gather(config, n, source)).collect::<Result<_, E>>()?;
        Ok(Self { config: config.clone(), embeddings, layers })
    }
}

impl Layer {
    fn gather<E>(config: &Config, n: usize, source: &mut Source<'_, E>) -> Result<Self, E> {
        let (hidden, wide) = (config.hidden, config.intermediate);
        let at = |name: &str| format!("encoder.layer.{n}.{name}");
        Ok(Self {
            query: linear(source, &at("attention.self.query"), [hidden, hidden])?,
            key: linear(source, &at("attention.self.key"), [hidden, hidden])?,
            value: linear(source, &at("attention.self.value"), [hidden, hidden])?,
            attention_output: linear(source, &at("attention.output.dense"), [hidden, hidden])?,
            attention_norm: norm(source, &at("attention.output.LayerNorm"), hidden)?,
            intermediate: linear(source, &at("intermediate.dense"), [wide, hidden])?,
            output: linear(source, &at("output.dense"), [hidden, wide])?,
            output_norm: norm(source, &at("output.LayerNorm"), hidden)?,
        })
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let Self { query, key, value, attention_output, attention_norm, intermediate, output, output_norm } = self;
        let pair = |weight, bias| [weight, bias];
        [
            pair(&query.weight, &query.bias),
            pair(&key.weight, &key.bias),
            pair(&value.weight, &value.bias),
            pair(&attention_output.weight, &attention_output.bias),
            pair(&attention_norm.weight, &attention_norm.bias),
            pair(&intermediate.weight, &intermediate.bias),
            pair(&output.weight, &output.bias),
            pair(&output_norm.weight, &output_norm.bias),
        ]
        .into_iter()
        .flatten()
    }
}

/// What a tensor is for, which decides the range of its random values.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// A row is added to others.
    Table,
    /// Multiplies a vector of `inputs` elements.
    Matrix {
        /// Elements summed into one output.
        inputs: usize,
    },
    /// Scales a normalised element.
    Scale,
    /// Is added to an element.
    Shift,
}

/// Where tensors come from: name and shape in, elements out.
type Source<'a, E> = dyn FnMut(&str, &[usize], Role) -> Result<Vec<f32>, E> + 'a;

fn tensor<E>(source: &mut Source<'_, E>, name: String, shape: Vec<usize>, role: Role) -> Result<Tensor, E> {
    let data = source(&name, &shape, role)?;
    Ok(Tensor { name, shape, data })
}

fn linear<E>(source: &mut Source<'_, E>, name: &str, [out, inputs]: [usize; 2]) -> Result<Linear, E> {
    let weight = tensor(source, format!("{name}.weight"), vec![out, inputs], Role::Matrix { inputs })?;
    let bias = tensor(source, format!("{name}.bias"), vec![out], Role::Shift)?;
    Ok(Linear { weight, bias })
}

fn norm<E>(source: &mut Source<'_, E>, name: &str, hidden: usize) -> Result<LayerNorm, E> {
    let weight = tensor(source, format!("{name}.weight"), vec![hidden], Role::Scale)?;
    let bias = tensor(source, format!("{name}.bias"), vec![hidden], Role::Shift)?;
    Ok(LayerNorm { weight, bias })
}
