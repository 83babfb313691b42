//! The command line: names, help and what they take.

use clap::{Arg, ArgAction, ArgMatches, Command};

/// The command line of `titan`.
pub(crate) fn command() -> Command {
    let file = || Arg::new("FILE").required(true).help("A file of tile IR");
    let json = || {
        Arg::new("json").long("json").action(ArgAction::SetTrue).help("The verdict as one JSON object, see docs/cli.md")
    };
    Command::new("titan")
        .about("Checks, formats and explains the tile IR of TITAN kernels")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("check").about("Read and verify a file; show every finding").arg(file()).arg(json()))
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

/// The file of `check` and `fmt`.
pub(crate) fn file(matches: &ArgMatches) -> &str {
    matches.get_one::<String>("FILE").map_or("", String::as_str)
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
