//! `kernel::reference`: the body of a kernel run as plain Rust, on copies of the tensors, after the checks of a launch.
//!
//! The expansion creates one [`HostTensor`] for each tensor, runs the body with [`Reference::run`], and copies the `&mut` ones back,
//! also after a trap: the stores before it remain.

use super::as_tensor::Exclusive;
use super::kernel::{KernelRef, Loaded};
use super::launch::check;
use super::tensor::Tensor;
use super::{LaunchArg, arg::ArgValue};
use crate::error::{Error, Location, Result};
use crate::lang::{self, Elem, Shared};
use std::fmt;
use titan_core::launch::Grid;

/// The number of programs of a persistent grid: more than one, and few enough that each has several tiles.
const PERSISTENT_GRID: u32 = 3;

/// A tensor that is copied to the host, in the form that the body of a kernel takes.
pub struct HostTensor<T, const R: usize> {
    memory: Shared<T>,
    tensor: lang::Tensor<T, R>,
}

impl<T: Elem, const R: usize> HostTensor<T, R> {
    /// Creates a row-major copy.
    ///
    /// # Errors
    /// The same as of `to_vec`; also if an extent exceeds 2³¹ − 1.
    pub fn new(tensor: &Tensor<T, R>) -> Result<Self> {
        let (mut extents, mut strides) = ([0; R], [1; R]);
        for (axis, given) in tensor.shape().into_iter().enumerate() {
            extents[axis] = i32::try_from(given).map_err(|_| Error::Layout {
                operation: "the reference",
                problem: format!("axis {axis} has extent {given}, but indices in kernels are `i32`"),
                help: "slice the tensor: kernels take at most 2147483647 elements along an axis",
            })?;
        }
        for axis in (1..R).rev() {
            // A tensor without elements may have any other extents.
            strides[axis - 1] = i64::saturating_mul(strides[axis], i64::from(extents[axis]));
        }
        let memory = Shared::new(tensor.to_vec()?);
        let tensor = lang::Tensor::from_host(memory.clone(), 0, extents, strides);
        Ok(HostTensor { memory, tensor })
    }

    /// The tensor, for a body that reads it.
    #[must_use]
    pub fn tensor(&self) -> &lang::Tensor<T, R> {
        &self.tensor
    }

    /// The tensor, for a body that writes it.
    #[must_use]
    pub fn tensor_mut(&mut self) -> &mut lang::Tensor<T, R> {
        &mut self.tensor
    }

    /// Overwrites the tensor with the elements of the copy.
    ///
    /// # Errors
    /// The same as of `write`.
    pub fn copy_back(self, tensor: Exclusive<'_, Tensor<T, R>>) -> Result<()> {
        let HostTensor { memory, tensor: view } = self;
        drop(view);
        tensor.into_mut().write(&memory.into_vec())
    }
}

impl<T, const R: usize> fmt::Debug for HostTensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

/// A launch of the reference whose arguments have been checked.
#[derive(Debug)]
#[must_use = "a reference does nothing until it runs"]
pub struct Reference {
    loaded: &'static Loaded,
    grid: [u32; 3],
}

impl Reference {
    /// Checks the arguments as a launch does.
    ///
    /// # Errors
    /// If they do not match the kernel.
    pub fn new(kernel: &'static KernelRef, args: Vec<LaunchArg<'_>>) -> Result<Reference> {
        let loaded = kernel.loaded()?;
        let args: Vec<ArgValue> = args.into_iter().map(|a| a.value).collect();
        let grid = match check(loaded, &args, None)?.grid {
            Grid::Extents(extents) => extents,
            Grid::Persistent => [PERSISTENT_GRID, 1, 1],
        };
        Ok(Reference { loaded, grid })
    }

    /// Calls `body` once per role of each program, roles in this order of their numbers, one after the other on this thread.
    ///
    /// # Errors
    /// The first trap.
    pub fn run(self, roles: &[usize], body: impl FnMut()) -> Result<()> {
        // The check of the arguments has refused extents beyond `i32`.
        let grid = self.grid.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
        lang::run_roles(grid, roles, body).map_err(|trap| Error::Trap {
            kernel: self.loaded.name.clone(),
            message: trap.message,
            location: Location { file: trap.file.to_owned(), line: trap.line, column: trap.column },
            program: trap.program.map(i32::cast_unsigned),
        })
    }
}
