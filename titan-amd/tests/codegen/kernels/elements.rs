//! Kernels of every element type, made as text: casts between all of them, arithmetic, functions, reductions, scans, atomics, and rows that
//! are normalized.

use super::tree::compared;
use crate::launch::{Ready, machine};
use titan_core::driver::stages;
use titan_core::text::parse;
use titan_core::verify::{Verified, verify};

const FLOATS: [&str; 4] = ["f64", "f32", "f16", "bf16"];
const INTS: [&str; 8] = ["i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"];
const OTHERS: [&str; 6] = ["tf32", "e4m3", "e5m2", "i4", "u4", "bool"];

fn zero(elem: &str) -> &'static str {
    match elem {
        "bool" => "false",
        elem if INTS.contains(&elem) || elem == "i4" || elem == "u4" => "0",
        _ => "0.0",
    }
}

/// A kernel that loads tiles of these types, does something with them, and stores a tile.
fn kernel(name: &str, ins: &[&str], tile: &str, body: &str, (value, elem, out): (&str, &str, &str)) -> String {
    let axes = tile.split('x').count();
    let shape = |n: usize| if n == 1 { "[N]" } else { "[M, N]" };
    let mut text = format!("kernel @{name}(\n");
    for (i, elem) in ins.iter().enumerate() {
        text.push_str(&format!("    %x{i}: in tensor<{elem}>{},\n", shape(axes)));
    }
    let out_axes = out.split('x').count();
    let names = if out_axes < axes { "[M]" } else { shape(axes) };
    text.push_str(&format!("    %y: mut tensor<{elem}>{names},\n"));
    let sizes: Vec<&str> = tile.split('x').collect();
    let (rows, grid) = match sizes.as_slice() {
        [n] => ("%p".to_owned(), format!("cdiv(N, {n})")),
        [m, ..] => ("%p, %first".to_owned(), format!("cdiv(M, {m})")),
        [] => panic!("a tile has axes"),
    };
    text.push_str(&format!(") grid({grid}) {{\n    %p = program_id<0> : i32\n    %first = const 0 : i32\n"));
    for (i, elem) in ins.iter().enumerate() {
        text.push_str(&format!("    %z{i} = const {} : {elem}\n", zero(elem)));
        text.push_str(&format!("    %v{i} = load_tile %x{i}[{rows}] or %z{i} : tile<{tile}x{elem}>\n"));
    }
    text.push_str(body);
    let to = if out_axes < axes { "%p".to_owned() } else { rows };
    text.push_str(&format!("    store_tile %y[{to}], {value}\n    return\n}}\n"));
    text
}

/// Compiles and runs kernels; the number that verify, each of which must be compiled and leave what its lanes say.
fn run(texts: Vec<String>) -> usize {
    let (mut verified, mut complaints) = (0, Vec::new());
    for text in texts {
        let parsed = parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
        // Some operations do not exist for some types.
        let Ok(kernel) = verify(parsed) else { continue };
        verified += 1;
        for aligned in [true, false] {
            if let Err(what) = ways(&kernel, aligned) {
                complaints.push(format!("aligned {aligned}: {what}\n{text}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints[0]);
    verified
}

fn ways(kernel: &Verified, aligned: bool) -> Result<(), String> {
    let stages = stages(kernel, machine(), aligned, None).map_err(|e| e.to_string())?;
    let ready = Ready::new(&stages.lanes).map_err(|e| e.to_string())?;
    let mut ran = false;
    for seed in 0..test_depth::cases(6, 2) {
        ran |= compared((kernel, &stages.rings), &ready, &stages.lanes, aligned, seed)?;
    }
    if ran { Ok(()) } else { Err("nothing was compared".to_owned()) }
}

fn all() -> impl Iterator<Item = &'static str> {
    FLOATS.into_iter().chain(INTS).chain(OTHERS)
}

#[test]
fn casts_between_all_types() {
    let pairs = all().flat_map(|from| all().map(move |to| (from, to)));
    let texts = pairs.map(|(from, to)| {
        let body = format!("    %r = cast %v0 : tile<256x{to}>\n");
        kernel("casts", &[from], "256", &body, ("%r", to, "256"))
    });
    let texts = test_depth::sample(texts, 60);
    let count = texts.len();
    let verified = run(texts);
    assert!(verified * 10 > count * 8, "{verified} of {count}");
}

#[test]
fn arithmetic_on_all_types() {
    let ops = ["add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr", "mul_hi", "powf"];
    let elems = FLOATS.into_iter().chain(INTS);
    let texts: Vec<String> = elems
        .flat_map(|elem| {
            ops.map(|op| {
                let body = format!("    %r = {op} %v0, %v1 : tile<128x{elem}>\n");
                kernel(op, &[elem, elem], "128", &body, ("%r", elem, "128"))
            })
        })
        .collect();
    let verified = run(test_depth::sample(texts, 60));
    assert!(verified >= 40, "{verified}");
}

#[test]
fn functions_of_all_types() {
    let ops = [
        "exp",
        "exp2",
        "ln",
        "log2",
        "sqrt",
        "rsqrt",
        "recip",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "erf",
        "floor",
        "ceil",
        "trunc",
        "round",
        "round_ties_even",
        "neg",
        "abs",
    ];
    let elems = FLOATS.into_iter().chain(INTS);
    let texts: Vec<String> = elems
        .flat_map(|elem| {
            ops.map(|op| {
                let body = format!("    %r = {op} %v0 : tile<128x{elem}>\n");
                kernel(op, &[elem], "128", &body, ("%r", elem, "128"))
            })
        })
        .collect();
    let counts = INTS.into_iter().flat_map(|elem| {
        ["count_ones", "leading_zeros"].map(|op| {
            let body = format!("    %r = {op} %v0 : tile<128xu32>\n");
            kernel(op, &[elem], "128", &body, ("%r", "u32", "128"))
        })
    });
    let verified = run(test_depth::sample(texts.into_iter().chain(counts), 60));
    assert!(verified >= 20, "{verified}");
}

#[test]
fn reductions_and_scans_of_all_types() {
    let mut texts = Vec::new();
    for elem in FLOATS.into_iter().chain(INTS) {
        for op in ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"] {
            let body = format!("    %r = {op}<1> %v0 : tile<16x{elem}>\n");
            texts.push(kernel(op, &[elem], "16x64", &body, ("%r", elem, "16")));
        }
        for op in ["argmax", "argmin"] {
            let body = format!("    %q, %r = {op}<1> %v0 : tile<16x{elem}>, tile<16xi32>\n");
            texts.push(kernel(op, &[elem], "16x64", &body, ("%r", "i32", "16")));
        }
        for op in ["scan_sum", "scan_prod", "scan_max", "scan_min"] {
            for axis in [0, 1] {
                let body = format!("    %r = {op}<{axis}> %v0 : tile<16x64x{elem}>\n");
                texts.push(kernel(op, &[elem], "16x64", &body, ("%r", elem, "16x64")));
            }
        }
    }
    let count = texts.len();
    let texts = test_depth::sample(texts, 40);
    let (sampled, verified) = (texts.len(), run(texts.clone()));
    assert!(verified * 10 > sampled * 7, "{verified} of {sampled}, of {count}");
}

#[test]
fn atomics_of_all_types() {
    let mut texts = Vec::new();
    for elem in FLOATS.into_iter().chain(INTS) {
        for op in ["add", "max", "min"] {
            // Each sum of bf16 is rounded to eight bits, so what several of them leave in one cell
            // depends on their order, which is not stated: there, each lane has a cell of its own.
            let (size, at) = if (elem, op) == ("bf16", "add") {
                (32, "iota<32> : tile<32xi32>\n    %unread = load_tile %i[%p] or %p")
            } else {
                (128, "load_tile %i[%p] or %p")
            };
            texts.push(format!(
                "kernel @atomic_{op}(\n    %i: in tensor<i32>[K],\n    %x: in tensor<{elem}>[K],\n    \
                 %y: mut tensor<{elem}>[N],\n) grid(1) {{\n    %p = const 0 : i32\n    %z = const {} : {elem}\n    \
                 %at = {at} : tile<{size}xi32>\n    %v = load_tile %x[%p] or %z : tile<{size}x{elem}>\n    \
                 atomic_{op} %y[%at], %v\n    return\n}}\n",
                zero(elem)
            ));
        }
    }
    let verified = run(texts);
    assert!(verified >= 18, "{verified}");
}

/// Softmax and layer norm of the rows of a tile, in the accumulator's type.
#[test]
fn rows_are_normalized() {
    let mut texts = Vec::new();
    for elem in FLOATS {
        let acc = if elem == "f64" { "f64" } else { "f32" };
        let cast = |name: &str, of: &str, to: &str, tile: &str| format!("    {name} = cast {of} : tile<{tile}x{to}>\n");
        let wide = if elem == acc { String::new() } else { cast("%w", "%v0", acc, "16x64") };
        let w = if elem == acc { "%v0" } else { "%w" };
        let narrow = if elem == acc { String::new() } else { cast("%n", "%q", elem, "16x64") };
        let n = if elem == acc { "%q" } else { "%n" };
        let spread = |to: &str, of: &str| format!("    {to} = broadcast<1, 64> {of} : tile<16x64x{acc}>\n");
        let softmax = format!(
            "{wide}    %m = reduce_max<1> {w} : tile<16x{acc}>\n{}    %d = sub {w}, %mm : tile<16x64x{acc}>\n    \
             %e = exp %d : tile<16x64x{acc}>\n    %s = reduce_sum<1> %e : tile<16x{acc}>\n{}    \
             %q = div %e, %ss : tile<16x64x{acc}>\n{narrow}",
            spread("%mm", "%m"),
            spread("%ss", "%s"),
        );
        texts.push(kernel("softmax", &[elem], "16x64", &softmax, (n, elem, "16x64")));
        let norm = format!(
            "{wide}    %c = const 64.0 : {acc}\n    %cc = splat %c : tile<16x{acc}>\n    \
             %s = reduce_sum<1> {w} : tile<16x{acc}>\n    %m = div %s, %cc : tile<16x{acc}>\n{}    \
             %d = sub {w}, %mm : tile<16x64x{acc}>\n    %dd = mul %d, %d : tile<16x64x{acc}>\n    \
             %v = reduce_sum<1> %dd : tile<16x{acc}>\n    %vv = div %v, %cc : tile<16x{acc}>\n    \
             %r = sqrt %vv : tile<16x{acc}>\n{}    %q = div %d, %rr : tile<16x64x{acc}>\n{narrow}",
            spread("%mm", "%m"),
            spread("%rr", "%r"),
        );
        texts.push(kernel("layer_norm", &[elem], "16x64", &norm, (n, elem, "16x64")));
    }
    let count = texts.len();
    assert_eq!(run(texts), count);
}
