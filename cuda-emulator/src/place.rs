//! Placing the library where programs look for the driver.

use std::io;
use std::path::Path;

/// The names by which programs load the driver on Linux.
pub const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// A copy of the library without some symbols: a driver that is too old to have them.
///
/// A symbol is found by the hash of its name and by the name. The names are bytes of the file; a name whose first letter is changed
/// is not found any more, and nothing else changes.
///
/// # Errors
/// The names that the library does not export.
pub fn without(library: &[u8], symbols: &[&str]) -> Result<Vec<u8>, Vec<String>> {
    let mut file = library.to_vec();
    let mut unknown = Vec::new();
    for symbol in symbols {
        let name = [&[0], symbol.as_bytes(), &[0]].concat();
        let zeros = file.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(i, _)| i);
        let places: Vec<usize> = zeros.filter(|i| file[*i..].starts_with(&name)).collect();
        if places.is_empty() {
            unknown.push((*symbol).to_owned());
        }
        places.into_iter().for_each(|i| file[i + 1] = b'_');
    }
    if unknown.is_empty() { Ok(file) } else { Err(unknown) }
}

/// Writes a library into a folder under all of [`NAMES`], without some symbols. It is one file, as the driver is: programs that
/// ask for different names in one process share it.
///
/// # Errors
/// Errors of files, and symbols that the library does not export.
pub fn place(library: &Path, folder: &Path, missing: &[&str]) -> io::Result<()> {
    let file = without(&std::fs::read(library)?, missing)
        .map_err(|unknown| io::Error::other(format!("{} exports no {}", library.display(), unknown.join(", "))))?;
    std::fs::create_dir_all(folder)?;
    // The file is written under another name and renamed, so that a program that has loaded the old one keeps it. All names refer to
    // one file, so that a program has only one driver.
    let new = folder.join("libcuda.new");
    std::fs::write(&new, &file)?;
    for name in NAMES {
        let link = folder.join(format!("{name}.new"));
        std::fs::hard_link(&new, &link)?;
        std::fs::rename(&link, folder.join(name))?;
    }
    std::fs::remove_file(&new)
}
