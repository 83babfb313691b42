//! Both runs of a kernel: as lanes, and as tiles.

use crate::machine::Machine;
use crate::machine::memory::Memory;
use crate::random::PROGRAMS;
use crate::tensor::Tensor;
use crate::tiles;
use titan_core::ir::{Elem, Kernel};
use titan_core::lane::{Func, MmaAtom};
use titan_core::launch::abi::Slot;
use titan_core::layout::atoms::Atom;
use titan_core::target::{CopyEngine, MatrixMove, Place, Target};

/// A machine like sm_80, with products of bytes.
pub(crate) fn target(lanes: u32) -> Target {
    let quads = |mma: MmaAtom| Atom::in_quads(mma, mma.m, mma.n);
    let atom = |k, a, acc| quads(MmaAtom { m: 16, n: 8, k, a, b: a, acc });
    let atoms = vec![
        atom(32, Elem::I8, Elem::I32),
        atom(16, Elem::F16, Elem::F32),
        atom(16, Elem::Bf16, Elem::F32),
        atom(8, Elem::Tf32, Elem::F32),
        quads(MmaAtom { m: 8, n: 8, k: 4, a: Elem::F64, b: Elem::F64, acc: Elem::F64 }),
    ];
    let copies = vec![CopyEngine::by_lanes()];
    let loads = MatrixMove { to: Place::Registers, rows: 8, row_bytes: 16, most: 4 };
    let plain = Target::plain("test", lanes);
    if lanes == 32 { Target { atoms, copies, matrix_moves: vec![loads], ..plain } } else { plain }
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
    machine.diverged.iter().for_each(|id| assert!(id.index() < func.ops.len()));
    let mut wrong: Vec<String> = machine.wrong.iter().cloned().collect();
    wrong.extend(machine.diverged.iter().map(|id| format!("{:?} with lanes missing", func.op(*id).kind)));
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
