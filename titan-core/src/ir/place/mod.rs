//! The places of tiles in a kernel that is laid out over the threads of a target: a tile is in registers, distributed by a [`Layout`], or
//! in shared memory, addressed by an [`Encoding`].
//!
//! A kernel that is not laid out has no [`LaidOut`], and none of its values has a [`Place`]. A laid-out kernel has one place
//! for every tile in registers and every tile in shared memory; equal layouts share one number.
//!
//! Deliberately absent: the choice of the place for each value (`crate::lay_out`), and the conversion of one place to another
//! (`crate::layout::convert`).

mod encoding;
mod register;

pub use encoding::{Encoding, Swizzle};
pub use register::{Bit, Coords, Layout};

use super::Ty;
use super::kernel::{Kernel, Value};
use crate::named_enum::named_enum;
use std::fmt;

crate::entity!(
    /// A register layout of a laid-out kernel.
    LayoutId, "layout"
);
crate::entity!(
    /// A shared-memory encoding of a laid-out kernel.
    EncodingId, "encoding"
);

named_enum! {
    /// How a reader of a ring between roles releases a slot.
    FreeBy {
        /// Each reading warp arrives at an mbarrier of the slot.
        Mbarrier = "mbarrier",
        /// After a barrier of the reading warps, one thread stores the number of times the slot was released.
        Sequence = "sequence",
    }
}

/// The place of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// The value is not a tile, or the kernel is not laid out yet.
    #[default]
    None,
    /// In registers, distributed by a layout. For the source of a copy: the layout by which the threads copy it.
    Registers(LayoutId),
    /// In shared memory, with an encoding.
    Shared(EncodingId),
}

/// A type and a place, as in the text form: `tile<64x64xf16, 3>` has layout 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The type of a value.
    pub ty: Ty,
    /// The place of the value.
    pub place: Place,
}

impl From<Ty> for Typed {
    fn from(ty: Ty) -> Self {
        Typed { ty, place: Place::None }
    }
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = match self.place {
            Place::None => return self.ty.fmt(f),
            Place::Registers(id) => id.index(),
            Place::Shared(id) => id.index(),
        };
        let text = self.ty.to_string();
        write!(f, "{}, {number}>", text.strip_suffix('>').unwrap_or(&text))
    }
}

/// The additional data of a laid-out kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// The number of warps of a program; the warps of all roles, in the order of the roles.
    pub warps: u32,
    /// The number of threads of a warp.
    pub lanes: u32,
    /// For each parameter, whether rows of the tensor are assumed to be aligned to 16 bytes, a multiple of 16 bytes long, and
    /// contiguous along the last axis.
    pub aligned: Vec<bool>,
    /// Whether element offsets in tensors are assumed to fit in 32 bits.
    pub index32: bool,
    /// How slots of rings between roles are released.
    pub free: FreeBy,
    /// The number of programs of a cluster, a power of two; 1 for programs without clusters. They are adjacent along axis 0 of the grid,
    /// and distributed loops assign iterations to clusters instead of programs.
    pub cluster: u32,
    /// The layouts, each once.
    pub layouts: Vec<Layout>,
    /// The encodings, each once.
    pub encodings: Vec<Encoding>,
    /// The encodings of the tiles of stages, by ring and field.
    pub stages: Vec<Vec<EncodingId>>,
}

impl LaidOut {
    /// The number of a layout, which is added if it is new.
    pub fn layout(&mut self, layout: &Layout) -> LayoutId {
        let known = self.layouts.iter().position(|l| l == layout);
        LayoutId::new(known.unwrap_or_else(|| {
            self.layouts.push(layout.clone());
            self.layouts.len() - 1
        }))
    }

    /// The number of an encoding, which is added if it is new.
    pub fn encoding(&mut self, encoding: &Encoding) -> EncodingId {
        let known = self.encodings.iter().position(|e| e == encoding);
        EncodingId::new(known.unwrap_or_else(|| {
            self.encodings.push(encoding.clone());
            self.encodings.len() - 1
        }))
    }
}

impl Kernel {
    /// The type of a value with its place.
    #[must_use]
    pub fn typed(&self, value: Value) -> Typed {
        let data = self.value(value);
        Typed { ty: data.ty, place: data.place }
    }

    /// The layout of a tile in registers; `None` if it has none.
    #[must_use]
    pub fn layout(&self, value: Value) -> Option<&Layout> {
        match self.values.get(value.index())?.place {
            Place::Registers(id) => self.laid_out.as_ref()?.layouts.get(id.index()),
            Place::None | Place::Shared(_) => None,
        }
    }

    /// The encoding of a tile in shared memory; `None` if it has none.
    #[must_use]
    pub fn encoding(&self, value: Value) -> Option<&Encoding> {
        match self.values.get(value.index())?.place {
            Place::Shared(id) => self.laid_out.as_ref()?.encodings.get(id.index()),
            Place::None | Place::Registers(_) => None,
        }
    }
}
