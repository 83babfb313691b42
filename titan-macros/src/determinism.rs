//! The same input gives the same bytes: in one process, in another, with and without the cache.
//!
//! The cache and reproducible builds depend on it. A second process has other addresses and another hash seed, so iteration
//! over anything unordered would show.

use crate::timing::{KERNELS, first_kernel};
use crate::{cache, embed, entry};
use std::process::Command;

/// Every expansion, and the artifact of every kernel text in it.
fn everything() -> String {
    let mut out = String::new();
    for (name, source) in KERNELS {
        let (attr, item) = first_kernel(source);
        let expansion = entry::kernel(attr, item).to_string();
        assert!(!expansion.contains("compile_error"), "{name} compiles");
        out.push_str(&expansion);
        for text in expansion.split("compile ! (").skip(1) {
            let literal: proc_macro2::TokenStream = text.split(") ,").next().unwrap().parse().unwrap();
            out.push_str(&embed::compile(literal).to_string());
        }
    }
    out
}

#[test]
#[expect(clippy::print_stdout, reason = "the other process reads it")]
fn digest_of_everything() {
    let all = everything();
    assert_eq!(all, everything(), "twice in one process");
    println!("digest {:016x} of {} bytes", cache::hash(&[all.as_bytes()]), all.len());
}

#[test]
fn another_process_expands_to_the_same_bytes() {
    let digest = |cache: &str| {
        let exe = std::env::current_exe().unwrap();
        let out = Command::new(exe)
            .args(["--exact", "determinism::digest_of_everything", "--nocapture"])
            .env("TITAN_CACHE", cache)
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().find_map(|l| l.split("digest ").nth(1)).map(str::to_owned).expect("the digest is printed")
    };
    let dir = std::env::temp_dir().join(format!("titan-determinism-{}", std::process::id()));
    let dir = dir.to_str().unwrap();
    let (without, miss, hit) = (digest("off"), digest(dir), digest(dir));
    let _ = std::fs::remove_dir_all(dir);
    assert_eq!(without, miss, "the cache changes the bytes");
    assert_eq!(miss, hit, "a hit of the cache has other bytes");
    assert!(!without.ends_with(" 0 bytes"));
}
