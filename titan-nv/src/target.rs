//! The description of a machine for the middle of the compiler.

use crate::machine::{Feature, Machine, MmaShape};
use crate::ptx::isa::group::{self, accumulators};
use titan_core::collections::SortedSet;
use titan_core::ir::{Elem, MMA_TRIPLES};
use titan_core::lane::{GroupMma, MmaAtom};
use titan_core::layout::atoms::Atom;
use titan_core::target::{Banks, By, Completion, CopyEngine, MatrixMove, Native, Place, Target, Timing};

/// The properties of a machine in the form that plans use.
#[must_use]
pub fn target(machine: &Machine) -> Target {
    let shared_classes = shared_classes(machine);
    Target {
        name: machine.name,
        // PTX for sm_80 runs on all later machines (PTX ISA, `.target`).
        base: machine.has(Feature::Tma).then_some("sm_80"),
        lanes: machine.warp_size,
        max_warps: machine.threads_per_block / machine.warp_size,
        // PTX ISA, "barrier": 16 of them for each block.
        named_barriers: true,
        role_warps: if machine.has(Feature::SetMaxNReg) { GroupMma::WARPS } else { 1 },
        clusters: machine.has(Feature::Cluster) && machine.has(Feature::Multicast),
        // All programs of a GPU share its L2.
        dies: 1,
        registers: machine.registers_per_thread,
        // CUDA C++ Programming Guide, "Compute Capabilities": 256 registers of a warp.
        register_granule: 8,
        registers_per_sm: machine.registers_per_sm,
        warps_per_sm: machine.warps_per_sm,
        shared_bytes: shared_classes.first().copied().unwrap_or(machine.shared_per_block),
        shared_classes,
        shared_reserved: machine.shared_per_sm - machine.shared_per_block,
        banks: banks(),
        atoms: atoms(machine),
        group_atoms: group_atoms(machine),
        copies: copies(machine),
        fetches: false,
        bounded_loads: false,
        keeps_order: false,
        matrix_moves: matrix_moves(machine),
        native: native(machine),
        timing: timing(machine),
    }
}

/// What copies between global and shared memory.
///
/// Sources: PTX ISA, "cp.async" (4, 8 or 16 bytes by each thread, of which the tile must be as aligned; groups) and "cp.async.bulk.tensor"
/// (multiples of 16 bytes, at multiples of 128 bytes; loads complete by bytes at an mbarrier, stores by groups).
fn copies(machine: &Machine) -> Vec<CopyEngine> {
    let mut engines = Vec::new();
    if machine.has(Feature::CpAsync) {
        engines.push(CopyEngine::by_lanes());
    }
    if machine.has(Feature::Tma) {
        let boxes =
            |from, to, completion| CopyEngine { from, to, by: By::Box, granules: vec![16], alignment: 128, completion };
        engines.push(boxes(Place::Global, Place::Shared, Completion::Bytes));
        engines.push(boxes(Place::Shared, Place::Global, Completion::Groups));
    }
    engines
}

/// The banks of shared memory. Sources: CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later; for wide accesses, the
/// splitting into halves and quarters of a warp that CUTLASS and Triton assume.
fn banks() -> Banks {
    Banks { count: 32, width: 4, orders: Vec::new() }
}

/// The instructions that move fragments. Source: PTX ISA, "ldmatrix" and "stmatrix": up to four matrices of eight rows of 16 bytes.
fn matrix_moves(machine: &Machine) -> Vec<MatrixMove> {
    let all = [(Feature::LdMatrix, Place::Registers), (Feature::StMatrix, Place::Shared)];
    let has = |(feature, _): &(Feature, Place)| machine.has(*feature);
    all.into_iter().filter(has).map(|(_, to)| MatrixMove { to, rows: 8, row_bytes: 16, most: 4 }).collect()
}

/// The element types with instructions of their own. Sources: PTX ISA, "add{.rnd}.bf16" (sm_90) and "cvt" with `.e4m3x2` and `.e5m2x2`.
fn native(machine: &Machine) -> Native {
    Native {
        arithmetic: if machine.capability >= 90 { vec![Elem::Bf16] } else { Vec::new() },
        conversions: if machine.has(Feature::Fp8Convert) { vec![Elem::E4m3, Elem::E5m2] } else { Vec::new() },
    }
}

/// The sizes of shared memory, in bytes, that the machines running this machine's code grant a program: 99, 163 and 227 KiB for sm_80.
/// Code for `sm_90a` runs only on such devices (PTX ISA, `.target`: "architecture-specific").
pub(crate) fn shared_classes(machine: &Machine) -> Vec<u32> {
    let runs = |other: &&Machine| machine.runs_on(other.capability);
    let classes: SortedSet<u32> = Machine::all().iter().filter(runs).map(|m| m.shared_per_block).collect();
    classes.into_iter().collect()
}

/// The instructions of a warp for each triple of elements that `mma` takes. Their fragments are in quads (PTX ISA, "Warp-level matrix fragment
/// layouts" of `mma.m16n8k16` and the following sections, and of `mma.m8n8k4` for `f64`).
fn atoms(machine: &Machine) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for (a, b, acc) in MMA_TRIPLES {
        let fp8 = matches!(a, Elem::E4m3 | Elem::E5m2);
        let missing = fp8 && !machine.has(Feature::Fp8Mma);
        // Tensor cores have no exact MMA of f32.
        if *a == Elem::F32 || missing {
            continue;
        }
        let fits = |s: &&MmaShape| s.family == Feature::MmaSync && s.bits == a.bits();
        if let Some(shape) = machine.mma.iter().find(fits) {
            let mma = MmaAtom { m: shape.m, n: shape.n.0, k: shape.k, a: *a, b: *b, acc: *acc };
            atoms.push(Atom::in_quads(mma, mma.m, mma.n));
        }
    }
    atoms
}

/// The instructions of a warpgroup for each triple of elements, with the greatest N. Each warp has 16 rows of 8 columns in quads, as often as
/// there are columns (PTX ISA, "Register Fragments for `wgmma.mma_async.m64nNk16`" and the following sections).
fn group_atoms(machine: &Machine) -> Vec<Atom> {
    let of = |(a, b, acc): &(Elem, Elem, Elem)| {
        let shape = machine.mma.iter().find(|s| s.family == Feature::Wgmma && s.bits == a.bits())?;
        let n = shape.n.1;
        let mma = MmaAtom { m: shape.m, n, k: shape.k, a: *a, b: *b, acc: *acc };
        (accumulators(*a) == *acc && group::has(*a, *b, n)).then(|| Atom::in_quads(mma, 16, 8))
    };
    MMA_TRIPLES.iter().filter_map(of).collect()
}

/// How fast a machine executes instructions.
///
/// Rates: *CUDA C++ Programming Guide*, "Throughput of Native Arithmetic Instructions", by a multiprocessor and cycle, divided by its four
/// partitions; shared memory has 32 banks of 4 bytes ("Compute Capability 8.x", "Shared Memory"). Multiply-adds of tensor cores: whitepapers
/// of the A100 (1,024 by a multiprocessor and cycle), of GA102 and AD102 (512) and of the H100 (2,048), and for later machines those of
/// the H100. Latencies are assumed, for all machines alike: no manual states them.
fn timing(machine: &Machine) -> Timing {
    let (macs, lanes) = match machine.capability {
        ..=80 => (256, 16),
        81..=89 => (128, 32),
        90.. => (512, 32),
    };
    Timing {
        partitions: 4,
        macs,
        matrix_latency: 33,
        lanes,
        lanes_latency: 4,
        special: 4,
        special_latency: 18,
        shared_bytes: 128,
        shared_latency: 29,
    }
}
