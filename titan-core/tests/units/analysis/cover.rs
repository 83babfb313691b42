//! Grids that are too small, for every kind of division, and grids that are large enough.

use titan_core::analysis::cover::{needs, short};
use titan_core::analysis::partition::Partition;
use titan_core::diag::Code;
use titan_core::ir::{HostNames, Kernel, Need};
use titan_core::text::parse_one;

const HEAD: &str = "%p = program_id<0>\n%zero = const 0 : i32\n%one = const 1 : i32\n%z = const 0.0 : f32\n\
    %t = splat %z : tile<64xf32>\n%r = splat %z : tile<1x64xf32>\n";
const TWO: &str = "%m = program_id<0>\n%n = program_id<1>\n%z = const 0.0 : f32\n%t = splat %z : tile<64x16xf32>\n\
    store_tile %c[%m, %n], %t";

fn kernel(signature: &str, body: &str) -> (Kernel, Partition) {
    let text = format!("kernel @k{signature} {{\n{body}\nreturn\n}}\n");
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let partition = Partition::of(&kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    (kernel, partition)
}

/// The errors for a kernel, and the grid that is suggested.
fn titles(signature: &str, body: &str) -> Vec<String> {
    let (kernel, partition) = kernel(signature, body);
    let found = short(&kernel, &partition).map(|s| {
        let d = s.diagnostic(&kernel.sig);
        assert_eq!(d.code, Code::GridShort);
        let (first, _) = d.title.split_once(": the rest").expect("a reason");
        vec![first.to_owned(), d.help[0].clone()]
    });
    found.unwrap_or_default()
}

fn one(signature: &str, body: &str) -> String {
    titles(signature, body).into_iter().next().unwrap_or_else(|| panic!("{signature} is accepted"))
}

fn accepts(signature: &str, body: &str) {
    assert_eq!(titles(signature, body), Vec::<String>::new(), "{signature}");
}

#[test]
fn grids_that_are_rounded_down_are_short() {
    let store = format!("{HEAD}store_tile %c[%p], %t");
    assert_eq!(
        one("(%c: mut tensor<f32>[N]) grid(N / 64)", &store),
        "with N = 65 the grid has 1 program along its axis 0, but `c` has 2 parts of 64 along axis 0, one for each"
    );
    assert_eq!(
        one("(%c: mut tensor<f32>[N]) grid(3)", &store),
        "with N = 193 the grid has 3 programs along its axis 0, but `c` has 4 parts of 64 along axis 0, one for each"
    );
    assert_eq!(
        one("(%c: mut tensor<f32>[200]) grid(3)", &store),
        "the grid has 3 programs along its axis 0, but `c` has 4 parts of 64 along axis 0, one for each"
    );
    for right in [
        "cdiv(N, 64)",
        "N / 64) require(N % 64 == 0",
        "(N + 63) / 64",
        "N / 64 + 1",
        "max(cdiv(N, 64), 1)",
        "cdiv(N, 32)",
        "3) require(N <= 192",
        "3) require(dim(%c, 0) <= 192",
        "%n",
        "%n / 64",
        "unchecked",
    ] {
        let grid = if right == "unchecked" { "grid unchecked(N / 64)".to_owned() } else { format!("grid({right})") };
        accepts(&format!("(%c: mut tensor<f32>[N], %n: i32) {grid}"), &store);
    }
    // A launch knows the extent.
    accepts("(%c: mut tensor<f32>[_]) grid(3)", &store);
}

#[test]
fn every_axis_of_the_grid_is_looked_at() {
    let all = titles("(%c: mut tensor<f32>[M, N]) grid(cdiv(N, 16), cdiv(M, 64))", TWO);
    assert!(all[0].contains("along its axis 0, but `c` has"), "{all:?}");
    assert_eq!(all[1], "`grid(cdiv(M, 64), cdiv(N, 16))` covers all outputs");
    accepts("(%c: mut tensor<f32>[M, N]) grid(cdiv(M, 64), cdiv(N, 16))", TWO);
    accepts("(%c: mut tensor<f32>[M, M]) grid(cdiv(M, 64), cdiv(M, 16))", TWO);
    let swapped = titles("(%c: mut tensor<f32>[M, M]) grid(cdiv(M, 16), cdiv(M, 64))", TWO);
    assert!(swapped[0].contains("axis 1, but `c` has 2 parts of 16"), "{swapped:?}");
    assert_eq!(swapped[1], "`grid(cdiv(M, 16), cdiv(M, 16))` covers all outputs");
    let batch = "%b = program_id<2>\n%v = index<0> %c, %b : tensor<f32, 2>\n".to_owned()
        + &TWO.replace("store_tile %c", "store_tile %v");
    accepts("(%c: mut tensor<f32>[B, M, N]) grid(cdiv(M, 64), cdiv(N, 16), B)", &batch);
    assert!(
        one("(%c: mut tensor<f32>[B, M, N]) grid(cdiv(M, 64), cdiv(N, 16), 1)", &batch)
            .contains("elements along axis 0")
    );
}

#[test]
fn outputs_are_looked_at_one_by_one() {
    let two = format!("{HEAD}store_tile %a[%p], %t\nset %b[%p], %z");
    accepts("(%a: mut tensor<f32>[N], %b: mut tensor<f32>[cdiv(N, 64)]) grid(cdiv(N, 64))", &two);
    let title = one("(%a: mut tensor<f32>[N], %b: mut tensor<f32>[M]) grid(cdiv(N, 64))", &two);
    assert!(title.contains("but `b` has") && title.contains("elements along axis 0"), "{title}");
    accepts("(%a: mut tensor<f32>[N], %b: mut tensor<f32>[M]) grid(max(cdiv(N, 64), M))", &two);
    let both = titles("(%a: mut tensor<f32>[N], %b: mut tensor<f32>[M]) grid(1)", &two);
    assert_eq!(both[1], "`grid(cdiv(N, 64).max(M))` covers all outputs");
    // These outputs have no parts.
    let atomic = format!("{HEAD}atomic_add_tile %c[%p], %t");
    accepts("(%c: mut tensor<f32>[N]) grid(2)", &atomic);
    let shared = format!("{HEAD}%s = shared %c : tensor<f32, 1>\nstore_tile %s[%p], %t");
    accepts("(%c: mut tensor<f32>[N]) grid(2)", &shared);
}

#[test]
fn parts_begin_where_they_begin() {
    let at = |offset: i64| {
        format!(
            "{HEAD}%w = const 64 : i32\n%o = const {offset} : i32\n%q = mul %p, %w\n%at = add %q, %o\nstore_at %c[%at], %t"
        )
    };
    accepts("(%c: mut tensor<f32>[N]) grid(cdiv(N, 64) + 1)", &at(-1));
    assert!(
        one("(%c: mut tensor<f32>[N]) grid(cdiv(N, 64))", &at(-1)).starts_with("with N = 64 the grid has 1 program")
    );
    accepts("(%c: mut tensor<f32>[N]) grid(cdiv(N - 1, 64))", &at(1));
    assert!(one("(%c: mut tensor<f32>[N]) grid((N - 1) / 64)", &at(1)).contains("parts of 64"));
    // If an argument determines where the parts begin, nothing is reported.
    let pushed = format!("{HEAD}%at = add %p, %n\nstore_tile %c[%at], %t");
    accepts("(%c: mut tensor<f32>[N], %n: i32) grid(1)", &pushed);
    let segments = "(%off: in tensor<i32>[E], %c: mut tensor<f32>[M, N])";
    let body = format!("{HEAD}%s = segment %c, %off, %p\nstore_tile %s[%zero, %zero], %r");
    accepts(&format!("{segments} grid(E - 1)"), &body);
    assert!(one(&format!("{segments} grid(E - 2)"), &body).ends_with("segments along axis 0, one for each"));
}

#[test]
fn indices_that_are_taken_apart_need_the_product() {
    for how in ["unflatten", "unflatten_grouped<8>"] {
        let body = format!("{HEAD}%m = dim<0> %c\n%i, %j = {how} %p, %m, %w\nstore_tile %c[%i, %j], %r");
        let signature = |grid: &str| format!("(%c: mut tensor<f32>[M, N], %w: i32) grid({grid})");
        accepts(&signature("M * cdiv(N, 64)"), &body);
        let title = one(&signature("M * (N / 64)"), &body);
        assert!(title.ends_with("elements along axis 0 times parts of 64 along axis 1, one for each"), "{title}");
    }
}

#[test]
fn what_is_needed_is_an_expression_of_the_launch() {
    let text = |signature: &str, body: &str| {
        let (kernel, partition) = kernel(signature, body);
        let one = |n: Need| {
            let mut out = format!("{} {} ", n.axis, kernel.sig.param(n.param));
            n.programs.write(&mut out, &kernel.sig).expect("a string takes everything");
            out
        };
        needs(&kernel, &partition).into_iter().map(one).collect::<Vec<_>>()
    };
    let store = format!("{HEAD}store_tile %c[%p], %t");
    assert_eq!(text("(%c: mut tensor<f32>[_]) grid(7)", &store), ["0 c cdiv(dim(c, 0), 64)"]);
    assert_eq!(text("(%c: mut tensor<f32>[N + 1]) grid unchecked(1 + 1)", &store), ["0 c cdiv(N + 1, 64)"]);
    let dealt = "%zero = const 0 : i32\n%one = const 1 : i32\n%n = dim<0> %c\n%z = const 0.0 : f32\n\
        for %j = %zero to %n step %one distributed {\nset %c[%j], %z\ncontinue\n}";
    assert_eq!(text("(%c: mut tensor<f32>[N]) grid persistent", dealt), Vec::<String>::new());
}
