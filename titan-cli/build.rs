//! Makes the table of pages for `titan explain`: what is in `docs/errors` when the tool is built.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    // A folder that does not exist yet is noticed by its parent.
    println!("cargo::rerun-if-changed={}", if pages.exists() { &pages } else { &root }.display());
    let mut names: Vec<_> = fs::read_dir(&pages).into_iter().flatten().flatten().map(|e| e.path()).collect();
    names.retain(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with('T')));
    names.sort();
    let mut table = String::from("&[\n");
    for page in &names {
        let code = page.file_stem().unwrap_or_default().to_string_lossy();
        let path = page.canonicalize()?;
        table.push_str(&format!("    ({code:?}, include_str!({path:?})),\n"));
    }
    table.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("pages.rs"), table)
}
