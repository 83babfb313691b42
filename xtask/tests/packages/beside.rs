//! TITAN in one program with others that use CUDA. Features of one dependency are united over a whole program: what TITAN asks of
//! cudarc must go with what candle and CubeCL ask.

use crate::support::{cargo, root, text};
use std::fs;
use std::path::PathBuf;

/// What TITAN's neighbours ask of cudarc 0.19.
const NEIGHBOURS: [(&str, &str); 4] = [
    // candle-core 0.11, feature `cuda`, without its optional libraries.
    (
        "candle",
        r#""std", "cublas", "cublaslt", "curand", "driver", "nvrtc", "f16", "f8", "cuda-version-from-build-system", "dynamic-linking""#,
    ),
    (
        "cubecl",
        r#""std", "driver", "nvrtc", "nccl", "fallback-dynamic-loading", "cuda-version-from-build-system", "fallback-latest""#,
    ),
    // A crate that selects a version of CUDA, and one that always loads the driver: both choices apply to the whole program.
    ("version", r#""std", "driver", "dynamic-loading", "cuda-12000""#),
    ("newest", r#""std", "driver", "dynamic-loading", "cuda-13000""#),
];

/// A package beside TITAN, with these dependencies, that names what it uses.
fn program(name: &str, dependencies: &str, source: &str) -> PathBuf {
    let folder = root().join("target/tests/beside").join(name);
    fs::create_dir_all(folder.join("src")).expect("a folder for a package");
    let titan = root();
    let manifest = format!(
        "[package]\nname = \"beside-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
         [dependencies]\ntitan = {{ package = \"titan-gpu\", path = {titan:?}, default-features = false, \
         features = [\"cudarc\"] }}\n{dependencies}\n"
    );
    for (file, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", source)] {
        let path = folder.join(file);
        // What is unchanged is not built again.
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(path, text).expect("a file of a package");
    }
    // The versions that this workspace is tested with, where there is a choice.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");
    folder
}

const BORROWS: &str = "\
//! A slice of a neighbour's as a tensor of TITAN's.

/// Reads it.
pub fn read(dev: &titan::Device, slice: &cudarc::driver::CudaSlice<f32>) -> titan::Result<Vec<f32>> {
    titan::cuda::borrow(dev, slice, [slice.len()])?.to_vec()
}
";

/// Features that exclude each other stop cudarc's build script, and other bindings do not compile: both show in `cargo check`.
#[test]
fn titan_builds_beside_every_choice_of_cudarcs_features() {
    // Another workspace has its own profiles, and builds the compiler in the macro again: that takes longer than all other tests here.
    if !test_depth::is_full() {
        return;
    }
    for (name, features) in NEIGHBOURS {
        let cudarc = format!("cudarc = {{ version = \"0.19\", default-features = false, features = [{features}] }}");
        let folder = program(name, &cudarc, BORROWS);
        let mut check = cargo();
        // One folder for all: they differ in cudarc and the facade only.
        check
            .current_dir(folder)
            .args(["check", "--quiet"])
            .env("CARGO_TARGET_DIR", root().join("target/tests/beside/target"));
        text(check.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("RUSTFLAGS"));
    }
}

/// The real candle-core: cargo finds one cudarc for it and TITAN, whose features can be built together. It is not built.
#[test]
fn one_cudarc_serves_candle_and_titan() {
    let candle = "candle-core = { version = \"0.11\", features = [\"cuda\"] }";
    let folder = program("candle-core", candle, "//! Resolved only.\n");
    let tree = ["tree", "--edges", "features", "--invert", "cudarc", "--prefix", "none", "--format", "{p}"];
    let listed = text(cargo().current_dir(&folder).args(tree));
    let versions: Vec<&str> = listed.lines().filter(|l| l.starts_with("cudarc v")).collect();
    assert!(versions.iter().all(|v| *v == versions[0]) && !versions.is_empty(), "more than one cudarc: {versions:?}");
    let has = |feature: &str| listed.contains(&format!("cudarc feature \"{feature}\""));
    assert!(has("dynamic-linking") && has("fallback-dynamic-loading"), "{listed}");
    assert!(!has("dynamic-loading") && !has("static-linking"), "{listed}");
    assert!(listed.contains("candle-core v0.11") && listed.contains("titan-gpu v"), "{listed}");
    // No bindings are pinned.
    assert!(!listed.contains("cudarc feature \"cuda-1"), "{listed}");
}
