//! Mistakes about memory in barrier programs (`mutants_of_memory`): the verifier refuses each, and the simulator or its sanitizer finds those that a
//! run shows.
//!
//! The programs are those of the filetests, and of kernels of the filetests and the examples for sm_80 and sm_90a.

use super::chosen::{Chosen, ORDERS, each_chosen_kernel, mistakes};
use super::gpu::{hopper, machine};
use super::mutants_of_memory::{KINDS, Shows, mutants_of, trapped};
use super::{arguments, grid, program_grid};
use std::collections::BTreeMap;
use std::path::Path;
use titan_core::driver::{barrier_program as lowered, stages};
use titan_core::ir::{Kernel, OpId};
use titan_core::plan::plan;
use titan_core::text::{parse_located, parse_one};
use titan_core::verify::{barrier_program, verify, well_formed};
use titan_sim::sim;

/// A program in which mistakes are made, with the arguments of its runs.
struct Subject {
    name: String,
    program: Kernel,
    args: Vec<sim::Arg>,
    grid: [u32; 3],
    /// Whether runs must show its mistakes. In the small runs of large products, what is not copied may be zeros beyond a tensor, or a tile that
    /// the slot has from an earlier step.
    shown: bool,
}

/// The barrier programs of the filetests.
fn written() -> Vec<(String, Kernel)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../titan-core/filetests/program");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let base = text.split("\n; mistake").next().unwrap_or_default();
        for kernel in parse_located(base).unwrap_or_default() {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            all.push((format!("{name} @{}", kernel.kernel.sig.name), kernel.kernel.canonical()));
        }
    }
    all
}

fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    let mut subject = |name: String, program: Kernel, args: Vec<sim::Arg>, of: &Kernel| {
        if let (Ok(()), Some(grid)) = (barrier_program(&program), grid(of, &args)) {
            let grid = program_grid(&program, grid);
            let shown = !name.starts_with("gemm");
            all.push(Subject { name, program, args, grid, shown });
        }
    };
    for (name, program) in written() {
        let args = arguments(&program.sig, 48, 3);
        let of = program.clone();
        subject(name, program, args, &of);
    }
    each_chosen_kernel(&["text", "verify"], &mut |name, kernel| {
        let args = || arguments(&kernel.sig, 32, 3);
        if let Ok(program) = lowered(kernel, &plan(kernel, &titan_nv::target(machine()), true)) {
            subject(format!("{name}, sm_80"), program, args(), kernel);
        }
        if let Ok(made) = stages(kernel, hopper(), true, None) {
            subject(format!("{name}, sm_90a"), made.barriers, args(), kernel);
        }
    });
    for (name, text, extent) in [
        ("gemm_bulk", include_str!("../../../titan-nv/golden/gemm_bulk.tir"), 40),
        ("gemm", include_str!("../../../titan-nv/tests/hopper/kernels/gemm.tir"), 136),
    ] {
        let kernel = verify(parse_one(text).expect("a kernel")).expect("a right kernel");
        for (target, machine) in [("sm_80", machine()), ("sm_90a", hopper())] {
            if let Ok(made) = stages(&kernel, machine, true, None) {
                subject(format!("{name}, {target}"), made.barriers, arguments(&kernel.sig, extent, 3), &kernel);
            }
        }
    }
    all
}

/// Whether runs show something of a program: a finding, or other results than wanted.
fn shows(subject: &Subject, program: Kernel, wanted: Option<&[sim::Arg]>) -> bool {
    let Ok(program) = well_formed(program) else { return true };
    ORDERS.into_iter().any(|(completion, seed)| {
        let mut after = subject.args.clone();
        let options = sim::Options { completion, seed, max_steps: 60_000, ..sim::Options::default() };
        let report = sim::run(&program, &mut after, Some(subject.grid), &options).unwrap();
        !report.findings.is_empty() || wanted.is_some_and(|wanted| wanted != after)
    })
}

/// The results of a program in the first order.
fn results(subject: &Subject) -> Vec<sim::Arg> {
    let mut after = subject.args.clone();
    if let Ok(program) = well_formed(subject.program.clone()) {
        let (completion, seed) = ORDERS[0];
        let options = sim::Options { completion, seed, max_steps: 60_000, ..sim::Options::default() };
        sim::run(&program, &mut after, Some(subject.grid), &options).unwrap();
    }
    after
}

#[test]
fn mistakes_in_memory_are_refused_and_found() {
    let subjects = subjects();
    let all = subjects.iter().enumerate().flat_map(|(n, subject)| mistakes(n, &subject.program, mutants_of));
    let chosen = Chosen::of(all, 6);
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (number, subject) in subjects.iter().enumerate().filter(|(number, _)| chosen.has(*number)) {
        let wanted = results(subject);
        let right = !shows(subject, subject.program.clone(), Some(&wanted));
        for (id, kind, mutant) in chosen.mutants(number, &subject.program, mutants_of) {
            *made.entry(kind).or_default() += 1;
            let told = |what: &str| format!("{}: {kind}, {id:?} {:?}: {what}", subject.name, op(&subject.program, id));
            if barrier_program(&mutant).is_ok() {
                wrong.push(told("accepted"));
            }
            let always = subject.shown && KINDS.contains(&(kind, Shows::Always));
            let runs = || shows(subject, trapped(&subject.program, id), None);
            if always && right && !shows(subject, mutant, Some(&wanted)) && runs() {
                wrong.push(told("not found by a run"));
            }
        }
    }
    println!("{made:?}");
    assert!(wrong.is_empty(), "{} of {made:?}\n{}", wrong.len(), wrong.join("\n"));
    for (kind, _) in KINDS {
        assert!(made.get(kind).is_some_and(|n| *n >= 2), "{kind}: {made:?}");
    }
}

fn op(program: &Kernel, id: OpId) -> &titan_core::ir::OpKind {
    &program.op(id).kind
}
