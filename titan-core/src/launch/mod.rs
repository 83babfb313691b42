//! The checks of a launch: arguments against the signature of a kernel.
//!
//! [`bind`] checks the signature once: number and kinds of the arguments, element types, ranks, extents; then the values of the shape
//! names, every `#[shape(..)]`, every requirement; finally the grid. The first violation is the error, with the user's names and a
//! suggested fix.
//!
//! A grid without programs (an extent of 0) does nothing, like a loop over an empty range, so that tensors without rows need no special
//! case at the call. It is an error if an output has elements that no program would write, see [`Arguments::refuse_idle`] and
//! [`Arguments::refuse_short`]. A negative extent is an error too.
//!
//! [`Footprint`]s decide whether two arguments overlap.
//!
//! Deliberately absent: memory, devices, and which arguments may overlap; the runtime has these.

pub mod abi;
mod env;
mod error;
mod footprint;
mod idle;
pub mod report;

pub use env::Arguments;
pub use error::{BindError, Origin, Rule};
pub use footprint::Footprint;
pub use idle::Output;

use crate::ir::{Access, Const, DimSpec, Elem, GridSpec, HostExpr, ParamKind, Signature};
use env::Place;

/// The maximum extent of a tensor along an axis, and of a grid: indices are `i32`.
pub const MAX_EXTENT: i64 = i32::MAX as i64;

/// The properties of an argument that a launch checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgInfo<'a> {
    /// A tensor.
    Tensor {
        /// The element type.
        elem: Elem,
        /// The extents, one for each axis.
        extents: &'a [i64],
        /// The strides in elements, one for each axis.
        strides: &'a [i64],
    },
    /// `None` for an optional tensor parameter.
    Absent,
    /// A scalar.
    Scalar(Const),
}

/// The number of programs of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// The extents along the three axes; if one is 0, there are no programs.
    Extents([u32; 3]),
    /// As many programs as the device can execute concurrently.
    Persistent,
}

/// A launch with valid arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The value of each shape name; `None` for a name that occurs only on absent tensors.
    pub symbols: Vec<Option<i64>>,
    /// The number of programs.
    pub grid: Grid,
}

/// Checks the arguments of a launch and evaluates its grid.
///
/// # Errors
/// The first violation.
pub fn bind(sig: &Signature, args: &[ArgInfo<'_>]) -> Result<Bound, BindError> {
    let arguments = Arguments::check(sig, args)?;
    let grid = arguments.grid()?;
    Ok(arguments.with_grid(grid))
}

/// As [`bind`], with a grid that the caller states instead of the kernel's, which is not evaluated.
///
/// # Errors
/// The first violation, or an extent of the grid above 2³¹ − 1.
pub fn bind_with_grid(sig: &Signature, args: &[ArgInfo<'_>], grid: [u32; 3]) -> Result<Bound, BindError> {
    let arguments = Arguments::check(sig, args)?;
    let grid = given_grid(grid)?;
    Ok(arguments.with_grid(grid))
}

/// A grid that the caller states.
///
/// # Errors
/// Returns an error if an extent is above 2³¹ − 1.
pub fn given_grid(grid: [u32; 3]) -> Result<Grid, BindError> {
    for (axis, extent) in grid.into_iter().enumerate() {
        grid_extent(axis, || extent.to_string(), extent.into())?;
    }
    Ok(Grid::Extents(grid))
}

impl<'a> Arguments<'a> {
    /// Arguments that satisfy the signature. The grid is not checked, since its errors are meaningful for valid arguments only.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(sig: &'a Signature, args: &'a [ArgInfo<'a>]) -> Result<Self, BindError> {
        if args.len() != sig.params.len() {
            return Err(BindError::Count { expected: sig.params.len(), found: args.len() });
        }
        for (index, arg) in args.iter().enumerate() {
            check_argument(sig, index, arg)?;
        }
        let mut env = Arguments::new(sig, args);
        bind_symbols(sig, &mut env);
        check_shapes(sig, &env)?;
        for condition in &sig.requires {
            if env.eval(condition, &Place::Requirement)? == 0 {
                return Err(BindError::Requirement { condition: env.text(condition), values: env.values(condition) });
            }
        }
        Ok(env)
    }

    /// The grid of the kernel.
    ///
    /// # Errors
    /// Returns an error if it has no value, or an extent that is negative or above 2³¹ − 1.
    pub fn grid(&self) -> Result<Grid, BindError> {
        match &self.sig.grid {
            GridSpec::Persistent => Ok(Grid::Persistent),
            GridSpec::Extents(extents) => eval_grid(self, extents).map(Grid::Extents),
        }
    }

    /// The launch of these arguments with this grid.
    #[must_use]
    pub fn with_grid(self, grid: Grid) -> Bound {
        Bound { symbols: self.into_symbols(), grid }
    }
}

/// Checks the kind, element type, rank and extents of an argument.
fn check_argument(sig: &Signature, index: usize, arg: &ArgInfo<'_>) -> Result<(), BindError> {
    let param = &sig.params[index];
    let name = || param.name.clone();
    let kind = |expected, found| BindError::Kind { param: name(), expected, found };
    let element = |expected, found| BindError::Element { param: name(), expected, found };
    match (&param.kind, arg) {
        (ParamKind::Scalar(expected), ArgInfo::Scalar(value)) if value.elem() == *expected => Ok(()),
        (ParamKind::Scalar(expected), ArgInfo::Scalar(value)) => Err(element(*expected, value.elem())),
        (ParamKind::Scalar(_), ArgInfo::Tensor { .. }) => Err(kind("a scalar", "a tensor")),
        (ParamKind::Scalar(_), ArgInfo::Absent) => Err(kind("a scalar", "nothing")),
        (ParamKind::Tensor { .. }, ArgInfo::Scalar(_)) => Err(kind("a tensor", "a scalar")),
        (ParamKind::Tensor { optional: true, .. }, ArgInfo::Absent) => Ok(()),
        (ParamKind::Tensor { optional: false, .. }, ArgInfo::Absent) => Err(kind("a tensor", "nothing")),
        (ParamKind::Tensor { elem, access, shape, .. }, ArgInfo::Tensor { elem: found, extents, strides }) => {
            if elem != found {
                return Err(element(*elem, *found));
            }
            if extents.len() != shape.len() || strides.len() != shape.len() {
                return Err(BindError::Rank { param: name(), expected: shape.len(), found: extents.len() });
            }
            check_extents(&param.name, extents)?;
            check_self_overlap(&param.name, *access, extents, strides)
        }
    }
}

fn check_extents(param: &str, extents: &[i64]) -> Result<(), BindError> {
    match extents.iter().position(|e| !(0..=MAX_EXTENT).contains(e)) {
        None => Ok(()),
        Some(axis) => Err(BindError::Extent { param: param.to_owned(), axis, extent: extents[axis] }),
    }
}

/// Checks that no two indices of a mutable tensor refer to the same element.
fn check_self_overlap(param: &str, access: Access, extents: &[i64], strides: &[i64]) -> Result<(), BindError> {
    if access == Access::In || extents.contains(&0) || is_injective(extents, strides) {
        return Ok(());
    }
    Err(BindError::SelfOverlap { param: param.to_owned(), extents: extents.to_vec(), strides: strides.to_vec() })
}

/// Whether each stride is greater than the range that the smaller strides span. This is sufficient for distinct addresses, and holds for
/// every view of a tensor in memory order.
#[must_use]
pub fn is_injective(extents: &[i64], strides: &[i64]) -> bool {
    let mut moving = strides.iter().zip(extents).filter(|(_, e)| **e > 1).map(|(s, e)| (s.saturating_abs(), *e));
    // Tensors of the language have no more axes, and are checked at every launch.
    let mut few = [(0, 0); 8];
    let count = few.iter_mut().zip(moving.by_ref()).map(|(slot, axis)| *slot = axis).count();
    let rest: Vec<(i64, i64)> = moving.collect();
    if rest.is_empty() {
        return are_apart(&mut few[..count]);
    }
    are_apart(&mut [&few[..], &rest].concat())
}

/// Whether each stride is greater than the range that the smaller strides span, for axes with positive strides and extents of more than 1.
fn are_apart(axes: &mut [(i64, i64)]) -> bool {
    axes.sort_unstable();
    let mut reach = 0i64;
    axes.iter().all(|(stride, extent)| {
        let clear = *stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(extent - 1));
        clear
    })
}

/// Binds the shape names. A name whose first mention is on an absent tensor is bound to the next extent that is declared as exactly this
/// name.
fn bind_symbols(sig: &Signature, env: &mut Arguments<'_>) {
    for first in [true, false] {
        for (index, param) in sig.params.iter().enumerate() {
            let ParamKind::Tensor { shape, .. } = &param.kind else { continue };
            for (axis, spec) in shape.iter().enumerate() {
                match spec {
                    DimSpec::Bind(symbol) if first => env.bind(*symbol, index, axis),
                    DimSpec::Equals(HostExpr::Symbol(symbol)) if !first => env.bind(*symbol, index, axis),
                    DimSpec::Any | DimSpec::Bind(_) | DimSpec::Equals(_) => {}
                }
            }
        }
    }
}

fn check_shapes(sig: &Signature, env: &Arguments<'_>) -> Result<(), BindError> {
    for (index, param) in sig.params.iter().enumerate() {
        let ParamKind::Tensor { shape, .. } = &param.kind else { continue };
        let Some(extents) = env.extents(index) else { continue };
        for (axis, (spec, extent)) in shape.iter().zip(extents).enumerate() {
            // The macro does not generate signatures that bind a name twice; the second mention is then compared with the first.
            let expr = match spec {
                DimSpec::Any => continue,
                DimSpec::Bind(symbol) => &HostExpr::Symbol(*symbol),
                DimSpec::Equals(expr) => expr,
            };
            let value = env.eval(expr, &Place::Extent { param: &param.name, axis })?;
            if value != *extent {
                return Err(BindError::Shape {
                    param: param.name.clone(),
                    axis,
                    extent: *extent,
                    declared: env.text(expr),
                    value,
                    origin: env.origin(expr),
                });
            }
        }
    }
    Ok(())
}

fn eval_grid(env: &Arguments<'_>, extents: &[HostExpr]) -> Result<[u32; 3], BindError> {
    if extents.len() > 3 {
        return Err(BindError::GridAxes { found: extents.len() });
    }
    let mut grid = [1; 3];
    for (axis, expr) in extents.iter().enumerate() {
        let value = env.eval(expr, &Place::Grid { axis })?;
        grid[axis] = grid_extent(axis, || env.text(expr), value)?;
    }
    Ok(grid)
}

/// An extent of a grid, which `declared` writes for the error.
fn grid_extent(axis: usize, declared: impl FnOnce() -> String, value: i64) -> Result<u32, BindError> {
    let fits = u32::try_from(value).ok().filter(|v| i64::from(*v) <= MAX_EXTENT);
    fits.ok_or_else(|| BindError::Grid { axis, declared: declared(), value })
}
