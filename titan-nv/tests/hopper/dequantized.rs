//! Products whose operands are loaded in another element than that of their MMAs: threads convert them in registers, in each iteration, and
//! write them to shared memory again where MMAs of warpgroups read them there. Every result is exact. Rows are whole numbers of 16 bytes, as the
//! code assumes.

use super::harness::order_of;
use super::lowered::{Gemm, assembles, compiled_for, kernel, run};
use titan_core::driver::{FALLBACK, compile};
use titan_core::ir::Elem;
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;

/// The same product with A, or B, or both loaded as `i8` and converted.
fn converted(gemm: &Gemm, of: [bool; 2]) -> (Gemm, String) {
    let mut text = kernel(gemm);
    let (mut a, mut b, acc) = gemm.elems;
    for (name, elem) in
        [("a", &mut a), ("b", &mut b)].into_iter().zip(of).filter_map(|(operand, of)| of.then_some(operand))
    {
        let lines = text.lines().map(|line| {
            if line.contains(&format!("load_tile %{name}[")) {
                let (value, load) = line.split_once(" = ").expect("a value");
                let ty = line.rsplit_once(": ").expect("a type").1;
                let load = load.replace(&elem.to_string(), "i8");
                format!("{value}q = {load}\n{value} = cast {value}q : {ty}\n")
            } else {
                let zero = format!("%p{name} = const 0.0 : {elem}");
                let line = line.replace(&format!("%{name}: in tensor<{elem}>"), &format!("%{name}: in tensor<i8>"));
                line.replace(&zero, &format!("%p{name} = const 0 : i8")) + "\n"
            }
        });
        text = lines.collect();
        *elem = Elem::I8;
    }
    (Gemm { elems: (a, b, acc), ..*gemm }, text)
}

const PLAIN: Gemm = Gemm {
    elems: (Elem::F16, Elem::F16, Elem::F32),
    stored: Elem::F16,
    transposed: [false; 2],
    tile: [64, 128, 64],
    size: [112, 144, 208],
};

#[test]
fn converted_operands_are_exact() {
    let mut cases = Vec::new();
    for transposed in [[false, false], [true, false], [false, true], [true, true]] {
        for of in [[true, false], [false, true], [true, true]] {
            for (tile, size) in
                [([64, 128, 64], [112, 144, 208]), ([128, 64, 32], [144, 80, 144]), ([128, 256, 64], [144, 272, 80])]
            {
                for target in ["sm_90a", "sm_100a"] {
                    cases.push((cases.len(), transposed, of, tile, size, target));
                }
            }
        }
    }
    let traits = |(number, transposed, of, tile, _, target): &(usize, [bool; 2], [bool; 2], [u32; 3], _, &str)| {
        vec![
            format!("transposed {transposed:?}"),
            format!("converted {of:?}"),
            format!("{tile:?} for {target}"),
            format!("order {}", number % 4),
        ]
    };
    for (number, transposed, of, tile, size, target) in test_depth::covering(cases, traits) {
        let float = if number / 2 % 2 == 0 { Elem::F16 } else { Elem::Bf16 };
        let elems = (float, float, Elem::F32);
        let (gemm, text) = converted(&Gemm { elems, stored: float, transposed, tile, size }, of);
        let made = compiled_for(&text, target);
        let options = &order_of(number);
        run(&gemm, &made, options, number as u64)
            .unwrap_or_else(|e| panic!("{gemm:?}, {of:?} for {target}, {:?}: {e}", options.completion));
    }
}

/// The chosen schedules are those that are compiled: none is given up because its program cannot be verified.
#[test]
fn no_schedule_of_converted_operands_is_given_up() {
    let tiles = [[64, 128, 64], [128, 64, 32], [128, 256, 64], [64, 64, 64]];
    for (turn, tile) in tiles.into_iter().enumerate() {
        for of in test_depth::sample([[true, false], [false, true], [true, true]], 1) {
            let (_, text) = converted(&Gemm { tile, ..PLAIN }, of);
            let verified = verify(text::parse_one(&text).expect("a kernel")).expect("a right kernel");
            // In the quick depth two targets for each tile.
            let is_meant = |nth: usize| test_depth::is_full() || nth % 2 == turn % 2;
            let targets = ["sm_80", "sm_90a", "sm_100a", "sm_120a"].into_iter().enumerate();
            for (_, target) in targets.filter(|(nth, _)| is_meant(*nth)) {
                let machine = Machine::from_name(target).expect("it is known");
                let variants = compile(&verified, machine, None).unwrap_or_else(|e| panic!("{target}: {}", e.message));
                for variant in &variants {
                    let given_up = variant.notes.iter().find(|note| note.starts_with(FALLBACK));
                    assert_eq!(given_up, None, "{tile:?}, {of:?} for {target}\n{text}");
                }
            }
            assembles(&compiled_for(&text, "sm_90a"), "sm_90a", 0);
        }
    }
}

/// Fewer steps than slots, as many, and more; the last one ragged or whole.
#[test]
fn every_number_of_steps() {
    let (gemm, text) = converted(&PLAIN, [false, true]);
    for (turn, target) in ["sm_80", "sm_90a", "sm_100a"].into_iter().enumerate() {
        let made = compiled_for(&text, target);
        let rings = made.rings.pipes.iter().map(|pipe| (pipe.slots, pipe.fields.len()));
        let rings: Vec<(u32, usize)> = rings.collect();
        assert!(rings.iter().all(|(slots, fields)| *slots >= 2 && *fields == 2), "{target}: {rings:?}");
        // None, one, as many as slots, and more; the last one whole or ragged.
        let steps = [16, 64, 80, 128, 208, 256, 272, 448, 592].into_iter().enumerate();
        let some = test_depth::sample_each(steps, 1, |(_, k)| (k % 64 == 0, k / 65 > 1));
        // In the quick depth, half of them on a target.
        let is_meant = |nth: usize| test_depth::is_full() || nth % 2 == turn % 2;
        for (_, (number, k)) in some.into_iter().enumerate().filter(|(nth, _)| is_meant(*nth)) {
            let gemm = Gemm { size: [80, 144, k], ..gemm };
            let options = &order_of(number);
            run(&gemm, &made, options, number as u64)
                .unwrap_or_else(|e| panic!("{gemm:?} for {target}, {:?}: {e}", options.completion));
        }
    }
}
