//! The blocks of the book that must be rejected: whether each is rejected by the error that it names. A doc test that is marked `compile_fail`
//! passes with any error, such as a name that is written wrongly.

use crate::cargo::{cargo, root};
use std::fs;
use std::io;
use std::path::Path;

/// A block that must be rejected.
struct Block {
    /// The page, relative to the folder of the book, and the line of the block.
    place: String,
    /// The name of the program that is made of it.
    name: String,
    /// The code in its line `// Rejected, T0402: ..`.
    code: String,
}

/// Compiles the rejected blocks of pages with one of these names in their paths, or of all; whether each is rejected by its error.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(super) fn check(names: &[&String]) -> io::Result<bool> {
    let package = crate::tools::target()?.join("book/rejected");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    fs::create_dir_all(package.join("examples"))?;
    let mut blocks = Vec::new();
    for page in super::site::markdown(&root().join("book/src"))? {
        let place = page.strip_prefix(root().join("book/src")).unwrap_or(&page).to_string_lossy().replace('\\', "/");
        if names.is_empty() || names.iter().any(|name| place.replace('-', "_").contains(&name.replace('-', "_"))) {
            blocks.extend(extract(&place, &fs::read_to_string(&page)?, &package.join("examples"))?);
        }
    }
    if blocks.is_empty() {
        return Ok(true);
    }
    println!("\nrejected blocks of the book, by their errors");
    manifest(&package)?;
    let mut command = cargo();
    command.current_dir(&package).args(["check", "--examples", "--keep-going", "--message-format", "short"]);
    command.env("CARGO_TARGET_DIR", crate::tools::target()?);
    let output = command.output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    let mut passed = true;
    for block in blocks {
        let own = format!("{}.rs:", block.name);
        let errors: Vec<&str> = told.lines().filter(|l| l.contains(&own) && l.contains(": error")).collect();
        let rejected = errors.iter().any(|error| error.contains(&format!("[{}]", block.code)));
        println!("{} {} ... {}", block.place, block.code, if rejected { "ok" } else { "FAILED" });
        if !rejected {
            println!("  its errors: {errors:?}");
        }
        passed &= rejected;
    }
    if !passed {
        println!("\n{told}");
    }
    Ok(passed)
}

/// Writes the rejected blocks of a page as programs.
fn extract(place: &str, text: &str, folder: &Path) -> io::Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (i, line) in text.lines().enumerate() {
        match &mut open {
            None if line == "```rust,compile_fail" => open = Some((i + 1, Vec::new())),
            None => {}
            Some((start, lines)) if line.starts_with("```") => {
                let name = format!("{}_{start}", place.trim_end_matches(".md").replace(['/', '-'], "_"));
                let body = lines.join("\n");
                let main = if body.contains("fn main") { "" } else { "\nfn main() {}" };
                fs::write(folder.join(format!("{name}.rs")), format!("#![allow(dead_code)]\n{body}{main}\n"))?;
                let code = body.split("// Rejected, ").nth(1).and_then(|rest| rest.get(..5)).unwrap_or("none");
                blocks.push(Block { place: format!("{place}:{start}"), name, code: code.to_owned() });
                open = None;
            }
            Some((_, lines)) => lines.push(line.strip_prefix("# ").unwrap_or(line)),
        }
    }
    Ok(blocks)
}

/// The manifest of the other blocks, so that their libraries are used, in a place of its own.
fn manifest(package: &Path) -> io::Result<()> {
    let blocks = root().join("book/blocks");
    let titan = root().canonicalize()?.display().to_string().replace('\\', "/");
    let renamed = |text: String| text.replace("name = \"titan-book\"", "name = \"titan-book-rejected\"");
    let text = fs::read_to_string(blocks.join("Cargo.toml"))?.replace("path = \"../..\"", &format!("path = {titan:?}"));
    fs::write(package.join("Cargo.toml"), renamed(text))?;
    fs::write(package.join("Cargo.lock"), renamed(fs::read_to_string(blocks.join("Cargo.lock"))?))?;
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("src/lib.rs"), "")
}
