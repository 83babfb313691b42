//! `kernel::reference`: the body of a kernel run as plain Rust, on copies of the tensors, after the checks of a launch.
//!
//! The arguments are those of a launch, without their types: so one function runs them for typed arguments, for generic code and for
//! `dispatch!`. The expansion takes one [`HostTensor`] for each tensor, runs the body with [`Reference::run`], and copies the `&mut` ones
//! back, also after a trap: the stores before it remain.

use super::kernel::{KernelRef, Loaded};
use super::launch::check;
use super::tensor::Tensor;
use super::{LaunchArg, arg::ArgValue};
use crate::error::{Error, Location, Result};
use crate::lang::{self, Elem, Number, Shared};
use std::fmt;
use std::marker::PhantomData;
use titan_core::ir::Const;
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
    fn new(tensor: &Tensor<T, R>) -> Result<Self> {
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

    /// The elements.
    fn into_vec(self) -> Vec<T> {
        let HostTensor { memory, tensor } = self;
        drop(tensor);
        memory.into_vec()
    }
}

impl<T, const R: usize> fmt::Debug for HostTensor<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tensor.fmt(f)
    }
}

/// A launch of the reference whose arguments have been checked.
#[must_use = "a reference does nothing until it runs"]
pub struct Reference<'a> {
    loaded: &'static Loaded,
    grid: [u32; 3],
    args: Vec<ArgValue>,
    borrow: PhantomData<&'a mut ()>,
}

impl<'a> Reference<'a> {
    /// Checks the arguments as a launch does.
    ///
    /// # Errors
    /// If they do not match the kernel.
    pub fn new(kernel: &'static KernelRef, args: Vec<LaunchArg<'a>>) -> Result<Self> {
        let loaded = kernel.loaded()?;
        let args: Vec<ArgValue> = args.into_iter().map(|a| a.value).collect();
        let grid = match check(loaded, &args, None)?.grid {
            Grid::Extents(extents) => extents,
            Grid::Persistent => [PERSISTENT_GRID, 1, 1],
        };
        Ok(Reference { loaded, grid, args, borrow: PhantomData })
    }

    /// A copy of argument `nth`, a tensor of this type.
    ///
    /// # Errors
    /// The same as of `to_vec`; also if an extent exceeds 2³¹ − 1.
    pub fn tensor<T: Elem, const R: usize>(&self, nth: usize) -> Result<HostTensor<T, R>> {
        self.optional(nth)?.ok_or_else(|| self.mixed_up(nth))
    }

    /// A copy of argument `nth`, a tensor of this type, unless it is absent.
    ///
    /// # Errors
    /// The same as of [`Reference::tensor`].
    pub fn optional<T: Elem, const R: usize>(&self, nth: usize) -> Result<Option<HostTensor<T, R>>> {
        self.args[nth].tensor().map(|t| HostTensor::new(&t.tensor::<T, R>())).transpose()
    }

    /// Argument `nth`, a scalar of this type.
    ///
    /// # Errors
    /// None: the arguments have been checked.
    pub fn scalar<T: Elem>(&self, nth: usize) -> Result<T> {
        match self.args[nth] {
            // `Const` has one integer type, which holds the bits of a `u64`: they wrap to the value.
            ArgValue::Scalar(Const::Int(_, value)) => Ok(T::of_number(Number::Int(value.into()))),
            ArgValue::Scalar(Const::Float(_, value)) => Ok(T::of_number(Number::Float(value))),
            ArgValue::Tensor(_) | ArgValue::Absent => Err(self.mixed_up(nth)),
        }
    }

    /// Overwrites argument `nth` with the elements of its copy.
    ///
    /// # Errors
    /// The same as of `write`.
    pub fn copy_back<T: Elem, const R: usize>(&self, nth: usize, host: HostTensor<T, R>) -> Result<()> {
        let tensor = self.args[nth].tensor().ok_or_else(|| self.mixed_up(nth))?;
        tensor.tensor::<T, R>().write(&host.into_vec())
    }

    /// Calls `body` once per role of each program, roles in this order of their numbers, one after the other on this thread.
    ///
    /// # Errors
    /// The first trap.
    pub fn run(&self, roles: &[usize], body: impl FnMut()) -> Result<()> {
        // The check of the arguments has refused extents beyond `i32`.
        let grid = self.grid.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
        lang::run_roles(grid, roles, body).map_err(|trap| Error::Trap {
            kernel: self.loaded.name.clone(),
            message: trap.message,
            location: Location { file: trap.file.to_owned(), line: trap.line, column: trap.column },
            program: trap.program.map(i32::cast_unsigned),
        })
    }

    /// The check has accepted an argument of another kind than the expansion reads.
    fn mixed_up(&self, nth: usize) -> Error {
        let message = format!("argument {nth} is not what the kernel takes");
        Error::Internal { doing: format!("the reference of kernel `{}`", self.loaded.name), message }
    }
}

impl fmt::Debug for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reference").field("kernel", &self.loaded.name).field("grid", &self.grid).finish_non_exhaustive()
    }
}
