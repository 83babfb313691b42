//! The parameter block of a GPU kernel: which words, in which order. A pure function of the signature, so that the compiler and
//! the launch agree without anything written down.
//!
//! A tensor is its address, its extents and its strides; the address of an optional tensor that is not given is 0. A scalar is
//! one word. The last word is the address of the report, see [`Slot::Report`].
//!
//! | word | width |
//! |---|---|
//! | address | 64 bits |
//! | extent | 32 bits: a launch refuses larger ones |
//! | stride, in elements | 64 bits |
//! | scalar of 8, 16, 32 bits | 32 bits, extended as the element says; floats as their bits |
//! | scalar of 64 bits | 64 bits |
//!
//! Words lie one after the other, each on a multiple of its size.

use crate::ir::{ParamKind, Signature};

/// A word of the parameter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The address of a tensor's first element.
    Address(u32),
    /// An extent: parameter and axis.
    Extent(u32, u8),
    /// The distance of neighbours in elements: parameter and axis.
    Stride(u32, u8),
    /// A scalar parameter.
    Scalar {
        /// The parameter.
        param: u32,
        /// Whether it takes 64 bits.
        wide: bool,
    },
    /// The address of the [report](super::report).
    Report,
}

impl Slot {
    /// The bytes of the word, and its alignment.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Slot::Address(_) | Slot::Stride(..) | Slot::Report | Slot::Scalar { wide: true, .. } => 8,
            Slot::Extent(..) | Slot::Scalar { wide: false, .. } => 4,
        }
    }
}

/// The words of a signature's parameter block, in order.
#[must_use]
pub fn slots(sig: &Signature) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (index, param) in (0u32..).zip(&sig.params) {
        match &param.kind {
            ParamKind::Tensor { shape, .. } => {
                slots.push(Slot::Address(index));
                slots.extend((0u8..).zip(shape).map(|(axis, _)| Slot::Extent(index, axis)));
                slots.extend((0u8..).zip(shape).map(|(axis, _)| Slot::Stride(index, axis)));
            }
            ParamKind::Scalar(elem) => slots.push(Slot::Scalar { param: index, wide: elem.bits() == 64 }),
        }
    }
    slots.push(Slot::Report);
    slots
}

/// Where each word lies, in bytes from the start, and the size of the whole block.
#[must_use]
pub fn offsets(slots: &[Slot]) -> (Vec<usize>, usize) {
    let mut end = 0usize;
    let at = slots
        .iter()
        .map(|slot| {
            let start = end.next_multiple_of(slot.bytes());
            end = start + slot.bytes();
            start
        })
        .collect();
    (at, end)
}
