//! The kernels of this program, assembled for every machine that runs their code; one line of registers for each.

use crate::ptxas::{self, Usage};
use std::path::Path;
use titan::KernelInfo;

/// Targets, and machines of which each runs what is embedded for them.
const MACHINES: [(&str, &[&str]); 2] =
    [("sm_80", &["sm_80", "sm_86", "sm_89", "sm_90", "sm_100"]), ("sm_90a", &["sm_90a"])];

/// How the note begins of a variant whose barriers were not shown to be right under the schedule that was chosen first, as in
/// `titan_core::driver`: the test of the examples compares them.
pub(crate) const FALLBACK: &str = "a simpler schedule was taken";

/// Assembles every variant. There are `least` instances at least, and at least `of_hopper` have code for Hopper alone.
pub(crate) fn every_kernel_is_assembled(least: usize, of_hopper: usize) {
    let kernels = titan::kernels().expect("what is embedded can be read");
    assert!(kernels.len() >= least, "only {} instances", kernels.len());
    for kernel in &kernels {
        let has_own = kernel.variants.iter().any(|v| v.target == "sm_90a");
        // What has no code for AMD's GPUs is listed in `tests/amd.rs`.
        let without: Vec<&str> = kernel.refused.iter().map(|(t, _)| t.as_str()).filter(|t| *t != "gfx942").collect();
        assert_eq!(without, if has_own { &[][..] } else { &["sm_90a"] }, "{}: {:?}", kernel.name, kernel.refused);
        let notes = kernel.variants.iter().flat_map(|v| &v.notes);
        let fallen: Vec<&String> = notes.filter(|note| note.starts_with(FALLBACK)).collect();
        assert!(fallen.is_empty(), "{}: {fallen:?}", kernel.name);
        assert!(kernel.refused.iter().all(|(_, why)| !why.contains("defect")), "{}: {:?}", kernel.name, kernel.refused);
    }
    let own = kernels.iter().filter(|k| k.refused.iter().all(|(target, _)| target != "sm_90a")).count();
    assert!(own >= of_hopper, "only {own} instances have code for Hopper");
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let kernels = one_of_each(kernels);
    MACHINES.iter().for_each(|(target, machines)| every_variant_is_assembled(&ptxas, &kernels, target, machines));
}

/// All instances; in the quick depth one of each kernel.
pub(crate) fn one_of_each(kernels: Vec<KernelInfo>) -> Vec<KernelInfo> {
    test_depth::sample_each(kernels, 1, |kernel| kernel.name.split("::<").next().unwrap_or_default().to_owned())
}

fn every_variant_is_assembled(ptxas: &Path, kernels: &[KernelInfo], target: &str, machines: &[&str]) {
    let (mut names, mut entries, mut version) = (Vec::new(), String::new(), (7, 0));
    for kernel in kernels {
        for variant in kernel.variants.iter().filter(|v| v.target == target) {
            let text = std::str::from_utf8(&variant.code).expect("PTX is text");
            let (header, entry) = text.split_once(".visible .entry ").expect("PTX has a kernel");
            let needs = header.lines().find_map(|l| l.strip_prefix(".version ")).expect("PTX has a version");
            let (major, minor) = needs.split_once('.').expect("a version has two numbers");
            version = version.max((major.parse().expect("a number"), minor.parse::<u32>().expect("a number")));
            entries += &format!(".visible .entry k{}_{entry}", names.len());
            let kind = if variant.assumptions.is_empty() { "general" } else { "assumes" };
            let shared = format!("{} threads, {} B shared", variant.threads, variant.shared_bytes);
            names.push(format!("{:44} {kind} {shared:>26}", kernel.name));
        }
    }
    if names.is_empty() {
        return;
    }
    let (major, minor) = version;
    let header = format!(".version {major}.{minor}\n.target {target}\n.address_size 64\n");
    let text = format!("{header}.extern .shared .align 1024 .b8 smem[];\n{entries}");
    let mut table: Vec<Vec<Usage>> = Vec::new();
    for machine in machines {
        let usages = ptxas::assemble(ptxas, machine, &text).unwrap_or_else(|said| panic!("{machine}: {said}"));
        assert_eq!(usages.len(), names.len(), "{machine}");
        table.push(usages);
    }
    ptxas::say(&format!("registers of {} variants on {}", names.len(), machines.join(", ")));
    for (i, name) in names.iter().enumerate() {
        let of = |usages: &Vec<Usage>| {
            let mut mine = usages.iter().filter(|u| u.kernel.starts_with(&format!("k{i}_")));
            let usage = mine.next().unwrap_or_else(|| panic!("{name} was not assembled"));
            assert_eq!(usage.spilled, 0, "{name} spills");
            format!("{:>5}", usage.registers)
        };
        ptxas::say(&format!("  {name} {}", table.iter().map(of).collect::<String>()));
    }
}
