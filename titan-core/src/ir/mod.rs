//! The tile IR.
mod elem;
pub use elem::{Elem, MMA_LEGAL, mma_is_legal};
