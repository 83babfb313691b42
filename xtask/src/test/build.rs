//! Builds the test programs, and finds out where they are.

use super::options::Options;
use crate::cargo::{WORKSPACE, cargo};
use serde_json::Value;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program with tests.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) package: String,
    /// The folder of the package, in which its tests run.
    pub(crate) folder: PathBuf,
    /// The name of the test target; `lib` or `bin` for the tests inside a library or an executable.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// What was built.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) programs: Vec<Program>,
    /// The emulated CUDA driver.
    pub(crate) driver: Option<PathBuf>,
    /// The emulated HIP runtime.
    pub(crate) hip: Option<PathBuf>,
}

/// Builds everything that is asked for; `None` if that failed, which cargo has reported.
///
/// All packages are selected whatever is asked for, because features are united over those that are selected: so a library is the same
/// for one test as for all.
pub(crate) fn build(options: &Options) -> io::Result<Option<Built>> {
    let mut command = cargo();
    command.arg("test").args(WORKSPACE);
    command.env("RUSTC_WRAPPER", std::env::current_exe()?).env(super::unoptimized::VARIABLE, "1");
    match selected(options)? {
        Some(targets) => command.args(targets),
        // With `--lib`, libraries would be built once more as programs of no tests, although their manifests say `test = false`.
        None => command.args(["--tests"]),
    };
    let mut built = run(command)?;
    if let Some(built) = &mut built {
        built.select(options);
    }
    Ok(built)
}

impl Built {
    /// Leaves the programs that are asked for.
    pub(crate) fn select(&mut self, options: &Options) {
        self.programs.retain(|program| {
            let folder = program.folder.file_name().unwrap_or_default().to_string_lossy();
            options.wants(&program.package, &folder, &program.name)
        });
    }
}

/// Builds what a `cargo test` would run.
pub(crate) fn run(mut command: Command) -> io::Result<Option<Built>> {
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut built = Built::default();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        add(&mut built, &serde_json::from_str(&line?).unwrap_or_default());
    }
    Ok(child.wait()?.success().then_some(built))
}

/// The arguments that select the test targets that are asked for, if these are not all.
fn selected(options: &Options) -> io::Result<Option<Vec<String>>> {
    if options.packages.is_empty() && options.programs.is_empty() {
        return Ok(None);
    }
    let output = cargo().args(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit()).output()?;
    let all: Value = serde_json::from_slice(&output.stdout).map_err(io::Error::other)?;
    // Programs of several packages may have the same name.
    let mut wanted = std::collections::BTreeSet::new();
    for package in list(&all["packages"]) {
        let folder = folder_of(package);
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        for target in list(&package["targets"]).iter().filter(|target| target["test"] == true) {
            let Some(name) = name_of(target) else { continue };
            if options.wants(text(&package["name"]), &folder, &name) {
                wanted.insert(match name.as_str() {
                    "lib" => ("--lib", String::new()),
                    "bin" => ("--bin", text(&target["name"]).to_owned()),
                    _ => ("--test", name),
                });
            }
        }
    }
    let args: Vec<String> =
        (wanted.into_iter()).flat_map(|(flag, name)| [flag.to_owned(), name]).filter(|arg| !arg.is_empty()).collect();
    if args.is_empty() {
        return Err(io::Error::other(format!(
            "there is no such test program; packages {:?}, programs {:?}",
            options.packages, options.programs
        )));
    }
    Ok(Some(args))
}

/// Takes what one of cargo's messages tells.
fn add(built: &mut Built, message: &Value) {
    if message["reason"] != "compiler-artifact" {
        return;
    }
    let target = &message["target"];
    let library = |name: &str| {
        let file = list(&message["filenames"]).iter().find(|file| text(file).ends_with(name));
        file.map(|file| PathBuf::from(text(file)))
    };
    built.driver = library("libcuda_emulator.so").or(built.driver.take());
    built.hip = library("libhip_emulator.so").or(built.hip.take());
    let (Some(path), true) = (message["executable"].as_str(), message["profile"]["test"] == true) else { return };
    let Some(name) = name_of(target) else { return };
    let folder = folder_of(message);
    // `path+file:///folder#name@version`, where the name is left out if it is the folder's.
    let id = text(&message["package_id"]);
    let after = id.rsplit(['#', '/']).next().unwrap_or_default();
    let package = match after.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    built.programs.push(Program { package, folder, name, path: PathBuf::from(path) });
}

/// The folder of the manifest that an object of cargo's names.
fn folder_of(object: &Value) -> PathBuf {
    Path::new(text(&object["manifest_path"])).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// What a target with tests is called here.
fn name_of(target: &Value) -> Option<String> {
    match target["kind"][0].as_str()? {
        "test" => Some(text(&target["name"]).to_owned()),
        "bin" => Some("bin".to_owned()),
        "bench" | "example" | "custom-build" => None,
        _ => Some("lib".to_owned()),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
