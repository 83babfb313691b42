//! The order of tiles in groups of rows: executor and embedded PTX against counting, for all small boxes, numbers outside of
//! them, and boxes that have no place.

use crate::devices::{Outcome, emulated, on_cpu};
use crate::random::PROGRAMS;
use crate::tensor::Tensor;
use titan_core::ir::Elem;
use titan_core::text::parse_one;
use titan_core::verify::verify;

/// The places of a box in their order.
fn order(rows: i32, columns: i32, group: i32) -> Vec<[i32; 2]> {
    let mut out = Vec::new();
    let mut first = 0;
    while first < rows {
        let last = rows.min(first.saturating_add(group));
        out.extend((0..columns).flat_map(|c| (first..last).map(move |r| [r, c])));
        first = last;
    }
    out
}

/// Quotient and remainder as the language has them.
fn row_major(i: i32, columns: i32) -> [i32; 2] {
    if columns == 0 { [0, i] } else { [i.wrapping_div(columns), i.wrapping_rem(columns)] }
}

fn tensor(extents: &[u32], words: &[i32]) -> Tensor {
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis] * extents[axis];
    }
    let bytes = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    Tensor { elem: Elem::I32, extents: extents.to_vec(), strides, bytes, skip: 0 }
}

#[test]
fn every_small_box_is_gone_through_in_groups() {
    for group in [1, 2, 3, 8, i32::MAX] {
        let (mut cases, mut wanted) = (Vec::new(), Vec::new());
        for (rows, columns) in (-1..=6).flat_map(|r| (-1..=6).map(move |c| (r, c))) {
            let places = order(rows, columns, group);
            for i in -2..=(places.len() as i32 + 2) {
                cases.extend([i, rows, columns]);
                let place = usize::try_from(i).ok().and_then(|i| places.get(i)).copied();
                wanted.extend(place.unwrap_or_else(|| row_major(i, columns)));
            }
        }
        let far = [[i32::MAX, 1 << 15, 1 << 15], [i32::MIN, 4, 4], [5, i32::MAX, 3], [5, 2, i32::MAX]];
        cases.extend(far.as_flattened());
        wanted.extend(row_major(i32::MAX, 1 << 15));
        wanted.extend(row_major(i32::MIN, 4));
        wanted.extend(if group == i32::MAX { [5, 0] } else { order(6, 3, group)[5] });
        wanted.extend(order(2, 6, group)[5]);
        let n = cases.len() as u32 / 3;
        let text = format!(
            "kernel @order(%x: in tensor<i32>[_, 3], %c: mut tensor<i32>[_, _, 2]) grid({PROGRAMS}) {{
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %two = const 2 : i32
    %n = dim<0> %x : i32
    for %k = %zero to %n step %one {{
        %i = get %x[%k, %zero] : i32
        %rows = get %x[%k, %one] : i32
        %columns = get %x[%k, %two] : i32
        %row, %column = unflatten_grouped<{group}> %i, %rows, %columns
        set %c[%p, %k, %zero], %row
        set %c[%p, %k, %one], %column
        continue
    }}
    return
}}
"
        );
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{}", e[0].text()));
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{}", e[0].text()));
        let output = tensor(&[PROGRAMS, n, 2], &vec![7; (PROGRAMS * n * 2) as usize]);
        let tensors = vec![Some(tensor(&[n, 3], &cases)), Some(output)];
        let wanted = wanted.repeat(PROGRAMS as usize);
        let compare = |who: &str, found: &[Option<Tensor>]| {
            let bytes = &found[1].as_ref().expect("the output").bytes;
            let found: Vec<i32> = bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
            let differs = found.chunks(2).zip(wanted.chunks(2)).position(|(a, b)| a != b);
            if let Some(at) = differs {
                let k = at % n as usize;
                let (case, got) = (&cases[3 * k..3 * k + 3], &found[2 * at..2 * at + 2]);
                panic!("{who}, groups of {group}: {case:?} gives {got:?}, not {:?}", &wanted[2 * at..2 * at + 2]);
            }
        };
        compare("executor", &on_cpu(&kernel, &tensors, 0).expect("it runs"));
        match emulated(&kernel, &tensors, 0).expect("it runs") {
            (Outcome::Done(after), _) => compare("emulator", &after),
            (Outcome::Refused(reason), _) => panic!("{reason}"),
        }
    }
}
