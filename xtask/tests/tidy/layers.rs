//! The allowed dependencies between crates and modules.

use crate::support::{code_of, expect_none, files, has_word, name, read, root};

/// A crate may name only the crates on its line.
const CRATES: &[(&str, &[&str])] = &[
    ("titan-core", &[]),
    ("titan-sim", &["titan-core"]),
    ("titan-nv", &["titan-core", "titan-sim"]),
    ("titan-amd", &["titan-core", "titan-sim"]),
    ("titan-cpu", &["titan-core", "titan-sim", "titan-nv"]),
    ("titan-macros", &["titan-core", "titan-nv", "titan-amd"]),
    ("", &["titan-core", "titan-sim", "titan-macros", "titan-nv", "titan-amd", "titan-cpu"]),
    ("titan-cli", &["titan-core", "titan-sim", "titan-nv", "titan-amd", "titan-cpu"]),
    ("ui-tests", &["titan", "titan-core"]),
    ("examples/minilm", &["titan"]),
    ("benches", &["titan", "titan-core", "titan-nv"]),
    ("library-tests", &["titan"]),
    ("cuda-emulator", &["titan", "titan-core", "titan-nv"]),
    ("hip-emulator", &["titan", "titan-amd", "titan-sim"]),
    ("wheel", &[]),
    ("test-depth", &[]),
    ("xtask", &[]),
];

/// A module of titan-core may name only the modules on its line.
///
/// `num`, `entity` and `collections` know nothing; `ir` is what a kernel is; `text` and `analysis` read it; `verify` judges it by
/// `analysis`, and nothing that a pass has found; `artifact` and `launch` are what a program carries and fills in. `artifact` checks the bounds of host
/// expressions by the text form's own printer and parser.
const MODULES: &[(&str, &[&str])] = &[
    ("entity", &[]),
    ("collections", &[]),
    ("named_enum", &[]),
    ("num", &[]),
    ("schedule", &["collections", "diag"]),
    ("diag", &["ir"]),
    ("ir", &["entity", "named_enum", "num", "diag"]),
    ("text", &["collections", "entity", "num", "diag", "ir"]),
    ("analysis", &["collections", "entity", "num", "diag", "ir"]),
    ("synchronize", &["collections", "ir", "analysis", "layout"]),
    ("verify", &["collections", "entity", "num", "diag", "ir", "analysis"]),
    ("launch", &["num", "diag", "ir"]),
    ("lane", &["collections", "named_enum", "entity", "num", "ir", "launch"]),
    ("layout", &["collections", "ir", "lane"]),
    ("target", &["ir", "lane", "layout"]),
    ("plan", &["collections", "diag", "ir", "analysis", "verify", "lane", "layout", "target"]),
    ("pipeline", &["collections", "ir", "analysis", "verify"]),
    ("lay_out", &["collections", "ir", "analysis", "verify", "launch", "layout", "plan", "target"]),
    ("complete", &["collections", "ir", "analysis", "pipeline"]),
    ("expand", &["collections", "ir", "analysis", "layout", "lay_out", "plan", "target"]),
    ("allocate", &["collections", "ir", "layout"]),
    (
        "lower",
        &[
            "collections",
            "diag",
            "num",
            "ir",
            "analysis",
            "verify",
            "launch",
            "lane",
            "layout",
            "target",
            "plan",
            "lay_out",
            "expand",
            "allocate",
        ],
    ),
    ("artifact", &["collections", "diag", "ir", "launch", "text"]),
    (
        "driver",
        &[
            "collections",
            "diag",
            "ir",
            "text",
            "analysis",
            "verify",
            "lane",
            "artifact",
            "pipeline",
            "target",
            "plan",
            "schedule",
            "lay_out",
            "complete",
            "expand",
            "allocate",
            "synchronize",
            "lower",
        ],
    ),
];

/// A module of the verifier may name only the modules on its line, which stand above it: so there are no circles. `mod.rs`, which
/// calls their checks in order, may name all.
///
/// `roles` and `loops` are facts about a kernel; `coexecution` is the joint execution of all roles, for rings and for barriers;
/// `pipes` and `barriers` are the rules that do not need it.
const VERIFIER: &[(&str, &[&str])] = &[
    ("ids", &[]),
    ("structure", &["ids"]),
    ("scope", &[]),
    ("types", &["structure"]),
    ("signature", &[]),
    ("loops", &[]),
    ("control", &["structure", "loops"]),
    ("optional", &[]),
    ("roles", &[]),
    ("distributed", &[]),
    ("coexecution", &["roles", "loops"]),
    ("pipes", &["roles", "loops"]),
    ("barriers", &["roles", "coexecution"]),
    ("unmasked", &["coexecution"]),
];

/// The same for the co-execution: what its symbolic numbers may name, and each of its two kinds of events. The driver (`run`, `step`,
/// `induct`) and the events know each other: the state and the induction are those of all events together.
const COEXECUTION: &[(&str, &[&str])] = &[
    ("linear", &[]),
    ("key", &["linear"]),
    ("values", &["linear", "key", "example"]),
    ("example", &["linear", "key", "values"]),
    ("bounds", &["linear", "key", "values"]),
    ("ranges", &["linear", "key", "values"]),
    ("cyclic", &["linear", "key", "values"]),
    ("fault", &["linear"]),
    ("rings", &["linear", "fault", "state", "run", "events"]),
    ("barriers", &["linear", "values", "cyclic", "fault", "state", "run"]),
];

/// The same for the modules of the scheduler of graphs: `check` shares no code with the search.
const SCHEDULE: &[(&str, &[&str])] = &[
    ("graph", &[]),
    ("placed", &[]),
    ("steps", &[]),
    ("text", &["graph", "placed"]),
    ("check", &["graph", "placed"]),
    ("bounds", &["graph"]),
    ("live", &["graph"]),
    ("sequence", &["graph", "placed", "live"]),
    ("recurrences", &["graph", "bounds"]),
    ("order", &["graph", "steps", "recurrences"]),
    ("units", &["graph", "steps"]),
    ("partial", &["graph", "steps", "order", "units"]),
    ("iterative", &["graph", "steps", "order", "units"]),
    ("swing", &["graph", "placed", "steps", "bounds", "live", "sequence", "order", "units", "partial", "iterative"]),
];

/// What would make titan-core depend on more than its arguments: word, and what to do instead.
const OUTSIDE: &[(&str, &str)] = &[
    ("env", "take the value as an argument"),
    ("fs", "take the text or the bytes as an argument"),
    ("net", "there is nothing to fetch in a compiler"),
    ("process", "return an error"),
    ("thread", "the caller decides about threads"),
    ("time", "measure in the caller"),
    ("Instant", "measure in the caller"),
    ("SystemTime", "take it as an argument"),
    ("HashMap", "use BTreeMap: the output must not depend on hashes"),
    ("HashSet", "use BTreeSet: the output must not depend on hashes"),
];

#[test]
fn crates_name_only_crates_below_them() {
    let mut found = Vec::new();
    for (krate, allowed) in CRATES {
        let manifest = read(&root().join(krate).join("Cargo.toml"));
        for (section, line) in dependency_lines(&manifest) {
            let dependency = line.split([' ', '=', '.']).next().unwrap_or_default();
            // What the workspace's members may take from it is no dependency yet.
            let table = section == "workspace.dependencies";
            if dependency.starts_with("titan") && !table && !allowed.contains(&dependency) {
                found.push(format!("{krate}/Cargo.toml: `{dependency}` in [{section}]"));
            }
        }
    }
    expect_none(
        &found,
        "Move the code to the crate that may know both, or change the arrows in ARCHITECTURE.md and here.",
    );
}

#[test]
fn every_package_has_its_arrows() {
    let packages = crate::support::PACKAGES;
    let missing: Vec<_> = packages.iter().filter(|p| !CRATES.iter().any(|(c, _)| c == *p)).collect();
    assert!(missing.is_empty(), "{missing:?}: say in CRATES what the package may depend on");
    let members = read(&root().join("Cargo.toml"));
    for package in packages.iter().filter(|p| !p.is_empty()) {
        assert!(members.contains(&format!("\"{package}\"")), "{package} is not a member of the workspace");
    }
}

/// The lines of a manifest that name a dependency, with their section.
pub(crate) fn dependency_lines(manifest: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut lines = Vec::new();
    for line in manifest.lines() {
        if let Some(header) = line.trim().strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = header.to_owned();
        } else if section.ends_with("dependencies") && line.starts_with(|c: char| c.is_ascii_alphabetic()) {
            lines.push((section.clone(), line.to_owned()));
        }
    }
    lines
}

/// The modules of titan-core that a piece of code names.
fn named(code: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for (i, _) in code.match_indices("crate::") {
        let rest = &code[i + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let list = &list[..list.find("};").unwrap_or(list.len())];
            all.extend(list.split(',').map(|item| item.trim().split("::").next().unwrap_or_default()));
        } else {
            all.push(rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default());
        }
    }
    all
}

#[test]
fn modules_of_the_core_name_only_modules_below_them() {
    let src = root().join("titan-core/src");
    let mut found = Vec::new();
    for (module, allowed) in MODULES {
        let mut sources = files(&src.join(module), "rs");
        sources.extend([src.join(format!("{module}.rs"))].into_iter().filter(|f| f.exists()));
        for file in sources {
            let text = code_of(&file);
            for target in named(text) {
                let known = MODULES.iter().any(|(m, _)| *m == target);
                if known && target != *module && !allowed.contains(&target) {
                    found.push(format!("{}: `{module}` names `{target}`", name(&file)));
                }
            }
        }
    }
    expect_none(
        &found,
        "Move the item down, or pass what is needed as an argument; the order is MODULES in layers.rs.",
    );
}

/// The modules below `top` that a file names with `super::` or with a path from the crate's root, of which `top` is given as a path.
/// `at` is the path of the file's own module.
fn relative<'c>(code: &'c str, top: &[&str], at: &[String]) -> Vec<&'c str> {
    let mut all = Vec::new();
    let word = |text: &'c str| text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    let mut first = |rest: &'c str| {
        let Some(list) = rest.strip_prefix('{') else { return all.push(word(rest)) };
        // The first words of a list, without those in the lists inside of it.
        let mut depth = 0;
        let mut begins = true;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    all.push(word(&list[i..]));
                    begins = false;
                }
                _ => {}
            }
        }
    };
    let absolute = format!("crate::{}::", top.join("::"));
    code.match_indices(&absolute).for_each(|(i, _)| first(&code[i + absolute.len()..]));
    for (i, _) in code.match_indices("super::").filter(|(i, _)| !code[..*i].ends_with("super::")) {
        let (mut rest, mut up) = (&code[i..], 0);
        while let Some(next) = rest.strip_prefix("super::") {
            (rest, up) = (next, up + 1);
        }
        if at.len().checked_sub(up) == Some(top.len()) {
            first(rest);
        }
    }
    all
}

/// Checks the arrows between the modules below one of titan-core; `top` is its path.
fn expect_arrows(top: &[&str], arrows: &[(&str, &[&str])]) {
    let dir = top.iter().fold(root().join("titan-core/src"), |dir, part| dir.join(part));
    let mut found = Vec::new();
    for (module, allowed) in arrows {
        let mut sources = files(&dir.join(module), "rs");
        sources.extend([dir.join(format!("{module}.rs"))].into_iter().filter(|f| f.exists()));
        if sources.is_empty() {
            found.push(format!("{}: there is no `{module}`", name(&dir)));
        }
        for file in sources {
            let text = code_of(&file);
            let path = file.strip_prefix(root().join("titan-core/src")).unwrap_or(&file).with_extension("");
            let mut at: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            at.retain(|part| part != "mod");
            for target in relative(text, top, &at).into_iter().filter(|target| !target.is_empty()) {
                let known =
                    files(&dir.join(target), "rs").len() + usize::from(dir.join(format!("{target}.rs")).exists());
                if known > 0 && target != *module && !allowed.contains(&target) {
                    found.push(format!("{}: `{module}` names `{target}`", name(&file)));
                }
            }
        }
    }
    expect_none(
        &found,
        "Move the item to a module that both may name; the arrows are VERIFIER, COEXECUTION and SCHEDULE in layers.rs.",
    );
}

#[test]
fn modules_of_the_verifier_name_only_modules_above_them() {
    expect_arrows(&["verify"], VERIFIER);
    expect_arrows(&["verify", "coexecution"], COEXECUTION);
    for (i, (module, allowed)) in VERIFIER.iter().enumerate() {
        for target in *allowed {
            assert!(
                VERIFIER[..i].iter().any(|(m, _)| m == target),
                "`{module}` may name `{target}`, which is below it"
            );
        }
    }
    let verify = read(&root().join("titan-core/src/verify/mod.rs"));
    let modules = verify.lines().filter_map(|l| l.strip_prefix("mod ")?.strip_suffix(';'));
    let missing: Vec<_> = modules.filter(|m| !VERIFIER.iter().any(|(known, _)| known == m)).collect();
    assert!(missing.is_empty(), "{missing:?}: say in VERIFIER of layers.rs what they may name");
}

#[test]
fn modules_of_the_scheduler_name_only_modules_below_them() {
    expect_arrows(&["schedule"], SCHEDULE);
    let schedule = read(&root().join("titan-core/src/schedule/mod.rs"));
    let modules = schedule.lines().filter_map(|l| l.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let missing: Vec<_> = modules.filter(|m| !SCHEDULE.iter().any(|(known, _)| known == m)).collect();
    assert!(missing.is_empty(), "{missing:?}: say in SCHEDULE of layers.rs what they may name");
}

#[test]
fn names_are_found_in_paths_and_in_lists() {
    let at = |path: &[&str]| path.iter().map(|part| (*part).to_owned()).collect::<Vec<String>>();
    let text = "use super::super::pipes::{a, b}; use super::own; use crate::verify::{Error, roles::{x, y}, loops}; crate::ir::z";
    assert_eq!(
        relative(text, &["verify"], &at(&["verify", "barriers", "place"])),
        ["Error", "roles", "loops", "pipes"]
    );
    assert_eq!(relative(text, &["verify"], &at(&["verify", "barriers"])), ["Error", "roles", "loops", "own"]);
}

#[test]
fn every_module_of_the_core_has_its_layer() {
    let lib = read(&root().join("titan-core/src/lib.rs"));
    let modules = lib.lines().filter_map(|l| l.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let missing: Vec<_> = modules.filter(|m| !MODULES.iter().any(|(known, _)| known == m)).collect();
    assert!(missing.is_empty(), "{missing:?}: say in MODULES of layers.rs what they may name");
}

#[test]
fn the_core_is_a_function_of_its_arguments() {
    let mut found = Vec::new();
    for file in files(&root().join("titan-core/src"), "rs") {
        // A module of this workspace called `env` is not the environment.
        for (i, line) in code_of(&file).lines().enumerate() {
            let std = line.contains("std::") || line.contains("HashMap") || line.contains("HashSet");
            for (word, instead) in OUTSIDE.iter().filter(|(word, _)| std && has_word(line, word)) {
                found.push(format!("{}:{}: `{word}`: {instead}", name(&file), i + 1));
            }
        }
    }
    expect_none(&found, "titan-core has no files, clock, environment, threads or hash order: same input, same bytes.");
}
