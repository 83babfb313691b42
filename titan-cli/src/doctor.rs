//! `titan doctor`: what of this machine and this crate matters to TITAN, and what would make builds faster.
//!
//! It looks and changes nothing. Deliberately absent: asking drivers for devices; that is the program's runtime.

use crate::Outcome;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Looks at everything.
pub(crate) fn run(out: &mut dyn Write) -> io::Result<Outcome> {
    writeln!(out, "toolchain    {}", toolchain())?;
    let here = std::env::current_dir()?;
    let profiles = manifests(&here).into_iter().next_back().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (path, slow_profiles(&text))
    });
    match &profiles {
        None => writeln!(out, "profiles     no Cargo.toml here or above: nothing to look at")?,
        Some((path, slow)) if slow.is_empty() => {
            writeln!(out, "profiles     {}: macros are optimized", path.display())?
        }
        Some((path, slow)) => {
            writeln!(out, "profiles     {}: kernels are compiled by an unoptimized macro; add", path.display())?;
            for profile in slow {
                writeln!(out, "             [profile.{profile}.build-override]\n             opt-level = 2")?;
            }
        }
    }
    match titan_core::artifact::cache_dir(|name| std::env::var_os(name)) {
        Some(dir) => writeln!(out, "cache        {} ({})", dir.display(), size(&dir))?,
        None => writeln!(out, "cache        off")?,
    }
    for (device, state) in devices() {
        writeln!(out, "{device:12} {state}")?;
    }
    let slow = profiles.is_some_and(|(_, slow)| !slow.is_empty());
    Ok(if slow { Outcome::Findings } else { Outcome::Clean })
}

fn toolchain() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version =
        output.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    version.unwrap_or_else(|| format!("no rustc on PATH; TITAN needs {} or later", env!("CARGO_PKG_RUST_VERSION")))
}

/// The manifests from a folder upwards, nearest first. Profiles count in the last one: the workspace's.
fn manifests(from: &Path) -> Vec<PathBuf> {
    from.ancestors().map(|dir| dir.join("Cargo.toml")).filter(|path| path.is_file()).collect()
}

/// The profiles in which cargo would build the macro unoptimized.
fn slow_profiles(manifest: &str) -> Vec<&'static str> {
    let optimized = |profile: &str| {
        let mut inside = false;
        manifest.lines().map(str::trim).any(|line| {
            if line.starts_with('[') {
                inside = line == format!("[profile.{profile}.build-override]");
            }
            inside && line.split_once('=').is_some_and(|(key, value)| key.trim() == "opt-level" && value.trim() != "0")
        })
    };
    ["dev", "release"].into_iter().filter(|p| !optimized(p)).collect()
}

fn size(dir: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(dir) else { return "empty".into() };
    let sizes: Vec<u64> = entries.flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).collect();
    format!("{} files, {} KiB", sizes.len(), sizes.iter().sum::<u64>().div_ceil(1024))
}

fn devices() -> Vec<(&'static str, String)> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let driver = |path: &str| if Path::new(path).exists() { "a driver is here" } else { "no driver was found" };
    let nv: Vec<_> = titan_nv::Machine::all().iter().filter(|m| m.supported).map(|m| m.name).collect();
    let amd: Vec<_> = titan_amd::Machine::all().iter().map(|m| m.name).collect();
    let later = |path, targets: Vec<&str>| {
        format!("{}; this version generates no code for {}", driver(path), targets.join(", "))
    };
    vec![
        ("cpu", format!("{threads} threads; runs every kernel")),
        ("nvidia", later("/proc/driver/nvidia/version", nv)),
        ("amd", later("/dev/kfd", amd)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_profiles_want_an_optimized_macro() {
        assert_eq!(slow_profiles(""), ["dev", "release"]);
        assert_eq!(slow_profiles("[profile.dev.build-override]\nopt-level = 2\n"), ["release"]);
        assert_eq!(
            slow_profiles("[profile.dev]\nopt-level = 3\n[profile.release.build-override]\nopt-level = 0"),
            ["dev", "release"]
        );
        let both = "[profile.dev.build-override]\nopt-level = 3\n[profile.release.build-override]\nopt-level = \"s\"";
        assert_eq!(slow_profiles(both), [""; 0]);
    }
}
