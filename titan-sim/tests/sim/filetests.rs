//! Every kernel of the filetests and of the museum: good ones are clean on many schedules, and of bad ones it is told what a
//! run or the model checker finds.

use crate::args::{kernels, make};
use std::path::Path;
use std::sync::OnceLock;
use titan_core::verify::WellFormed;
use titan_sim::engine::Completion;
use titan_sim::sim::{Arg, Finding, Kind, Limits, Options, Verdict, explore, replay, run};

/// A file of the filetests: its folder, its name, and its kernels with what the verifier says of each.
pub(crate) struct File {
    folder: &'static str,
    pub(crate) name: String,
    pub(crate) kernels: Vec<(WellFormed, bool)>,
}

fn read() -> Vec<File> {
    let mut found = Vec::new();
    for folder in ["verify", "text", "museum"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../titan-core/filetests").join(folder);
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            // What opaque calls leave in memory is not known.
            let calls = name.starts_with("barrier_call_");
            if path.extension().is_some_and(|e| e == "tir") && !calls {
                found.push(File { folder, name, kernels: kernels(&std::fs::read_to_string(path).unwrap()) });
            }
        }
    }
    found.sort_by(|a, b| (&a.name, a.folder).cmp(&(&b.name, b.folder)));
    found
}

/// The files of these folders whose names begin so.
pub(crate) fn files(folders: &[&str], prefix: &str) -> Vec<&'static File> {
    static ALL: OnceLock<Vec<File>> = OnceLock::new();
    let is_meant = |file: &&File| folders.contains(&file.folder) && file.name.starts_with(prefix);
    ALL.get_or_init(read).iter().filter(is_meant).collect()
}

/// Extents and scalars to run a kernel with.
const SIZES: [(i64, i64); 3] = [(32, 3), (16, 0), (48, 6)];
/// The same for the model checker.
const EXPLORED: [(i64, i64); 3] = [(16, 3), (32, 6), (16, 0)];
/// The same for barrier programs, whose tiles have 64 rows: each program of a cluster has two of them.
const OF_TILES: [(i64, i64); 3] = [(64, 3), (64, 0), (64, 5)];

fn sizes(kernel: &WellFormed, of_others: [(i64, i64); 3]) -> [(i64, i64); 3] {
    if kernel.laid_out.is_some() { OF_TILES } else { of_others }
}

/// The seeds of schedules, and of the sizes those with which a kernel runs: in the quick depth one of them, in turn.
fn in_turn<T>(all: impl IntoIterator<Item = T>, kernel: usize) -> Vec<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    if test_depth::is_full() { all } else { vec![all.swap_remove(kernel % all.len())] }
}

/// What is found on any of several schedules, and with which arguments. What depends on these (a trap, a loop that need not
/// end) is nothing.
fn sampled(number: usize, kernel: &WellFormed) -> Option<(Finding, Vec<Arg>)> {
    for (extent, scalar) in in_turn(sizes(kernel, SIZES), number) {
        for seed in in_turn(0..12, number / SIZES.len()) {
            let completion = match seed % 3 {
                0 => Completion::Late,
                1 => Completion::Early,
                _ => Completion::Seeded(seed),
            };
            let options =
                Options { completion, seed: (seed > 1).then_some(seed), max_steps: 50_000, ..Options::default() };
            let mut args = make(&kernel.sig, extent, scalar);
            let Ok(report) = run(kernel, &mut args, None, &options) else { break };
            match report.findings.into_iter().next() {
                Some(found) if !matches!(found.kind, Kind::Trap | Kind::Steps) => return Some((found, args)),
                Some(_) => break,
                None => {}
            }
        }
    }
    None
}

/// How many states of a program are looked at: in most programs there are fewer.
fn limits() -> Limits {
    Limits { max_states: test_depth::cases(20_000, 300), ..Limits::default() }
}

/// What the model checker says, with the first arguments for which it finds something.
fn explored(
    kernel: &WellFormed,
    sizes: impl IntoIterator<Item = (i64, i64)>,
) -> (Option<(Finding, Vec<Arg>)>, Option<String>) {
    let mut bound = None;
    for (extent, scalar) in sizes {
        let args = make(&kernel.sig, extent, scalar);
        match explore(kernel, &args, None, &limits()) {
            Err(_) | Ok(Verdict::Safe(_)) => {}
            Ok(Verdict::Bound(what, _)) => bound = Some(what),
            Ok(Verdict::Finding(found, _)) if found.kind == Kind::Trap => {}
            Ok(Verdict::Finding(found, _)) => return (Some((*found, args)), bound),
        }
    }
    (None, bound)
}

#[test]
fn good_kernels_are_clean_on_every_sampled_schedule() {
    let mut dirty = Vec::new();
    let mut n = 0;
    for File { name, kernels, .. } in files(&["verify", "text", "museum"], "") {
        for (kernel, _) in kernels.iter().filter(|(_, good)| *good) {
            n += 1;
            let found = sampled(n, kernel);
            // What goes through `shared` the verifier leaves to the user.
            if name == "shared" {
                assert!(found.is_some_and(|(f, _)| f.kind == Kind::Race));
                continue;
            }
            // What raw stores write of a tensor beside other accesses is not said.
            let beside = ["fence_before_a_store_outside", "output_read_under_a_store", "output_written_under_a_store"];
            if beside.iter().any(|b| name.strip_prefix("barrier_") == Some(*b)) {
                assert!(found.is_some_and(|(f, _)| f.kind == Kind::NotModelled));
                continue;
            }
            if let Some((found, _)) = found {
                dirty.push(format!("{name} @{}: {found} [{}]", kernel.sig.name, found.schedule));
            }
        }
    }
    println!("{n} good kernels, {} not clean", dirty.len());
    assert!(dirty.is_empty(), "{}", dirty.join("\n"));
}

/// Good kernels whose roles and copies interleave: those of pipelines and barriers.
#[test]
fn good_pipelines_are_safe_in_every_order() {
    let (mut dirty, mut bounds, mut n) = (Vec::new(), Vec::new(), 0);
    let all = [
        files(&["verify"], "pipe_"),
        files(&["verify"], "barrier_"),
        files(&["verify"], "tensor_"),
        files(&["museum"], ""),
        files(&["verify"], "accepted_"),
    ];
    for File { name, kernels, .. } in all.concat() {
        for (kernel, _) in kernels.iter().filter(|(_, good)| *good) {
            n += 1;
            match explored(kernel, in_turn(sizes(kernel, EXPLORED), n)) {
                (Some((found, _)), _) if found.kind == Kind::NotModelled => {
                    bounds.push(format!("{name} @{}: {found}", kernel.sig.name))
                }
                (Some((found, _)), _) => {
                    dirty.push(format!("{name} @{}: {found} [{}]", kernel.sig.name, found.schedule))
                }
                (None, Some(bound)) => bounds.push(format!("{name} @{}: {bound}", kernel.sig.name)),
                (None, None) => {}
            }
        }
    }
    println!("{n} good pipelines; not decided: {}\n{}", bounds.len(), bounds.join("\n"));
    assert!(dirty.is_empty(), "{}", dirty.join("\n"));
}

/// Which refused kernels show what is wrong with them.
#[test]
fn bad_pipelines_are_found() {
    let (mut table, mut missed) = (std::collections::BTreeMap::new(), Vec::new());
    let (mut n, mut by_run) = (0, 0_u32);
    let all = [
        files(&["verify"], "pipe_"),
        files(&["verify"], "barrier_"),
        files(&["verify"], "tensor_"),
        files(&["museum"], ""),
    ];
    for File { name, kernels, .. } in all.concat() {
        for (kernel, _) in kernels.iter().filter(|(_, good)| !*good) {
            n += 1;
            by_run += u32::from(sampled(n, kernel).is_some());
            // In the quick depth with fewer tiles.
            let fewer = sizes(kernel, EXPLORED).map(|(extent, n)| (extent, n.min(test_depth::cases(n, 4))));
            match explored(kernel, fewer).0 {
                Some((found, mut args)) => {
                    *table.entry(found.kind.code()).or_insert(0) += 1;
                    let again = replay(
                        kernel,
                        &mut args,
                        None,
                        &Options { max_steps: 100_000, ..Options::default() },
                        &found.schedule,
                    )
                    .unwrap();
                    assert!(!again.findings.is_empty(), "{name}: not seen again: {found} [{}]", found.schedule);
                }
                None => missed.push(name.clone()),
            }
        }
    }
    println!(
        "{n} refused kernels: explorer finds {}, sampling {by_run}\n{table:?}\nnot found: {missed:?}",
        n - missed.len()
    );
    // What is only declared wrongly, or wrong for arguments that are not tried, no order shows. Missing fences are found: the
    // sanitizer watches every order.
    assert!(missed.len() * test_depth::cases(6, 5) < n, "{missed:?}");
}
