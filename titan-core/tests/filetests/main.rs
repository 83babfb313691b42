//! The `.tir` files below `filetests/`. `TITAN_BLESS=1` rewrites those that are tested for their text.

mod runner;

use runner::{Report, run};
use std::path::{Path, PathBuf};

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

/// A mistake is shown next to what is right: a file of these folders has a kernel that is refused and one that is accepted, unless its
/// name says that all are accepted.
fn unpaired(name: &str, report: &Report) -> Option<String> {
    let (folder, file) = name.split_once(['/', '\\'])?;
    if !["verify", "program", "museum"].contains(&folder) {
        return None;
    }
    let missing = match (report.refused, report.accepted) {
        (_, 0) => "no kernel is accepted",
        (0, _) if !file.starts_with("accepted_") => "no kernel is refused",
        _ => return None,
    };
    Some(format!("{name}: {missing}"))
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
        failures.extend(unpaired(&name, &report));
        match report.blessed {
            Some(wanted) if bless => std::fs::write(path, wanted).expect("the file can be written"),
            Some(_) | None => failures.extend(report.failures),
        }
    }
    assert!(failures.is_empty(), "{} of {} files\n{}", failures.len(), paths.len(), failures.join("\n"));
    assert!(paths.len() >= 400, "only {} files", paths.len());
}

#[test]
fn mistakes_stand_beside_what_is_right() {
    let said = |name: &str, text: &str| unpaired(name, &run(name, text)).unwrap_or_default();
    let right = "kernel @right() {\n    return\n}\n";
    let wrong = "kernel @wrong() {\n    %a = const 1 : i32\n    store_scalar %a ; error[T0805]: \n    return\n}\n";
    let bare =
        "kernel @wrong(%a: mut tensor<f32>[M]) { ; error[T0401]: `a` is `&mut`, but nothing is stored\n    return\n}\n";
    assert_eq!(run("verify/a.tir", bare).failures, [""; 0]);
    assert!(said("verify/a.tir", right).contains("no kernel is refused"));
    assert_eq!(said("verify/accepted_a.tir", right), "");
    assert!(said("museum/a.tir", bare).contains("no kernel is accepted"));
    assert!(
        said("program/a.tir", wrong).contains("no kernel is accepted"),
        "a text that does not parse has no kernels"
    );
    assert_eq!(said("verify/a.tir", &format!("{bare}{right}")), "");
    let mistake = "; mistake: no end\n; < return\n; error[T0806]: \n";
    assert_eq!(said("program/a.tir", &format!("{right}{mistake}")), "");
    assert_eq!(said("text/a.tir", right), "");
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

/// Mistakes must fit the text, and cause the errors that they expect where they expect them.
#[test]
fn the_runner_makes_mistakes() {
    let kernel = "kernel @k(%n: i32) {\n    %a = add %n, %n\n    %b = add %a, %n\n    return\n}\n";
    let failures = |mistake: &str| run("verify/a.tir", &format!("{kernel}{mistake}")).failures.join("\n");
    let of_b = "; mistake: what is not there\n; < %b = add %a, %n\n; > %b = add %c, %n\n";
    assert_eq!(failures(&format!("{of_b}; error[T0805]: `%c` is not defined\n")), "");
    assert_eq!(failures(&format!("{of_b}; error[T0805] at `%b = `: `%c` is not defined\n")), "");
    assert!(failures(&format!("{of_b}; error[T0805] at `return`: `%c` is not defined\n")).contains("but not found"));
    assert!(
        failures(&format!("{of_b}; error[T0805] at `nothing`: `%c` is not defined\n")).contains("no line contains")
    );
    assert!(failures(of_b).contains("no error is expected"));
    let gone = "; mistake: gone\n; < %a = add %n, %n\n; error[T0805] at `%b = `: `%a` is not defined\n";
    assert_eq!(failures(gone), "");
    assert!(failures(&gone.replace("%n, %n", "%n, %a")).contains("occurs 0 times"));
    assert!(failures("; mistake: none\n").contains("nothing is changed"));
    let harmless = "; mistake: harmless\n; < %b = add %a, %n\n; > %b = add %n, %a\n; error[T0805]: no value\n";
    assert!(failures(harmless).contains("expected, but not found"));
    let twice = kernel.replace("%b = add %a, %n", "print \"a\"\n    print \"a\"");
    let second = "; mistake: the second\n; < (2 of 2) print \"a\"\n; > print \"a\n; error[T0805]: a string without\n";
    assert_eq!(run("verify/a.tir", &format!("{twice}{second}")).failures, [""; 0]);
    let third = second.replace("2 of 2", "2 of 3");
    assert!(run("verify/a.tir", &format!("{twice}{third}")).failures.join("").contains("occurs 2 times"));
}
