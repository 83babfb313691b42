//! The kernels of titan-core's filetests, from tile IR to what `ptxas` accepts: every operation of the language is in one.

use crate::ptxas;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use titan_core::driver::{compile, stages};
use titan_core::ir::ParamKind;
use titan_core::ir::op_table::mnemonic;
use titan_core::lower::lower;
use titan_core::text;
use titan_core::verify::{Verified, barrier_program, verify};
use titan_nv::machine::Feature;
use titan_nv::{Machine, emit, target};

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in std::fs::read_dir(dir).expect("the filetests are there").flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "tir") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Every kernel that is right.
pub(crate) fn kernels() -> &'static [Verified] {
    static ALL: OnceLock<Vec<Verified>> = OnceLock::new();
    ALL.get_or_init(read)
}

/// The same; in the quick depth a few kernels that together have every operation, element and number of rings and roles.
pub(crate) fn some_kernels() -> Vec<&'static Verified> {
    let elem = |kind: &ParamKind| match kind {
        ParamKind::Scalar(elem) => format!("argument {elem}"),
        ParamKind::Tensor { elem, .. } => format!("tensor of {elem}"),
    };
    test_depth::covering(kernels(), |kernel| {
        let ops = kernel.ops.iter().map(|op| mnemonic(&op.kind).to_owned());
        let rings = format!("{} rings, {} roles", kernel.pipes.len(), kernel.roles.len());
        ops.chain(kernel.sig.params.iter().map(|p| elem(&p.kind))).chain([rings]).collect()
    })
}

fn read() -> Vec<Verified> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../titan-core/filetests");
    let texts = files(&dir).into_iter().map(|file| std::fs::read_to_string(file).expect("filetests are text"));
    let parsed = texts.filter_map(|text| text::parse(&text).ok()).flatten();
    parsed.filter_map(|kernel| verify(kernel).ok()).collect()
}

#[test]
fn kernels_of_the_language_are_assembled() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    let kernels = kernels();
    for machine in Machine::all().iter() {
        let (mut versions, mut entries, mut refused) = (vec![(7, 0)], String::new(), 0);
        for (i, kernel) in kernels.iter().enumerate() {
            let codes: Vec<Vec<u8>> = if machine.has(Feature::Tma) {
                // Of these, `compile` keeps only code that is not that for older machines.
                let made = [true, false].into_iter().filter_map(|aligned| stages(kernel, machine, aligned, None).ok());
                made.map(|stages| stages.code.payload).collect()
            } else {
                compile(kernel, machine, None).into_iter().flatten().map(|variant| variant.payload).collect()
            };
            refused += usize::from(codes.is_empty());
            for (j, code) in codes.into_iter().enumerate() {
                let ptx = String::from_utf8(code).expect("PTX is text");
                let version = ptx.lines().find_map(|l| l.strip_prefix(".version ")).expect("PTX has a version");
                let (major, minor) = version.split_once('.').expect("a version has two numbers");
                versions.push((major.parse::<u32>().unwrap(), minor.parse::<u32>().unwrap()));
                let entry = ptx.split_once(".visible .entry ").expect("PTX has a kernel").1;
                entries += &format!(".visible .entry k{i}_{j}_{entry}");
            }
        }
        let (major, minor) = versions.iter().max().expect("there is one");
        let header = format!(".version {major}.{minor}\n.target {}\n.address_size 64\n", machine.name);
        let text = format!("{header}.extern .shared .align 1024 .b8 smem[];\n{entries}");
        let usages =
            ptxas::assemble(&ptxas, machine.name, &text).unwrap_or_else(|said| panic!("{}: {said}", machine.name));
        assert_eq!(usages.len(), versions.len() - 1);
        assert!(usages.len() > 40, "{} of {} kernels", usages.len(), kernels.len());
        let spilling: Vec<_> = usages.iter().filter(|u| u.spilled > 0).collect();
        assert!(spilling.is_empty(), "{}: {spilling:?}", machine.name);
        ptxas::say(&format!("{}: {} variants, {refused} kernels refused", machine.name, usages.len()));
    }
}

/// The text of a barrier program holds all that its code depends on: read back, it is verified and gives the same PTX.
#[test]
fn barrier_programs_read_back_give_the_same_code() {
    let kernels = some_kernels();
    for machine in ["sm_80", "sm_90a"].map(|name| Machine::from_name(name).expect("a target that exists")) {
        let (target, mut compared) = (target(machine), 0);
        for (kernel, aligned) in kernels.iter().flat_map(|kernel| [(*kernel, true), (*kernel, false)]) {
            let Ok(all) = stages(kernel, machine, aligned, None) else { continue };
            let printed = text::print(&all.barriers);
            let read = text::parse_one(&printed).unwrap_or_else(|e| panic!("{e:?}\n{printed}"));
            barrier_program(&read).unwrap_or_else(|e| panic!("{e:?}\n{printed}"));
            let lowered = lower(&read, &target).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            let code = emit(&lowered.func, machine, None).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert!(code.text.as_bytes() == all.code.payload, "{}, aligned: {aligned}\n{printed}", machine.name);
            compared += 1;
        }
        assert!(compared > test_depth::cases(300, 30), "{}: {compared} of {} kernels", machine.name, kernels.len());
    }
}
