//! Sentence embeddings with all-MiniLM-L6-v2, every step a TITAN kernel.
//!
//! ```text
//!   sentences ──tokenizer──> Batch ──Encoder──> [sentences, hidden] ──similarity──> [sentences, sentences]
//!                                      │
//!   assets ──weights──> Weights ───────┘     fetch fills assets
//! ```
//!
//! | module       | does                                                                    |
//! |--------------|-------------------------------------------------------------------------|
//! | `assets`     | names, sizes and hashes of the published files, and where they lie      |
//! | `fetch`      | brings the published files here and checks every byte                   |
//! | `config`     | the dimensions of a model                                               |
//! | `weights`    | named f32 tensors of checked shape, from a file or from a seed          |
//! | `tokenizer`  | text to token numbers (BERT WordPiece, uncased)                         |
//! | `batch`      | token numbers of several sentences, packed without padding              |
//! | `model`      | the boundary behind which an implementation of the forward pass plugs in |
//! | `kernels`    | the steps of the forward pass, each for every device                    |
//! | `encoder`    | that forward pass: parameters, buffers and launches                     |
//! | `oracle`     | the same as plain loops over f64, to compare others against             |
//! | `similarity` | cosine similarities and their table                                     |
//!
//! Absent on purpose: training, padding inside the forward pass, pair input, and the pooler layer, which the
//! published file contains but sentence embeddings do not use.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

pub mod assets;
pub mod batch;
pub mod config;
pub mod encoder;
mod error;
pub mod fetch;
pub mod kernels;
pub mod model;
pub mod oracle;
pub mod similarity;
pub mod tokenizer;
pub mod weights;

pub use batch::Batch;
pub use config::Config;
pub use encoder::TitanEncoder;
pub use error::Error;
pub use model::Encoder;
pub use oracle::Oracle;
pub use tokenizer::Tokenizer;
pub use weights::Weights;
