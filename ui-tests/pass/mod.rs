//! Every mistake of `ui/`, mended: the least change that makes it a kernel.

mod syntax;
mod attribute;
mod signature;
mod instances;
mod names;
mod shapes;
mod elements;
mod mma;
mod memory;
mod shape_decl;
mod grid;
mod outputs;
mod tokens;
mod control;
mod device;
mod launch;
mod fifteen;
mod rings;
mod products;
mod staging;
mod roles;
mod ring_made;
mod pipelines;
mod first_hour;
