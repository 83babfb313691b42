//! How long expansions take: the examples are checked with `TITAN_TIMES=1`, the macro and all below it once unoptimized, as
//! cargo builds it by default, and once optimized as a user can ask for it.
//!
//! Every kernel is expanded several times, each time in a fresh rustc, and the quickest time counts: the others measure what
//! else the machine does.

use crate::cargo::cargo;
use std::collections::BTreeMap;
use std::io;

/// How often each kernel is expanded, without and with optimization.
const RUNS: usize = 5;

/// The times of one kernel, in microseconds.
#[derive(Clone, Debug, Default)]
struct Times {
    instances: u64,
    /// All of it; parse, infer, lower, verify, shadow, print.
    parts: [u64; 7],
    /// The nested expansions that make the bytes, answered from the cache.
    bytes: u64,
}

/// Prints both tables.
#[expect(clippy::print_stdout, reason = "the tables are told on the terminal")]
pub(crate) fn run() -> io::Result<bool> {
    for (name, level) in [("unoptimized", 0), ("opt-level 2", 2)] {
        let compiler = ["titan-gpu-core", "titan-gpu-nv", "titan-gpu-macros"];
        let config: Vec<String> = compiler
            .iter()
            .flat_map(|krate| ["--config".to_owned(), format!("profile.dev.package.{krate}.opt-level={level}")])
            .collect();
        let Some(table) = measure(&config)? else { return Ok(false) };
        println!("\n{name}, microseconds, the quickest of {RUNS}\n");
        println!(
            "| kernel | instances | total | parse | infer | lower | verify | shadow | print | rest | bytes, cached |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
        for (kernel, Times { instances, parts, bytes }) in table {
            let cells: Vec<String> = parts.iter().map(u64::to_string).collect();
            let rest = parts[0].saturating_sub(parts[1..].iter().sum());
            println!("| {kernel} | {instances} | {} | {rest} | {bytes} |", cells.join(" | "));
        }
    }
    Ok(true)
}

fn measure(config: &[String]) -> io::Result<Option<BTreeMap<String, Times>>> {
    let mut best: BTreeMap<String, Times> = BTreeMap::new();
    for _ in 0..RUNS {
        // A changed file is what makes cargo run rustc again.
        for entry in std::fs::read_dir(root().join("examples"))? {
            touch(&entry?.path())?;
        }
        touch(&root().join("examples/minilm/src/lib.rs"))?;
        let out = cargo()
            .args(["check", "-p", "titan-gpu", "-p", "minilm", "--examples", "--lib", "--jobs", "1"])
            .args(config)
            .env("TITAN_TIMES", "1")
            .output()?;
        if !out.status.success() {
            return Ok(None);
        }
        for (kernel, times) in lines(&String::from_utf8_lossy(&out.stderr)) {
            let known = best.entry(kernel).or_insert_with(|| times.clone());
            let bytes = known.bytes.min(times.bytes);
            if times.parts[0] < known.parts[0] {
                *known = times;
            }
            known.bytes = bytes;
        }
    }
    Ok(Some(best))
}

/// The kernels of one build. The steps that ask companions are added to their kernel.
fn lines(text: &str) -> BTreeMap<String, Times> {
    let mut table: BTreeMap<String, Times> = BTreeMap::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("titan-times ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, name, numbers @ ..] = &words[..] else { continue };
        let numbers: Vec<u64> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
        let [instances, parts @ ..] = &numbers[..] else { continue };
        let times = table.entry((*name).to_owned()).or_default();
        match *what {
            "kernel" | "step" | "missing" => {
                times.instances = times.instances.max(*instances);
                times.parts.iter_mut().zip(parts).for_each(|(sum, n)| *sum += n);
            }
            "compile" => times.bytes += parts.first().copied().unwrap_or(0),
            _ => {}
        }
    }
    table.retain(|_, t| t.parts[0] > 0);
    table
}

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn touch(path: &std::path::Path) -> io::Result<()> {
    if path.extension().is_some_and(|e| e == "rs") {
        std::fs::File::options().append(true).open(path)?.set_modified(std::time::SystemTime::now())?;
    }
    Ok(())
}
