//! Every mistake of `ui/`, mended: the least change that makes it a kernel.

mod attribute;
mod control;
mod device;
mod elements;
mod fifteen;
mod first_hour;
mod grid;
mod instances;
mod launch;
mod memory;
mod mma;
mod names;
mod outputs;
mod parts;
mod pipelines;
mod products;
mod ring_made;
mod rings;
mod roles;
mod shape_decl;
mod shapes;
mod signature;
mod staging;
mod syntax;
mod targets;
mod tokens;
