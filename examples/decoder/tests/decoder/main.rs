//! Whether the decoder generates the tokens of the independent implementation: on the CPU, on an emulated GPU, from a file, in batches
//! whose sequences come and go.

mod batches;
mod file;
mod support;
mod tokens;
