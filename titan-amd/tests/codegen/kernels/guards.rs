//! Conversions to `bf16` whose operands are terms of sums: one comparison of the sums replaces a test of each operand for NaN.

use super::both::Launch;
use crate::launch::{Ready, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::machine_ir::Code;
use titan_core::driver::stages;
use titan_core::ir::Elem;
use titan_core::text::parse;
use titan_core::verify::verify;

/// Rows of powers of two, rounded to `bf16`, and the sum of each row; without sums, the operands are not known to be numbers.
fn text(sums: bool) -> String {
    let sum = if sums { "reduce_sum<1> %p" } else { "reduce_max<1> %p" };
    format!(
        "kernel @powers(\n    %x: in tensor<f32>[M, 64],\n    %y: mut tensor<bf16>[M, 64],\n    \
         %s: mut tensor<f32>[M],\n) grid(cdiv(M, 64)) {{\n    %m = program_id<0> : i32\n    %zero = const 0 : i32\n    \
         %pad = const 0.0 : f32\n    %xt = load_tile %x[%m, %zero] or %pad : tile<64x64xf32>\n    \
         %p = exp2 %xt : tile<64x64xf32>\n    %sum = {sum} : tile<64xf32>\n    \
         %round = cast %p : tile<64x64xbf16>\n    store_tile %y[%m, %zero], %round\n    \
         store_tile %s[%m], %sum\n    return\n}}\n"
    )
}

/// The numbers of comparisons with NaN before the end of the kernel, and behind it.
fn comparisons(code: &Code) -> [usize; 2] {
    let mut counts = [0; 2];
    let mut behind = 0;
    for inst in code.order.iter().flat_map(|block| code.insts(*block)) {
        counts[behind] += usize::from(inst.name() == "v_cmp_u_f32");
        behind = if inst.name() == "s_endpgm" { 1 } else { behind };
    }
    counts
}

/// Numbers, and a NaN in some of the rows: one that a carry would make a zero, of either sign, and one that is signalling.
fn numbers(rng: &mut Rng, rows: u32, with_nan: bool) -> Tensor {
    let mut bytes = Vec::new();
    for row in 0..rows {
        let odd = rng.below(64);
        for column in 0..64 {
            let number = (f32::from(rng.below(2000) as u16) / 16.0 - 100.0).to_bits();
            let special = rng.of(&[0x7fff_ffff, 0xffff_ffff, 0x7f80_0001, 0x7f80_0000, 0xff80_0000]);
            let bits = if with_nan && row % 3 == 1 && column == odd { special } else { number };
            bytes.extend(bits.to_le_bytes());
        }
    }
    Tensor { elem: Elem::F32, extents: vec![rows, 64], strides: vec![64, 1], bytes, skip: 0 }
}

#[test]
fn sums_guard_conversions() {
    for sums in [true, false] {
        let text = text(sums);
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let stages = stages(&kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
        let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{e}"));
        let [before, behind] = comparisons(&ready.emitted.code);
        let converted = stages.lanes.ops.iter().filter(|op| is_conversion(&op.kind)).count();
        assert!(converted >= 8, "{converted}");
        assert_eq!([before, behind], if sums { [1, converted] } else { [converted, 0] }, "sums {sums}");
        let mut rng = Rng::new(17);
        let rows = 128;
        for (order, with_nan) in [(0, false), (1, true), (2, true)] {
            let zeros = |elem: Elem, extents: Vec<u32>, strides| {
                let bytes = vec![0; extents.iter().product::<u32>() as usize * elem.bits() as usize / 8];
                Tensor { elem, extents, strides, bytes, skip: 0 }
            };
            let x = numbers(&mut rng, rows, with_nan);
            let y = zeros(Elem::Bf16, vec![rows, 64], vec![64, 1]);
            let s = zeros(Elem::F32, vec![rows], vec![1]);
            let tensors = [x, y, s].map(Some);
            let launch = Launch { grid: [rows / 64, 1, 1], tensors: &tensors, scalar: &|_| 0 };
            let found = launch.emulated(&stages.lanes, &ready, order).unwrap_or_else(|e| panic!("{e}"));
            let wanted = launch.evaluated(&stages.lanes).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(launch.difference(&found, &wanted), None, "sums {sums}, NaN {with_nan}");
            let nan = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]) & 0x7fff > 0x7f80;
            assert_eq!(found[1].chunks(2).any(nan), with_nan, "sums {sums}");
        }
    }
}

fn is_conversion(kind: &titan_core::lane::OpKind) -> bool {
    use titan_core::lane::{Num, OpKind};
    matches!(kind, OpKind::Convert { from: Num::F32, to: Num::Bf16 })
}
