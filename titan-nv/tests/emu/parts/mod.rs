//! Parts of the emulator by themselves, of which PTX shows no more than what they do together.

mod format;
mod group;
mod maps;
mod mma;
mod product;
mod products;
mod proxy;
mod touched;
mod warp;
