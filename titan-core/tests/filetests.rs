//! The `.tir` files below `filetests/`. `TITAN_BLESS=1` rewrites those that are tested for their text.

use std::path::{Path, PathBuf};
use titan_core::filetest::run;

/// Every `.tir` file below a folder, in the order of their names.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "tir") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let bless = std::env::var_os("TITAN_BLESS").is_some();
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let mut failures = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("a text file");
        let name = path.strip_prefix(&root).unwrap_or(path).display().to_string();
        let report = run(&name, &text);
        match report.blessed {
            Some(wanted) if bless => std::fs::write(path, wanted).expect("the file can be written"),
            Some(_) | None => failures.extend(report.failures),
        }
    }
    assert!(failures.is_empty(), "{} of {} files\n{}", failures.len(), paths.len(), failures.join("\n"));
    assert!(paths.len() >= 25, "only {} files", paths.len());
}

#[test]
fn the_runner_tells_what_is_wrong() {
    let failures = |text: &str| run("a.tir", text).failures.join("\n");
    assert!(failures("kernel @k() {\n}\n").contains("the first line must be"));
    assert_eq!(run("verify/a.tir", "kernel @k() {\n    return\n}\n").failures, [""; 0]);
    assert!(failures("; test magic\n").contains("there is no test `magic`"));
    assert!(failures("; test text\nkernel @k() {}\n").contains("TITAN_BLESS=1 rewrites it"));
    assert_eq!(
        run("a.tir", "; test text\nkernel @k() {}\n").blessed.as_deref(),
        Some("; test text\nkernel @k() {\n}\n")
    );
    let unexpected = failures("; test parse\nkernel @k() {\n    nonsense\n}\n");
    assert!(unexpected.contains("a.tir:3:5: found, but not expected: [T0805]"), "{unexpected}");
    let missing = failures("; test parse\nkernel @k() {\n    return ; error[T0805]: nothing\n}\n");
    assert!(missing.contains("a.tir:3: expected, but not found: [T0805] nothing"), "{missing}");
    let line = failures("; test parse\nkernel @k() {\n    nonsense\n    return ; error[T0805]: nonsense\n}\n");
    assert_eq!(line.lines().filter(|l| l.starts_with("a.tir")).count(), 2, "the line must agree: {line}");
    let below =
        "; test parse\nkernel @k() {\n    %x = addd\n    ; error[T0805]: no operation `addd`\n    ; help: `add`\n}\n";
    assert_eq!(failures(below), "");
    assert_ne!(failures(&below.replace("help: `add`", "help: `sub`")), "");
    assert_eq!(failures("; test parse\n; test verify\nkernel @k() {\n    return\n}\n"), "");
}
