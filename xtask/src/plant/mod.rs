//! `cargo xtask plant`: plants defects of one line in a copy of the repository, and reports which of them the tests find.
//!
//! The quick depth of the tests runs samples. That these still find defects is not obvious, so it is tried. `defect.rs` has the format
//! of the list, `copy.rs` the copy, `trial.rs` runs tests in it, `verdict.rs` reads what they print, `page.rs` writes the table.
//!
//! Deliberately absent: making defects up by rules. Rules make many that change nothing, and few that a programmer would make.

mod copy;
mod defect;
mod list;
mod options;
mod page;
mod trial;
mod verdict;

use crate::cargo::root;
use copy::{Planted, RepositoryCopy};
use defect::{Defect, Tests};
use options::Options;
use page::Results;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Instant;
use verdict::Verdict;

/// Plants what is asked for; whether the quick depth has found all of it.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(crate) fn run(args: &[String]) -> io::Result<bool> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{}", options::HELP);
        return Ok(true);
    }
    let options = Options::parse(args).map_err(io::Error::other)?;
    let all = list::read(&root())?;
    let chosen: Vec<&Defect> = all.iter().filter(|defect| defect.is_asked_for(&options.names)).collect();
    if chosen.is_empty() {
        return Err(io::Error::other(format!("no defect has {:?} in its name", options.names)));
    }
    if options.list {
        listed(&chosen);
        return Ok(true);
    }
    let copy = RepositoryCopy::make(&root())?;
    if options.check { check(&copy, &chosen) } else { try_all(&copy, &all, &chosen, &options) }
}

/// Prints the names, by area.
#[expect(clippy::print_stdout, reason = "the list is printed to the terminal")]
fn listed(chosen: &[&Defect]) {
    let mut areas: BTreeMap<&str, Vec<&Defect>> = BTreeMap::new();
    chosen.iter().for_each(|defect| areas.entry(&defect.area).or_default().push(defect));
    for (area, defects) in areas {
        println!("{area}: {}", defects.len());
        defects.iter().for_each(|defect| println!("  {}", defect.name));
    }
    println!("{} defects", chosen.len());
}

/// Whether the package of each compiles with the defect. Those of a package are planted together first: mostly all of them compile.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn check(copy: &RepositoryCopy, chosen: &[&Defect]) -> io::Result<bool> {
    let mut packages: BTreeMap<String, Vec<&Defect>> = BTreeMap::new();
    for defect in chosen {
        packages.entry(package_of(&copy.tree, &defect.file)?).or_default().push(defect);
    }
    let mut failed = 0;
    for (package, defects) in packages {
        let since = Instant::now();
        // One that another one's line is next to is only found without that.
        let planted: Vec<io::Result<Planted>> = defects.iter().map(|defect| copy.plant(defect)).collect();
        let is_complete = planted.iter().all(Result::is_ok);
        let checked = trial::check(copy, &package);
        // Taken out in reverse, each leaves the text into which it was planted.
        planted.into_iter().rev().for_each(drop);
        println!("{package}: {} defects, {:.0} s", defects.len(), since.elapsed().as_secs_f64());
        if checked?.is_err() || !is_complete {
            failed += check_alone(copy, &package, &defects)?;
        }
    }
    println!("{} defects compile, {failed} do not", chosen.len() - failed);
    Ok(failed == 0)
}

/// The number of defects with which a package does not compile.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn check_alone(copy: &RepositoryCopy, package: &str, defects: &[&Defect]) -> io::Result<usize> {
    let mut failed = 0;
    for defect in defects {
        let _planted = copy.plant(defect)?;
        if let Err(why) = trial::check(copy, package)? {
            println!("`{}` does not compile:\n{why}", defect.name);
            failed += 1;
        }
    }
    Ok(failed)
}

/// Tries each in the quick depth, and those that survive in the full one if that is asked for.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn try_all(copy: &RepositoryCopy, all: &[Defect], chosen: &[&Defect], options: &Options) -> io::Result<bool> {
    println!("the tests without a defect, in the quick depth:");
    trial::prepare(copy)?;
    expect_green(copy, chosen, false, options.minutes)?;
    let mut results: Vec<(&Defect, Results)> = Vec::new();
    for (index, defect) in chosen.iter().enumerate() {
        let quick = timed(index, chosen.len(), || try_one(copy, defect, false, options.minutes), &defect.name)?;
        results.push((defect, Results { quick: Some(quick), full: None }));
        write(all, &results, options)?;
    }
    let survived = |results: &Results| results.quick == Some(Verdict::Survived);
    let again: Vec<usize> = (0..results.len()).filter(|at| survived(&results[*at].1)).collect();
    if options.full && !again.is_empty() {
        println!("the tests without a defect, in the full depth:");
        let defects: Vec<&Defect> = again.iter().map(|at| results[*at].0).collect();
        expect_green(copy, &defects, true, options.minutes)?;
        for (index, at) in again.iter().enumerate() {
            let defect = results[*at].0;
            let full = timed(index, again.len(), || try_one(copy, defect, true, options.minutes), &defect.name)?;
            results[*at].1.full = Some(full);
            write(all, &results, options)?;
        }
    }
    println!("\n{}", page::table(&results));
    let count = |is: fn(&Verdict) -> bool| results.iter().filter(|(_, r)| r.quick.as_ref().is_some_and(is)).count();
    let found = count(|verdict| matches!(verdict, Verdict::Found(_)));
    let (survived, lost) = (count(|v| *v == Verdict::Survived), count(|v| *v == Verdict::NotBuilt));
    println!(
        "{found} of {} defects found in the quick depth, {survived} survived, {lost} do not compile",
        results.len()
    );
    Ok(found == results.len())
}

/// Runs the tests that concern any of the defects, without a defect: all must pass.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn expect_green(copy: &RepositoryCopy, defects: &[&Defect], is_full: bool, minutes: u64) -> io::Result<()> {
    let mut all: Vec<&Tests> = defects.iter().flat_map(|defect| &defect.tests).collect();
    all.sort();
    all.dedup();
    for tests in by_package(&all) {
        let since = Instant::now();
        let names: Vec<String> = tests.iter().map(ToString::to_string).collect();
        let names = names.join(", ");
        match trial::run(copy, &tests, is_full, minutes, "")? {
            Verdict::Survived => println!("  {names}: passed in {:.0} s", since.elapsed().as_secs_f64()),
            verdict @ (Verdict::Found(_) | Verdict::NotBuilt) => {
                return Err(io::Error::other(format!("without a defect, {names}: {verdict}")));
            }
        }
    }
    Ok(())
}

/// What becomes of a defect in one depth.
fn try_one(copy: &RepositoryCopy, defect: &Defect, is_full: bool, minutes: u64) -> io::Result<Verdict> {
    let package = package_of(&copy.tree, &defect.file)?;
    let _planted = copy.plant(defect)?;
    for tests in by_package(&defect.tests.iter().collect::<Vec<_>>()) {
        match trial::run(copy, &tests, is_full, minutes, &package)? {
            Verdict::Survived => {}
            verdict @ (Verdict::Found(_) | Verdict::NotBuilt) => return Ok(verdict),
        }
    }
    Ok(Verdict::Survived)
}

/// The test programs of each package, in the order in which the packages are first named. All programs of a package are one entry.
fn by_package<'a>(tests: &[&'a Tests]) -> Vec<Vec<&'a Tests>> {
    let mut groups: Vec<Vec<&Tests>> = Vec::new();
    for tests in tests {
        match groups.iter_mut().find(|group| group[0].package == tests.package) {
            Some(group) if tests.program.is_none() => *group = vec![tests],
            Some(group) if group[0].program.is_none() => {}
            Some(group) => group.push(tests),
            None => groups.push(vec![tests]),
        }
    }
    groups
}

/// Prints what became of a defect, and how long it took.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
fn timed(index: usize, total: usize, trial: impl FnOnce() -> io::Result<Verdict>, name: &str) -> io::Result<Verdict> {
    let since = Instant::now();
    let verdict = trial().map_err(|error| io::Error::other(format!("`{name}`: {error}")))?;
    println!("[{:3}/{total}] {:5.0} s  {name}\n          {verdict}", index + 1, since.elapsed().as_secs_f64());
    Ok(verdict)
}

/// Writes the page, if that is asked for: results of this run, and for other defects those of earlier runs.
fn write(all: &[Defect], results: &[(&Defect, Results)], options: &Options) -> io::Result<()> {
    if !options.write {
        return Ok(());
    }
    let path = root().join(page::PATH);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let of = |defect: &Defect| {
        let own = results.iter().find(|(other, _)| other.name == defect.name);
        own.map_or_else(|| page::results(&before, &defect.name), |(_, results)| results.clone())
    };
    let rows: Vec<(&Defect, Results)> = all.iter().map(|defect| (defect, of(defect))).collect();
    std::fs::write(path, page::page(&rows))
}

/// The package that a file belongs to: that of the manifest nearest to it.
fn package_of(tree: &Path, file: &str) -> io::Result<String> {
    for folder in Path::new(file).ancestors().skip(1) {
        let Ok(manifest) = std::fs::read_to_string(tree.join(folder).join("Cargo.toml")) else { continue };
        let package = manifest.split("[package]").nth(1).unwrap_or_default();
        let name = package.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        if let Some(name) = name {
            return Ok(name.to_owned());
        }
    }
    Err(io::Error::other(format!("{file} belongs to no package")))
}
