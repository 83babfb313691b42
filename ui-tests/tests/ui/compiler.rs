//! Runs rustc and reads its diagnostics.

use super::library::{self, Library};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What rustc is called with.
#[derive(Debug)]
pub(crate) struct Compiler {
    rustc: PathBuf,
    library: Library,
}

/// An error, a warning or a note of rustc's, as it is printed.
#[derive(Debug)]
pub(crate) struct Diagnostic {
    pub(crate) is_error: bool,
    /// The files of the places that it marks as primary, and of the macro calls around them.
    pub(crate) files: Vec<String>,
    pub(crate) rendered: String,
}

/// What rustc compiles.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    /// A file; rustc runs in the workspace.
    File(&'a Path),
    /// The root of a crate.
    Root(&'a str),
}

/// The compiler with the library that this test was built with.
pub(crate) fn of_this_test() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(|| {
        let library = library::find().unwrap_or_else(|error| panic!("{error}"));
        Compiler { rustc: rustc(), library }
    })
}

/// The compiler itself: `rustc` may be a program that first finds out which of several is meant.
fn rustc() -> PathBuf {
    let name = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&name).args(["--print", "sysroot"]).current_dir(library::workspace()).output();
    let sysroot = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let rustc = Path::new(&sysroot).join("bin").join("rustc");
    if rustc.is_file() { rustc } else { name.into() }
}

impl Compiler {
    /// What rustc says; an error if it ended without a result.
    pub(crate) fn diagnostics(&self, input: Input<'_>) -> Result<Vec<Diagnostic>, String> {
        // A case that compiles is written somewhere; each run has a file of its own.
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let output = format!("ui-{}.rmeta", RUNS.fetch_add(1, Ordering::Relaxed));
        let mut command = self.command(input);
        command.args(["--crate-name", "case", "--emit", "metadata"]);
        self.run(command.arg("-o").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(output)), input)
    }

    /// What rustc says when `cargo check` calls it.
    pub(crate) fn checked(&self, name: &str, input: Input<'_>) -> Result<Vec<Diagnostic>, String> {
        let mut command = self.command(input);
        command.args(["--crate-name", name, "--emit=dep-info,metadata"]);
        self.run(command.arg("--out-dir").arg(env!("CARGO_TARGET_TMPDIR")), input)
    }

    fn run(&self, command: &mut Command, input: Input<'_>) -> Result<Vec<Diagnostic>, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        if let (Some(mut stdin), Input::Root(text)) = (child.stdin.take(), input) {
            stdin.write_all(text.as_bytes()).map_err(|e| format!("{command:?}: {e}"))?;
        }
        let output = child.wait_with_output().map_err(|e| format!("{command:?}: {e}"))?;
        let text = String::from_utf8_lossy(&output.stderr);
        let found: Vec<Diagnostic> = text.lines().filter_map(read).collect();
        // rustc ends with 0 or 1. Lines that are no diagnostics are what macros print, or why rustc could not begin or go on.
        let has_errors = found.iter().any(|diagnostic| diagnostic.is_error);
        match output.status.code() {
            Some(0) if !has_errors => Ok(found),
            Some(1) if has_errors => Ok(found),
            _ => Err(format!("{command:?} ended with {}:\n{text}", output.status)),
        }
    }

    /// As cargo calls rustc for a package that has TITAN as its only dependency, with a fixed width of lines.
    fn command(&self, input: Input<'_>) -> Command {
        let mut command = Command::new(&self.rustc);
        // The places in TITAN's own sources are relative to the workspace; rustc shows their lines only if it finds the files.
        command.current_dir(library::workspace()).arg("--remap-path-prefix=ui-tests/ui=ui");
        command.args(["--crate-type", "bin", "--edition", "2024"]);
        // `verbose`: the names of types are never cut.
        command.args(["--error-format", "json", "--diagnostic-width", "140", "--verbose", "-A", "dead_code"]);
        let mut titan = std::ffi::OsString::from("titan=");
        titan.push(&self.library.titan);
        command.arg("--extern").arg(titan);
        for folder in &self.library.folders {
            let mut dependency = std::ffi::OsString::from("dependency=");
            dependency.push(folder);
            command.arg("-L").arg(dependency);
        }
        match input {
            Input::File(path) => command.arg(path),
            Input::Root(_) => command.arg("-"),
        };
        command
    }
}

/// Reads a line of rustc's. The number of errors at the end and the hint at `--explain` are no diagnostics of their own.
fn read(line: &str) -> Option<Diagnostic> {
    let message: Value = serde_json::from_str(line).ok()?;
    let spans = message["spans"].as_array()?;
    let level = message["level"].as_str()?;
    let is_count = spans.is_empty() && message["message"].as_str()?.starts_with("aborting due to ");
    if is_count || level == "failure-note" {
        return None;
    }
    let mut files = Vec::new();
    for span in spans.iter().filter(|span| span["is_primary"] == true) {
        let mut span = span;
        while let Some(file) = span["file_name"].as_str() {
            files.push(file.to_owned());
            span = &span["expansion"]["span"];
        }
    }
    Some(Diagnostic { is_error: level.starts_with("error"), files, rendered: message["rendered"].as_str()?.to_owned() })
}
