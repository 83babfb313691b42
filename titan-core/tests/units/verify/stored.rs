//! Rule 84: programs that lack a store of their kernel.

use titan_core::ir::Kernel;
use titan_core::text::parse_one;
use titan_core::verify::stores_of;

/// A kernel with these operations on two outputs.
fn kernel(ops: &str) -> Kernel {
    let text = format!(
        "kernel @k(%c: mut tensor<f16>[M, K], %d: mut tensor<f16>[M, K], %n: i32) grid(cdiv(M, 16))
    plan(4, 32, mbarrier, index32, aligned(0))
    layout(16x16, reg(j1), lane(j2, j4, j8, i1, i2), warp(i4, i8))
    encoding(16x16, 16, order(0, 1), row(16, 32), b32)
{{
    %p = program_id<0> : i32
    %one = const 1.0 : f16
    %zero = const 0.0 : f16
    %first = const 0 : i32
    %x = splat %one : tile<16x16xf16, 0>
    %some = gt %n, %first : bool
    %buffer = ttg.region {{offset = 0, bytes = 512}} : region
    %slice = ttg.region.tile %buffer {{offset = 0}} : smem<16x16xf16, 0>
    %part = slice<0> %c, %p, %n : tensor<f16, 2>
    {ops}
    return
}}
"
    );
    parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// What a program with these operations lacks of a kernel with those.
fn missing(kernel_ops: &str, program_ops: &str) -> Vec<String> {
    let errors = stores_of(&kernel(kernel_ops), &kernel(program_ops)).err().unwrap_or_default();
    errors.into_iter().map(|e| e.title).collect()
}

const C: &str = "store_tile %c[%p, %first], %x\n";
const D: &str = "store_tile %d[%p, %first], %x\n";
const IN_BULK: &str = "%to = ttg.source_tile %c[%p, %first] or %zero : source<16x16xf16, 0>
ttg.nv.cp_async_bulk_tensor.store %to, %slice {bytes = 512}\n";

#[test]
fn programs_without_a_store_of_their_kernel_are_refused() {
    let of = |name: &str| vec![format!("a store to `{name}` is missing in the program")];
    let both = format!("{C}{D}");
    assert_eq!(missing(&both, C), of("d"));
    assert_eq!(missing(&both, D), of("c"));
    assert_eq!(missing(&both, ""), [of("c"), of("d")].concat());
    // One of two stores to one output.
    assert_eq!(missing(&format!("{C}{C}"), C), of("c"));
    assert_eq!(missing(IN_BULK, ""), of("c"));
    assert_eq!(missing(&format!("{IN_BULK}{C}"), IN_BULK), of("c"));
    // Through a view, by index, and in a branch.
    assert_eq!(missing("store_tile %part[%p, %first], %x\n", D), of("c"));
    assert_eq!(missing("set %d[%p, %first], %one\n", C), of("d"));
    let branch = format!("if %some {{\n{C}yield\n}} else {{\n{C}yield\n}}\n");
    assert_eq!(missing(&branch, &format!("if %some {{\n{C}yield\n}} else {{\nyield\n}}\n")), of("c"));
}

#[test]
fn programs_with_all_stores_of_their_kernel_are_accepted() {
    let none: [String; 0] = [];
    assert_eq!(missing("", C), none);
    assert_eq!(missing(C, C), none);
    assert_eq!(missing(C, IN_BULK), none);
    assert_eq!(missing(C, &format!("for %i = %first to %n step %n {{\n{C}continue\n}}\n{C}")), none);
    assert_eq!(missing("%y = load_tile %c[%p, %first] or %zero : tile<16x16xf16, 0>\n", ""), none);
}
