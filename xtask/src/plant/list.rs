//! The list of planted defects, as files of `xtask/defects`.

use super::defect::{Defect, expect_unique, parse};
use std::io;
use std::path::Path;

/// All defects, in the order of the files and within them.
pub(crate) fn read(root: &Path) -> io::Result<Vec<Defect>> {
    let mut files: Vec<_> = std::fs::read_dir(root.join("xtask/defects"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut defects = Vec::new();
    for path in files.iter().map(std::fs::DirEntry::path).filter(|path| path.extension().is_some_and(|e| e == "txt")) {
        let area = path.file_stem().unwrap_or_default().to_string_lossy();
        let found = parse(&area, &std::fs::read_to_string(&path)?);
        defects.extend(found.map_err(|why| io::Error::other(format!("{}: {why}", path.display())))?);
    }
    expect_unique(&defects).map_err(io::Error::other)?;
    Ok(defects)
}
