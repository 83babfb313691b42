//! LLVM 19: where its programs are, and what they say.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The path of one of LLVM's programs, in the folder `TITAN_LLVM` or with the version's suffix on the path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = match std::env::var_os("TITAN_LLVM") {
        Some(folder) => PathBuf::from(folder).join(name),
        None => PathBuf::from(format!("{name}-19")),
    };
    Command::new(&path).arg("--version").output().is_ok_and(|o| o.status.success()).then_some(path)
}

/// Says that a test did not run.
pub(crate) fn skipped(what: &str) {
    let line = format!("SKIPPED {what}: no LLVM 19 (`apt-get install llvm-19 clang-19 lld-19`, or TITAN_LLVM)\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}

/// What a program says to an input.
pub(crate) fn run(program: &PathBuf, args: &[&str], input: &str) -> (String, String) {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    let bytes = input.as_bytes().to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("the writer ends").expect("it reads its input");
    let text = |b: Vec<u8>| String::from_utf8(b).expect("it writes text");
    (text(output.stdout), text(output.stderr))
}
