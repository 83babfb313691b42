//! Tensors in memory: arguments of a launch, whatever runs it.

use crate::machine::Rng;
use titan_core::ir::{Elem, Kernel, ParamKind};

/// A tensor: its elements in memory, with strides, and where they begin.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) elem: Elem,
    pub(crate) extents: Vec<u32>,
    pub(crate) strides: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) skip: usize,
}

impl Tensor {
    /// With `aligned`, what the plan takes for granted holds; else rows begin anywhere, in any order of the axes.
    pub(crate) fn new(rng: &mut Rng, elem: Elem, rank: usize, aligned: bool) -> Tensor {
        let size = (elem.bits() / 8).max(1);
        let mut extents: Vec<u32> = (0..rank).map(|_| 1 + rng.below(if rank > 2 { 20 } else { 70 })).collect();
        let (mut strides, mut total) = (vec![0; rank], 1);
        let order = if aligned { (0..rank).collect() } else { rng.permutation(rank) };
        let each = 16 / size;
        if aligned {
            extents[rank - 1] = extents[rank - 1].next_multiple_of(each);
        }
        for axis in order.into_iter().rev() {
            strides[axis] = total;
            total *= extents[axis];
            total += if aligned { rng.below(2) * each } else { rng.below(3) };
        }
        let skip = if aligned { 0 } else { (rng.below(3) * size) as usize };
        let bytes = (0..skip + (total * size) as usize).map(|_| rng.word() as u8).collect();
        Tensor { elem, extents, strides, bytes, skip }
    }

    /// Where an element begins, if it exists.
    pub(crate) fn place(&self, at: &[i64]) -> Option<usize> {
        let inside = at.iter().zip(&self.extents).all(|(x, n)| (0..i64::from(*n)).contains(x));
        let linear: i64 = at.iter().zip(&self.strides).map(|(x, s)| x * i64::from(*s)).sum();
        inside.then(|| self.skip + linear as usize * (self.elem.bits() / 8) as usize)
    }
}

/// The arguments of a kernel; scalars are small.
pub(crate) fn arguments(rng: &mut Rng, kernel: &Kernel, aligned: bool) -> (Vec<Option<Tensor>>, i32) {
    let one = |kind: &ParamKind| match kind {
        ParamKind::Tensor { elem, shape, .. } => Some(Tensor::new(rng, *elem, shape.len(), aligned)),
        ParamKind::Scalar(_) => None,
    };
    let tensors = kernel.sig.params.iter().map(|p| &p.kind).map(one).collect();
    (tensors, 1)
}
