//! The kernels of this program, assembled for every machine that runs code for sm_80; one line of registers for each.

use crate::ptxas::{self, Usage};

/// Machines of which each runs what is embedded for sm_80.
const MACHINES: [&str; 5] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100"];

/// Assembles every variant for sm_80. There are `least` instances at least.
pub(crate) fn every_kernel_is_assembled(least: usize) {
    let kernels = titan::kernels().expect("what is embedded can be read");
    assert!(kernels.len() >= least, "only {} instances", kernels.len());
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let (mut names, mut entries, mut version) = (Vec::new(), String::new(), (7, 0));
    for kernel in &kernels {
        assert!(kernel.refused.is_empty(), "{}: {:?}", kernel.name, kernel.refused);
        for variant in kernel.variants.iter().filter(|v| v.target == "sm_80") {
            let text = std::str::from_utf8(&variant.code).expect("PTX is text");
            let (header, entry) = text.split_once(".visible .entry ").expect("PTX has a kernel");
            let needs = header.lines().find_map(|l| l.strip_prefix(".version ")).expect("PTX has a version");
            let (major, minor) = needs.split_once('.').expect("a version has two numbers");
            version = version.max((major.parse().expect("a number"), minor.parse::<u32>().expect("a number")));
            entries += &format!(".visible .entry k{}_{entry}", names.len());
            let kind = if variant.assumptions == 0 { "general" } else { "assumes" };
            let shared = format!("{} threads, {} B shared", variant.threads, variant.shared_bytes);
            names.push(format!("{:44} {kind} {shared:>26}", kernel.name));
        }
    }
    let (major, minor) = version;
    let header = format!(".version {major}.{minor}\n.target sm_80\n.address_size 64\n");
    let text = format!("{header}.extern .shared .align 1024 .b8 smem[];\n{entries}");
    let mut table: Vec<Vec<Usage>> = Vec::new();
    for machine in MACHINES {
        let usages = ptxas::assemble(&ptxas, machine, &text).unwrap_or_else(|said| panic!("{machine}: {said}"));
        assert_eq!(usages.len(), names.len(), "{machine}");
        table.push(usages);
    }
    ptxas::say(&format!("registers of {} variants on {}", names.len(), MACHINES.join(", ")));
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
