//! The corpus of published bugs (`museum`): publicly reported bugs of pipelines, reproduced as kernels. `docs/museum.md` is generated from
//! the files and the messages. That the verifier rejects each of them for the expected reason, and accepts its repaired twin, is
//! tested with the other files (`filetests.rs`).

use std::fmt::Write;
use std::path::Path;
use titan_core::diag::Diagnostic;
use titan_core::ir::{Kernel, Loc};
use titan_core::text::{Located, parse_located};
use titan_core::verify::{barrier_program, verify};

/// How many lines a repair adds and removes at most.
const MOST: usize = 14;

/// A published bug.
struct Exhibit {
    name: String,
    title: String,
    link: String,
    class: String,
    happened: String,
    here: String,
    text: String,
    bug: Located,
    repaired: Located,
}

fn field(text: &str, name: &str, file: &str) -> String {
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("; {name}: ")));
    line.unwrap_or_else(|| panic!("{file} does not say `; {name}:`")).to_owned()
}

fn exhibits() -> Vec<Exhibit> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/museum");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).expect("a text");
        let kernels = parse_located(&text).expect("it parses");
        let [bug, repaired] = <[Located; 2]>::try_from(kernels).unwrap_or_else(|_| panic!("{name}: two kernels"));
        let title = text
            .lines()
            .nth(1)
            .and_then(|l| l.strip_prefix("; "))
            .unwrap_or_else(|| panic!("{name}: a title"))
            .to_owned();
        let [link, class, happened, here] = ["link", "class", "happened", "here"].map(|f| field(&text, f, &name));
        Exhibit { name, title, link, class, happened, here, text, bug, repaired }
    };
    paths.iter().map(read).collect()
}

fn place(exhibit: &Exhibit, loc: Loc) -> String {
    let line = exhibit.bug.at.of(loc).line;
    let source =
        usize::try_from(line).ok().and_then(|n| exhibit.text.lines().nth(n.checked_sub(1)?)).unwrap_or_default();
    format!("{line:>4} | {}", source.trim())
}

/// The errors of a kernel. One that is laid out is a barrier program, which has rules of its own.
fn errors(kernel: &Kernel) -> Vec<Diagnostic<Loc>> {
    let verdict = if kernel.laid_out.is_some() {
        barrier_program(kernel).map(|_| ())
    } else {
        verify(kernel.clone()).map(|_| ())
    };
    verdict.err().unwrap_or_default()
}

/// The lines of a kernel without what the files say of errors, and without its name.
fn lines(text: &str, located: &Located, end: usize) -> Vec<String> {
    let first = usize::try_from(located.at.start.line).expect("a line") - 1;
    let name = format!("@{}", located.kernel.sig.name);
    let own = text.lines().take(end).skip(first).map(str::trim).filter(|l| !l.is_empty() && !l.starts_with(';'));
    own.map(|l| l.split(" ; error[").next().unwrap_or_default().replacen(&name, "@", 1)).collect()
}

/// The lines that are only in the first text (`-`) and only in the second one (`+`), in order: those outside of a longest common
/// subsequence.
fn difference(a: &[String], b: &[String]) -> Vec<String> {
    let mut common = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i][j] = if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if i < a.len() && (j == b.len() || common[i + 1][j] >= common[i][j + 1]) {
            found.push(format!("- {}", a[i]));
            i += 1;
        } else {
            found.push(format!("+ {}", b[j]));
            j += 1;
        }
    }
    found
}

/// What is changed to repair a bug.
fn repair(e: &Exhibit) -> Vec<String> {
    let end = usize::try_from(e.repaired.at.start.line).expect("a line") - 1;
    difference(&lines(&e.text, &e.bug, end), &lines(&e.text, &e.repaired, usize::MAX))
}

/// An error as the tools show it, with the source lines that it refers to.
fn rendered(exhibit: &Exhibit, error: &Diagnostic<Loc>) -> String {
    let mut out = format!("error[{}]: {}\n{}\n", error.code, error.title, place(exhibit, error.site));
    for (loc, what) in &error.related {
        let _ = writeln!(out, "note: {what}\n{}", place(exhibit, *loc));
    }
    for help in &error.help {
        let _ = writeln!(out, "help: {help}");
    }
    out
}

#[test]
fn every_exhibit_has_a_bug_and_its_repair() {
    let all = exhibits();
    assert!(all.len() >= 41, "{} exhibits", all.len());
    for e in &all {
        assert_eq!([&e.bug.kernel.sig.name, &e.repaired.kernel.sig.name], ["bug", "repaired"], "{}", e.name);
        assert!(e.link.starts_with("https://"), "{}", e.name);
        assert_eq!(errors(&e.repaired.kernel), [], "{}", e.name);
    }
    for class in ["multicast", "remote arrival", "cluster", "setmaxnreg", "instances of a role", "tensor memory"] {
        assert!(all.iter().any(|e| e.class.starts_with(class)), "no bug of the class {class}");
    }
}

/// The repair is all that separates a bug from what is right, so that the rule which refuses it is about the bug.
#[test]
fn a_bug_and_its_repair_differ_in_a_few_lines() {
    for e in &exhibits() {
        let changed = repair(e);
        assert!((1..=MOST).contains(&changed.len()), "{}: {} lines\n{}", e.name, changed.len(), changed.join("\n"));
    }
}

#[test]
fn the_page_is_current() {
    let mut table = String::new();
    let mut rooms = String::new();
    for e in exhibits() {
        let errors = errors(&e.bug.kernel);
        let first = errors.first().unwrap_or_else(|| panic!("{} is accepted", e.name));
        let _ = writeln!(
            table,
            "| [{}](#{}) | [report]({}) | {} | [{}](errors/{}.md) |",
            e.title, e.name, e.link, e.class, first.code, first.code
        );
        let messages: Vec<String> = errors.iter().map(|d| rendered(&e, d)).collect();
        let file = format!("../titan-core/filetests/museum/{}.tir", e.name);
        let _ = write!(
            rooms,
            "\n## {}\n\n*{}* ([report]({})). {}\n\n[{}.tir]({file}): {}\n\n```diff\n{}\n```\n\n```text\n{}```\n",
            e.name,
            e.title,
            e.link,
            e.happened,
            e.name,
            e.here,
            repair(&e).join("\n"),
            messages.join("\n"),
        );
    }
    let page = format!(
        "# Corpus of published bugs\n\n\
         <!-- Made from titan-core/filetests/museum by `TITAN_BLESS=1 cargo test -p titan-gpu-core --test museum`. -->\n\n\
         Publicly reported bugs of pipelines, reproduced as kernels in the text form: with rings and tokens where these can express\n\
         the bug, with barriers and groups otherwise. The verifier rejects each, for any number of iterations, and accepts its\n\
         repaired twin. Each kernel is the protocol of the bug in the smallest program that has it, not the reported code; the\n\
         descriptions are ours. The lines that the repair removes and adds stand before the message.\n\n\
         | bug | where | class | rule |\n|---|---|---|---|\n{table}{rooms}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/museum.md");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/museum.md is not current: TITAN_BLESS=1 rewrites it"
    );
}
