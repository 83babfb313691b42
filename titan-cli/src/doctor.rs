//! `titan doctor`: checks of this machine and this crate, and suggestions for faster builds.
//!
//! It changes nothing. Deliberately absent: querying drivers for devices, which the runtime does.

use crate::Outcome;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use titan_core::diag::counted;

/// The packages whose optimization matters: the macro and what compiles below it.
const MACRO: [&str; 3] = ["titan-gpu-core", "titan-gpu-nv", "titan-gpu-macros"];

/// Runs all checks.
pub(crate) fn run(out: &mut dyn Write) -> io::Result<Outcome> {
    writeln!(out, "toolchain    {}", toolchain())?;
    let here = std::env::current_dir()?;
    let profiles = manifests(&here).into_iter().next_back().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        (path, slow_profiles(&text))
    });
    match &profiles {
        None => writeln!(out, "profiles     not checked: there is no Cargo.toml in this folder or above")?,
        Some((path, slow)) if slow.is_empty() => {
            writeln!(out, "profiles     {}: procedural macros are optimized", path.display())?
        }
        Some((path, slow)) => {
            let name = path.display();
            writeln!(
                out,
                "profiles     {name}: procedural macros, which compile the kernels, are not optimized; with many kernels, add"
            )?;
            for profile in slow {
                writeln!(out, "             [profile.{profile}.package]")?;
                for package in MACRO {
                    writeln!(out, "             {package} = {{ opt-level = 1, debug = false }}")?;
                }
            }
        }
    }
    match titan_core::artifact::cache_dir(|name| std::env::var_os(name)) {
        Some(dir) => {
            writeln!(out, "cache        {} ({})", dir.display(), size(&dir))?;
            if is_open(&dir) {
                let dir = dir.display();
                writeln!(out, "             not used, because other users may write to it: `chmod go-w '{dir}'`")?;
            }
        }
        None => writeln!(out, "cache        off")?,
    }
    for (device, state) in devices() {
        writeln!(out, "{device:12} {state}")?;
    }
    Ok(Outcome::Clean)
}

fn toolchain() -> String {
    let output = Command::new("rustc").arg("--version").output();
    let version =
        output.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    version.unwrap_or_else(|| format!("no rustc on PATH; TITAN needs {} or later", env!("CARGO_PKG_RUST_VERSION")))
}

/// The manifests from a folder upwards, nearest first. Profiles are taken from the last one, that of the workspace.
fn manifests(from: &Path) -> Vec<PathBuf> {
    from.ancestors().map(|dir| dir.join("Cargo.toml")).filter(|path| path.is_file()).collect()
}

/// The profiles in which cargo builds the macro unoptimized: in release only host packages are.
fn slow_profiles(manifest: &str) -> Vec<&'static str> {
    let optimizes = |value: &str| value.contains("opt-level") && !value.replace(' ', "").contains("opt-level=0");
    let optimized = |profile: &str| {
        let mut section = String::new();
        manifest.lines().map(str::trim).any(|line| {
            if line.starts_with('[') {
                section = line.replace(['"', ' '], "");
            }
            let of_all = section == format!("[profile.{profile}.build-override]");
            let of_core = section == format!("[profile.{profile}.package.{}]", MACRO[0]);
            let in_list =
                section == format!("[profile.{profile}.package]") && line.replace('"', "").starts_with(MACRO[0]);
            (of_all || of_core || in_list) && optimizes(line)
        })
    };
    ["dev", "release"].into_iter().filter(|p| !optimized(p)).collect()
}

/// The target whose code runs on every later NVIDIA GPU.
const PORTABLE: &str = "sm_80";

/// Whether users other than its owner may write to a folder.
fn is_open(dir: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(dir).is_ok_and(|found| found.mode() & 0o022 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = dir;
        false
    }
}

fn size(dir: &Path) -> String {
    let Ok(entries) = std::fs::read_dir(dir) else { return "empty".into() };
    let sizes: Vec<u64> = entries.flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).collect();
    format!("{} files, {} KiB", sizes.len(), sizes.iter().sum::<u64>().div_ceil(1024))
}

fn devices() -> Vec<(&'static str, String)> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let driver = |path: &str| if Path::new(path).exists() { "a driver is installed" } else { "no driver was found" };
    let amd: Vec<_> = titan_amd::Machine::all().iter().map(|m| m.name).collect();
    vec![
        ("cpu", format!("{}; runs every kernel", counted(threads, "thread"))),
        (
            "nvidia",
            format!(
                "{}; kernels contain code for {PORTABLE}, which later GPUs run too, and for sm_90a where that can use more",
                driver("/proc/driver/nvidia/version")
            ),
        ),
        ("amd", format!("{}; this version cannot compile for {}", driver("/dev/kfd"), amd.join(", "))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macro_is_optimized_by_itself_or_with_all_of_the_host() {
        assert_eq!(slow_profiles(""), ["dev", "release"]);
        assert_eq!(slow_profiles("[profile.dev.build-override]\nopt-level = 2\n"), ["release"]);
        assert_eq!(
            slow_profiles("[profile.dev]\nopt-level = 3\n[profile.release.build-override]\nopt-level = 0"),
            ["dev", "release"]
        );
        let both = "[profile.dev.build-override]\nopt-level = 3\n[profile.release.build-override]\nopt-level = \"s\"";
        assert_eq!(slow_profiles(both), [""; 0]);
        let list = "[profile.dev.package]\ntitan-gpu-core = { opt-level = 1, debug = false }\n";
        assert_eq!(slow_profiles(list), ["release"]);
        assert_eq!(slow_profiles("[profile.release.package.\"titan-gpu-core\"]\nopt-level = 1"), ["dev"]);
    }
}
