//! The CPU device: memory, and programs that run on it.
//!
//! So far it runs scalar kernels without control flow; other operations are refused when a kernel is compiled.

mod interp;
pub mod memory;

use memory::Memory;
use titan_core::ir::Loc;
use titan_core::verify::Verified;

/// A kernel that is ready to run.
#[derive(Debug)]
pub struct Program {
    kernel: Verified,
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor.
    Tensor {
        /// Where its elements are.
        memory: Memory,
        /// The first element, in bytes.
        offset: usize,
        /// One per axis.
        extents: Vec<i32>,
        /// One per axis, in elements.
        strides: Vec<i64>,
    },
    /// `None` for an optional tensor.
    Absent,
    /// A scalar.
    Scalar(Scalar),
}

/// A scalar argument.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// An integer or a bool.
    Int(i64),
    /// A float.
    Float(f64),
}

/// Why a kernel cannot run here.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(pub String);

/// Why a run ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The kernel trapped.
    #[error("{message}")]
    Trap {
        /// What went wrong.
        message: String,
        /// Where.
        loc: Loc,
        /// Which program.
        program: [u32; 3],
    },
    /// The arguments do not fit the kernel.
    #[error("{0}")]
    BadArguments(String),
}

impl Program {
    /// Makes a kernel ready to run.
    ///
    /// # Errors
    /// If it has an operation that does not run here.
    pub fn compile(kernel: &Verified) -> Result<Program, CompileError> {
        Ok(Program { kernel: kernel.clone() })
    }

    /// Runs every program of the grid.
    ///
    /// # Errors
    /// The first trap.
    pub fn run(&self, args: &[Arg], grid: [u32; 3]) -> Result<(), RunError> {
        for z in 0..grid[2] {
            for y in 0..grid[1] {
                for x in 0..grid[0] {
                    interp::run(&self.kernel, args, [x, y, z], grid)?;
                }
            }
        }
        Ok(())
    }

    /// How many programs run at once.
    #[must_use]
    pub fn persistent_grid() -> u32 {
        std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
    }
}
