//! Where cargo has put the library that this test was built with.
//!
//! Cargo is asked to build this test once more, with the arguments it was built with: everything is there already, and cargo says
//! where. `cargo xtask test` passes its arguments by `TITAN_CARGO_ARGS`, one a line; without it, they are those of
//! `cargo test -p ui-tests`.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library and what it needs.
#[derive(Debug, Default)]
pub(crate) struct Library {
    /// The library `titan`.
    pub(crate) titan: PathBuf,
    /// The folders of the libraries and macros that it needs.
    pub(crate) folders: BTreeSet<PathBuf>,
}

/// The folder in which cargo runs rustc for the packages of this workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/")).to_path_buf()
}

/// Asks cargo.
pub(crate) fn find() -> Result<Library, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace()).args(["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    match std::env::var_os("TITAN_CARGO_ARGS") {
        Some(args) => cargo.args(args.to_string_lossy().lines()),
        None => cargo.args(["-p", "ui-tests"]),
    };
    // Features are united over the packages that are selected, whichever of their targets are built.
    cargo.args(["--test", "ui"]);
    let program = std::env::current_exe().map_err(|e| format!("the path of this test is unknown: {e}"))?;
    cargo.args(place(&program).ok_or_else(|| format!("{} is in no folder of cargo's", program.display()))?);
    let output = cargo.output().map_err(|e| format!("cargo cannot be run: {e}"))?;
    if !output.status.success() {
        return Err(format!("{cargo:?} failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let library = read(&String::from_utf8_lossy(&output.stdout));
    if library.titan.as_os_str().is_empty() { Err(format!("{cargo:?} names no library `titan`")) } else { Ok(library) }
}

/// The arguments that select profile, machine and target folder of a program at `<target folder>[/<machine>]/<profile>/deps`.
fn place(program: &Path) -> Option<Vec<String>> {
    let profile = program.parent()?.parent()?;
    let above = profile.parent()?;
    let mut args = match profile.file_name()?.to_str()? {
        "debug" => Vec::new(),
        name => vec!["--profile".to_owned(), name.to_owned()],
    };
    // Cargo tags its target folder, not those of machines.
    let folder = if above.join("CACHEDIR.TAG").is_file() {
        above
    } else {
        args.extend(["--target".to_owned(), above.file_name()?.to_str()?.to_owned()]);
        above.parent()?
    };
    args.extend(["--target-dir".to_owned(), folder.to_str()?.to_owned()]);
    Some(args)
}

/// Finds the library in cargo's messages.
fn read(messages: &str) -> Library {
    let mut library = Library::default();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        // The library that is built to be tested itself is another one.
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] == true {
            continue;
        }
        for file in message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Path::new) {
            library.folders.extend(file.parent().filter(|f| f.ends_with("deps")).map(Path::to_path_buf));
            if message["target"]["name"] == "titan" && file.extension().is_some_and(|e| e == "rlib") {
                library.titan = file.to_path_buf();
            }
        }
    }
    library
}

#[test]
fn profile_and_machine_are_read_from_the_path_of_a_test() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("places");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("CACHEDIR.TAG"), "").unwrap();
    let at = |path: &str| place(&folder.join(path)).unwrap().join(" ");
    let tail = format!("--target-dir {}", folder.display());
    assert_eq!(at("debug/deps/ui-0123"), tail);
    assert_eq!(at("release/deps/ui-0123"), format!("--profile release {tail}"));
    let machine = "aarch64-unknown-linux-gnu";
    assert_eq!(at(&format!("{machine}/debug/deps/ui-0123")), format!("--target {machine} {tail}"));
    assert_eq!(place(Path::new("/ui")), None);
}

#[test]
fn the_library_is_read_from_the_messages_of_cargo() {
    let library = read(
        r#"{"reason":"compiler-artifact","target":{"name":"half"},"profile":{"test":false},"filenames":["/t/debug/deps/libhalf.rlib"]}
{"reason":"compiler-artifact","target":{"name":"titan"},"profile":{"test":true},"filenames":["/t/debug/deps/titan-1"]}
{"reason":"compiler-artifact","target":{"name":"titan"},"profile":{"test":false},"filenames":["/t/m/debug/deps/libtitan.rlib","/t/m/debug/deps/libtitan.rmeta"]}
{"reason":"compiler-artifact","target":{"name":"build-script-build"},"profile":{"test":false},"filenames":["/t/debug/build/x/build-script-build"]}
not a message"#,
    );
    assert_eq!(library.titan, Path::new("/t/m/debug/deps/libtitan.rlib"));
    assert_eq!(library.folders, ["/t/debug/deps", "/t/m/debug/deps"].map(PathBuf::from).into());
}
