//! Arguments of a launch, for tiles and for lanes alike; and both runs.

use crate::machine::{Machine, Rng};
use crate::machine::memory::Memory;
use crate::random::PROGRAMS;
use crate::tiles;
use titan_core::ir::{Elem, Kernel, ParamKind};
use titan_core::lane::{Func, MmaAtom};
use titan_core::launch::abi::Slot;
use titan_core::plan::Target;

/// A machine like sm_80, with products of bytes.
pub(crate) fn target(lanes: u32) -> Target {
    let atom = |k, a, acc| MmaAtom { m: 16, n: 8, k, a, b: a, acc };
    let atoms = vec![atom(32, Elem::I8, Elem::I32), atom(16, Elem::F16, Elem::F32), atom(16, Elem::Bf16, Elem::F32),
        atom(8, Elem::Tf32, Elem::F32), MmaAtom { m: 8, n: 8, k: 4, a: Elem::F64, b: Elem::F64, acc: Elem::F64 }];
    Target {
        name: "test",
        lanes,
        max_warps: 1024 / lanes,
        registers: 255,
        shared_bytes: 99 * 1024,
        atoms: if lanes == 32 { atoms } else { vec![] },
        copy_async: lanes == 32,
        load_matrix: lanes == 32,
        fp8_convert: false,
        bf16_arithmetic: false,
    }
}

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
    fn new(rng: &mut Rng, elem: Elem, rank: usize, aligned: bool) -> Tensor {
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

/// Runs all programs as lanes; what is left of the tensors, and what went wrong.
pub(crate) fn lanes(func: &Func, tensors: &[Option<Tensor>], scalar: i32) -> (Vec<Option<Tensor>>, Vec<String>) {
    let mut memory = Memory::new();
    let mut places = Vec::new();
    for (i, tensor) in tensors.iter().enumerate() {
        let bytes = tensor.as_ref().map_or(vec![], |t| t.bytes.clone());
        places.push((memory.areas.len(), memory.add(&format!("parameter {i}"), bytes)));
    }
    let report = memory.add("the report", vec![0; 4096]);
    let tensor = |p: u32| tensors[p as usize].as_ref().expect("a tensor");
    let word = |slot: &Slot| match slot {
        Slot::Address(p) => places[*p as usize].1 + tensor(*p).skip as u64,
        Slot::Extent(p, axis) => tensor(*p).extents[usize::from(*axis)].into(),
        Slot::Stride(p, axis) => tensor(*p).strides[usize::from(*axis)].into(),
        Slot::Scalar { .. } => u64::from(scalar.cast_unsigned()),
        Slot::Report => report,
    };
    let slots = func.slots.iter().map(word).collect();
    let mut machine = Machine::new(func, slots, memory);
    machine.grid = [PROGRAMS, 1, 1];
    for p in 0..PROGRAMS {
        machine.run([p, 0, 0]);
    }
    machine.parted.iter().for_each(|id| assert!(id.index() < func.ops.len()));
    let mut wrong: Vec<String> = machine.wrong.iter().cloned().collect();
    wrong.extend(machine.parted.iter().map(|id| format!("{:?} with lanes missing", func.op(*id).kind)));
    let mut after = tensors.to_vec();
    for (tensor, (area, _)) in after.iter_mut().zip(&places) {
        if let Some(tensor) = tensor {
            tensor.bytes.clone_from(&machine.memory.areas[*area].bytes);
        }
    }
    assert!(!machine.ran_out(), "too many steps");
    (after, wrong)
}

/// Runs all programs as tiles.
pub(crate) fn as_tiles(kernel: &Kernel, tensors: &[Option<Tensor>], scalar: i32) -> Vec<Option<Tensor>> {
    let mut after = tensors.to_vec();
    for p in 0..PROGRAMS {
        tiles::run(kernel, &mut after, scalar, p);
    }
    after
}
