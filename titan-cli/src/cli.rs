//! The command line: subcommands, their options and help.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};
use titan_core::driver::Arguments;
use titan_core::ir::Scheduler;

/// The command line of `titan`.
pub(crate) fn command() -> Command {
    let path = value_parser!(PathBuf);
    let file = || {
        let help = "A file of tile IR, or a program with kernels, such as target/debug/app; `-` is stdin";
        Arg::new("FILE").required(true).value_parser(path.clone()).help(help)
    };
    let kernel =
        || Arg::new("KERNEL").help("Only this kernel: `gemm` with all its instances, or `gemm::<f16, 64, 64, 32>`");
    let json = || {
        Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print the result as one JSON object (docs/cli.md)")
    };
    Command::new("titan")
        .about("Checks, runs, formats and explains TITAN kernels: the tile IR in a file, or in a program")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("List the kernels of a program: for each target the code's needs and assumptions, and what the compiler notes")
                .arg(file())
                .arg(kernel()),
        )
        .subcommand(check().arg(file()).arg(kernel()).arg(json()))
        .subcommand(opt().arg(file()).arg(kernel()))
        .subcommand(emit().arg(file()).arg(kernel()))
        .subcommand(sim().arg(file()).arg(kernel()).arg(json()))
        .subcommand(schedule())
        .subcommand(
            Command::new("fmt")
                .about("Print the canonical text of a file, or the tile IR of a program's kernels; comments inside kernels are lost")
                .arg(file())
                .arg(kernel()),
        )
        .subcommand(
            Command::new("explain")
                .about("Explain a diagnostic code, or the code that is compiled for the kernels of a file; without either, list all codes")
                .arg(Arg::new("CODE").help("The code in the message, such as T0402; or a file of tile IR, or a program with kernels"))
                .arg(kernel())
                .arg(several(&["sm_80", "sm_90a"]).help("Of a file: explain what is compiled for this target; sm_80 and sm_90a by default")),
        )
        .subcommand(
            Command::new("doctor").about("Check the toolchain, this crate's profiles, the cache and the devices"),
        )
}

/// The command that verifies kernels.
fn check() -> Command {
    Command::new("check")
        .about("Verify the kernels of a file and print all errors")
        .arg(several(&[]).help("Also report kernels that cannot be compiled for this target, as `cargo build` does"))
}

/// Targets for which code is generated, any number of them.
fn several(default: &[&'static str]) -> Arg {
    target().action(ArgAction::Append).default_values(default.iter().copied())
}

/// The command that schedules dependence graphs.
fn schedule() -> Command {
    let file = Arg::new("FILE").required(true).value_parser(value_parser!(PathBuf));
    Command::new("schedule")
        .about("Print the bounds and the modulo schedule of a dependence graph (docs/scheduling.md)")
        .arg(file.help("A dependence graph; `-` is stdin"))
        .arg(
            Arg::new("steps")
                .long("steps")
                .value_name("N")
                .value_parser(value_parser!(u64))
                .help("Stop the search after this many steps (10,000,000 by default)"),
        )
        .arg(
            Arg::new("live")
                .long("live")
                .value_name("N")
                .value_parser(value_parser!(i64).range(0..))
                .help("The greatest live weight that a schedule may have"),
        )
        .arg(
            Arg::new("check")
                .long("check")
                .value_name("SCHEDULE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("steps")
                .help("Check this schedule instead of making one"),
        )
}

/// The command that runs passes on kernels.
fn opt() -> Command {
    Command::new("opt")
        .about("Run passes on a file and print the result")
        .arg(
            Arg::new("passes")
                .long("passes")
                .required(true)
                .value_name("A,B")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .help("The passes, in order"),
        )
        .arg(
            Arg::new("call")
                .long("call")
                .value_name("NAME=PROXY")
                .action(ArgAction::Append)
                .help("The proxy of an opaque call that does not state one"),
        )
        .arg(
            Arg::new("remove-unneeded")
                .long("remove-unneeded")
                .action(ArgAction::SetTrue)
                .help("Remove fences that order nothing, instead of reporting them"),
        )
        .arg(target().default_value("sm_80"))
        .after_help(crate::opt::listed())
}

/// A target for which code is generated.
fn target() -> Arg {
    let supported = crate::machine::Machine::all().map(crate::machine::Machine::name);
    Arg::new("target")
        .long("target")
        .value_name("NAME")
        .value_parser(supported.collect::<Vec<&str>>())
        .help("The target")
}

/// The command that prints kernels at a stage of compilation.
fn emit() -> Command {
    Command::new("emit")
        .about("Print the kernels at a stage of compilation for a target")
        .arg(target().default_value("sm_80"))
        .arg(
            Arg::new("stage")
                .long("stage")
                .value_name("STAGE")
                .value_parser(crate::emit::STAGES.map(|(name, _)| name))
                .help("The stage; without it, the code: `ptx`, or `asm` for gfx942"),
        )
        .arg(
            Arg::new("access")
                .long("access")
                .value_name("WHICH")
                .default_value(Arguments::Aligned.name())
                .value_parser(Arguments::ALL.map(Arguments::name))
                .help("The variant for aligned arguments, for aligned inputs and any outputs, or for any arguments"),
        )
        .arg(Arg::new("schedule").long("schedule").value_name("BY").value_parser(Scheduler::ALL.map(Scheduler::name)).help(
            "Who schedules loops, whatever the kernel says: the rule, or the modulo scheduler (docs/scheduling.md)",
        ))
        .arg(
            Arg::new("scheduled")
                .long("scheduled")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Schedule loops as this file says: the output of the stage `scheduled`, with other stages and places"),
        )
        .arg(Arg::new("shared").long("shared").value_name("KIB").value_parser(value_parser!(u32).range(1..=1024)).help(
            "The variant for devices with this much shared memory per program; without it, the one for all devices",
        ))
        .after_help(crate::emit::listed())
}

/// The command that runs kernels.
fn sim() -> Command {
    // A negative number is an invalid value, not another option.
    let value =
        |name: &'static str, says: &'static str| Arg::new(name).long(name).help(says).allow_negative_numbers(true);
    let flag = |name: &'static str, says: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(says);
    Command::new("sim")
        .about("Run kernels in the simulator, and report errors in their pipelines")
        .arg(
            value("set", "Set an extent (64 by default) or a scalar argument (4 by default)")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append),
        )
        .arg(value("grid", "Launch this grid instead of the kernel's").value_name("X,Y,Z"))
        .arg(
            value("cluster", "The number of programs in a cluster, along axis 0")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=16)),
        )
        .arg(flag(
            "sanitize",
            "Also report accesses that no synchronization orders, even if this run happened to order them",
        ))
        .arg(
            flag("strict", "With --sanitize: also require a fence between two reads through different proxies")
                .requires("sanitize"),
        )
        .arg(flag("protocol", "Do not compute the contents of tiles: run only copies, waits and arrivals"))
        .arg(
            value("seed", "Interleave the roles at random, with this seed")
                .value_name("N")
                .value_parser(value_parser!(u64)),
        )
        .arg(
            value("complete", "When asynchronous work completes")
                .value_name("WHEN")
                .value_parser(["late", "early", "random"]),
        )
        .arg(
            value("runs", "The number of runs; each uses the next seed")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            flag("explore", "Explore all orders of execution")
                .conflicts_with_all(["seed", "complete", "runs", "timeline", "strict"]),
        )
        .arg(
            value("max-states", "With --explore: stop after this many states")
                .value_name("N")
                .requires("explore")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            value("max-steps", "Report a run that has not ended after this many operations (10,000,000 by default)")
                .value_name("N")
                .conflicts_with("explore")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            value("schedule", "Repeat the run with this schedule, which a finding prints")
                .value_name("SCHEDULE")
                .conflicts_with_all(["seed", "complete", "runs", "explore"]),
        )
        .arg(
            value("timeline", "Draw a timeline of the last run into this file")
                .value_name("FILE.svg")
                .value_parser(value_parser!(PathBuf)),
        )
}

/// The file of a command.
pub(crate) fn file(matches: &ArgMatches) -> &Path {
    matches.get_one::<PathBuf>("FILE").map_or(Path::new(""), PathBuf::as_path)
}

/// The name of the kernel that a command is about, if it is about one.
pub(crate) fn kernel(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("KERNEL").map(String::as_str)
}

/// The targets of `check` and `explain`.
pub(crate) fn targets(matches: &ArgMatches) -> Vec<String> {
    matches.get_many::<String>("target").into_iter().flatten().cloned().collect()
}

/// Whether the result is printed as JSON.
pub(crate) fn json(matches: &ArgMatches) -> bool {
    matches.get_flag("json")
}

/// The code of `explain`.
pub(crate) fn code(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("CODE").map(String::as_str)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::command().debug_assert();
    }
}
