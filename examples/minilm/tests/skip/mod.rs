//! A test that needs a published file and does not find it says so and passes.

use std::io::Write as _;
use std::path::PathBuf;

use minilm::assets::{self, Asset};

/// Where the file lies; if it is absent, nothing, and a line on stderr that the test harness does not swallow.
pub(crate) fn unless_present(asset: &Asset) -> Option<PathBuf> {
    let found = assets::locate(asset);
    if let Err(missing) = &found {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        let line = format!("SKIPPED {test}: {missing}\n");
        // A test must not fail because stderr is closed.
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
    found.ok()
}
