//! Iteration domains: the relation of the loops around a copy, and of the copy engine's own loop, to the coordinates of a tensor.
//!
//! An *iteration domain* is the range `0..extent` of one index. A schedule begins with one domain for each dimension of the tensor
//! and transforms them, step by step. The first two steps belong to the copy engine:
//!
//! ```text
//! partitioned (size)  ──split by the box──▶  coordinate (which box)
//!                                         └▶ box  ──split by the element stride──▶  tile   (the copy engine's loop)
//!                                                                                └▶ stride (which of the elements skipped)
//! index of partitioned = coordinate * box + tile * element stride + stride
//! ```
//!
//! Coordinates and strides may be transformed further, into the loops of the program: split, merged, resized, swizzled. What is
//! left are the *leaves*. They span more than the tensor where a split does not divide, or a resize widens: such a step makes
//! *holes*, indices of leaves that are out of the bounds of some domain.
//!
//! Worked example: a dimension of 10 elements in boxes of 4 has 3 coordinates, and the split makes 2 holes, the last elements of
//! the last box. If the program deals the 3 boxes to 2 blocks, it splits the coordinates by 2, and the leaves are 2 × 2 × 4: box
//! number 3 is a hole, too.
//!
//! Source: "TMA Modeling In Depth", definition 1 and theorem 4 (docs/tma.md).

use super::MAX_RANK;
use std::fmt;

/// A domain of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(super) usize);

impl Id {
    /// The number of the domain, which indexes lists with an entry for each domain.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{}", self.0)
    }
}

/// The greatest extent, factor or widening, so that no index overflows.
pub(super) const LIMIT: i64 = 1 << 40;

/// A dimension of the tensor, and the box that the copy engine copies along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// The number of elements, at least 1; `None` if it is known only at a launch.
    pub size: Option<i64>,
    /// The box along it, in elements: 1 to 256.
    pub boxed: i64,
    /// The element stride: one of every `stride` elements is copied; 1 to 8.
    pub stride: i64,
}

/// The domains that each dimension of the tensor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// The dimension itself.
    pub partitioned: Id,
    /// The index of the box.
    pub coordinate: Id,
    /// The index of the element in the box.
    pub boxed: Id,
    /// The index of the element in the tile in shared memory: the copy engine's loop.
    pub tile: Id,
    /// The index among the elements that the element stride skips.
    pub stride: Id,
}

/// A step that replaces domains by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the domains before and after")]
pub enum Step {
    /// `input = outer * factor + inner`.
    Split { input: Id, outer: Id, inner: Id, factor: i64 },
    /// `output = outer * extent of inner + inner`.
    Merge { outer: Id, inner: Id, output: Id },
    /// `output = input + left`, and the extent grows by `left + right`, which may be negative.
    Resize { input: Id, output: Id, left: i64, right: i64 },
    /// `out_x = x`, `out_y = y xor (x mod extent of y)`.
    Swizzle { x: Id, y: Id, out_x: Id, out_y: Id },
}

/// The iterator over a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// None: the domain is the input of a step.
    Consumed,
    /// The program.
    Program,
    /// The copy engine.
    Engine,
}

/// The reason why a step is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what the fields are")]
pub enum DomainError {
    #[error("a tensor map has 1 to 5 dimensions, not {0}")]
    Rank(usize),
    #[error("dimension {dim} cannot have {size} elements: 1 to 2^40 are possible")]
    Size { dim: usize, size: i64 },
    #[error("the box cannot have {boxed} elements along dimension {dim}: 1 to 256 are possible")]
    Box { dim: usize, boxed: i64 },
    #[error("the element stride of dimension {dim} cannot be {stride}: 1 to 8 are possible")]
    Stride { dim: usize, stride: i64 },
    #[error("a split by {0}: 1 to 2^40 is possible")]
    Factor(i64),
    #[error("{0} is no domain of this schedule, or is the input of a step already")]
    Consumed(Id),
    #[error("{0} is merged or swizzled with itself")]
    Same(Id),
    #[error("{0} belongs to the copy engine and {1} to the program: a tile is one block of shared memory")]
    Owners(Id, Id),
    #[error(
        "{0} belongs to the copy engine, which fills whole tiles: the step would leave holes in shared memory, or drop elements"
    )]
    Tile(Id),
    #[error("the extent of {0} must be known when the kernel is compiled")]
    Unknown(Id),
    #[error("the extent of {0} must be a power of two")]
    Power(Id),
    #[error("the result would have the extent {0}: 1 to 2^40 are possible")]
    Extent(i64),
}

/// The domains of a schedule, from the dimensions of the tensor to its leaves.
#[derive(Clone, Debug)]
pub struct Domains {
    dims: Vec<Dim>,
    axes: Vec<Axis>,
    extents: Vec<Option<i64>>,
    owners: Vec<Owner>,
    steps: Vec<Step>,
}

impl Domains {
    /// Creates the domains of a tensor in boxes, innermost dimension first.
    ///
    /// # Errors
    /// A dimension, box or element stride that exceeds its limit.
    pub fn new(dims: &[Dim]) -> Result<Domains, DomainError> {
        if dims.is_empty() || dims.len() > MAX_RANK {
            return Err(DomainError::Rank(dims.len()));
        }
        let none = Vec::new;
        let mut domains =
            Domains { dims: dims.to_vec(), axes: none(), extents: Vec::new(), owners: Vec::new(), steps: Vec::new() };
        for (dim, Dim { size, boxed, stride }) in dims.iter().copied().enumerate() {
            if let Some(size) = size.filter(|size| !(1..=LIMIT).contains(size)) {
                return Err(DomainError::Size { dim, size });
            }
            if !(1..=256).contains(&boxed) {
                return Err(DomainError::Box { dim, boxed });
            }
            if !(1..=8).contains(&stride) {
                return Err(DomainError::Stride { dim, stride });
            }
            let partitioned = domains.add(size, Owner::Program);
            let (coordinate, boxed) = domains.split(partitioned, boxed)?;
            let (tile, stride) = domains.split(boxed, stride)?;
            domains.owners[tile.0] = Owner::Engine;
            domains.axes.push(Axis { partitioned, coordinate, boxed, tile, stride });
        }
        Ok(domains)
    }

    /// The dimensions of the tensor.
    #[must_use]
    pub fn dims(&self) -> &[Dim] {
        &self.dims
    }

    /// The domains of each dimension.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The steps, including those of the copy engine.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The number of domains, including the inputs of steps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// Whether there are no domains, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// The extent of a domain; `None` if it is known only at a launch.
    #[must_use]
    pub fn extent(&self, id: Id) -> Option<i64> {
        self.extents.get(id.0).copied().flatten()
    }

    /// The domains that the program iterates over, in the order in which they were made.
    pub fn loops(&self) -> impl Iterator<Item = Id> {
        self.owned(Owner::Program)
    }

    /// The domains that the copy engine iterates over: positions in the tile.
    pub fn tile(&self) -> impl Iterator<Item = Id> {
        self.owned(Owner::Engine)
    }

    fn owned(&self, owner: Owner) -> impl Iterator<Item = Id> {
        self.owners.iter().enumerate().filter(move |(_, o)| **o == owner).map(|(i, _)| Id(i))
    }

    /// Splits a domain by a factor into `ceil(extent / factor)` and `factor`.
    ///
    /// # Errors
    /// A factor out of range; a domain that is the input of a step already; a tile that the factor does not divide.
    pub fn split(&mut self, input: Id, factor: i64) -> Result<(Id, Id), DomainError> {
        let owner = self.owner(input)?;
        if !(1..=LIMIT).contains(&factor) {
            return Err(DomainError::Factor(factor));
        }
        let extent = self.extent(input);
        if owner == Owner::Engine && extent.is_none_or(|extent| extent % factor != 0) {
            return Err(DomainError::Tile(input));
        }
        self.take(input);
        let outer = self.add(extent.map(|extent| (extent + factor - 1) / factor), owner);
        let inner = self.add(Some(factor), owner);
        self.steps.push(Step::Split { input, outer, inner, factor });
        Ok((outer, inner))
    }

    /// Merges two domains into one of the product of their extents.
    ///
    /// # Errors
    /// Domains of different owners, an inner one of unknown extent, and products beyond 2⁴⁰.
    pub fn merge(&mut self, outer: Id, inner: Id) -> Result<Id, DomainError> {
        let owner = self.pair(outer, inner)?;
        let length = self.extent(inner).ok_or(DomainError::Unknown(inner))?;
        let extent = self.extent(outer).map(|extent| legal(extent.saturating_mul(length))).transpose()?;
        self.take(outer);
        self.take(inner);
        let output = self.add(extent, owner);
        self.steps.push(Step::Merge { outer, inner, output });
        Ok(output)
    }

    /// Widens a domain on both sides; a negative number narrows it.
    ///
    /// # Errors
    /// A tile, and a result without an element.
    pub fn resize(&mut self, input: Id, left: i64, right: i64) -> Result<Id, DomainError> {
        let owner = self.owner(input)?;
        if owner == Owner::Engine {
            return Err(DomainError::Tile(input));
        }
        for by in [left, right] {
            if by.unsigned_abs() > LIMIT.unsigned_abs() {
                return Err(DomainError::Extent(by));
            }
        }
        let extent = self.extent(input).map(|extent| legal(extent + left + right)).transpose()?;
        self.take(input);
        let output = self.add(extent, owner);
        self.steps.push(Step::Resize { input, output, left, right });
        Ok(output)
    }

    /// Permutes `y`, whose extent is a power of two, differently for each `x`.
    ///
    /// # Errors
    /// Domains of different owners, and extents that are no power of two.
    pub fn swizzle(&mut self, x: Id, y: Id) -> Result<(Id, Id), DomainError> {
        let owner = self.pair(x, y)?;
        let length = self.extent(y).ok_or(DomainError::Unknown(y))?;
        if length.count_ones() != 1 {
            return Err(DomainError::Power(y));
        }
        self.take(x);
        self.take(y);
        let (out_x, out_y) = (self.add(self.extent(x), owner), self.add(Some(length), owner));
        self.steps.push(Step::Swizzle { x, y, out_x, out_y });
        Ok((out_x, out_y))
    }

    fn add(&mut self, extent: Option<i64>, owner: Owner) -> Id {
        self.extents.push(extent);
        self.owners.push(owner);
        Id(self.extents.len() - 1)
    }

    fn take(&mut self, id: Id) {
        self.owners[id.0] = Owner::Consumed;
    }

    fn owner(&self, id: Id) -> Result<Owner, DomainError> {
        let owner = self.owners.get(id.0).copied().filter(|owner| *owner != Owner::Consumed);
        owner.ok_or(DomainError::Consumed(id))
    }

    fn pair(&self, a: Id, b: Id) -> Result<Owner, DomainError> {
        let (of_a, of_b) = (self.owner(a)?, self.owner(b)?);
        if a == b {
            return Err(DomainError::Same(a));
        }
        match (of_a, of_b) {
            (Owner::Engine, Owner::Program) => Err(DomainError::Owners(a, b)),
            (Owner::Program, Owner::Engine) => Err(DomainError::Owners(b, a)),
            (same, _) => Ok(same),
        }
    }
}

/// Checks that a domain may have this extent.
fn legal(extent: i64) -> Result<i64, DomainError> {
    if (1..=LIMIT).contains(&extent) { Ok(extent) } else { Err(DomainError::Extent(extent)) }
}
