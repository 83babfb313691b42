//! Values while a kernel runs.
//!
//! Integers of every type are held as `i64` reduced to their type (`ir::fold::wrap`), floats of every type as the `f64` that
//! equals them: `f64` is wide enough for every other element type that one rounding gives the element's result.
//! Where tiles are not computed, a tile is [`Val::Unknown`], and so is every scalar derived from one.

use super::tcgen05::Columns;
use crate::engine::Class;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use titan_core::ir::{Coords, Elem, Encoding, TileShape};

/// The value of an element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    /// The value of an integer or `bool`.
    Int(i64),
    /// The value of a float.
    Float(f64),
}

impl Num {
    pub(super) const fn int(self) -> i64 {
        match self {
            Num::Int(v) => v,
            #[expect(clippy::cast_possible_truncation, reason = "only asked of integers")]
            Num::Float(x) => x as i64,
        }
    }

    const fn bits(self) -> (bool, u64) {
        match self {
            Num::Int(v) => (false, v.cast_unsigned()),
            Num::Float(x) => (true, x.to_bits()),
        }
    }
}

impl PartialEq for Num {
    fn eq(&self, other: &Num) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for Num {}

impl Hash for Num {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

/// The elements of a tile, in row-major order.
#[derive(Clone, Debug)]
pub(super) enum Cells {
    /// Elements of an integer type or `bool`.
    Int(Vec<i64>),
    /// Elements of a floating-point type.
    Float(Vec<f64>),
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        match self {
            Cells::Int(v) => v.len(),
            Cells::Float(v) => v.len(),
        }
    }

    /// Element `i`; zero beyond the end, which no operation reads.
    pub(super) fn get(&self, i: usize) -> Num {
        match self {
            Cells::Int(v) => Num::Int(v.get(i).copied().unwrap_or(0)),
            Cells::Float(v) => Num::Float(v.get(i).copied().unwrap_or(0.0)),
        }
    }

    /// The elements with these row-major numbers.
    pub(super) fn pick(&self, places: impl Iterator<Item = usize>) -> Cells {
        match self {
            Cells::Int(v) => Cells::Int(places.map(|i| v.get(i).copied().unwrap_or(0)).collect()),
            Cells::Float(v) => Cells::Float(places.map(|i| v.get(i).copied().unwrap_or(0.0)).collect()),
        }
    }

    /// Collects values as the elements of this type.
    pub(super) fn collect(elem: Elem, nums: impl Iterator<Item = Num>) -> Cells {
        if elem.is_float() {
            let float = |n| match n {
                Num::Float(x) => x,
                #[expect(clippy::cast_precision_loss, reason = "an integer where a float belongs does not happen")]
                Num::Int(v) => v as f64,
            };
            Cells::Float(nums.map(float).collect())
        } else {
            Cells::Int(nums.map(Num::int).collect())
        }
    }
}

/// A tile in registers.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) shape: TileShape,
    pub(super) cells: Cells,
}

impl Hash for Tile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shape.hash(state);
        match &self.cells {
            Cells::Int(v) => v.hash(state),
            Cells::Float(v) => v.iter().for_each(|x| x.to_bits().hash(state)),
        }
    }
}

/// A tensor argument, or a view of one.
#[derive(Clone, Debug, Hash)]
pub(super) struct View {
    /// The number of the parameter.
    pub(super) param: usize,
    pub(super) elem: Elem,
    /// The coordinates of the first element, along each axis of the parameter.
    pub(super) start: Vec<i64>,
    /// The axis of the parameter that each axis of the view is.
    pub(super) axes: Vec<usize>,
    /// The extent of each axis of the view.
    pub(super) extents: Vec<i64>,
    /// Whether an axis was fixed outside of the tensor: the view then contains no element.
    pub(super) outside: bool,
}

/// A tile of a tensor that a copy names as its source; its elements are read when the copy completes.
#[derive(Clone, Debug, Hash)]
pub(super) struct Source {
    pub(super) view: Rc<View>,
    pub(super) what: Named,
    pub(super) shape: TileShape,
    pub(super) pad: Num,
    /// Whether the whole tile lies outside of the tensor.
    pub(super) absent: bool,
}

/// How a source names its elements.
#[derive(Clone, Debug, Hash)]
pub(super) enum Named {
    /// The coordinates of the first element.
    From(Vec<i64>),
    /// Rows: an index for each row and leading axis, and the first column.
    Rows(Vec<Vec<i64>>, i64),
    /// The coordinates depend on values that are not computed.
    Unknown,
}

/// A tile that is read from a stage of a ring.
#[derive(Clone, Debug, Hash)]
pub(super) struct Smem {
    pub(super) pipe: usize,
    pub(super) time: u64,
    pub(super) field: usize,
    pub(super) elem: Elem,
    /// The shape of the tile in memory, row-major.
    pub(super) lies: TileShape,
    /// Axis `i` of the view is axis `order[i]` in memory.
    pub(super) order: Vec<usize>,
}

/// A tile in shared memory of a laid-out kernel.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) base: u64,
    pub(super) encoding: Rc<Encoding>,
    /// The coordinates of the tile's first element in the tile that the encoding describes.
    pub(super) origin: Coords,
    pub(super) elem: Elem,
    pub(super) shape: TileShape,
}

impl Local {
    /// The address of an element, in bytes.
    pub(super) fn address(&self, mut at: Coords) -> u64 {
        at.iter_mut().zip(self.origin).for_each(|(i, o)| *i += o);
        self.base + u64::from(self.encoding.offset(at))
    }
}

impl Hash for Local {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The encoding is determined by the operation.
        (self.base, self.origin, self.shape).hash(state);
    }
}

/// The value of an SSA value.
#[derive(Clone, Debug, Default, Hash)]
pub(super) enum Val {
    /// A value that is not defined yet, or not computed.
    #[default]
    Unknown,
    Num(Num),
    Tile(Rc<Tile>),
    Tensor(Rc<View>),
    Source(Rc<Source>),
    Smem(Rc<Smem>),
    Local(Rc<Local>),
    /// A token of a ring, for one ring time.
    Token {
        pipe: u32,
        time: u64,
    },
    /// An MMA in flight: its number and its commit group.
    Compute {
        id: u32,
        group: u32,
    },
    /// An accumulator, by its number.
    Acc(u32),
    /// Bytes of shared memory, divided into equal parts.
    Region {
        lo: u64,
        len: u64,
        parts: u64,
    },
    /// Barriers: the operation that created them, the index of the first, and their number.
    Barriers {
        made: u32,
        first: u32,
        n: u32,
    },
    /// Columns of tensor memory.
    Columns(Columns),
    /// The phase in which an arrival was counted.
    Phase(u64),
    /// A commit group of a class.
    Group(Class, u32),
}
