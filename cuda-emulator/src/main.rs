//! Places the library where programs look for the driver: `cuda-emulator FOLDER [--without cuFunction,..]`.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The library that was built with this program.
fn library() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let name = format!("{}cuda_emulator{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let newest = [folder.join(&name), folder.join("deps").join(&name)].into_iter().filter_map(|path| {
        let built = path.metadata().and_then(|m| m.modified()).ok()?;
        Some((built, path))
    });
    newest
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| std::io::Error::other(format!("there is no {name} beside {}", program.display())))
}

fn run(args: &[String]) -> std::io::Result<()> {
    let (folder, missing) = match args {
        [folder] => (folder, Vec::new()),
        [folder, flag, names] if flag == "--without" => (folder, names.split(',').collect()),
        _ => return Err(std::io::Error::other("expected: FOLDER [--without cuFunction,..]")),
    };
    cuda_emulator::place::place(&library()?, Path::new(folder), &missing)
}

#[expect(clippy::print_stderr, reason = "a command line tool speaks on stderr")]
fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cuda-emulator: {error}");
            ExitCode::FAILURE
        }
    }
}
