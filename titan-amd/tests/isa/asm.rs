//! LLVM's assembler and disassembler, many lines at a time.

use crate::support::oracle::run;
use std::collections::BTreeMap;
use std::path::PathBuf;

const TARGET: [&str; 2] = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942"];

/// The bytes of each line, or why it is refused.
pub(crate) fn assemble(mc: &PathBuf, lines: &[String]) -> Vec<Result<Vec<u8>, String>> {
    let mut text = String::new();
    // A label before each line: its encoding is found by the label.
    for (i, line) in lines.iter().enumerate() {
        text.push_str(&format!(".Lline{i}:\n{line}\n"));
    }
    let (out, err) = run(mc, &[TARGET[0], TARGET[1], "-show-encoding"], &text);
    let mut results: Vec<Result<Vec<u8>, String>> = vec![Err("nothing was said of it".to_owned()); lines.len()];
    for complaint in err.lines().filter(|l| l.contains("error:")) {
        let line: usize = complaint.split(':').nth(1).and_then(|n| n.parse().ok()).expect("errors have a line");
        results[line / 2 - 1] = Err(complaint.split("error: ").nth(1).unwrap_or_default().to_owned());
    }
    let mut at = None;
    for line in out.lines() {
        if let Some(label) = line.trim().strip_prefix(".Lline") {
            at = label.strip_suffix(':').and_then(|n| n.parse::<usize>().ok());
        } else if let (Some(i), Some((_, bytes))) = (at, line.split_once("encoding: [")) {
            let bytes = bytes.trim_end_matches(']').split(',').map(|b| {
                let b = b.trim().trim_start_matches("0x");
                u8::from_str_radix(b, 16).unwrap_or_else(|_| panic!("`{b}` in {line}"))
            });
            results[i] = Ok(bytes.collect());
        }
    }
    results
}

/// The text of each instruction, given its bytes, or nothing if there is none.
pub(crate) fn disassemble(objdump: &PathBuf, mc: &PathBuf, codes: &[Vec<u8>]) -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("titan-amd-isa-{}-{}", std::process::id(), codes.len()));
    std::fs::create_dir_all(&folder).expect("a folder for an object file");
    let object = folder.join("code.o");
    let (mut text, mut starts, mut at) = (String::new(), BTreeMap::new(), 0);
    for (i, code) in codes.iter().enumerate() {
        let bytes: Vec<String> = code.iter().map(u8::to_string).collect();
        text.push_str(&format!(".byte {}\n", bytes.join(",")));
        starts.insert(at, i);
        at += code.len();
    }
    let path = object.to_str().expect("a path in text");
    let (_, err) = run(mc, &[TARGET[0], TARGET[1], "-filetype=obj", "-o", path], &text);
    assert!(err.is_empty(), "{err}");
    let (out, _) = run(objdump, &["-d", "--no-show-raw-insn", "--mcpu=gfx942", path], "");
    std::fs::remove_dir_all(&folder).expect("the folder is still there");
    let mut results = vec![String::new(); codes.len()];
    for line in out.lines() {
        // The last comment: one within the text says what LLVM takes exception to.
        let Some((text, comment)) = line.rsplit_once("//") else { continue };
        let address = comment.trim().split(':').next().and_then(|a| usize::from_str_radix(a, 16).ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line}"));
        let (_, i) = starts.range(..=address).next_back().expect("the first instruction is at 0");
        let words: Vec<&str> = text.split_whitespace().collect();
        let separator = if results[*i].is_empty() { "" } else { " ; " };
        results[*i].push_str(&format!("{separator}{}", words.join(" ")));
    }
    results
}
