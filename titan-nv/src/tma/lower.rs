//! Lowers a schedule to the parameters of a bulk tensor copy: box, coordinates, and the condition of the copy.
//!
//! | | level 1 | level 2 | level 3 |
//! |---|---|---|---|
//! | weak load | always | always; or only if the checks hold, which saves traffic | as level 2, with the checks that are possible |
//! | strong load, zeros | always | at its coordinates if the checks hold, else at `x = -bs` | error |
//! | strong load, other padding | error | error | error |
//! | store | always | only if the checks hold | error |
//!
//! A check is `0 <= index < extent` of a domain that is overrun and not protected. The box at `x = -bs` ends where the tensor begins:
//! the engine fills all of it with zeros, and the barrier gets its bytes. An omitted copy transfers no bytes.
//!
//! A store is correct if no hole reaches the tensor. Its conditions are those of strong correctness, except that a failing copy is omitted.
//!
//! **The checks suffice.** If all of them hold, every domain that is not protected is in bounds: a step makes indices out of
//! bounds only if it makes holes, and the inputs of such steps are checked. So for every hole a protected domain is out of bounds, and by
//! theorem 4 the engine's check fails. If the element stride does not divide the box, its index cannot be checked, because the engine
//! iterates over the tile. There are two such cases without FTTC. If `e >= B`, the tile has one position, and the index of the box is that
//! of the stride. If `B >= S`, the only coordinate is 0, which *is* checked if it can be another: then an index beyond the box is beyond
//! the tensor. (A widening of the coordinate makes -1, whose elements beyond the box are elements of the tensor.)
//!
//! Source: "TMA Modeling In Depth", table 1 (docs/tma.md), which leaves stores and widened coordinates out.

use super::correctness::{Correctness, Level, Padding, level, unprotected};
use super::domain::{Domains, Id};
use super::index::{Op, Range, Value, Values, indices};
use titan_core::analysis::fttc::Counterexample;

/// The direction of a copy, and the requirements on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// A copy to shared memory.
    Load {
        /// The contents that holes must have.
        correctness: Correctness,
        /// Whether weak loads are omitted where they would fill only holes.
        skip_holes: bool,
    },
    /// A copy to global memory.
    Store,
}

/// The condition `0 <= value < extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The index of a domain.
    pub value: Value,
    /// The extent of the domain.
    pub extent: i64,
}

/// The condition under which the copy is issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Always.
    Always,
    /// Only if all checks hold. Otherwise it is omitted, and its bytes must not be expected.
    Skip(Vec<Check>),
    /// Always: at its coordinates if all checks hold, otherwise at these, for which the whole box is outside of the tensor.
    OutOfBounds(Vec<Check>, Vec<i32>),
}

/// A bulk tensor copy. Dimensions are innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowering {
    /// The level at which the schedule is correct.
    pub level: Level,
    /// The box of the tensor map, in elements.
    pub box_extents: Vec<u32>,
    /// The element strides of the tensor map.
    pub element_strides: Vec<u32>,
    /// The operations that compute coordinates and checks.
    pub values: Values,
    /// The coordinates, as 64-bit values that fit 32 bits.
    pub coordinates: Vec<Value>,
    /// The range of each coordinate; `None` if it depends on a size of the launch: then [`fit`](super::fit) must check it.
    pub reach: Vec<Range>,
    /// The condition under which the copy is issued.
    pub guard: Guard,
}

/// The reason why a schedule has no bulk tensor copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The innermost dimension has an element stride.
    #[error("the element stride of the innermost dimension is {0}: only 1 is possible there")]
    InnermostStride(i64),
    /// Holes would have to hold another value than zero.
    #[error("out of bounds the copy engine writes zeros: select another padding after the load")]
    Padding,
    /// Strong correctness is impossible, by the FTTC.
    #[error("{0}")]
    Impossible(Counterexample),
    /// A check needs an extent that is known only at a launch.
    #[error("the extent of {0} must be known when the kernel is compiled: its index must be checked")]
    Extent(Id),
    /// Coordinates exceed 32 bits.
    #[error("coordinates of dimension {dim} go from {low} to {high}, beyond 32 bits")]
    Coordinate {
        /// The dimension.
        dim: usize,
        /// The lowest coordinate.
        low: i64,
        /// The highest coordinate, including the box.
        high: i64,
    },
}

/// Lowers a schedule to a copy.
///
/// # Errors
/// [`LowerError`]: a copy that cannot be shown to be correct is refused.
pub fn lower(domains: &Domains, transfer: Transfer) -> Result<Lowering, LowerError> {
    let dims = domains.dims();
    if let Some(first) = dims.first().filter(|first| first.stride != 1) {
        return Err(LowerError::InnermostStride(first.stride));
    }
    let (mut values, of) = indices(domains);
    let mut coordinates = Vec::with_capacity(dims.len());
    for (axis, dim) in domains.axes().iter().zip(dims) {
        let start = values.add(Op::Mul(of[axis.coordinate.0], dim.boxed));
        coordinates.push(values.add(Op::Add(start, of[axis.stride.0])));
    }
    let ranges = values.ranges(domains);
    let reach: Vec<Range> = coordinates.iter().map(|value| ranges[value.0]).collect();
    for (dim, (range, d)) in reach.iter().zip(dims).enumerate() {
        let Some((low, high)) = range.map(|(low, high)| (low, high + d.boxed - 1)) else { continue };
        if low < i64::from(i32::MIN) || high > i64::from(i32::MAX) {
            return Err(LowerError::Coordinate { dim, low, high });
        }
    }
    let level = level(domains);
    let checks = || checks(domains, &of, &ranges);
    let mut guard = guard(domains, transfer, &level, checks)?;
    let checked: &mut [Check] = match &mut guard {
        Guard::Always => &mut [],
        Guard::Skip(checks) | Guard::OutOfBounds(checks, _) => checks,
    };
    let values = values.keep(coordinates.iter_mut().chain(checked.iter_mut().map(|check| &mut check.value)));
    let narrow = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
    Ok(Lowering {
        level,
        box_extents: dims.iter().map(|d| narrow(d.boxed)).collect(),
        element_strides: dims.iter().map(|d| narrow(d.stride)).collect(),
        values,
        coordinates,
        reach,
        guard,
    })
}

/// The guard, from the table above.
fn guard(
    domains: &Domains,
    transfer: Transfer,
    level: &Level,
    checks: impl Fn() -> (Vec<Check>, Option<Id>),
) -> Result<Guard, LowerError> {
    let all = || match checks() {
        (_, Some(id)) => Err(LowerError::Extent(id)),
        (checks, None) => Ok(checks),
    };
    match (transfer, level) {
        (Transfer::Load { correctness: Correctness::Strong(Padding::Other), .. }, _) => Err(LowerError::Padding),
        (Transfer::Load { correctness: Correctness::Strong(Padding::Zero), .. } | Transfer::Store, Level::Three(c)) => {
            Err(LowerError::Impossible(*c))
        }
        (Transfer::Load { .. } | Transfer::Store, Level::One) => Ok(Guard::Always),
        (Transfer::Load { correctness: Correctness::Weak, skip_holes }, Level::Two(_) | Level::Three(_)) => {
            Ok(if skip_holes { skip(checks().0) } else { Guard::Always })
        }
        (Transfer::Store, Level::Two(_)) => Ok(skip(all()?)),
        (Transfer::Load { correctness: Correctness::Strong(Padding::Zero), .. }, Level::Two(_)) => {
            let checks = all()?;
            if checks.is_empty() {
                return Ok(Guard::Always);
            }
            // A box extent is at most 256, so the conversion succeeds.
            let before = domains.dims().iter().map(|d| -i32::try_from(d.boxed).unwrap_or(i32::MAX)).collect();
            Ok(Guard::OutOfBounds(checks, before))
        }
    }
}

fn skip(checks: Vec<Check>) -> Guard {
    if checks.is_empty() { Guard::Always } else { Guard::Skip(checks) }
}

/// The checks that are possible, and a domain that would have to be checked but has an unknown extent, if there is one.
fn checks(domains: &Domains, of: &[Value], ranges: &[Range]) -> (Vec<Check>, Option<Id>) {
    let (mut checks, mut unknown) = (Vec::new(), None);
    for id in unprotected(domains).into_iter().filter_map(|id| checkable(domains, id)) {
        let value = of[id.0];
        let Some(extent) = domains.extent(id) else {
            unknown = Some(id);
            continue;
        };
        let holds = ranges[value.0].is_some_and(|(low, high)| low >= 0 && high < extent);
        let check = Check { value, extent };
        if !holds && !checks.contains(&check) {
            checks.push(check);
        }
    }
    (checks, unknown)
}

/// The domain to check instead of `id`: itself, if the program knows its index; `None` if no check helps, under FTTC.
fn checkable(domains: &Domains, id: Id) -> Option<Id> {
    let Some((axis, dim)) = domains.axes().iter().zip(domains.dims()).find(|(axis, _)| axis.boxed == id) else {
        return Some(id);
    };
    if dim.stride >= dim.boxed {
        // The tile has one position along this dimension.
        return Some(id);
    }
    dim.size.is_some_and(|size| size <= dim.boxed).then_some(axis.coordinate)
}
