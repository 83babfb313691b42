//! The allowed dependencies between crates and modules.

use crate::support::{code, expect_none, files, has_word, name, read, root};

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
    ("benches", &["titan"]),
    ("library-tests", &["titan"]),
    ("cuda-emulator", &["titan", "titan-core", "titan-nv"]),
    ("hip-emulator", &["titan", "titan-amd", "titan-sim"]),
    ("wheel", &[]),
    ("xtask", &[]),
];

/// A module of titan-core may name only the modules on its line.
///
/// `num` and `entity` know nothing; `ir` is what a kernel is; `text` and `analysis` read it; `verify` judges it by
/// `analysis`, and barrier programs by what `synchronize` finds between their warps; `artifact` and `launch` are what a program carries and fills in. `artifact` checks the bounds of host
/// expressions by the text form's own printer and parser.
const MODULES: &[(&str, &[&str])] = &[
    ("entity", &[]),
    ("named_enum", &[]),
    ("num", &[]),
    ("diag", &["ir"]),
    ("ir", &["entity", "named_enum", "num", "diag"]),
    ("text", &["entity", "num", "diag", "ir"]),
    ("analysis", &["entity", "num", "diag", "ir"]),
    ("synchronize", &["ir", "analysis", "layout"]),
    ("verify", &["entity", "num", "diag", "ir", "analysis", "synchronize"]),
    ("launch", &["num", "diag", "ir"]),
    ("lane", &["named_enum", "entity", "num", "ir", "launch"]),
    ("layout", &["ir", "lane"]),
    ("plan", &["diag", "ir", "analysis", "verify", "lane", "layout"]),
    ("pipeline", &["ir", "analysis", "verify"]),
    ("lay_out", &["ir", "analysis", "verify", "launch", "layout", "plan"]),
    ("expand", &["ir", "analysis", "layout", "lay_out", "pipeline", "plan"]),
    ("allocate", &["ir", "layout"]),
    (
        "lower",
        &[
            "diag", "num", "ir", "analysis", "verify", "launch", "lane", "layout", "plan", "lay_out", "expand",
            "allocate",
        ],
    ),
    ("artifact", &["diag", "ir", "launch", "text"]),
    (
        "driver",
        &[
            "ir",
            "analysis",
            "verify",
            "lane",
            "artifact",
            "pipeline",
            "plan",
            "lay_out",
            "expand",
            "allocate",
            "synchronize",
            "lower",
        ],
    ),
    ("filetest", &["diag", "ir", "text", "analysis", "verify", "pipeline"]),
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
            let own = dependency == *krate && section.contains("dev");
            // What the workspace's members may take from it is no dependency yet.
            let table = section == "workspace.dependencies";
            if dependency.starts_with("titan") && !table && !own && !allowed.contains(&dependency) {
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
        // Tests may write kernels as text.
        sources.retain(|f| f.file_name().is_some_and(|f| f != "tests.rs"));
        sources.extend([src.join(format!("{module}.rs"))].into_iter().filter(|f| f.exists()));
        for file in sources {
            let text = code(&read(&file));
            for target in named(&text) {
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
        for (i, line) in code(&read(&file)).lines().enumerate() {
            let std = line.contains("std::") || line.contains("HashMap") || line.contains("HashSet");
            for (word, instead) in OUTSIDE.iter().filter(|(word, _)| std && has_word(line, word)) {
                found.push(format!("{}:{}: `{word}`: {instead}", name(&file), i + 1));
            }
        }
    }
    expect_none(&found, "titan-core has no files, clock, environment, threads or hash order: same input, same bytes.");
}
