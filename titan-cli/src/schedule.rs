//! `titan schedule`: the bounds, the critical cycle and the schedule of a dependence graph.
//!
//! The output is a schedule in its text form; everything else is in comments. With `--check`, a schedule is judged instead of made.
//!
//! Deliberately absent: kernels. The file is a graph in the text form of docs/scheduling.md; `titan emit --stage graphs` prints those of a kernel.

use crate::report::{Finding, Report, Verdict};
use crate::source::text as read;
use crate::{Outcome, cli};
use clap::ArgMatches;
use serde_json::Map;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use titan_core::diag::{Diagnostic, counted};
use titan_core::schedule::bounds::{Bounds, bounds};
use titan_core::schedule::graph::Graph;
use titan_core::schedule::swing::{Options, Stop};
use titan_core::schedule::{Plan, check, plan, text};
use titan_core::text::TextPos;

/// Schedules the graph of a file, or checks a schedule of it.
pub(crate) fn run(matches: &ArgMatches, out: &mut dyn Write) -> io::Result<Outcome> {
    let path = cli::file(matches);
    let written = read(path)?;
    let graph = match text::graph(&written) {
        Ok(graph) => graph,
        Err(errors) => return refuse(path, &written, errors, out),
    };
    let live = matches.get_one::<i64>("live").copied();
    if let Some(path) = matches.get_one::<PathBuf>("check") {
        return judge(&graph, path, live, out);
    }
    let steps = matches.get_one::<u64>("steps").copied().unwrap_or(Options::default().steps);
    told_bounds(&graph, &bounds(&graph), out)?;
    let plan = plan(&graph, &Options { steps, live, ..Options::default() });
    match &plan {
        Plan::Overlapped(found) => writeln!(out, "; found in {} steps", found.steps)?,
        Plan::Sequential { stop, slots, .. } => {
            writeln!(out, "; not overlapped, with {slots} slots for each ring: {}", reason(*stop))?;
        }
    }
    write!(out, "{}", text::print_schedule(plan.schedule()))?;
    Ok(match plan {
        Plan::Overlapped(_) | Plan::Sequential { stop: Stop::NothingShorter, .. } => Outcome::Clean,
        Plan::Sequential { .. } => Outcome::Findings,
    })
}

/// Checks a schedule.
fn judge(graph: &Graph, path: &Path, live: Option<i64>, out: &mut dyn Write) -> io::Result<Outcome> {
    let written = read(path)?;
    let (schedule, places) = match text::schedule(&written) {
        Ok(read) => read,
        Err(errors) => return refuse(path, &written, errors, out),
    };
    match check::check(graph, &schedule, live) {
        Ok(()) => {
            writeln!(out, "{}: legal, an iteration every {}", path.display(), cycles(schedule.ii))?;
            Ok(Outcome::Clean)
        }
        Err(errors) => {
            let errors = errors.into_iter().map(|error| error.map_site(|site| places.of(site))).collect();
            refuse(path, &written, errors, out)
        }
    }
}

/// Prints errors with their lines.
fn refuse(
    path: &Path,
    written: &str,
    errors: Vec<Diagnostic<text::Place>>,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    let at = |place: text::Place| TextPos { line: place.line, column: place.column };
    let findings: Vec<Finding> = errors.into_iter().map(|error| Finding::of(None, error.map_site(at))).collect();
    let count = counted(findings.len() as u64, "error");
    let report = Report {
        command: "schedule",
        path,
        text: written,
        kernels: Vec::new(),
        verdict: Verdict::Findings,
        findings,
        more: Map::new(),
    };
    let outcome = report.snippets(out, io::stdout().is_terminal())?;
    writeln!(out, "{}: {count}", path.display())?;
    Ok(outcome)
}

fn cycles(count: i64) -> String {
    counted(count.unsigned_abs(), "cycle")
}

/// Prints the bounds, each with what causes it.
fn told_bounds(graph: &Graph, bounds: &Bounds, out: &mut dyn Write) -> io::Result<()> {
    match bounds.resource {
        Some((unit, held)) => {
            writeln!(out, "; units: at least {}, in which `{}` is always held", cycles(held), graph.units()[unit])?;
        }
        None => writeln!(out, "; units: no operation holds one")?,
    }
    let Some(critical) = &bounds.recurrence else {
        return writeln!(out, "; recurrences: there are none");
    };
    let ratio = critical.ratio;
    let names: Vec<&str> = critical.edges.iter().map(|e| graph.ops()[graph.edges()[*e].from].name.as_str()).collect();
    let (all, first) = (names.join(" -> "), names.first().copied().unwrap_or_default());
    let (latency, distance) = (ratio.latency, counted(ratio.distance.unsigned_abs(), "iteration"));
    writeln!(out, "; recurrences: at least {}, from {latency} in {distance}: {all} -> {first}", cycles(ratio.ceil()))
}

/// Why a loop is not overlapped.
fn reason(stop: Stop) -> String {
    match stop {
        Stop::Steps { ii } => format!("the limit of steps was reached at an interval of {}", cycles(ii)),
        Stop::BelowBounds { least } => {
            format!("the interval that is asked for is below the bound of {}", cycles(least))
        }
        Stop::NothingShorter => "no shorter interval was found".to_owned(),
        Stop::Live { least } => {
            format!("all schedules that were found exceed the limit; the least live weight is {least}")
        }
        Stop::Refused => "the checker refused the schedule that was found".to_owned(),
    }
}
