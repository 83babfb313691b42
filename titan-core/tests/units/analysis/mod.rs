//! What the analyses find in kernels.

mod cover;
mod ends;
mod forms;
mod fttc;
mod tiles;
mod unwritten;
