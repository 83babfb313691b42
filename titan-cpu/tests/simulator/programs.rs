//! Barrier programs: what kernels become on the way to a target computes what the executor does, warp by warp, and the sanitizer
//! sees no race, in every order of completion.

use super::{agree, arguments, execute, grid};
use std::path::Path;
use titan_core::driver::barrier_program;
use titan_core::ir::{Elem, FreeBy};
use titan_core::lane::MmaAtom;
use titan_core::plan::{Plan, Target, plan};
use titan_core::verify::{Verified, verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{self, Kind};

/// A machine with warps of 32 lanes, asynchronous copies and matrix instructions.
pub(super) fn target() -> Target {
    let atom = |k, a, acc| MmaAtom { m: 16, n: 8, k, a, b: a, acc };
    Target {
        name: "test",
        lanes: 32,
        max_warps: 32,
        registers: 255,
        shared_bytes: 99 * 1024,
        shared_classes: Vec::new(),
        shared_reserved: 1024,
        registers_per_sm: 64 * 1024,
        warps_per_sm: 48,
        atoms: vec![
            atom(32, Elem::I8, Elem::I32),
            atom(16, Elem::F16, Elem::F32),
            atom(16, Elem::Bf16, Elem::F32),
            atom(8, Elem::Tf32, Elem::F32),
            MmaAtom { m: 8, n: 8, k: 4, a: Elem::F64, b: Elem::F64, acc: Elem::F64 },
        ],
        copy_async: true,
        load_matrix: true,
        fp8_convert: false,
        bf16_arithmetic: false,
    }
}

/// What is wrong with the barrier program of a kernel on these arguments; `None` if nothing, or if it is not for this test.
fn wrong(kernel: &Verified, plan: &Plan, args: &[sim::Arg], counts: &mut [u32; 3]) -> Option<String> {
    let grid = grid(kernel, args)?;
    let Ok(program) = barrier_program(kernel, plan) else {
        counts[1] += 1;
        return None;
    };
    let program = match well_formed(program) {
        Ok(program) => program,
        Err(errors) => return Some(format!("{errors:?}")),
    };
    for (completion, seed) in [(Completion::Late, None), (Completion::Early, Some(1)), (Completion::Seeded(7), Some(2))]
    {
        let mut after = args.to_vec();
        let options = sim::Options { completion, seed, max_steps: 60_000, ..sim::Options::default() };
        let report = sim::run(&program, &mut after, Some(grid), &options).unwrap();
        match report.findings.first() {
            Some(f) if matches!(f.kind, Kind::Trap | Kind::Steps) => return None,
            Some(f) if f.kind == Kind::NotModelled => {
                counts[2] += 1;
                return Some(format!("{f}"));
            }
            // Programs of a grid may race by what the kernel says.
            Some(_)
                if !sim::run(&kernel.clone().into(), &mut args.to_vec(), Some(grid), &options)
                    .unwrap()
                    .findings
                    .is_empty() =>
            {
                return None;
            }
            Some(f) => return Some(format!("{completion:?} {seed:?}: {f}")),
            None => counts[0] += 1,
        }
        // Only now: what does not end is not for the executor.
        let executed = execute(kernel, args, grid)?;
        for (arg, other) in after.iter().zip(&executed) {
            if let (sim::Arg::Tensor { elem, bytes, .. }, Some(other)) = (arg, other)
                && let Some(differs) = agree(*elem, bytes, other)
            {
                return Some(format!("{completion:?} {seed:?}: {differs}"));
            }
        }
    }
    None
}

#[test]
fn barrier_programs_compute_what_the_executor_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../titan-core/filetests");
    let (mut counts, mut found) = ([0; 3], Vec::new());
    for sub in ["text", "verify"] {
        let mut paths: Vec<_> = std::fs::read_dir(folder.join(sub)).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let kernels = titan_core::text::parse_located(&std::fs::read_to_string(&path).unwrap()).unwrap_or_default();
            for kernel in kernels.into_iter().filter_map(|k| verify(k.kernel).ok()) {
                for (extent, aligned, free) in
                    [(32, true, FreeBy::Mbarrier), (20, false, FreeBy::Mbarrier), (32, false, FreeBy::Sequence)]
                {
                    if free == FreeBy::Sequence && kernel.roles.is_empty() {
                        continue;
                    }
                    let plan = Plan { free, ..plan(&kernel, &target(), aligned) };
                    let args = arguments(&kernel.sig, extent, 3);
                    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                    found.extend(
                        wrong(&kernel, &plan, &args, &mut counts)
                            .map(|w| format!("{name} @{} {extent} {free:?}: {w}", kernel.sig.name)),
                    );
                }
            }
        }
    }
    println!("{} runs agree, {} programs are not of this target, {} are not modelled", counts[0], counts[1], counts[2]);
    assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
    assert!(counts[0] > 400, "{counts:?}");
}
