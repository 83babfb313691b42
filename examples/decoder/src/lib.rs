//! A Llama-shaped decoder with a paged cache of keys and values, every step a TITAN kernel.
//!
//! ```text
//!   prompts ──generate──> Batch ──Model──> logits, next tokens ──┐
//!                           │ ^     │                             │
//!                        Pages │   Cache                          │
//!                              └──────────────────────────────────┘
//! ```
//!
//! | module       | does                                                                      |
//! |--------------|---------------------------------------------------------------------------|
//! | `config`     | the sizes of a decoder                                                    |
//! | `weights`    | numbers by name, from a seed or from a safetensors file, with progress    |
//! | `parameters` | the weights on a device, of 16 bits or of 4                               |
//! | `kernels`    | the steps of the forward pass, each for every device                      |
//! | `cache`      | pages of keys and values, and their allocator                             |
//! | `batch`      | new tokens of several sequences, without padding                          |
//! | `model`      | the forward pass: generic host code over those kernels                    |
//! | `generate`   | prompts, then token by token                                              |
//! | `reference`  | the same as plain loops over f64, to compare tokens with                  |
//! | `compare`    | that comparison                                                           |
//!
//! Deliberately absent: tokenizers, sampling, and models that differ from a Llama in more than sizes.

pub mod batch;
pub mod cache;
pub mod compare;
pub mod config;
mod error;
pub mod generate;
pub mod kernels;
pub mod model;
pub mod parameters;
pub mod reference;
pub mod weights;

pub use cache::Cache;
pub use config::Config;
pub use error::Error;
pub use generate::generate;
pub use model::Model;
pub use weights::Weights;
