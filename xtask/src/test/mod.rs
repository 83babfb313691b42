//! Builds the workspace's tests once and runs them side by side, in one of two depths (`test-depth`).
//!
//! A test that cannot run here passes and writes a line `SKIPPED <test>: <why>`. The lines are repeated at the end, so that a
//! skipped test is not mistaken for one that ran.

mod build;
mod jobs;
mod options;
mod run;
pub(crate) mod unoptimized;

use crate::cargo::cargo;
pub(crate) use options::Options;
use run::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long everything takes on two cores, in minutes: to build in a fresh clone, and to run in the quick and in the full depth.
const MINUTES: (u64, u64, u64) = (5, 4, 60);

/// Packages that are workspaces of their own, which only the full depth builds.
const SEPARATE: [&str; 3] = ["examples/decoder", "examples/candle", "examples/dlpack"];

/// Runs the tests of one more, which are linked with what this script brings and makes.
const WITH_TOOLKIT: &str = "examples/candle/cuda/test.sh";

/// The exit status of [`WITH_TOOLKIT`] where its tests cannot run; it has written why.
const SKIPPED: i32 = 77;

/// Runs the tests that are asked for; whether all passed.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(crate) fn run(args: &[String]) -> io::Result<bool> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{}", options::HELP);
        return Ok(true);
    }
    let options = Options::parse(args).map_err(io::Error::other)?;
    let passed = with(&options, &[])?;
    let elsewhere = !(options.full && options.is_everything()) || crate::platforms::run(&[])?;
    Ok(passed && elsewhere)
}

/// Rewrites what tests compare with: all of it, whatever a sample would leave out.
pub(crate) fn bless() -> io::Result<bool> {
    let options = Options { full: true, ..Options::default() };
    with(&options, &[("TITAN_BLESS", "1".into())])
}

/// Test programs that run with an environment of their own.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) programs: Vec<&'static str>,
    pub(crate) environment: Vec<(&'static str, OsString)>,
}

/// Builds with a command of cargo's, and runs the programs of these groups, in the quick depth.
pub(crate) fn run_groups(mut build: Command, groups: &[Group], options: &Options) -> io::Result<bool> {
    let since = Instant::now();
    let names = groups.iter().flat_map(|group| &group.programs);
    build.args(names.flat_map(|name| ["--test", name]));
    let Some(built) = build::run(build)? else { return Ok(false) };
    let jobs = groups.iter().flat_map(|group| jobs::of_group(&built, group)).collect();
    let outcomes = run::side_by_side(jobs, &options.passed_on, &environment(options)?, report, waiting);
    summary(&outcomes, since.elapsed());
    Ok(outcomes.iter().all(|outcome| outcome.success))
}

/// A program that runs those of another system.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) program: PathBuf,
    pub(crate) environment: Vec<(&'static str, OsString)>,
    /// A process for which the services of that system keep running: it ends when its input does.
    pub(crate) session: Option<std::process::Child>,
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(mut session) = self.session.take() {
            drop(session.stdin.take());
            let _ = session.wait();
        }
    }
}

/// Builds programs of another system with a command of cargo's, and has them run, in the quick depth. What is installed here to compare with
/// is not there.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(crate) fn run_elsewhere(build: Command, runner: &Runner, options: &Options) -> io::Result<bool> {
    let since = Instant::now();
    let Some(mut built) = build::run(build)? else { return Ok(false) };
    built.select(options);
    let jobs: Vec<_> = jobs::plan(&built, options)?.into_iter().map(|job| job.run_by(runner)).collect();
    println!("\nbuilt in {}; {} test programs run", minutes(since.elapsed()), jobs.len());
    let outcomes = run::side_by_side(jobs, &options.passed_on, &runner.environment, report, waiting);
    if options.times {
        times(&outcomes);
    }
    summary(&outcomes, since.elapsed());
    Ok(outcomes.iter().all(|outcome| outcome.success))
}

#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn with(options: &Options, more: &[(&'static str, OsString)]) -> io::Result<bool> {
    let since = Instant::now();
    announce(options);
    let mut environment = environment(options)?;
    environment.extend(more.iter().cloned());
    let Some(built) = build::build(options)? else { return Ok(false) };
    let jobs = jobs::plan(&built, options)?;
    println!("\nbuilt in {}; {} test programs run", minutes(since.elapsed()), jobs.len());
    let outcomes = run::side_by_side(jobs, &options.passed_on, &environment, report, waiting);
    let passed = outcomes.iter().all(|outcome| outcome.success);
    if options.times {
        times(&outcomes);
    }
    let documented = !options.is_everything() || examples_in_docs()?;
    // In a workspace of its own, whose libraries are built once more.
    let told = !(options.is_everything() && options.full) || crate::book::blocks(&[])?;
    let (separate, skipped) =
        if options.is_everything() && options.full { separate_workspaces()? } else { (true, None) };
    summary(&outcomes, since.elapsed());
    if let Some(script) = skipped {
        println!("and skipped {script}, which has written why");
    }
    if !documented {
        println!("and examples in the documentation");
    }
    if !told {
        println!("and blocks of the book");
    }
    if !separate {
        println!("and tests of {} or {WITH_TOOLKIT}", SEPARATE.join(", "));
    }
    Ok(passed && documented && told && separate)
}

/// Builds and runs the tests of the packages that are workspaces of their own: whether all passed, and the script that was skipped.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn separate_workspaces() -> io::Result<(bool, Option<&'static str>)> {
    let mut passed = true;
    for package in SEPARATE {
        println!("\n{package}, a workspace of its own");
        let manifest = Path::new(package).join("Cargo.toml");
        passed &= cargo().args(["test", "--locked", "--manifest-path"]).arg(manifest).status()?.success();
    }
    println!("\n{WITH_TOOLKIT}, for a workspace of its own");
    if !cfg!(unix) {
        println!("SKIPPED {WITH_TOOLKIT}: it needs a shell");
        return Ok((passed, Some(WITH_TOOLKIT)));
    }
    let status = Command::new("sh").arg(WITH_TOOLKIT).status()?;
    if status.code() == Some(SKIPPED) {
        return Ok((passed, Some(WITH_TOOLKIT)));
    }
    Ok((passed && status.success(), None))
}

/// Runs the examples in README.md, in the pages of docs/ that src/lib.rs names, and in the documentation of the libraries; whether all passed.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn examples_in_docs() -> io::Result<bool> {
    println!("\nexamples in the documentation");
    let mut command = cargo();
    command.arg("test").arg("--doc").args(crate::cargo::WORKSPACE);
    Ok(command.status()?.success())
}

/// Says what will be done, and how long it takes.
#[expect(clippy::print_stdout, reason = "the plan is printed to the terminal")]
fn announce(options: &Options) {
    let (build, quick, full) = MINUTES;
    let (depth, run) = if options.full { ("full depth: every case", full) } else { ("quick depth: samples", quick) };
    println!("tests, {depth}.");
    if options.is_everything() {
        println!("On two cores this takes about {build} minutes to build in a fresh clone, and {run} to run.");
    }
    if options.full {
        println!(
            "Tools to compare with (ptxas, Triton, LLVM) are installed first if they are not there, about 1.4 GB, and at the end\n\
             wine and what tests for other systems need: about 2 GB."
        );
    } else {
        println!(
            "Nothing but crates is downloaded. `--full` runs every case, and brings ptxas, Triton and LLVM to compare with."
        );
    }
}

/// The environment of all test programs: the depth, the tools, and what cargo would set.
#[expect(clippy::print_stdout, reason = "missing tools are printed to the terminal")]
fn environment(options: &Options) -> io::Result<Vec<(&'static str, OsString)>> {
    let mut environment = vec![("TITAN_CARGO_ARGS", crate::cargo::WORKSPACE.join("\n").into())];
    if options.full {
        environment.push((test_depth::VARIABLE, test_depth::FULL.into()));
    }
    for tool in crate::tools::ALL.iter().filter(|tool| std::env::var_os(tool.variable).is_none()) {
        let brought = if options.full { tool.brought(None) } else { tool.present() };
        match brought {
            Ok(path) => environment.push((tool.variable, path.into_os_string())),
            Err(why) => println!("without {}: {why}", tool.name),
        }
    }
    if options.full
        && let Err(why) = crate::llvm::bring()
    {
        println!("without LLVM 19: {why}");
    }
    // Test programs of procedural macros are linked with rustc's own libraries.
    let libraries = Command::new(crate::cargo::rustc()).args(["--print", "target-libdir"]).output()?;
    let mut path = OsString::from(String::from_utf8_lossy(&libraries.stdout).trim());
    if let Some(own) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(own);
    }
    environment.push(("LD_LIBRARY_PATH", path));
    Ok(environment)
}

/// Prints how a program ended, and what it printed if a test failed.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn report(done: usize, total: usize, outcome: &Outcome) {
    let Outcome { label, success, passed, failed, wall, output, .. } = outcome;
    if !success {
        println!("{output}");
    }
    let result = if *success { "ok    " } else { "FAILED" };
    let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    println!("[{done:3}/{total}] {result} {:6.1} s  {label}: {passed} passed{failed}", wall.as_secs_f64());
}

/// Prints what runs while nothing ends.
#[expect(clippy::print_stdout, reason = "progress is printed to the terminal")]
fn waiting(running: &[(&str, Duration)]) {
    let list: Vec<String> = running.iter().map(|(label, time)| format!("{label} ({} s)", time.as_secs())).collect();
    println!("          still running: {}", list.join(", "));
}

/// Prints the CPU seconds of each program, most first.
#[expect(clippy::print_stdout, reason = "the table is printed to the terminal")]
fn times(outcomes: &[Outcome]) {
    let mut rows: Vec<&Outcome> = outcomes.iter().collect();
    rows.sort_by(|a, b| b.cpu.unwrap_or(0.0).total_cmp(&a.cpu.unwrap_or(0.0)));
    println!("\nCPU s  wall s  tests  program");
    for Outcome { label, passed, failed, wall, cpu, .. } in rows {
        let cpu = cpu.map_or("    ?".to_owned(), |s| format!("{s:5.1}"));
        println!("{cpu}  {:6.1}  {:5}  {label}", wall.as_secs_f64(), passed + failed);
    }
    println!("{:5.1}  in all", outcomes.iter().filter_map(|outcome| outcome.cpu).sum::<f64>());
}

#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn summary(outcomes: &[Outcome], time: Duration) {
    let lines: BTreeSet<&String> = outcomes.iter().flat_map(|outcome| &outcome.skipped).collect();
    let mut skipped: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines {
        let (test, why) = line.split_once(": ").unwrap_or((line, ""));
        skipped.entry(why).or_default().push(test);
    }
    println!("\nskipped here:{}", if skipped.is_empty() { " nothing that needs only a CPU" } else { "" });
    for (why, tests) in skipped {
        println!("  {why}");
        println!("    {}", tests.join(", "));
    }
    for (what, why) in absent() {
        println!("  {what}: {why}");
    }
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.success).collect();
    if !failed.is_empty() {
        println!("\nfailed:");
        failed.iter().for_each(|outcome| println!("  {}", outcome.label));
    }
    println!("\nall in {}", minutes(time));
    // A program that ends without a summary of its own, by a signal for instance, counts as one failed test.
    let lost = failed.iter().filter(|outcome| outcome.failed == 0).count() as u64;
    let (passed, failures) =
        outcomes.iter().fold((0, lost), |(p, f), outcome| (p + outcome.passed, f + outcome.failed));
    println!("tests: {passed} passed, {failures} failed");
}

fn minutes(time: Duration) -> String {
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

/// What no test needs, but some would use.
fn absent() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![("tests on GPUs", "`cargo xtask bundle` makes what runs there")];
    if !Path::new("/proc/driver/nvidia/version").exists() && !Path::new("/dev/kfd").exists() {
        all.push(("devices", "no NVIDIA and no AMD driver was found; everything ran on the CPU"));
    }
    all
}

/// Only the rules of the repository.
pub(crate) fn tidy() -> io::Result<bool> {
    Ok(cargo().args(["test", "-p", "xtask", "--test", "tidy"]).status()?.success())
}
