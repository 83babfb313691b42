//! The kernels of the filetests, for tests that plan and lower them.

use std::path::Path;
use titan_core::ir::Kernel;
use titan_core::text::parse_located;

/// Every kernel that can be read, and the file that it is in.
pub(crate) fn kernels() -> Vec<(String, Kernel)> {
    let mut found = Vec::new();
    for folder in ["filetests/text", "filetests/verify"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|p| p.extension().is_some_and(|e| e == "tir")) {
            let Ok(kernels) = parse_located(&std::fs::read_to_string(path).unwrap()) else { continue };
            found.extend(kernels.into_iter().map(|k| (path.display().to_string(), k.kernel)));
        }
    }
    found
}
