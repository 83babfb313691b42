//! The PTX back end against real `ptxas`, for every operation and every target.

mod assemble;
mod cases;
mod coverage;
mod driver;
mod execute;
mod groups;
mod kernels;
mod loops;
mod ptxas;
mod refusals;
mod rings;
mod stages;
mod text;
mod tiles;
mod versions;
mod waits;
