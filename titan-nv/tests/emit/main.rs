//! The PTX back end against real `ptxas`, for every operation and every target.

mod assemble;
mod cases;
mod completion;
mod copies;
mod coverage;
mod driver;
mod execute;
mod golden;
mod groups;
mod kernels;
mod loops;
mod ptxas;
mod refusals;
mod rings;
#[allow(dead_code, reason = "loops of other targets are counted in other tests")]
mod sass;
mod stages;
mod text;
mod tiles;
mod transposes;
mod versions;
mod waits;
