//! The command line: names, help and what they take.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::{Path, PathBuf};

/// The command line of `titan`.
pub(crate) fn command() -> Command {
    let path = value_parser!(PathBuf);
    let file = || Arg::new("FILE").required(true).value_parser(path.clone()).help("A file of tile IR; `-` is stdin");
    let json = || {
        Arg::new("json").long("json").action(ArgAction::SetTrue).help("The verdict as one JSON object, see docs/cli.md")
    };
    Command::new("titan")
        .about("Checks, formats and explains the tile IR of TITAN kernels")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(check().arg(file()).arg(json()))
        .subcommand(opt().arg(file()))
        .subcommand(emit().arg(file()))
        .subcommand(sim().arg(file()).arg(json()))
        .subcommand(
            Command::new("fmt")
                .about("Print the canonical text of a file; comments inside kernels are lost")
                .arg(file()),
        )
        .subcommand(
            Command::new("explain")
                .about("Say what a diagnostic code means; without one, list all")
                .arg(Arg::new("CODE").help("As in the message: T0402")),
        )
        .subcommand(
            Command::new("doctor").about("Look at the toolchain, this crate's profiles, the cache and the devices"),
        )
}

/// The command that verifies kernels.
fn check() -> Command {
    let supported = titan_nv::Machine::all().iter().filter(|m| m.supported).map(|m| m.name);
    Command::new("check").about("Read and verify a file; show every finding").arg(
        Arg::new("target")
            .long("target")
            .value_name("NAME")
            .action(ArgAction::Append)
            .value_parser(supported.collect::<Vec<&str>>())
            .help("Also find what this target cannot take, as `cargo build` does"),
    )
}

/// The command that changes kernels.
fn opt() -> Command {
    Command::new("opt")
        .about("Run passes over a file and print what comes of it")
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
                .help("How an opaque call that does not say so reaches memory"),
        )
        .arg(
            Arg::new("remove-unneeded")
                .long("remove-unneeded")
                .action(ArgAction::SetTrue)
                .help("Remove fences that order nothing; they are told otherwise"),
        )
        .arg(target())
        .after_help(crate::opt::listed())
}

/// A target for which code is generated.
fn target() -> Arg {
    let supported = titan_nv::Machine::all().iter().filter(|m| m.supported).map(|m| m.name);
    Arg::new("target")
        .long("target")
        .value_name("NAME")
        .default_value("sm_80")
        .value_parser(supported.collect::<Vec<&str>>())
        .help("For which target")
}

/// The command that shows what kernels become.
fn emit() -> Command {
    Command::new("emit")
        .about("Print what kernels become for a target, at a stage of the way to its code")
        .arg(target())
        .arg(
            Arg::new("stage")
                .long("stage")
                .value_name("STAGE")
                .default_value("ptx")
                .value_parser(crate::emit::STAGES.map(|(name, _)| name))
                .help("Which stage"),
        )
        .arg(
            Arg::new("access")
                .long("access")
                .value_name("WHICH")
                .default_value("aligned")
                .value_parser(["aligned", "any"])
                .help("The variant for aligned arguments, or the one for any"),
        )
        .arg(
            Arg::new("shared").long("shared").value_name("KIB").value_parser(value_parser!(u32).range(1..=1024)).help(
                "The variant for devices that grant a program so much shared memory; without it, for all devices",
            ),
        )
        .after_help(crate::emit::listed())
}

/// The command that runs kernels.
fn sim() -> Command {
    // A negative number is a wrong value, not another option.
    let value =
        |name: &'static str, says: &'static str| Arg::new(name).long(name).help(says).allow_negative_numbers(true);
    let flag = |name: &'static str, says: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(says);
    Command::new("sim")
        .about("Run kernels without a device, and find what is wrong with their pipelines")
        .arg(value("kernel", "Only this kernel of the file").value_name("NAME"))
        .arg(
            value("set", "An extent or a scalar argument; extents are 64 and integers 4 otherwise")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append),
        )
        .arg(value("grid", "Another grid than the kernel's own").value_name("X,Y,Z"))
        .arg(
            value("cluster", "Programs of a cluster, along axis 0")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=16)),
        )
        .arg(flag("sanitize", "Also find accesses that nothing orders, whatever the order was in this run"))
        .arg(
            flag("strict", "With --sanitize: a read after a read through another proxy wants a fence, too")
                .requires("sanitize"),
        )
        .arg(flag("protocol", "Leave out what tiles hold: only copies, waits and arrivals"))
        .arg(value("seed", "Let the roles take turns at random").value_name("N").value_parser(value_parser!(u64)))
        .arg(
            value("complete", "When asynchronous work completes")
                .value_name("WHEN")
                .value_parser(["late", "early", "random"]),
        )
        .arg(
            value("runs", "So many runs, each with the seed that follows")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            flag("explore", "Look at every order, not at some")
                .conflicts_with_all(["seed", "complete", "runs", "timeline", "strict"]),
        )
        .arg(
            value("max-states", "With --explore: give up after so many states")
                .value_name("N")
                .requires("explore")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            value("max-steps", "A run that has not ended after so many operations is a finding; 10,000,000 otherwise")
                .value_name("N")
                .conflicts_with("explore")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(
            value("schedule", "The run that a finding names")
                .value_name("SCHEDULE")
                .conflicts_with_all(["seed", "complete", "runs", "explore"]),
        )
        .arg(
            value("timeline", "Draw the last run into this file")
                .value_name("FILE.svg")
                .value_parser(value_parser!(PathBuf)),
        )
}

/// The file of a command.
pub(crate) fn file(matches: &ArgMatches) -> &Path {
    matches.get_one::<PathBuf>("FILE").map_or(Path::new(""), PathBuf::as_path)
}

/// The targets of `check`.
pub(crate) fn targets(matches: &ArgMatches) -> Vec<String> {
    matches.get_many::<String>("target").into_iter().flatten().cloned().collect()
}

/// Whether programs will read the verdict.
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
