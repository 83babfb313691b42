//! `titan sim`: runs the kernels of a file in the simulator, and reports errors of the run.
//!
//! By default, one run executes roles in turn and completes asynchronous work as late as possible; `--seed` makes the order of the roles
//! random, `--complete` sets when asynchronous work completes, `--runs` repeats with the following seeds. A finding includes the command
//! that reproduces it. `--explore` explores all orders instead, up to a bound, and reports when it is reached. Kernels that the verifier
//! rejects are run too, with a remark.

use crate::arguments::{Arguments, Settings, make, named};
use crate::check::{Fitting, fitting};
use crate::report::{Finding, Report, Verdict};
use crate::source::Source;
use crate::{Outcome, at, picture};
use clap::ArgMatches;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use titan_core::diag::counted;
use titan_core::ir::Kernel;
use titan_core::text::{Positions, TextPos};
use titan_core::verify::{barrier_program, verify};
use titan_sim::engine::Completion;
use titan_sim::sim::{self, Explored, Limits, Options, Schedule, Statistics};

/// The number of operations after which a run counts as endless: some seconds.
const MAX_STEPS: u64 = 10_000_000;

/// The options of the command line.
struct Request<'a> {
    path: &'a Path,
    kernel: Option<&'a str>,
    settings: Settings,
    grid: Option<[u32; 3]>,
    options: Options,
    complete: &'a str,
    runs: u64,
    schedule: Option<Schedule>,
    timeline: Option<&'a Path>,
    /// Explore all orders instead of one, up to this many states.
    explore: Option<u64>,
    json: bool,
}

impl<'a> Request<'a> {
    fn of(m: &'a ArgMatches) -> io::Result<Request<'a>> {
        let text = |name: &str| m.get_one::<String>(name).map(String::as_str);
        let timeline = m.get_one::<PathBuf>("timeline").map(PathBuf::as_path);
        let seed = m.get_one::<u64>("seed").copied();
        let runs = m.get_one::<u64>("runs").copied();
        let complete = text("complete").unwrap_or(if seed.is_some() || runs.is_some() { "random" } else { "late" });
        // Several runs differ by their seeds.
        let seed = seed.or_else(|| runs.map(|_| 0));
        let schedule = text("schedule").map(|s| {
            Schedule::parse(s)
                .ok_or_else(|| io::Error::other(format!("`--schedule {s}` is not a schedule that a finding prints")))
        });
        let options = Options {
            completion: completion(complete, seed.unwrap_or(0)),
            seed,
            sanitize: m.get_flag("sanitize"),
            strict: m.get_flag("strict"),
            cluster: m.get_one::<u32>("cluster").copied(),
            data: !m.get_flag("protocol"),
            trace: timeline.is_some(),
            max_steps: m.get_one::<u64>("max-steps").copied().unwrap_or(MAX_STEPS),
        };
        Ok(Request {
            path: crate::cli::file(m),
            kernel: crate::cli::kernel(m),
            settings: Settings::parse(m.get_many::<String>("set").into_iter().flatten())?,
            grid: text("grid").map(grid).transpose()?,
            options,
            complete,
            runs: runs.unwrap_or(1),
            schedule: schedule.transpose()?,
            timeline,
            explore: m
                .get_flag("explore")
                .then(|| m.get_one::<u64>("max-states").copied().unwrap_or(Limits::default().max_states)),
            json: crate::cli::json(m),
        })
    }

    /// The options of a run.
    fn options(&self, run: u64) -> Options {
        let seed = self.options.seed.map(|s| s.wrapping_add(run));
        Options { seed, completion: completion(self.complete, seed.unwrap_or(0)), ..self.options.clone() }
    }
}

fn completion(word: &str, seed: u64) -> Completion {
    match word {
        "early" => Completion::Early,
        "random" => Completion::Seeded(seed),
        _ => Completion::Late,
    }
}

/// `X`, `X,Y` or `X,Y,Z`.
fn grid(text: &str) -> io::Result<[u32; 3]> {
    let wrong = || io::Error::other(format!("`--grid {text}` is not one to three integers, separated by commas"));
    let parts: Vec<u32> = text.split(',').map(|p| p.trim().parse().map_err(|_| wrong())).collect::<io::Result<_>>()?;
    match parts[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(wrong()),
    }
}

/// Runs the kernels of a file.
pub(crate) fn run(matches: &ArgMatches, out: &mut dyn Write) -> io::Result<Outcome> {
    let request = Request::of(matches)?;
    let source = Source::read(request.path, request.kernel)?;
    let (located, unreadable) = source.kernels()?;
    let (mut kernels, unfitting) = fitting(located);
    let mut findings = [unreadable, unfitting].concat();
    named(&request.settings, kernels.iter().map(|k| &*k.kernel))?;
    if request.schedule.is_some() && kernels.len() > 1 {
        return Err(io::Error::other("a schedule is for one kernel: name it behind the file"));
    }
    if request.timeline.is_some() && kernels.len() > 1 {
        return Err(io::Error::other("a timeline shows one kernel: name it behind the file"));
    }
    let several = kernels.len() > 1;
    let mut more = Map::new();
    let (mut runs, mut bound, mut refusal) = (Vec::new(), false, None);
    for found in &mut kernels {
        let refused = found.verified();
        let (found, name) = (&*found, &found.kernel.sig.full_name());
        if refused > 0 && !request.json {
            let errors = counted(refused, "error");
            writeln!(
                out,
                "{}: the verifier rejects `{name}` with {errors} (`titan check`); it is run nevertheless",
                request.path.display()
            )?;
        }
        let done = match request.explore {
            Some(most) => explore(found, &request, most),
            None => simulate(found, &request),
        };
        let done = match done {
            // The other kernels of the file are run nevertheless.
            Err(error) if several => {
                runs.push(json!({ "kernel": name, "refused": refused, "error": error.to_string() }));
                refusal = refusal.or(Some(error));
                continue;
            }
            done => done?,
        };
        if !request.json {
            done.summary(out, &request, name)?;
        }
        bound |= done.bound.is_some();
        runs.push(done.json(name, refused));
        findings.extend(done.findings.iter().map(|f| finding(f, found, &request, done.seed)));
    }
    more.insert("runs".to_owned(), Value::Array(runs));
    let verdict = match (findings.is_empty(), bound) {
        (false, _) => Verdict::Findings,
        (true, true) => Verdict::Bound,
        (true, false) => Verdict::Clean,
    };
    let names = kernels.iter().map(|k| k.kernel.sig.full_name()).collect();
    let report =
        Report { command: "sim", path: request.path, text: &source.text, kernels: names, verdict, findings, more };
    let outcome = if request.json { report.json(out)? } else { report.snippets(out, io::stdout().is_terminal())? };
    refusal.map_or(Ok(outcome), Err)
}

impl Fitting {
    /// Verifies the kernel and returns the number of errors. If there are none, a run here checks the conditions that the verifier adds
    /// to its `require(..)`, as a launch does.
    fn verified(&mut self) -> usize {
        if self.kernel.laid_out.is_some() {
            return barrier_program(&self.kernel).err().map_or(0, |errors| errors.len());
        }
        match verify(Kernel::clone(&self.kernel)) {
            Ok(verified) => {
                self.kernel = verified.into();
                0
            }
            Err(errors) => errors.len(),
        }
    }
}

/// The result of the runs of one kernel.
#[derive(Default)]
struct Done {
    told: Vec<(String, String)>,
    runs: u64,
    statistics: Statistics,
    printed: Vec<String>,
    findings: Vec<sim::Finding>,
    seed: Option<u64>,
    explored: Option<Explored>,
    bound: Option<String>,
}

/// Explores all orders of a kernel.
fn explore(found: &Fitting, request: &Request<'_>, max_states: u64) -> io::Result<Done> {
    let Arguments { args, told } = make(&found.kernel, &request.settings)?;
    let limits = Limits { max_states, cluster: request.options.cluster.unwrap_or(1), ..Limits::default() };
    let verdict = sim::explore(&found.kernel, &args, request.grid, &limits)
        .map_err(|e| io::Error::other(format!("`{}`: {e}", found.kernel.sig.name)))?;
    let mut done = Done { told, explored: Some(*verdict.explored()), ..Done::default() };
    match verdict {
        sim::Verdict::Safe(_) => {}
        sim::Verdict::Finding(finding, _) => done.findings.push(*finding),
        sim::Verdict::Bound(bound, _) => done.bound = Some(bound),
    }
    Ok(done)
}

/// Runs a kernel the requested number of times, until there is a finding.
fn simulate(found: &Fitting, request: &Request<'_>) -> io::Result<Done> {
    let kernel: &Kernel = &found.kernel;
    let Arguments { args, told } = make(kernel, &request.settings)?;
    let mut done = Done { told, ..Done::default() };
    let refuse = |e: titan_core::launch::BindError| io::Error::other(format!("`{}`: {e}", kernel.sig.name));
    for run in 0..request.runs {
        let options = request.options(run);
        let mut args = args.clone();
        let report = match &request.schedule {
            Some(schedule) => {
                sim::replay(&found.kernel, &mut args, request.grid, &options, schedule).map_err(refuse)?
            }
            None => sim::run(&found.kernel, &mut args, request.grid, &options).map_err(refuse)?,
        };
        if report.strayed && report.findings.is_empty() {
            return Err(io::Error::other(format!(
                "`{}`: the schedule does not fit this run: it is from another kernel, other arguments, or another file",
                kernel.sig.name
            )));
        }
        done.runs += 1;
        done.statistics.programs += report.statistics.programs;
        done.statistics.steps += report.statistics.steps;
        done.statistics.issued += report.statistics.issued;
        if let Some(path) = request.timeline {
            let svg = picture::draw(kernel, &report, &options, &done.told).svg();
            std::fs::write(path, svg).map_err(|e| at(path, &e))?;
        }
        done.printed = report.printed;
        if !report.findings.is_empty() {
            (done.findings, done.seed) = (report.findings, options.seed);
            break;
        }
    }
    Ok(done)
}

impl Done {
    fn summary(&self, out: &mut dyn Write, request: &Request<'_>, name: &str) -> io::Result<()> {
        let told: Vec<String> = self.told.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let with = if told.is_empty() { String::new() } else { format!(" with {}", told.join(", ")) };
        for line in &self.printed {
            writeln!(out, "{line}")?;
        }
        if let Some(explored) = &self.explored {
            let said = match (&self.bound, self.findings.is_empty()) {
                (_, false) => "errors found".to_owned(),
                (Some(bound), true) => format!("no errors found, but not all orders were explored: {bound}"),
                (None, true) => "no errors in any order".to_owned(),
            };
            let Explored { states, transitions, depth, .. } = explored;
            let path = request.path.display();
            return writeln!(
                out,
                "{path}: `{name}`{with}: {said} ({}, {}, {depth} deep)",
                counted(states, "state"),
                counted(transitions, "step")
            );
        }
        let Statistics { programs, steps, issued, .. } = self.statistics;
        let counted = |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let (runs, programs) = (counted(self.runs, "run"), counted(programs, "program"));
        let verdict = if self.findings.is_empty() { "no errors found" } else { "errors found" };
        writeln!(
            out,
            "{}: `{name}`{with}: {verdict} in {runs} ({programs}, {steps} operations, {issued} asynchronous)",
            request.path.display()
        )?;
        match request.timeline {
            Some(picture) => writeln!(out, "{}: the timeline is in {}", request.path.display(), picture.display()),
            None => Ok(()),
        }
    }

    fn json(&self, name: &str, refused: usize) -> Value {
        let Statistics { programs, steps, issued, .. } = self.statistics;
        let explored = self.explored.map(|e| {
            json!({ "states": e.states, "transitions": e.transitions, "depth": e.depth, "ends": e.ends, "occupied": e.occupied })
        });
        json!({
            "kernel": name,
            "refused": refused,
            "explored": explored,
            "bound": self.bound,
            "arguments": self.told.iter().map(|(n, v)| (n.clone(), json!(v))).collect::<Map<_, _>>(),
            "runs": self.runs,
            "statistics": self.explored.is_none().then(|| json!({ "programs": programs, "operations": steps, "asynchronous": issued })),
            "seed": self.seed,
            "printed": self.printed,
        })
    }
}

/// A finding of a run, with its source lines.
fn finding(found: &sim::Finding, kernel: &Fitting, request: &Request<'_>, seed: Option<u64>) -> Finding {
    let mut sides = found.sides.iter();
    let first = sides.next();
    let name = kernel.kernel.sig.full_name();
    let again = again(found, request, &name, seed);
    let mut more = Map::new();
    more.insert("sides".to_owned(), found.sides.iter().map(|s| side(s, &kernel.at)).collect());
    more.insert("schedule".to_owned(), json!(found.schedule.to_string()));
    more.insert("again".to_owned(), json!(again));
    Finding {
        kernel: Some(name),
        code: found.kind.code().to_owned(),
        title: found.message.clone(),
        at: Some(first.map_or(kernel.at.start, |s| kernel.at.of(s.loc))),
        related: sides.map(|s| (kernel.at.of(s.loc), s.to_string())).collect(),
        help: Vec::new(),
        notes: first.map(ToString::to_string).into_iter().chain([format!("to reproduce: {again}")]).collect(),
        more,
    }
    .of_source(first.and_then(|s| kernel.at.source(s.loc)))
}

fn side(side: &sim::Side, at: &Positions) -> Value {
    let TextPos { line, column } = at.of(side.loc);
    json!({
        "what": side.what, "slot": side.stage, "time": side.time, "role": side.role, "operation": side.op,
        "asynchronous": side.helper, "at": { "line": line, "column": column },
    })
}

/// The longest schedule that is put on a command line; systems accept about 100,000 characters in an argument.
const LONGEST: usize = 2000;

/// The command that reproduces a finding.
fn again(found: &sim::Finding, request: &Request<'_>, kernel: &str, seed: Option<u64>) -> String {
    let mut words = vec!["titan sim".to_owned(), quoted_path(request.path), quoted(kernel)];
    words.extend(request.settings.iter().map(|(name, value)| format!("--set {}", quoted(&format!("{name}={value}")))));
    words.extend(request.grid.map(|[x, y, z]| format!("--grid {x},{y},{z}")));
    words.extend(request.options.cluster.map(|n| format!("--cluster {n}")));
    let flags = [
        // The exploration always uses the sanitizer, and does not compute the contents of tiles.
        (request.options.sanitize || request.explore.is_some(), "--sanitize"),
        (request.options.strict, "--strict"),
        (!request.options.data || request.explore.is_some(), "--protocol"),
    ];
    words.extend(flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()));
    let schedule = found.schedule.to_string();
    if schedule.len() > LONGEST && request.explore.is_none() && request.schedule.is_none() {
        // The same run, with a shorter command.
        words.extend(seed.map(|n| format!("--seed {n}")));
        words.push(format!("--complete {}", request.complete));
    } else {
        words.push(format!("--schedule {schedule}"));
    }
    words.join(" ")
}

/// A path, quoted for shells; bytes that are not text are escaped by number.
fn quoted_path(path: &Path) -> String {
    if let Some(text) = path.to_str() {
        return quoted(text);
    }
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let escaped: String = bytes
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"_-+=./".contains(b) {
                char::from(*b).to_string()
            } else {
                format!("\\x{b:02x}")
            }
        })
        .collect();
    format!("$'{escaped}'")
}

/// A word, quoted for shells.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-+=./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
