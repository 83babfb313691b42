//! Functions that are no kernels: errors name the function that contains the instruction, wherever it lies.

use crate::llvm::linked;
use crate::support::oracle;
use titan_amd::emu::{Args, Launch, Memory, Module, Options};
use titan_amd::object::CodeObject;

/// A kernel in the middle of two functions that it calls, one global and one local; the second one reads through a null pointer.
const TEXT: &str = r#"
    .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    .text
    .globl before
    .protected before
    .p2align 8
    .type before,@function
before:
    s_nop 0
    s_setpc_b64 s[30:31]
.Lbefore:
    .size before, .Lbefore-before
    .globl kernel
    .protected kernel
    .p2align 8
    .type kernel,@function
kernel:
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, before@rel32@lo+4
    s_addc_u32 s5, s5, before@rel32@hi+12
    s_swappc_b64 s[30:31], s[4:5]
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, after@rel32@lo+4
    s_addc_u32 s5, s5, after@rel32@hi+12
    s_swappc_b64 s[30:31], s[4:5]
    s_endpgm
.Lkernel:
    .size kernel, .Lkernel-kernel
    .p2align 6
    .type after,@function
after:
    v_mov_b32_e32 v2, 0
    v_mov_b32_e32 v3, 0
    global_load_dword v1, v[2:3], off
    s_waitcnt vmcnt(0)
    s_setpc_b64 s[30:31]
.Lafter:
    .size after, .Lafter-after
    .rodata
    .p2align 6
    .amdhsa_kernel kernel
        .amdhsa_next_free_vgpr 8
        .amdhsa_next_free_sgpr 32
        .amdhsa_accum_offset 8
        .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .end_amdhsa_kernel
"#;

#[test]
fn errors_name_the_function_of_the_instruction() {
    let Some(path) = linked("functions", TEXT) else { return oracle::skipped("names of functions") };
    let bytes = std::fs::read(path).unwrap();
    let object = CodeObject::read(&bytes).unwrap();
    let names: Vec<&str> = object.functions.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["before", "kernel", "after"]);
    for (name, start, size) in &object.functions {
        assert_eq!(object.function_at(*start), Some((name.as_str(), 0)));
        assert_eq!(object.function_at(start + size - 1), Some((name.as_str(), size - 1)));
    }
    assert_eq!(object.function_at(object.functions[0].1 - 1), None);
    let module = Module::load(&bytes).unwrap();
    let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1], dynamic_lds: 0, args: Args::Packed(&[]) };
    let run = module.kernel("kernel").unwrap().run(&launch, &mut Memory::new(), &Options::default());
    let error = run.unwrap_err();
    assert_eq!(
        error.report().site.as_ref().unwrap_or_else(|| panic!("{error}")).function,
        Some(("after".to_owned(), 8)),
        "{error}"
    );
    assert!(error.to_string().contains("(`after` + 0x8): global_load_dword v1, v[2:3], off"), "{error}");
}
