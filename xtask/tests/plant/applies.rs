//! The list of planted defects goes with the sources and with its page.

use crate::defect::{Defect, Tests};
use crate::{list, page};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn defects() -> Vec<Defect> {
    list::read(&root()).expect("the list can be read")
}

#[test]
fn every_defect_applies() {
    let mut wrong = Vec::new();
    for defect in defects() {
        match std::fs::read_to_string(root().join(&defect.file)) {
            Ok(text) => wrong.extend(defect.plant(&text).err()),
            Err(error) => wrong.push(format!("`{}`: {}: {error}", defect.name, defect.file)),
        }
    }
    assert!(wrong.is_empty(), "{}\n\nWrite the lines in xtask/defects as they are now.", wrong.join("\n\n"));
}

/// The code of tests is no place for a defect.
#[test]
fn defects_are_in_the_product() {
    for defect in defects() {
        let is_product = defect.file.contains("src/") && !defect.file.contains("tests");
        assert!(is_product, "`{}` is in {}", defect.name, defect.file);
    }
}

/// The folder of a package by its name, and the folders of all packages by theirs.
fn packages() -> BTreeMap<String, PathBuf> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = [")).expect("a line of members");
    let mut packages = BTreeMap::from([("titan-gpu".to_owned(), root())]);
    for member in members.trim_end_matches(']').split(", ").map(|member| member.trim_matches('"')) {
        let name = member.rsplit('/').next().unwrap_or(member);
        packages.insert(name.to_owned(), root().join(member));
    }
    packages
}

#[test]
fn test_programs_exist() {
    let packages = packages();
    let mut wrong = Vec::new();
    for defect in defects() {
        for tests in &defect.tests {
            let Tests { package, program } = tests;
            let Some(folder) = packages.get(package) else {
                wrong.push(format!("`{}`: there is no package `{package}`", defect.name));
                continue;
            };
            let Some(program) = program.as_deref().filter(|program| !["lib", "bin"].contains(program)) else {
                continue;
            };
            let paths = [format!("tests/{program}.rs"), format!("tests/{program}/main.rs")];
            if !paths.iter().any(|path| folder.join(path).exists()) {
                wrong.push(format!("`{}`: `{package}` has no test program `{program}`", defect.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parts of the product, each with its number of defects at least.
const SPREAD: [(&str, &[&str], usize); 14] = [
    ("the verifier", &["titan-core/src/verify/", "titan-core/src/analysis/"], 14),
    (
        "the passes over rings and barriers",
        &[
            "titan-core/src/pipeline/",
            "titan-core/src/expand/",
            "titan-core/src/lay_out/",
            "titan-core/src/synchronize/",
            "titan-core/src/allocate/",
        ],
        10,
    ),
    (
        "layouts and lanes",
        &["titan-core/src/layout/", "titan-core/src/lower/", "titan-core/src/lane/", "titan-core/src/plan/"],
        8,
    ),
    ("modulo scheduling", &["titan-core/src/schedule/"], 5),
    (
        "artifacts and launches",
        &[
            "titan-core/src/artifact/",
            "titan-core/src/launch/",
            "titan-core/src/text/",
            "titan-core/src/diag/",
            "titan-core/src/driver/",
        ],
        6,
    ),
    ("the code for NVIDIA GPUs", &["titan-nv/src/lower/", "titan-nv/src/ptx/", "titan-nv/src/tma/"], 6),
    ("their emulator", &["titan-nv/src/emu/"], 5),
    ("AMD GPUs", &["titan-amd/src/"], 4),
    ("the simulator and the sanitizer", &["titan-sim/src/"], 5),
    ("the executor", &["titan-cpu/src/"], 4),
    ("the macro", &["titan-macros/src/"], 5),
    ("the runtime and the language", &["src/"], 5),
    ("the emulated drivers", &["cuda-emulator/src/", "hip-emulator/src/"], 2),
    ("the tools", &["titan-cli/src/", "wheel/src/"], 2),
];

#[test]
fn defects_are_spread_over_the_product() {
    let defects = defects();
    for (part, folders, least) in SPREAD {
        let is_in = |defect: &&Defect| folders.iter().any(|folder| defect.file.starts_with(folder));
        let count = defects.iter().filter(is_in).count();
        assert!(count >= least, "{part}: {count} defects, not {least}");
    }
    assert!(defects.len() >= 66, "only {} defects", defects.len());
}

/// The results of defects stay; `TITAN_BLESS=1` writes the rows of new ones, and removes those of others.
#[test]
fn the_page_has_every_defect() {
    let path = root().join(page::PATH);
    let text = std::fs::read_to_string(&path).expect("the page");
    let defects = defects();
    let rows: Vec<_> = defects.iter().map(|defect| (defect, page::results(&text, &defect.name))).collect();
    let wanted = page::page(&rows);
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(path, wanted).expect("the page can be written");
        return;
    }
    let missing: Vec<&str> = wanted.lines().filter(|row| !text.lines().any(|line| line == *row)).collect();
    let missing = missing.join("\n");
    assert!(
        wanted == text,
        "{} is not up to date; these lines are missing:\n{missing}\n`TITAN_BLESS=1` writes it",
        page::PATH
    );
}
