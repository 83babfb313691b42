//! A fingerprint of the compiler that is built into the macro: part of the key of cached artifacts, so that a changed compiler
//! never reads an artifact of an older one. In a published crate the sources next to it are those of its version.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    let amd = std::env::var_os("CARGO_FEATURE_AMD").map(|_| "../titan-amd/src");
    for folder in ["src", "../titan-core/src", "../titan-nv/src"].into_iter().chain(amd) {
        let folder = Path::new(folder);
        if folder.is_dir() {
            println!("cargo:rerun-if-changed={}", folder.display());
            collect(folder, &mut files);
        }
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for file in files {
        for byte in fs::read(&file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=TITAN_COMPILER={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}
