//! Runs `filetests/verify`: kernels with the errors that the verifier must find, each on its line.
//!
//! `; error[T0402]: text` belongs to the operation on its line, or on the last line that is not a comment; an error without
//! a place belongs to the line of `kernel`. `; help: text` must occur in the help of the error before it, `; note: text` in
//! what it says of a second place. A kernel without annotations must pass. Every file has a kernel that fails and a twin
//! that passes.

use std::path::{Path, PathBuf};
use titan_core::diag::Diagnostic;
use titan_core::ir::Loc;
use titan_core::text::parse_located;
use titan_core::verify::verify;

#[derive(Debug)]
struct Expected {
    line: u32,
    code: String,
    text: String,
    more: Vec<(bool, String)>,
}

/// The annotations of the lines `from .. to`, which count from 1.
fn expectations(text: &str, from: u32, to: u32) -> Vec<Expected> {
    let mut expected: Vec<Expected> = Vec::new();
    let mut line_of_code = from;
    for (line, content) in (1u32..).zip(text.lines()).filter(|(n, _)| (from..to).contains(n)) {
        let (code, comment) = content.split_once(';').unwrap_or((content, ""));
        if !code.trim().is_empty() {
            line_of_code = line;
        }
        let comment = comment.trim();
        if let Some(rest) = comment.strip_prefix("error[") {
            let (code, text) = rest.split_once("]: ").expect("`; error[Txxxx]: text`");
            expected.push(Expected { line: line_of_code, code: code.to_owned(), text: text.to_owned(), more: vec![] });
        }
        for (is_help, word) in [(true, "help: "), (false, "note: ")] {
            if let Some(rest) = comment.strip_prefix(word) {
                let last = expected.last_mut().expect("a help or note after its error");
                last.more.push((is_help, rest.to_owned()));
            }
        }
    }
    expected
}

fn matches(e: &Expected, d: &Diagnostic<Loc>, kernel_line: u32) -> bool {
    let line = if d.site == Loc::default() { kernel_line } else { d.site.line };
    let has = |(is_help, text): &(bool, String)| {
        if *is_help { d.help.iter().any(|h| h.contains(text)) } else { d.related.iter().any(|(_, w)| w.contains(text)) }
    };
    line == e.line && d.code.number() == e.code && d.title.contains(&e.text) && e.more.iter().all(has)
}

/// What is wrong with a file, if anything, and how many of its kernels fail and pass as they should.
fn run(path: &Path) -> Result<(usize, usize), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let kernels = parse_located(&text).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(|e| format!("  {}: {}", e.site, e.text())).collect();
        format!("the text does not parse\n{}", lines.join("\n"))
    })?;
    let (mut failing, mut passing, mut faults) = (0, 0, String::new());
    for (i, located) in kernels.iter().enumerate() {
        let from = located.at.line;
        let to = kernels.get(i + 1).map_or(u32::MAX, |k| k.at.line);
        let expected = expectations(&text, from, to);
        let found = verify(located.kernel.clone()).err().unwrap_or_default();
        if expected.is_empty() {
            passing += 1
        } else {
            failing += 1
        }
        for e in expected.iter().filter(|e| !found.iter().any(|d| matches(e, d, from))) {
            faults.push_str(&format!("\n  missing at line {}: {} {} {:?}", e.line, e.code, e.text, e.more));
        }
        for d in found.iter().filter(|d| !expected.iter().any(|e| matches(e, d, from))) {
            let related: Vec<String> = d.related.iter().map(|(l, w)| format!("{}: {w}", l.line)).collect();
            let name = &located.kernel.sig.name;
            faults.push_str(&format!("\n  not expected in @{name}, line {}: {}\n  {related:?}", d.site.line, d.text()));
        }
    }
    if faults.is_empty() { Ok((failing, passing)) } else { Err(faults) }
}

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/verify");
    let entries = std::fs::read_dir(dir).expect("the folder of the filetests");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "tir"));
    files.sort();
    files
}

#[test]
fn every_file_has_the_errors_that_it_declares() {
    let mut faults = String::new();
    for file in files() {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match run(&file) {
            Err(why) => faults.push_str(&format!("\n{name}: {why}")),
            Ok((_, 0)) => faults.push_str(&format!("\n{name}: no kernel passes")),
            Ok((0, _)) if !name.starts_with("accepted_") => faults.push_str(&format!("\n{name}: no kernel fails")),
            Ok(_) => {}
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn there_are_enough_of_them() {
    assert!(files().len() >= 40, "{} files", files().len());
}
