//! `titan emit`: prints the kernels of a file at any stage of their compilation for a target.

use crate::check::{in_text, unsupported};
use crate::machine::Machine;
use crate::report::{Report, Verdict};
use crate::source::{Source, missing};
use crate::{Outcome, cli};
use clap::ArgMatches;
use serde_json::Map;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use titan_amd::codegen::{self, Emitted};
use titan_core::driver::{Arguments, Backend, Code, Stages, loop_graphs, stages, stages_written};
use titan_core::ir::{Kernel, Scheduler};
use titan_core::lane::Func;
use titan_core::plan::LowerError;
use titan_core::schedule::text;
use titan_core::target::Target;
use titan_core::text::{Located, print};
use titan_core::verify::{Verified, verify};

/// The stages, in the order of compilation.
pub(crate) const STAGES: [(&str, &str); 13] = [
    ("tile", "the verified kernel"),
    ("schedule", "the schedule chosen for the target"),
    ("rings", "tile IR with the rings and roles of the schedule"),
    ("laid-out", "tile IR with layouts: which thread holds which element of a tile"),
    ("scheduled", "the same, with the stage and the place of each operation in loops that have schedules"),
    ("graphs", "the dependence graphs of the loops, with the units and latencies of the target (docs/scheduling.md)"),
    ("loops", "the same, with loops in these stages and this order: what runs ahead, before and after the loops"),
    ("barriers", "the barrier program: rings as regions of shared memory, barriers, commit groups and waits"),
    ("lanes", "the lane IR: the program of one thread"),
    ("machine", "for gfx942: its instructions, on registers without numbers"),
    ("asm", "for gfx942: its instructions, with registers, waits and wait states"),
    ("ptx", "the code of NVIDIA's targets"),
    ("hsaco", "the code object of gfx942, in bytes"),
];

/// Prints a stage of every kernel; errors go to stderr.
pub(crate) fn run(matches: &ArgMatches, out: &mut dyn Write) -> io::Result<Outcome> {
    let path = cli::file(matches);
    let word = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let machine = Machine::from_name(word("target"))?;
    let stage = matches.get_one::<String>("stage").map_or_else(|| last_stage(machine), String::as_str);
    let shared = matches.get_one::<u32>("shared").map(|kib| kib * 1024);
    let source = Source::read(path, cli::kernel(matches))?;
    let (located, mut findings) = source.kernels()?;
    let written = match matches.get_one::<PathBuf>("scheduled").map(|path| Written::read(path)).transpose()? {
        Some(Err(outcome)) => return Ok(outcome),
        Some(Ok(written)) => Some(written),
        None => None,
    };
    let mut printed = Vec::new();
    for Located { mut kernel, at } in located {
        let name = kernel.sig.full_name();
        if let Some(asked) = Scheduler::ALL.into_iter().find(|one| one.name() == word("schedule")) {
            kernel.sig.scheduler = Some(asked);
        }
        let written = written.as_ref().map(|written| written.of(&name)).transpose()?;
        let errors = match verify(kernel) {
            Ok(kernel) => match of_stage(&kernel, machine, stage, (word("access"), shared, written)) {
                Ok(stage) => {
                    printed.push(stage);
                    continue;
                }
                Err(error) => vec![unsupported(&error)],
            },
            Err(errors) => errors,
        };
        findings.extend(errors.into_iter().map(|e| in_text(&name, &at, e)));
    }
    let between = if stage == "hsaco" { &b""[..] } else { &b"\n"[..] };
    out.write_all(&printed.join(between))?;
    if findings.is_empty() {
        return Ok(Outcome::Clean);
    }
    let (verdict, more) = (Verdict::Findings, Map::new());
    Report { command: "emit", path, text: &source.text, kernels: Vec::new(), verdict, findings, more }
        .snippets(&mut io::stderr(), io::stderr().is_terminal())
}

/// Schedules of loops from a file.
struct Written<'a> {
    path: &'a Path,
    kernels: Vec<Kernel>,
}

impl<'a> Written<'a> {
    /// Reads a file; what is wrong with its text is told, and gives the outcome.
    fn read(path: &'a Path) -> io::Result<Result<Self, Outcome>> {
        let source = Source::read(path, None)?;
        let (located, findings) = source.kernels()?;
        if findings.is_empty() {
            return Ok(Ok(Written { path, kernels: located.into_iter().map(|one| one.kernel).collect() }));
        }
        let (verdict, more) = (Verdict::Findings, Map::new());
        Report { command: "emit", path, text: &source.text, kernels: Vec::new(), verdict, findings, more }
            .snippets(&mut io::stderr(), io::stderr().is_terminal())
            .map(Err)
    }

    /// The kernel with this name.
    fn of(&self, name: &str) -> io::Result<&Kernel> {
        let names =
            || self.kernels.iter().map(|kernel| format!("`{}`", kernel.sig.full_name())).collect::<Vec<String>>();
        let found = self.kernels.iter().find(|kernel| kernel.sig.full_name() == name);
        found.ok_or_else(|| missing(self.path, Some(name), &names()))
    }
}

/// The text of a kernel at a stage.
fn of_stage(
    kernel: &Verified,
    machine: Machine,
    stage: &str,
    (access, shared, written): (&str, Option<u32>, Option<&Kernel>),
) -> Result<Vec<u8>, LowerError> {
    if stage == "tile" {
        return Ok(print(kernel).into_bytes());
    }
    let arguments = Arguments::ALL.into_iter().find(|arguments| arguments.name() == access).unwrap_or_default();
    let through = on_the_way(machine, stage);
    let backend = match &through {
        Some(backend) => backend,
        None => machine.backend(),
    };
    let all = match written {
        Some(written) => stages_written(kernel, backend, arguments, shared, written)?,
        None => stages(kernel, backend, arguments, shared)?,
    };
    let text = match stage {
        "rings" => print(&all.rings),
        "laid-out" => print(&all.laid_out),
        "scheduled" => print(&all.scheduled),
        "graphs" => graphs(&all.laid_out, machine)?,
        "loops" => print(&all.loops),
        "barriers" => print(&all.barriers),
        "lanes" => format!("{}\n", all.lanes.to_string().trim_end()),
        "schedule" => all.schedule.to_string(),
        _ => return of_code(all, machine, stage),
    };
    Ok(text.into_bytes())
}

/// The stage of a machine's code.
const fn last_stage(machine: Machine) -> &'static str {
    match machine {
        Machine::Nv(_) => "ptx",
        Machine::Amd(_) => "asm",
    }
}

/// The back end of a machine whose code is made in stages, which gives one of these instead of its code.
struct OnTheWay {
    machine: &'static titan_amd::Machine,
    text: fn(&Emitted) -> String,
}

/// The back end that gives a stage behind the lane IR, if it is one on the way to the code.
fn on_the_way(machine: Machine, stage: &str) -> Option<OnTheWay> {
    let text: fn(&Emitted) -> String = match stage {
        "machine" => |emitted| emitted.selected.to_string(),
        "asm" => |emitted| emitted.code.to_string(),
        _ => return None,
    };
    match machine {
        Machine::Amd(machine) => Some(OnTheWay { machine, text }),
        Machine::Nv(_) => None,
    }
}

impl Backend for OnTheWay {
    fn target(&self) -> Target {
        self.machine.target()
    }

    fn generates_code(&self) -> bool {
        self.machine.generates_code()
    }

    fn emit(&self, func: &Func, _: Option<(&str, u32)>) -> Result<Code, LowerError> {
        let emitted = codegen::emit(func, self.machine).map_err(|error| error.into_lower_error(func))?;
        Ok(Code { payload: (self.text)(&emitted).into_bytes(), config: Vec::new() })
    }
}

/// A stage behind the lane IR, which only one of the back ends has.
fn of_code(all: Stages, machine: Machine, stage: &str) -> Result<Vec<u8>, LowerError> {
    match (machine, stage) {
        (Machine::Nv(_), "ptx") | (Machine::Amd(_), "machine" | "asm" | "hsaco") => Ok(all.code.payload),
        (Machine::Nv(_) | Machine::Amd(_), _) => {
            let (name, last) = (machine.name(), last_stage(machine));
            let why = format!("{name} has no stage `{stage}`; its code is `{last}`");
            Err(LowerError::of_kernel(&all.rings.sig.full_name(), why))
        }
    }
}

/// The graphs of the loops of a laid-out kernel.
fn graphs(laid_out: &Kernel, machine: Machine) -> Result<String, LowerError> {
    let name = laid_out.sig.full_name();
    let graphs =
        loop_graphs(laid_out, &machine.backend().target()).map_err(|why| LowerError::of_kernel(&name, why.message))?;
    let texts =
        graphs.iter().map(|graph| format!("; {name}, {}\n{}", graph.graph.name(), text::print(&graph.graph.draft())));
    Ok(texts.collect::<Vec<String>>().join("\n"))
}

/// The list of stages for the help text.
pub(crate) fn listed() -> String {
    STAGES.iter().fold("The stages:\n".to_owned(), |text, (name, about)| format!("{text}  {name:10} {about}\n"))
}
