//! Two products in a row, as in attention: the accumulator of the first, rounded, is an operand of the second, without leaving registers.

use super::both::Launch;
use super::products::{Product, value};
use crate::launch::{Ready, machine};
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::machine_ir::Inst;
use titan_core::driver::stages;
use titan_core::ir::{Elem, LocalOp, OpKind};
use titan_core::text::parse;
use titan_core::verify::verify;

/// `C = round(A · Bᵀ) · V` with A `[M, 32]`, B `[N, 32]` and V `[N, 32]`, over 32 rows of B and V at a time. With `turns`, each step first
/// changes the sign of the sum so far, as attention scales it.
fn text(elem: Elem, acc: Elem, turns: bool) -> String {
    let (turn, from) = if turns {
        let turn = format!(
            "        %minus = const -1.0 : {acc}\n        %signs = splat %minus : tile<64x32x{acc}>\n        \
             %turned = mul %from, %signs : tile<64x32x{acc}>\n"
        );
        (turn, "%turned")
    } else {
        (String::new(), "%from")
    };
    let narrow = if elem == acc { String::new() } else { format!("        %p = cast %s : tile<64x32x{elem}>\n") };
    let p = if elem == acc { "%s" } else { "%p" };
    format!(
        "kernel @chain(\n    %a: in tensor<{elem}>[M, 32],\n    %b: in tensor<{elem}>[N, 32],\n    \
         %v: in tensor<{elem}>[N, 32],\n    %c: mut tensor<{acc}>[M, 32],\n) grid(cdiv(M, 64)) {{\n    \
         %N = dim<0> %b : i32\n    %m = program_id<0> : i32\n    %zero = const 0 : i32\n    %one = const 1 : i32\n    \
         %step = const 32 : i32\n    %pad = const 0.0 : {elem}\n    %nothing = const 0.0 : {acc}\n    \
         %whole = div %N, %step : i32\n    %rest = rem %N, %step : i32\n    %more = gt %rest, %zero : bool\n    \
         %last = cast %more : i32\n    %steps = add %whole, %last : i32\n    \
         %at = load_tile %a[%m, %zero] or %pad : tile<64x32x{elem}>\n    \
         %acc = splat %nothing : tile<64x32x{acc}>\n    \
         %sum = for %n = %zero to %steps step %one pipelined carry(%from = %acc) : tile<64x32x{acc}> {{\n        \
         %bt = load_tile %b[%n, %zero] or %pad : tile<32x32x{elem}>\n        \
         %bp = permute<1, 0> %bt : tile<32x32x{elem}>\n        \
         %start = splat %nothing : tile<64x32x{acc}>\n        %s = mma %at, %bp, %start : tile<64x32x{acc}>\n\
         {narrow}{turn}        %vt = load_tile %v[%n, %zero] or %pad : tile<32x32x{elem}>\n        \
         %next = mma {p}, %vt, {from} : tile<64x32x{acc}>\n        continue %next\n    }}\n    \
         store_tile %c[%m, %zero], %sum\n    return\n}}\n"
    )
}

/// A tensor of −1, 0 and 1, so that all sums are exact in every type.
fn small(rng: &mut Rng, elem: Elem, rows: u32) -> Tensor {
    let one = match elem {
        Elem::F16 => 0x3c00,
        Elem::Bf16 => 0x3f80,
        Elem::F64 => 1f64.to_bits(),
        _ => u64::from(1f32.to_bits()),
    };
    let size = (elem.bits() / 8) as usize;
    let sign = 1 << (elem.bits() - 1);
    let bytes = (0..rows * 32).flat_map(|_| rng.of(&[0, one, one | sign]).to_le_bytes()[..size].to_vec()).collect();
    Tensor { elem, extents: vec![rows, 32], strides: vec![32, 1], bytes, skip: 0 }
}

#[test]
fn accumulators_become_operands_in_registers() {
    let types = [
        (Elem::F16, Elem::F32),
        (Elem::Bf16, Elem::F32),
        (Elem::Tf32, Elem::F32),
        (Elem::F32, Elem::F32),
        (Elem::F64, Elem::F64),
    ];
    // Elements of 16 bits are alike, and so are the two of 32.
    let is_meant = |elem: Elem| test_depth::is_full() || matches!(elem, Elem::F16 | Elem::F32 | Elem::F64);
    let types = types.into_iter().filter(|(elem, _)| is_meant(*elem));
    let mut moves = Vec::new();
    let cases = types.flat_map(|(elem, acc)| [(elem, acc, false), (elem, acc, true)]);
    for (seed, (elem, acc, turns)) in cases.enumerate() {
        let text = text(elem, acc, turns);
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        // In the quick depth each type in one of both ways.
        for aligned in [true, false].into_iter().filter(|way| test_depth::is_full() || *way == (seed % 4 < 2)) {
            let stages = stages(&kernel, machine(), aligned, None).unwrap_or_else(|e| panic!("{elem}: {e}"));
            // Tiles get to shared memory from tensors alone.
            let program = &stages.barriers;
            let stored = program.ops.iter().filter(|op| op.kind == OpKind::Local(LocalOp::Store));
            for by in stored.map(|op| program.def_op(op.args[0]).map(|by| &by.kind)) {
                assert!(
                    matches!(by, Some(OpKind::Local(LocalOp::Fetch { .. }))),
                    "{}",
                    titan_core::text::print(program)
                );
            }
            let ready = Ready::new(&stages.lanes).unwrap_or_else(|e| panic!("{elem}: {e}"));
            let mut rng = Rng::new(seed as u64);
            let (m, n) = (80, 72);
            let c = Tensor { bytes: vec![0; (m * 32 * acc.bits() / 8) as usize], ..small(&mut rng, acc, m) };
            let tensors = [small(&mut rng, elem, m), small(&mut rng, elem, n), small(&mut rng, elem, n), c].map(Some);
            let launch = Launch { grid: [2, 1, 1], tensors: &tensors, scalar: &|_| 0 };
            let found = launch.emulated(&stages.lanes, &ready, seed).unwrap_or_else(|e| panic!("{elem}: {e}"));
            let [Some(a), Some(b), Some(v), Some(c)] = &tensors else { panic!("four tensors") };
            let result = Tensor { bytes: found[3].clone(), ..c.clone() };
            let product = Product::of(elem, acc, [1, 1, 1]);
            for (row, column) in (0..i64::from(m)).flat_map(|row| (0..32).map(move |column| (row, column))) {
                let score = |key: i64| (0..32).map(|k| value(a, [row, k]) * value(b, [key, k])).sum::<f64>();
                let sign = |key: i64| if turns && (i64::from(n - 1) / 32 - key / 32) % 2 == 1 { -1.0 } else { 1.0 };
                let term = |key: i64| sign(key) * score(key) * value(v, [key, column]);
                let wanted: f64 = (0..i64::from(n)).map(term).sum();
                let found = value(&result, [row, column]);
                assert!(found == wanted, "{product:?}: {row}, {column} is {found}, not {wanted}");
            }
            let wanted = launch.evaluated(&stages.lanes).unwrap_or_else(|e| panic!("{elem}: {e}"));
            assert_eq!(launch.difference(&found, &wanted), None, "{elem}");
            let code = &ready.emitted.code;
            let inside = code.order.iter().filter(|block| code.blocks[block.index()].depth > 0);
            let names = inside.flat_map(|block| code.insts(*block)).map(Inst::name);
            moves.push((elem, aligned, turns, names.filter(|name| *name == "v_mov_b32").count()));
        }
    }
    // An accumulator of 32 bits is scaled where it is.
    let all = moves.clone();
    let mut compared = 0;
    for (elem, aligned, _, many) in moves.into_iter().filter(|(elem, _, turns, _)| *turns && *elem != Elem::F64) {
        let plain = all.iter().find(|(e, a, turns, _)| (*e, *a, *turns) == (elem, aligned, false));
        let few = plain.expect("the same without").3;
        assert!(many <= few, "{elem}, aligned {aligned}: {few} moves, and {many}");
        compared += 1;
    }
    assert!(compared >= test_depth::cases(4, 2));
}
