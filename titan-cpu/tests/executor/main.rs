//! The executor against straightforward scalar code.

mod common;
mod control;
mod elementwise;
mod extremes;
mod fetch;
mod groups;
mod launch;
mod math;
mod matmul;
mod memory;
mod numbers;
mod product;
mod recent;
mod ring_attention;
mod ring_contents;
mod ring_gemm;
mod ring_programs;
mod ring_text;
mod rings;
mod safety;
mod scalar;
mod shapes;
mod stuck;
mod unmask;
mod zeros;
