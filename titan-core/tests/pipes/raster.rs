//! Which kernels get programs in groups of rows: those that share tiles along two axes of the grid. What such kernels compute is tested
//! where they run, in titan-cpu's `tests/simulator` and in `cuda-emulator`.

use titan_core::driver::{Tiles, Walk};
use titan_core::ir::{GridSpec, Kernel, OpKind};
use titan_core::text::parse_one;
use titan_core::verify::verify;

const TEXT: &str = "kernel @gemm(%a: in tensor<f16>[B, M, K], %b: in tensor<f16>[N, K], %c: mut tensor<f32>[B, M, N]) \
grid(B, cdiv(M, 16), cdiv(N, 16)) {
    %batch = program_id<0>
    %m = program_id<1>
    %n = program_id<2>
    %2 = index<0> %a, %batch : tensor<f16, 2>
    %3 = index<0> %c, %batch : tensor<f32, 2>
    %K = dim<1> %2
    %0 = const 0 : i32
    %1 = const 1 : i32
    %16 = const 16 : i32
    %steps = div %K, %16
    %pad = const 0.0 : f16
    %none = const 0.0 : f32
    %zero = splat %none : tile<16x16xf32>
    %sum = for %k = %0 to %steps step %1 pipelined carry(%x = %zero) : tile<16x16xf32> {
        %at = load_tile %2[%m, %k] or %pad : tile<16x16xf16>
        %bt = load_tile %b[%n, %k] or %pad : tile<16x16xf16>
        %t = permute<1, 0> %bt : tile<16x16xf16>
        %y = mma %at, %t, %x : tile<16x16xf32>
        continue %y
    }
    store_tile %3[%m, %n], %sum
    return
}
";

fn parsed(text: &str) -> Kernel {
    let kernel = parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    (*verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).clone()
}

fn in_groups(text: &str) -> Option<Kernel> {
    let walk = Walk { tiles: Tiles::Grouped(8), ..Walk::default() };
    let made = walk.applied(parsed(text)).ok()?;
    let GridSpec::Extents(extents) = &made.sig.grid else { panic!("a grid of extents") };
    assert_eq!(extents.len(), 1);
    Some((*verify(made).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).clone())
}

#[test]
fn programs_of_a_matrix_product_are_in_groups() {
    let made = in_groups(TEXT).expect("rows share tiles of A, columns tiles of B");
    let count = |wanted: &dyn Fn(&OpKind) -> bool| {
        let mut n = 0;
        made.walk(&mut |_, op| n += usize::from(wanted(&op.kind)));
        n
    };
    assert_eq!(count(&|kind| matches!(kind, OpKind::UnflattenGrouped(8))), 1);
    assert_eq!(count(&|kind| matches!(kind, OpKind::ProgramId(_))), 1);
    assert_eq!(made.sig.requires.len(), 1, "fewer than 2³¹ programs");
}

#[test]
fn programs_that_share_nothing_keep_their_order() {
    let without = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        assert_eq!(in_groups(&TEXT.replace(from, to)), None, "{to}");
    };
    // Every program has a tile of B of its own row, or none but its own; or all read the same.
    without("%bt = load_tile %b[%n, %k]", "%bt = load_tile %b[%m, %k]");
    without("%bt = load_tile %b[%n, %k]", "%mn = add %m, %n\n%bt = load_tile %b[%mn, %k]");
    without("%bt = load_tile %b[%n, %k]", "%bt = load_tile %b[%0, %k]");
    without("%at = load_tile %2[%m, %k]", "%at = load_tile %2[%n, %k]");
    without("grid(B, cdiv(M, 16), cdiv(N, 16))", "grid(B, cdiv(M, 8) / 2 + 1, cdiv(N, 16))");
}

#[test]
fn kernels_that_ask_how_many_programs_there_are_keep_them() {
    let asks = TEXT.replace("%K = dim<1> %2", "%K = dim<1> %2\n%all = num_programs<1>");
    assert_eq!(in_groups(&asks), None);
}
