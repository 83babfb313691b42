//! Runs test programs side by side, as many as there are processors.
//!
//! The output of a program is collected, so that those of several do not mix, and printed if a test failed. Its CPU time is that of the
//! process and of all that it started and waited for, read from `/proc` when the process has ended and before it is reaped; elsewhere
//! than on Linux it is unknown.

use super::jobs::Job;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The line of a skipped test begins with this.
const SKIPPED: &str = "SKIPPED ";

/// After this time without a result, what runs is printed.
const SILENCE: Duration = Duration::from_secs(20);

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) label: String,
    pub(crate) success: bool,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// What skipped tests say of themselves.
    pub(crate) skipped: Vec<String>,
    pub(crate) wall: Duration,
    /// User and system seconds of the program and its children.
    pub(crate) cpu: Option<f64>,
    pub(crate) output: String,
}

enum Event {
    Started(usize),
    Ended(usize, Outcome),
}

/// Runs all, and reports each as it ends.
pub(crate) fn side_by_side(
    jobs: Vec<Job>,
    args: &[String],
    environment: &[(&'static str, OsString)],
    mut report: impl FnMut(usize, usize, &Outcome),
    mut waiting: impl FnMut(&[(&str, Duration)]),
) -> Vec<Outcome> {
    let total = jobs.len();
    let labels: Vec<String> = jobs.iter().map(|job| job.label.clone()).collect();
    let queue: Mutex<VecDeque<(usize, Job)>> = Mutex::new(jobs.into_iter().enumerate().collect());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (sender, receiver) = mpsc::channel();
    let mut outcomes = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, queue) = (sender.clone(), &queue);
            scope.spawn(move || {
                // The lock is released before the program runs.
                let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
                while let Some((index, job)) = next() {
                    let _ = sender.send(Event::Started(index));
                    let _ = sender.send(Event::Ended(index, run(&job, args, environment)));
                }
            });
        }
        drop(sender);
        let mut running: Vec<(usize, Instant)> = Vec::new();
        loop {
            match receiver.recv_timeout(SILENCE) {
                Ok(Event::Started(index)) => running.push((index, Instant::now())),
                Ok(Event::Ended(index, outcome)) => {
                    running.retain(|(other, _)| *other != index);
                    outcomes.push(outcome);
                    if let Some(last) = outcomes.last() {
                        report(outcomes.len(), total, last);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let list: Vec<_> =
                        running.iter().map(|(i, since)| (labels[*i].as_str(), since.elapsed())).collect();
                    waiting(&list);
                }
                // All workers have ended.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    outcomes
}

fn run(job: &Job, args: &[String], environment: &[(&'static str, OsString)]) -> Outcome {
    let since = Instant::now();
    let (status, output, cpu) = match output_of(job, args, environment) {
        Ok(ended) => ended,
        Err(error) => (false, format!("`{}` cannot be run: {error}\n", job.path.display()), None),
    };
    let (passed, failed) = counts(&output);
    // Tests print while others do: the mark may follow something on the same line.
    let skipped =
        output.lines().filter_map(|line| Some(line[line.find(SKIPPED)? + SKIPPED.len()..].to_owned())).collect();
    Outcome { label: job.label.clone(), success: status, passed, failed, skipped, wall: since.elapsed(), cpu, output }
}

/// Whether the program succeeded, what it printed, and its CPU seconds.
fn output_of(
    job: &Job,
    args: &[String],
    environment: &[(&'static str, OsString)],
) -> io::Result<(bool, String, Option<f64>)> {
    let (mut reader, writer) = io::pipe()?;
    let mut command = match &job.runner {
        Some(runner) => Command::new(runner),
        None => Command::new(&job.path),
    };
    command.args(job.runner.iter().map(|_| &job.path));
    command.args(args).args(&job.args).current_dir(&job.folder).env("CARGO_MANIFEST_DIR", &job.folder);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let common = environment.iter().find(|(name, _)| *name == "LD_LIBRARY_PATH").map(|(_, value)| value);
    for (name, value) in &job.environment {
        let mut value = value.clone();
        if let (true, Some(common)) = (*name == "LD_LIBRARY_PATH", common) {
            value.push(":");
            value.push(common);
        }
        command.env(name, value);
    }
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds the writing ends; reading ends when the child and its children have closed theirs.
    drop(command);
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    let cpu = cpu_seconds(child.id());
    let status = child.wait()?;
    let mut output = String::from_utf8_lossy(&bytes).into_owned();
    if status.code().is_none() {
        output += &format!("\nthe test program ended with {status}\n");
    }
    Ok((status.success(), output, cpu))
}

/// The CPU seconds of an ended process that was not waited for yet. The numbers are in ticks of a hundredth of a second, which is fixed
/// for this interface; see proc_pid_stat(5), fields 3 and 14 to 17.
fn cpu_seconds(process: u32) -> Option<f64> {
    // Output may be closed a moment before the process ends.
    for _ in 0..200 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program, in parentheses, may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            let ticks = fields.get(11..15)?.iter().map(|n| n.parse::<f64>().ok()).sum::<Option<f64>>()?;
            return Some(ticks / 100.0);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// The numbers of passed and failed tests in the summaries that test programs print.
fn counts(output: &str) -> (u64, u64) {
    let number = |line: &str, what: &str| -> u64 {
        let before = line.split(what).next().unwrap_or_default();
        before.rsplit([' ', '.']).find(|word| !word.is_empty()).and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let summaries = output.lines().filter(|line| line.starts_with("test result: "));
    summaries
        .fold((0, 0), |(passed, failed), line| (passed + number(line, " passed"), failed + number(line, " failed")))
}
