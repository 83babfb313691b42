//! Wine, which runs programs of Windows on Linux, and mingw, which links them: Debian's packages, and a folder in `target/tools` that is
//! wine's disk.
//!
//! Deliberately absent: a graphical system, and the browser and .NET that wine offers to install.

use crate::install;
use crate::test::Runner;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The linker that rustc calls for Windows.
const LINKER: &str = "x86_64-w64-mingw32-gcc";

/// Where wine's program for 64 bits may be. Debian's is in no folder of the search path.
const PROGRAMS: [&str; 3] = ["/usr/lib/wine/wine64", "wine64", "wine"];

/// Debian's packages of both.
const PACKAGES: [&str; 2] = ["gcc-mingw-w64-x86-64", "wine64"];

/// The library that Rust's standard library takes random numbers from, which wine 8 does not have yet. Where it is missing it is linked: its one
/// function is passed on to another library's, which takes the same arguments.
const RANDOM: &str = "bcryptprimitives.dll";
const FORWARDED: &str = "LIBRARY bcryptprimitives\nEXPORTS\nProcessPrng = advapi32.SystemFunction036\n";

/// Makes both available, or returns why they are not.
pub(crate) fn bring() -> Result<Runner, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err("they run under wine on Linux on x86-64 only".to_owned());
    }
    if program().is_none() || !install::runs(LINKER) {
        let hint = |why| format!("{why}; they need wine for 64 bits and {LINKER}");
        install::packages(&PACKAGES).map_err(hint)?;
    }
    let Some(program) = program().filter(|_| install::runs(LINKER)) else {
        return Err(format!("apt-get brought no wine for 64 bits, or no {LINKER}"));
    };
    let disk = crate::tools::dir().map_err(|error| error.to_string())?.join("wine");
    let at = |error: io::Error| format!("`{}`: {error}", disk.display());
    fs::create_dir_all(&disk).map_err(at)?;
    let mut runner = Runner {
        program: PathBuf::from(program),
        environment: vec![
            ("WINEPREFIX", disk.clone().into_os_string()),
            ("WINEDEBUG", "-all".into()),
            // Neither .NET nor a browser, and no entries in the menus of the user's desktop.
            ("WINEDLLOVERRIDES", "mscoree,mshtml,winemenubuilder.exe=".into()),
        ],
        session: None,
    };
    runner.session = Some(boot(&runner)?);
    let system = disk.join("drive_c/windows/system32");
    if !system.join(RANDOM).exists() {
        let list = disk.join("bcryptprimitives.def");
        fs::write(&list, FORWARDED).map_err(at)?;
        let mut link = Command::new(LINKER);
        link.args(["-shared", "-nostdlib", "-s", "-Wl,--entry=0", "-o"]).arg(system.join(RANDOM)).arg(&list);
        install::ran(LINKER, &mut link)?;
    }
    Ok(runner)
}

/// The first of the programs that runs.
fn program() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|name| install::runs(name))
}

/// Starts wine, which makes its disk the first time, and a shell that waits for input. While the shell runs, wine's services do: were they started
/// by a test, they would hold its output, and the test would not seem to end.
fn boot(runner: &Runner) -> Result<Child, String> {
    let wine = |args: &[&str]| {
        let mut command = Command::new(&runner.program);
        command.args(args).envs(runner.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let at = |error: io::Error| format!("`{}`: {error}", runner.program.display());
    let status = wine(&["wineboot", "--init"]).status().map_err(at)?;
    if !status.success() {
        return Err(format!("`wineboot` ended with {status}"));
    }
    wine(&["cmd"]).stdin(Stdio::piped()).spawn().map_err(at)
}
