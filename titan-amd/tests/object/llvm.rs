//! What is written against LLVM's readers, and what LLVM's linker writes against the reader.

use crate::programs::{code, kernel, program};
use crate::support::oracle;
use std::path::{Path, PathBuf};
use titan_amd::object::{CodeObject, Descriptor, Program};

/// A folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("object-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn readelf(path: &Path, args: &[&str]) -> (String, String) {
    let program = oracle::program("llvm-readelf").unwrap();
    let args: Vec<&str> = args.iter().copied().chain([path.to_str().unwrap()]).collect();
    oracle::run(&program, &args, "")
}

/// Assembles and links what LLVM is given as text.
pub(crate) fn linked(name: &str, text: &str) -> Option<PathBuf> {
    let (mc, lld) = (oracle::program("llvm-mc")?, oracle::program("ld.lld")?);
    let folder = folder(name);
    let (object, linked) = (folder.join("k.o"), folder.join("k.hsaco"));
    let args = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj", "-o", object.to_str().unwrap()];
    let (_, err) = oracle::run(&mc, &args, text);
    assert!(err.is_empty(), "{err}");
    let (_, err) = oracle::run(&lld, &["-shared", object.to_str().unwrap(), "-o", linked.to_str().unwrap()], "");
    assert!(err.is_empty(), "{err}");
    Some(linked)
}

/// The kernel of [`kernel`], in LLVM's words.
const THEIRS: &str = r#"
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    .text
    .globl first
    .p2align 8
    .type first,@function
first:
    s_nop 0
    s_endpgm
.Lend:
    .size first, .Lend-first
    .rodata
    .p2align 6
    .amdhsa_kernel first
        .amdhsa_next_free_vgpr 40
        .amdhsa_next_free_sgpr 52
        .amdhsa_accum_offset 24
        .amdhsa_group_segment_fixed_size 1024
        .amdhsa_kernarg_size 24
        .amdhsa_user_sgpr_kernarg_segment_ptr 1
        .amdhsa_system_sgpr_workgroup_id_y 1
        .amdhsa_float_denorm_mode_32 3
    .end_amdhsa_kernel
    .amdgpu_metadata
    amdhsa.version: [ 1, 2 ]
    amdhsa.target: amdgcn-amd-amdhsa--gfx942
    amdhsa.kernels:
      - .name: first
        .symbol: first.kd
        .kernarg_segment_size: 24
        .kernarg_segment_align: 8
        .group_segment_fixed_size: 1024
        .private_segment_fixed_size: 0
        .wavefront_size: 64
        .sgpr_count: 58
        .vgpr_count: 40
        .agpr_count: 16
        .max_flat_workgroup_size: 256
        .args:
          - { .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
          - { .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
          - { .name: count, .offset: 16, .size: 4, .value_kind: by_value }
    .end_amdgpu_metadata
"#;

#[test]
fn every_table_of_the_file_is_read_without_a_warning() {
    if oracle::program("llvm-readelf").is_none() {
        return oracle::skipped("code objects against llvm-readelf");
    }
    let path = folder("written").join("ours.hsaco");
    std::fs::write(&path, program().to_bytes().unwrap()).unwrap();
    let (all, warnings) = readelf(&path, &["--all", "--dyn-syms", "--hash-table", "--gnu-hash-table", "--wide"]);
    assert_eq!(warnings, "");
    for want in [
        "OS/ABI:                            AMDGPU - HSA",
        "ABI Version:                       3",
        "gfx942, xnack, sramecc",
    ] {
        assert!(all.contains(want), "{want} is not in\n{all}");
    }
    // Each kernel's two symbols in both tables.
    for name in ["first", "second.kd", "third"] {
        let lines = all.lines().filter(|l| l.split_whitespace().last() == Some(name)).count();
        assert!(lines >= 2, "{name} is there {lines} times in\n{all}");
    }
    // The metadata pass LLVM's schema; a missing key does not.
    let (notes, _) = readelf(&path, &["--notes"]);
    assert!(notes.contains(".vgpr_count:     40") && !notes.contains("Invalid"), "{notes}");
    let mut broken = program().to_bytes().unwrap();
    let at = broken.windows(15).position(|w| w == b".wavefront_size").unwrap();
    broken[at + 1] = b'W';
    let path = path.with_file_name("broken.hsaco");
    std::fs::write(&path, broken).unwrap();
    assert!(readelf(&path, &["--notes"]).0.contains("Invalid AMDGPU Metadata"), "the schema is not looked at");
}

#[test]
fn symbols_are_found_by_both_hash_tables() {
    let Some(_) = oracle::program("llvm-readelf") else { return oracle::skipped("hash tables against llvm-readelf") };
    let path = folder("hash").join("ours.hsaco");
    std::fs::write(&path, program().to_bytes().unwrap()).unwrap();
    // Both listings walk the tables' chains: a symbol that they cannot reach is not listed.
    let (listed, warnings) = readelf(&path, &["--hash-symbols"]);
    assert_eq!(warnings, "");
    let (sysv, gnu) = listed.split_once("Symbol table of .gnu.hash").unwrap();
    for kernel in program().kernels {
        for name in [kernel.name.clone(), format!("{}.kd", kernel.name)] {
            assert!(sysv.contains(&name) && gnu.contains(&name), "{name} is not in\n{listed}");
        }
    }
}

#[test]
fn the_descriptor_is_the_assemblers() {
    let Some(path) = linked("descriptor", THEIRS) else { return oracle::skipped("descriptors against llvm-mc") };
    let theirs = CodeObject::read(&std::fs::read(path).unwrap()).unwrap();
    let ours = CodeObject::read(&Program { kernels: vec![kernel("first")] }.to_bytes().unwrap()).unwrap();
    let same = |k: &titan_amd::object::Kernel| {
        let Descriptor { entry_offset: _, .. } = k.descriptor;
        Descriptor { entry_offset: 0, ..k.descriptor.clone() }.to_bytes()
    };
    assert_eq!(same(&ours.kernels[0]), same(&theirs.kernels[0]));
    assert_eq!(ours.kernels[0].metadata, theirs.kernels[0].metadata);
    let code = code(&["s_nop 0", "s_endpgm"]);
    for object in [ours, theirs] {
        assert_eq!(object.bytes(object.kernels[0].entry, 8), Some(&code[..]));
    }
}

#[test]
fn objects_for_other_machines_are_refused_by_name() {
    let Some(mc) = oracle::program("llvm-mc") else { return oracle::skipped("objects for other machines") };
    let lld = oracle::program("ld.lld").unwrap();
    for (cpu, want) in [("gfx90a", "for gfx90a, not for gfx942"), ("gfx1100", "for gfx1100"), ("gfx908", "for gfx908")]
    {
        let folder = folder(cpu);
        let (object, linked) = (folder.join("k.o"), folder.join("k.hsaco"));
        let cpu = format!("-mcpu={cpu}");
        let args = ["-triple=amdgcn-amd-amdhsa", &cpu, "-filetype=obj", "-o", object.to_str().unwrap()];
        let (_, err) = oracle::run(&mc, &args, "s_endpgm\n");
        assert!(err.is_empty(), "{err}");
        oracle::run(&lld, &["-shared", object.to_str().unwrap(), "-o", linked.to_str().unwrap()], "");
        let error = CodeObject::read(&std::fs::read(linked).unwrap()).unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
        // An object that was not linked is told as one.
        let unlinked = CodeObject::read(&std::fs::read(object).unwrap()).unwrap_err().to_string();
        assert!(unlinked.contains("has not been linked"), "{unlinked}");
    }
}
