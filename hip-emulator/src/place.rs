//! Placing the library where programs look for the runtime.

use std::io;
use std::path::Path;

/// The names by which programs load the runtime on Linux.
pub const NAMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"];

/// Writes a library into a folder under all of [`NAMES`], as one file: programs that ask for different names in one process
/// share it. Functions in `missing` get another name in it: a runtime that is too old to have them.
///
/// # Errors
/// Those of files, and functions that the library does not export.
pub fn place(library: &Path, folder: &Path, missing: &[&str]) -> io::Result<()> {
    let mut file = std::fs::read(library)?;
    for symbol in missing {
        let name = [&[0], symbol.as_bytes(), &[0]].concat();
        let places: Vec<usize> = (0..file.len()).filter(|i| file[*i] == 0 && file[*i..].starts_with(&name)).collect();
        if places.is_empty() {
            return Err(io::Error::other(format!("{} exports no {symbol}", library.display())));
        }
        places.into_iter().for_each(|i| file[i + 1] = b'_');
    }
    std::fs::create_dir_all(folder)?;
    let first = folder.join(NAMES[0]);
    std::fs::write(&first, &file)?;
    NAMES[1..].iter().try_for_each(|name| std::fs::hard_link(&first, folder.join(name)))
}
