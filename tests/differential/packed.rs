//! Elements of 4 bits: what a store leaves, of every small tile, wherever it begins, is what it says and nothing else. The
//! executor and the embedded PTX in the emulator are compared with nibbles counted here.

use crate::devices::{Outcome, emulated, on_cpu, on_gfx942};
use crate::machine::Rng;
use crate::random::PROGRAMS;
use crate::tensor::Tensor;
use titan_core::ir::Elem;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};

fn verified(text: &str) -> Verified {
    let kernel = parse_one(text).unwrap_or_else(|e| panic!("{}\n{text}", e[0].text()));
    verify(kernel).unwrap_or_else(|e| panic!("{}\n{text}", e[0].text()))
}

/// A tensor without gaps; of 4-bit elements, two in a byte.
fn tensor(rng: &mut Rng, elem: Elem, extents: &[u32]) -> Tensor {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis] * extents[axis];
    }
    let n: u32 = extents.iter().product();
    let bytes = (0..(n * elem.bits()).div_ceil(8)).map(|_| rng.word() as u8).collect();
    Tensor { elem, extents: extents.to_vec(), strides, bytes, skip: 0 }
}

fn position(t: &Tensor, at: &[i64]) -> Option<usize> {
    let inside = at.iter().zip(&t.extents).all(|(x, n)| (0..i64::from(*n)).contains(x));
    inside.then(|| at.iter().zip(&t.strides).map(|(x, s)| x * i64::from(*s)).sum::<i64>() as usize)
}

fn nibble(t: &Tensor, at: &[i64]) -> Option<u8> {
    position(t, at).map(|p| t.bytes[p / 2] >> (4 * (p % 2)) & 15)
}

fn set_nibble(t: &mut Tensor, at: &[i64], value: u8) {
    if let Some(p) = position(t, at) {
        let by = 4 * (p % 2);
        t.bytes[p / 2] = t.bytes[p / 2] & !(15 << by) | (value & 15) << by;
    }
}

/// Runs a kernel of an input, an output and perhaps a scalar on both, and compares the output.
fn agree(kernel: &Verified, input: &Tensor, output: &Tensor, scalar: i32, wanted: &Tensor, what: &str) -> bool {
    let mut tensors = vec![Some(input.clone()), Some(output.clone())];
    tensors.resize(kernel.sig.params.len(), None);
    let executed = on_cpu(kernel, &tensors, scalar).unwrap_or_else(|e| panic!("{what}: {e}"));
    let left = |t: &Option<Tensor>| t.as_ref().map(|t| t.bytes.clone()).unwrap_or_default();
    assert_eq!(left(&executed[1]), wanted.bytes, "executor, {what}");
    match on_gfx942(kernel, &tensors, scalar) {
        Some(Ok((Outcome::Done(after), _))) => assert_eq!(left(&after[1]), wanted.bytes, "gfx942, {what}"),
        Some(Ok((Outcome::Refused(reason), _)) | Err(reason)) => panic!("gfx942, {what}: {reason}"),
        None => {}
    }
    match emulated(kernel, &tensors, scalar) {
        Ok((Outcome::Done(after), assumes)) => {
            assert_eq!(left(&after[1]), wanted.bytes, "emulator, {what}\n{}", titan_core::text::print(kernel));
            assumes
        }
        Ok((Outcome::Refused(reason), _)) => panic!("{what}: {reason}"),
        Err(error) => panic!("emulator, {what}: {error}\n{}", titan_core::text::print(kernel)),
    }
}

fn name(shape: &[u32]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// Tiles of a shape into rows that the program has for itself, from a column on that is an argument.
fn rows_case(rng: &mut Rng, elem: Elem, [rows, columns]: [u32; 2], start: i32, n: u32) -> bool {
    let wide = if elem == Elem::I4 { Elem::I8 } else { Elem::U8 };
    let text = format!(
        "kernel @rows(%x: in tensor<{wide}>[_, _], %c: mut tensor<{elem}>[M, N], %start: i32) grid({PROGRAMS}) {{
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %none = const 0 : {wide}
    %a = load_tile %x[%p, %zero] or %none : tile<{rows}x{columns}x{wide}>
    %t = cast %a : tile<{rows}x{columns}x{elem}>
    %height = const {rows} : i32
    %row = mul %p, %height : i32
    store_at %c[%row, %start], %t
    return
}}
"
    );
    let input = tensor(rng, wide, &[PROGRAMS * rows, columns]);
    let output = tensor(rng, elem, &[PROGRAMS * rows, n]);
    let mut wanted = output.clone();
    for r in 0..i64::from(PROGRAMS * rows) {
        for c in 0..i64::from(columns) {
            let value = input.bytes[(r * i64::from(columns) + c) as usize];
            set_nibble(&mut wanted, &[r, i64::from(start) + c], value);
        }
    }
    let what = format!("{elem} {rows}x{columns} at {start} of {n}");
    agree(&verified(&text), &input, &output, start, &wanted, &what)
}

#[test]
fn every_width_is_stored_at_every_column() {
    let mut rng = Rng::new(4);
    for columns in 1..=130 {
        let elem = rng.of(&[Elem::I4, Elem::U4]);
        let n = (columns + rng.below(8)).next_multiple_of(rng.of(&[2, 32]));
        let starts = [0, 1, -(rng.below(columns.min(5)) as i32), (n - columns / 2) as i32];
        // In the quick depth one of them, in turn.
        let is_meant = |turn: u32| test_depth::is_full() || turn == (columns + columns / 8) % 4;
        for (_, start) in (0..).zip(starts).filter(|(turn, _)| is_meant(*turn)) {
            rows_case(&mut rng, elem, [1, columns], start, n);
        }
    }
}

#[test]
fn every_small_matrix_is_stored_at_every_column() {
    let mut rng = Rng::new(44);
    for rows in 1..=17 {
        // In the quick depth every third width, others from height to height.
        for columns in (1..=17).filter(|columns| test_depth::is_full() || (columns + rows) % 3 == 0) {
            let elem = rng.of(&[Elem::I4, Elem::U4]);
            let start = rng.below(4) as i32 - 1;
            let n = rng.of(&[2, 18, 32]);
            rows_case(&mut rng, elem, [rows, columns], start, n);
        }
    }
}

#[test]
fn whole_tiles_of_every_even_width_are_divided_between_programs() {
    let mut rng = Rng::new(5);
    let (mut aligned, mut general) = (0, 0);
    let shapes = (1..=65).map(|n| vec![2 * n]).chain((1..=9).flat_map(|r| (1..=9).map(move |c| vec![r, 2 * c])));
    for shape in shapes {
        let elem = rng.of(&[Elem::I4, Elem::U4]);
        let wide = if elem == Elem::I4 { Elem::I8 } else { Elem::U8 };
        let columns = *shape.last().unwrap();
        let (tile, at) = (name(&shape), if shape.len() == 1 { "%p" } else { "%zero, %p" });
        let dims = if shape.len() == 1 { "_" } else { "_, _" };
        let text = format!(
            "kernel @tiles(%x: in tensor<{wide}>[{dims}], %c: mut tensor<{elem}>[{dims}]) grid({PROGRAMS}) {{
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %none = const 0 : {wide}
    %a = load_tile %x[{at}] or %none : tile<{tile}x{wide}>
    %t = cast %a : tile<{tile}x{elem}>
    store_tile %c[{at}], %t
    return
}}
"
        );
        let mut extents = shape.clone();
        // Some tensors end inside of the last tile.
        *extents.last_mut().unwrap() = (columns + rng.below(columns / 2 + 1) * 2).next_multiple_of(rng.of(&[2, 32]));
        let (input, output) = (tensor(&mut rng, wide, &extents), tensor(&mut rng, elem, &extents));
        let mut wanted = output.clone();
        let rows = if shape.len() == 1 { 1 } else { shape[0] };
        for r in 0..i64::from(rows) {
            for c in 0..i64::from(PROGRAMS * columns) {
                let at = if shape.len() == 1 { vec![c] } else { vec![r, c] };
                if let Some(place) = position(&input, &at) {
                    set_nibble(&mut wanted, &at, input.bytes[place]);
                }
            }
        }
        let assumes =
            agree(&verified(&text), &input, &output, 0, &wanted, &format!("{elem} tiles of {tile} of {extents:?}"));
        *(if assumes { &mut aligned } else { &mut general }) += 1;
    }
    assert!(aligned > 10 && general > 10, "{aligned} aligned, {general} general");
}

/// A kernel of 4-bit tensors `x` and `c` of one shape, run on both; `meaning` computes the expected contents.
fn both(body: &str, extents: &[u32], scalar: i32, seed: u64, meaning: impl Fn(&Tensor, &mut Tensor)) {
    both_with("", body, extents, scalar, seed, meaning);
}

/// The same with a ring.
fn both_with(ring: &str, body: &str, extents: &[u32], scalar: i32, seed: u64, meaning: impl Fn(&Tensor, &mut Tensor)) {
    let dims = vec!["_"; extents.len()].join(", ");
    let text = format!(
        "kernel @k(%x: in tensor<i4>[{dims}], %c: mut tensor<i4>[{dims}], %n: i32) grid({PROGRAMS}) {ring} {{
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %two = const 2 : i32
    %wide = const 0 : i8
    %none = cast %wide : i4
{body}
    return
}}
"
    );
    let mut rng = Rng::new(seed);
    let (input, output) = (tensor(&mut rng, Elem::I4, extents), tensor(&mut rng, Elem::I4, extents));
    let mut wanted = output.clone();
    meaning(&input, &mut wanted);
    agree(&verified(&text), &input, &output, scalar, &wanted, &format!("{scalar} of {extents:?}\n{body}"));
}

/// Row `p` of `c` from column `to` on is row `p` of `x` from column `from` on, or zero outside of `inside`.
fn copy_row(x: &Tensor, c: &mut Tensor, n: i64, [from, to]: [i64; 2], inside: std::ops::Range<i64>) {
    for p in 0..i64::from(PROGRAMS) {
        for j in 0..n {
            let value = nibble(x, &[p, from + j]).filter(|_| inside.contains(&(from + j))).unwrap_or(0);
            set_nibble(c, &[p, to + j], value);
        }
    }
}

#[test]
fn loads_begin_in_the_middle_of_bytes() {
    for (start, columns) in [(0, 32), (1, 32), (3, 32), (-1, 32), (5, 10), (7, 64)] {
        let load = "    %t = load_at %x[%p, %n] or %none : tile<1x6xi4>\n    store_at %c[%p, %zero], %t";
        both(load, &[2, columns], start, 1, |x, c| copy_row(x, c, 6, [start.into(), 0], 0..columns.into()));
    }
}

#[test]
fn slices_begin_and_end_in_the_middle_of_bytes() {
    for (start, columns) in [(0, 32), (1, 32), (2, 32), (3, 32), (3, 10), (4, 64)] {
        let ends = "    %five = const 5 : i32\n    %end = add %n, %five : i32\n";
        // The slice has five columns, the tile eight.
        let load = format!(
            "{ends}    %s = slice<1> %x, %n, %end : tensor<i4, 2>
    %t = load_tile %s[%p, %zero] or %none : tile<1x8xi4>
    store_at %c[%p, %zero], %t"
        );
        let from = i64::from(start);
        both(&load, &[2, columns], start, 2, |x, c| copy_row(x, c, 8, [from, 0], from..(from + 5).min(columns.into())));
        let store = format!(
            "{ends}    %t = load_at %x[%p, %zero] or %none : tile<1x8xi4>
    %s = slice<1> %c, %n, %end : tensor<i4, 2>
    store_tile %s[%p, %zero], %t"
        );
        both(&store, &[2, columns], start, 3, |x, c| copy_row(x, c, 5, [0, from], 0..columns.into()));
        let inner = format!(
            "{ends}    %s = slice<1> %x, %n, %end : tensor<i4, 2>
    %a = index<0> %s, %p : tensor<i4, 1>
    %t = load_at %a[%one] or %none : tile<3xi4>
    %d = index<0> %c, %p : tensor<i4, 1>
    store_at %d[%two], %t"
        );
        both(&inner, &[2, columns], start, 4, |x, c| {
            copy_row(x, c, 3, [from + 1, 2], from..(from + 5).min(columns.into()))
        });
    }
}

#[test]
fn a_column_is_a_view() {
    for (column, rows) in [(0, 6), (1, 6), (2, 40), (3, 40), (31, 40)] {
        let body = "    %a = index<2> %x, %n : tensor<i4, 2>
    %t = load_at %a[%p, %one] or %none : tile<1x5xi4>
    %d = index<2> %c, %n : tensor<i4, 2>
    store_at %d[%p, %zero], %t";
        both(body, &[2, rows, 32], column, 5, |x, c| {
            for (p, j) in (0..2).flat_map(|p| (0..5).map(move |j| (p, j))) {
                let value = nibble(x, &[p, 1 + j, column.into()]).unwrap_or(0);
                set_nibble(c, &[p, j, column.into()], value);
            }
        });
    }
}

#[test]
fn elements_are_read_and_set_one_by_one() {
    for column in 0..5 {
        let body = "    %e = get %x[%p, %n] : i4\n    set %c[%p, %n], %e\n    %next = add %n, %one : i32\n    set %c[%p, %next], %e";
        both(body, &[2, 6], column, 6, |x, c| {
            for p in 0..2 {
                let value = nibble(x, &[p, column.into()]).unwrap();
                set_nibble(c, &[p, column.into()], value);
                set_nibble(c, &[p, i64::from(column) + 1], value);
            }
        });
    }
}

#[test]
fn stores_of_one_program_may_meet_in_a_byte() {
    // Three columns and three more; then what was stored is read and stored one further.
    let body = "    %a = load_at %x[%p, %zero] or %none : tile<1x3xi4>
    store_at %c[%p, %n], %a
    %three = const 3 : i32
    %next = add %n, %three : i32
    %b = load_at %x[%p, %next] or %none : tile<1x3xi4>
    store_at %c[%p, %next], %b
    %again = load_at %c[%p, %n] or %none : tile<1x5xi4>
    %further = add %n, %one : i32
    store_at %c[%p, %further], %again";
    for (start, columns) in [(0, 32), (1, 32), (2, 10), (5, 10), (7, 12)] {
        both(body, &[2, columns], start, 7, |x, c| {
            let n = i64::from(start);
            copy_row(x, c, 3, [0, n], 0..columns.into());
            copy_row(x, c, 3, [n + 3, n + 3], 0..columns.into());
            let before = c.clone();
            copy_row(&before, c, 5, [n, n + 1], 0..columns.into());
        });
    }
}

#[test]
fn rows_of_indices_are_written_in_pairs() {
    for width in [2, 4, 6, 16, 34] {
        let body = format!(
            "    %i = iota<2> : tile<2xi32>
    %ones = splat %one : tile<2xi32>
    %flipped = sub %ones, %i : tile<2xi32>
    %t = load_at %x[%zero, %two] or %none : tile<2x{width}xi4>
    scatter_rows %c[%flipped, %two], %t"
        );
        for columns in [32, 34, 40] {
            both(&body, &[2, columns], 0, 8, |x, c| {
                for (r, j) in (0..2).flat_map(|r| (2..2 + width).map(move |j| (r, j))) {
                    let value = nibble(x, &[r, j]).unwrap_or(0);
                    set_nibble(c, &[1 - r, j], value);
                }
            });
        }
    }
}

#[test]
fn stages_hold_a_byte_for_each() {
    let read = "    %row = mul %p, %two : i32
    %s = ttg.source_at %x[%row, %n] or %none : source<2x32xi4>
    %slot = ttg.stage.acquire<0>
    ttg.stage.async_produce %slot, %s {bytes = 32, proxy = generic}
    %ready = ttg.stage.ready<0>
    %stage = ttg.stage.wait_ready %ready
    %perm = ttg.stage.read_perm %stage
    %v = ttg.stage.view<0> %perm : smem<2x32xi4>
    %t = ttg.stage.read %v
    %done = ttg.stage.consumed %perm
    ttg.stage.release %done
    store_at %c[%row, %n], %t";
    let write = "    %row = mul %p, %two : i32
    %t = load_at %x[%row, %n] or %none : tile<2x32xi4>
    %slot = ttg.stage.acquire<0>
    %written = ttg.stage.write %slot, %t
    %store = ttg.store.issue_at %c[%row, %n], %written
    ttg.store.wait %store";
    for body in [read, write] {
        for (column, columns) in [(0, 64), (16, 64), (3, 64), (8, 34), (5, 40)] {
            both_with("pipe(2, \"ring\", tile<2x32xi4>)", body, &[4, columns], column, 9, |x, c| {
                for (r, j) in (0..4).flat_map(|r| (0..32).map(move |j| (r, j))) {
                    let at = [r, i64::from(column) + j];
                    set_nibble(c, &at, nibble(x, &at).unwrap_or(0));
                }
            });
        }
    }
}
