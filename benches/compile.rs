//! The time that the compiler takes for the kernels of the examples, by target: from the text of an instance to the code of all its
//! variants, and of that, the verification of the barrier program of the first variant.
//!
//! Method: everything runs on one thread, in the profile of the benchmark; each time is the shortest of several runs, since the others
//! also measure the load of the machine. Compilation is a pure function, so that nothing is cached between runs. `cargo bench -p benches --bench
//! compile` measures the optimized compiler; with `--profile dev` it measures the compiler as cargo builds it by default.
//!
//! An argument selects the lines that contain it: `sm_90a`, or "`gemm::<f16".
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::duplicate_mod, reason = "each example has the part that all share")]

/// The examples: their kernels are registered when they are linked, and their `main` is not called.
macro_rules! examples {
    ($($name:ident = $path:literal),* $(,)?) => {
        $(#[path = $path] #[allow(dead_code, unused_imports, clippy::allow_attributes, reason = "only the kernels are used")] mod $name;)*
    };
}

examples! {
    flash_attention = "../examples/flash_attention.rs",
    gemm = "../examples/gemm.rs",
    gemm_ws = "../examples/gemm_ws.rs",
    grouped_gemm = "../examples/grouped_gemm.rs",
    softmax = "../examples/softmax.rs",
    w4a16 = "../examples/w4a16.rs",
}

use std::hint::black_box;
use std::time::Instant;
use titan_core::driver::{compile, stages};
use titan_core::text::parse_one;
use titan_core::verify::{barrier_program, verify};
use titan_nv::Machine;

const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

/// The shortest time of a call, in milliseconds: of at least three runs, and of more if they are short.
fn shortest<T>(mut f: impl FnMut() -> T) -> f64 {
    let (start, mut best, mut runs) = (Instant::now(), f64::INFINITY, 0);
    while runs < 3 || (runs < 50 && start.elapsed().as_secs_f64() < 0.5) {
        let one = Instant::now();
        black_box(f());
        best = best.min(one.elapsed().as_secs_f64() * 1e3);
        runs += 1;
    }
    best
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    println!(
        "| instance | target | variants | compile, ms | per variant | of which barrier verification, ms | share of the variant |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    for kernel in titan::kernels()? {
        let Some(text) = kernel.variants.iter().find(|v| v.target == "cpu").and_then(|v| v.text()) else { continue };
        let wrong = |e: Vec<titan_core::diag::Diagnostic<_>>| e.first().map_or_else(String::new, |e| e.title.clone());
        let verified = verify(parse_one(text).map_err(wrong)?).map_err(|e| format!("{}: {e:?}", kernel.name))?;
        for target in TARGETS {
            let title = format!("`{}` | {target}", kernel.name);
            if !wanted.is_empty() && !wanted.iter().any(|part| title.contains(part.as_str())) {
                continue;
            }
            let machine = Machine::from_name(target)?;
            let variants = compile(&verified, machine, None).map_err(|e| e.message)?.len();
            if variants == 0 {
                continue;
            }
            let all = shortest(|| compile(&verified, machine, None));
            let first = stages(&verified, machine, true, None).map_err(|e| e.message)?;
            let one = shortest(|| stages(&verified, machine, true, None));
            let proof = shortest(|| barrier_program(&first.barriers));
            println!(
                "| {title} | {variants} | {all:.1} | {:.1} | {proof:.1} | {:.0} % |",
                all / variants as f64,
                100.0 * proof / one
            );
        }
    }
    Ok(())
}
