//! The executor against the simulator, which share no arithmetic, and against the code for a GPU in its emulator: every kernel
//! of the filetests that they run, and random ones. Barrier programs in the model checker, and with mistakes.
#![expect(clippy::print_stdout, reason = "how many kernels were compared")]

mod agreement;
mod attention;
mod barriers_for_nothing;
mod chosen;
mod documented;
mod ends;
mod equivalent;
mod exits;
mod explored;
mod fences;
mod gpu;
mod graphs;
mod grouped;
mod groups;
#[path = "../../../titan-nv/tests/hopper/kernels/attention.rs"]
mod kernels;
mod layers;
#[path = "../../../titan-core/tests/shared/loop_moves.rs"]
mod loop_moves;
#[path = "../../../titan-core/tests/shared/loop_mutants.rs"]
mod loop_mutants;
mod loops;
mod memory;
#[path = "../../../titan-nv/tests/hopper/kernels/moved.rs"]
mod moved;
mod mutants;
mod mutants_of_clusters;
mod mutants_of_memory;
mod orders;
mod programs;
mod random;
mod random_groups;
mod random_loops;
mod random_rings;
#[path = "../../../titan-core/tests/lower/random.rs"]
mod random_tiles;
#[path = "../../../titan-core/tests/shared/rewriting.rs"]
mod rewriting;
mod rewritten;
#[path = "../../../titan-core/tests/machine/rng.rs"]
mod rng;
mod ways;

/// What the random kernels of titan-core's tests are made with.
mod machine {
    pub(crate) use crate::rng::Rng;
}

use chosen::{each_kernel, in_turn};
use titan_core::ir::{Const, DimSpec, Elem, GridSpec, HostEnv, Kernel, NvOp, OpKind, ParamKind, Signature, Symbol};
use titan_core::num;
use titan_core::verify::Verified;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Program, Scalar};
use titan_sim::sim::{self, Kind};

struct Env(i64, i64);

impl HostEnv for Env {
    fn symbol(&self, _: Symbol) -> i64 {
        self.0
    }
    fn scalar(&self, _: usize) -> i64 {
        self.1
    }
    fn dim(&self, _: usize, _: usize) -> i64 {
        self.0
    }
}

/// Elements that are not all alike, small, positive and negative.
fn bytes(elem: Elem, n: usize, salt: usize) -> Vec<u8> {
    let value = |i: usize| ((i + salt) * 37 % 61) as f64 / 16.0 - 1.5;
    let code = |i: usize| match elem {
        Elem::F64 => value(i).to_bits(),
        Elem::F32 => (value(i) as f32).to_bits().into(),
        Elem::Tf32 => num::tf32_from_f64(value(i)).to_bits().into(),
        Elem::F16 => num::f16_from_f64(value(i)).into(),
        Elem::Bf16 => num::bf16_from_f64(value(i)).into(),
        Elem::E4m3 => num::e4m3_from_f64(value(i)).into(),
        Elem::E5m2 => num::e5m2_from_f64(value(i)).into(),
        Elem::Bool => i.is_multiple_of(3).into(),
        _ => ((i * 5 + salt) % 17) as u64,
    };
    match elem.bits() {
        4 => num::pack_nibbles(&(0..n).map(|i| code(i) as u8 & 0xF).collect::<Vec<_>>()),
        bits => (0..n).flat_map(|i| code(i).to_le_bytes()[..bits as usize / 8].to_vec()).collect(),
    }
}

/// Whole numbers of any size for the random kernels of titan-core's tests.
fn random_tiles_arguments(rng: &mut rng::Rng, kernel: &Verified) -> Vec<sim::Arg> {
    let mut one = |kind: &ParamKind| match kind {
        ParamKind::Scalar(e) => sim::Arg::Scalar(Const::Int(*e, 1)),
        ParamKind::Tensor { elem, shape, .. } => {
            let most = if shape.len() > 2 { 20 } else { 70 };
            let shape: Vec<i64> = shape.iter().map(|_| i64::from(1 + rng.below(most))).collect();
            let n = shape.iter().product::<i64>() as usize * elem.bits() as usize / 8;
            sim::Arg::dense(*elem, &shape, (0..n).map(|_| rng.word() as u8).collect())
        }
    };
    kernel.sig.params.iter().map(|p| one(&p.kind)).collect()
}

/// Whether a kernel has operations on tensor memory: only the simulator runs them.
fn uses_tensor_memory(kernel: &Kernel) -> bool {
    kernel.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::Tcgen05(_))))
}

fn arguments(sig: &Signature, extent: i64, scalar: i64) -> Vec<sim::Arg> {
    let env = Env(extent, scalar);
    let dim = |d: &DimSpec| match d {
        DimSpec::Any | DimSpec::Bind(_) => extent,
        DimSpec::Equals(e) => e.eval(&env).unwrap_or(1).max(0),
    };
    let one = |(salt, p): (usize, &titan_core::ir::Param)| match &p.kind {
        ParamKind::Scalar(e) if e.is_float() => sim::Arg::Scalar(Const::Float(*e, 0.75)),
        ParamKind::Scalar(Elem::Bool) => sim::Arg::Scalar(Const::Int(Elem::Bool, 1)),
        ParamKind::Scalar(e) => sim::Arg::Scalar(Const::Int(*e, scalar)),
        ParamKind::Tensor { elem, shape, .. } => {
            let shape: Vec<i64> = shape.iter().map(dim).collect();
            let n = shape.iter().product::<i64>() as usize;
            let offsets = (*elem, shape.len()) == (Elem::I32, 1);
            let bytes =
                if offsets { (0..n as i32).flat_map(i32::to_le_bytes).collect() } else { bytes(*elem, n, salt) };
            sim::Arg::dense(*elem, &shape, bytes)
        }
    };
    sig.params.iter().enumerate().map(one).collect()
}

/// What the executor makes of the same arguments; `None` if it refuses.
fn execute(kernel: &Verified, args: &[sim::Arg], grid: [u32; 3]) -> Option<Vec<Option<Vec<u8>>>> {
    let program = Program::compile(kernel).ok()?;
    let one = |a: &sim::Arg| match a {
        sim::Arg::Scalar(c) => Arg::Scalar(scalar(*c)),
        sim::Arg::Absent => Arg::Absent,
        sim::Arg::Tensor { shape, strides, bytes, .. } => {
            let memory = Memory::zeroed(bytes.len()).unwrap();
            memory.write(0, bytes).unwrap();
            let extents = shape.iter().map(|n| *n as i32).collect();
            Arg::Tensor { memory, offset: 0, extents, strides: strides.clone() }
        }
    };
    let args: Vec<Arg> = args.iter().map(one).collect();
    program.run(&args, grid).ok()?;
    let read = |a: &Arg| match a {
        Arg::Tensor { memory, .. } => {
            let mut bytes = vec![0; memory.len()];
            memory.read(0, &mut bytes).unwrap();
            Some(bytes)
        }
        _ => None,
    };
    Some(args.iter().map(read).collect())
}

fn scalar(c: Const) -> Scalar {
    match c {
        Const::Int(_, v) => Scalar::Int(v),
        Const::Float(_, x) => Scalar::Float(x),
    }
}

fn floats(elem: Elem, bytes: &[u8]) -> Vec<f64> {
    let size = elem.bits() as usize / 8;
    let one = |c: &[u8]| {
        let mut w = [0; 8];
        w[..size].copy_from_slice(c);
        let w = u64::from_le_bytes(w);
        match elem {
            Elem::F64 => f64::from_bits(w),
            Elem::F16 => num::f16_to_f64(w as u16),
            Elem::Bf16 => num::bf16_to_f64(w as u16),
            Elem::E4m3 => num::e4m3_to_f64(w as u8),
            Elem::E5m2 => num::e5m2_to_f64(w as u8),
            _ => f64::from(f32::from_bits(w as u32)),
        }
    };
    bytes.chunks_exact(size).map(one).collect()
}

/// Integers are equal; floats as near as the order of sums and the functions leave them.
fn agree(elem: Elem, a: &[u8], b: &[u8]) -> Option<String> {
    if !elem.is_float() {
        return (a != b).then(|| format!("{elem}: other bytes"));
    }
    let slack = match elem {
        Elem::F64 => 1e-12,
        Elem::F32 | Elem::Tf32 => 1e-4,
        Elem::F16 => 4e-3,
        _ => 4e-2,
    };
    let (a, b) = (floats(elem, a), floats(elem, b));
    let differs = |(x, y): (&f64, &f64)| {
        !(x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= slack * (1.0 + x.abs().max(y.abs())))
    };
    let at = a.iter().zip(&b).position(differs)?;
    Some(format!("{elem}: element {at} is {} in the simulator and {} in the executor", a[at], b[at]))
}

/// The grid on which a barrier program of a kernel runs, whose programs may walk over that of the kernel.
fn program_grid(program: &Kernel, grid: [u32; 3]) -> [u32; 3] {
    let cluster = program.laid_out.as_deref().map_or(1, |laid| laid.cluster);
    match &program.sig.grid {
        GridSpec::Persistent => [2u32.next_multiple_of(cluster), 1, 1],
        // All programs along axis 0, as for programs in groups of rows.
        GridSpec::Extents(extents) if extents.len() == 1 => [grid.iter().product(), 1, 1],
        GridSpec::Extents(_) => grid,
    }
}

/// A launch's grid, by the kernel's own rule for these arguments.
fn grid(kernel: &Kernel, args: &[sim::Arg]) -> Option<[u32; 3]> {
    let info: Vec<_> = args
        .iter()
        .map(|a| match a {
            sim::Arg::Scalar(c) => titan_core::launch::ArgInfo::Scalar(*c),
            sim::Arg::Tensor { elem, shape, strides, .. } => {
                titan_core::launch::ArgInfo::Tensor { elem: *elem, extents: shape, strides }
            }
            sim::Arg::Absent => titan_core::launch::ArgInfo::Absent,
        })
        .collect();
    match &kernel.sig.grid {
        GridSpec::Persistent => Some([2, 1, 1]),
        GridSpec::Extents(_) => match titan_core::launch::bind(&kernel.sig, &info).ok()?.grid {
            titan_core::launch::Grid::Extents(grid) => Some(grid),
            titan_core::launch::Grid::Persistent => None,
        },
    }
}

/// Kernels of which the simulator says that it does not know what they leave in memory: raw stores do not say which bytes they
/// write, and opaque calls not what. Of all others it knows.
const UNKNOWN: [(&str, Kind); 6] = [
    ("barrier_call_before_a_read @passes", Kind::NotModelled),
    ("barrier_call_of_other_regions @passes", Kind::NotModelled),
    ("barrier_call_during_an_mma @passes", Kind::NotModelled),
    ("barrier_fence_before_a_store_outside @passes", Kind::NotModelled),
    ("barrier_output_read_under_a_store @passes", Kind::NotModelled),
    ("barrier_output_written_under_a_store @passes", Kind::NotModelled),
];

#[test]
fn the_executor_and_the_simulator_compute_the_same() {
    let (mut compared, mut skipped, mut wrong, mut unknown, mut number) = (0, 0, Vec::new(), 0, 0);
    each_kernel(&["text", "verify"], &mut |name, kernel| {
        number += 1;
        let known = UNKNOWN.iter().find(|(unknown, _)| *unknown == name);
        for (extent, scalar) in in_turn(&[(32, 2), (20, 3)], number) {
            let mut args = arguments(&kernel.sig, extent, scalar);
            let Some(grid) = grid(kernel, &args) else { continue };
            let before = args.clone();
            let options = sim::Options { sanitize: false, max_steps: 200_000, ..sim::Options::default() };
            let report = sim::run(&kernel.clone().into(), &mut args, Some(grid), &options).unwrap();
            let name = format!("{name} {extent}");
            match report.findings.first() {
                // Kernels that trap or do not end are not for the executor.
                Some(f) if matches!(f.kind, Kind::Trap | Kind::Steps) => continue,
                Some(f) if known.is_some_and(|(_, kind)| f.kind == *kind) => {
                    unknown += 1;
                    continue;
                }
                Some(f) => {
                    wrong.push(format!("{name}: {f}"));
                    continue;
                }
                None => {}
            }
            let Some(executed) = execute(kernel, &before, grid) else {
                skipped += 1;
                continue;
            };
            compared += 1;
            for (arg, other) in args.iter().zip(&executed) {
                if let (sim::Arg::Tensor { elem, bytes, .. }, Some(other)) = (arg, other) {
                    wrong.extend(agree(*elem, bytes, other).map(|w| format!("{name}: {w}")));
                }
            }
        }
    });
    println!("{compared} runs agree or not, {skipped} that the executor refuses");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > test_depth::cases(200, 100), "{compared}");
    assert_eq!(unknown, test_depth::cases(2, 1) * UNKNOWN.len(), "what is known now should be compared");
}
