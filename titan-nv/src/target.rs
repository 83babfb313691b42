//! The description of a machine for the middle of the compiler.

use crate::machine::{Feature, Machine, MmaShape};
use crate::ptx::isa::group::{self, accumulators};
use titan_core::collections::SortedSet;
use titan_core::ir::{Elem, MMA_TRIPLES};
use titan_core::lane::{GroupMma, MmaAtom};
use titan_core::plan::{Target, Timing};

/// The properties of a machine in the form that plans use.
#[must_use]
pub fn target(machine: &Machine) -> Target {
    let shared_classes = shared_classes(machine);
    Target {
        name: machine.name,
        lanes: machine.warp_size,
        max_warps: machine.threads_per_block / machine.warp_size,
        registers: machine.registers_per_thread,
        shared_bytes: shared_classes.first().copied().unwrap_or(machine.shared_per_block),
        shared_classes,
        shared_reserved: machine.shared_per_sm - machine.shared_per_block,
        registers_per_sm: machine.registers_per_sm,
        warps_per_sm: machine.warps_per_sm,
        atoms: atoms(machine),
        group_atoms: group_atoms(machine),
        bulk_tensor: machine.has(Feature::Tma),
        clusters: machine.has(Feature::Cluster) && machine.has(Feature::Multicast),
        role_warps: if machine.has(Feature::SetMaxNReg) { GroupMma::WARPS } else { 1 },
        copy_async: machine.has(Feature::CpAsync),
        load_matrix: machine.has(Feature::LdMatrix),
        store_matrix: machine.has(Feature::StMatrix),
        fp8_convert: machine.has(Feature::Fp8Convert),
        bf16_arithmetic: machine.capability >= 90,
        timing: timing(machine),
    }
}

/// The sizes of shared memory, in bytes, that the machines running this machine's code grant a program: 99, 163 and 227 KiB for sm_80.
/// Code for `sm_90a` runs only on such devices (PTX ISA, `.target`: "architecture-specific").
pub(crate) fn shared_classes(machine: &Machine) -> Vec<u32> {
    let runs = |other: &&Machine| machine.runs_on(other.capability);
    let classes: SortedSet<u32> = Machine::all().iter().filter(runs).map(|m| m.shared_per_block).collect();
    classes.into_iter().collect()
}

/// The instructions of a warp for each triple of elements that `mma` takes.
fn atoms(machine: &Machine) -> Vec<MmaAtom> {
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
            atoms.push(MmaAtom { m: shape.m, n: shape.n.0, k: shape.k, a: *a, b: *b, acc: *acc });
        }
    }
    atoms
}

/// The instructions of a warpgroup for each triple of elements, with the greatest N.
fn group_atoms(machine: &Machine) -> Vec<MmaAtom> {
    let of = |(a, b, acc): &(Elem, Elem, Elem)| {
        let shape = machine.mma.iter().find(|s| s.family == Feature::Wgmma && s.bits == a.bits())?;
        let n = shape.n.1;
        (accumulators(*a) == *acc && group::has(*a, *b, n)).then_some(MmaAtom {
            m: shape.m,
            n,
            k: shape.k,
            a: *a,
            b: *b,
            acc: *acc,
        })
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
        copy_latency: 600,
        barrier_latency: 20,
    }
}
