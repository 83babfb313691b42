//! Generates the table of pages for `titan explain` from the folder `errors`: in the repository a link to `docs/errors`, in the
//! published package a copy of it.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // On systems that cannot check out links, the pages are read from their original place.
    let folder = if here.join("errors").is_dir() { "errors" } else { "../docs/errors" };
    let pages = here.join(folder).canonicalize()?;
    println!("cargo::rerun-if-changed={}", pages.display());
    let mut names = fs::read_dir(&pages)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
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
