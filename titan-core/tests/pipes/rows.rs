//! Loops over `pipelined(..)` that select rows by indices: which of them fill rings, and which say why they do not. That they compute the
//! same is tested where they run, in titan-cpu's `tests/simulator/grouped.rs`.

use titan_core::ir::{Kernel, OpKind, TtgOp};
use titan_core::pipeline::implicit::{candidates, changing_rows, pipeline};
use titan_core::pipeline::split::split;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};

/// A product of rows of `%x`, which `%token` names, with the tiles of `%w`.
const TEXT: &str = "kernel @rows(%x: in tensor<f16>[T, K], %row: in tensor<i32>[R], %w: in tensor<f16>[N, K], \
%off: in tensor<i32>[E], %c: mut tensor<f32>[R, N]) grid(cdiv(R, 16), cdiv(N, 16)) {
    %m = program_id<0> : i32
    %n = program_id<1> : i32
    %k = dim<1> %x : i32
    %0 = const 0 : i32
    %1 = const 1 : i32
    %16 = const 16 : i32
    %steps = div %k, %16 : i32
    %pad = const 0.0 : f16
    %none = const -1 : i32
    %start = const 0.0 : f32
    %token = load_tile %row[%m] or %none : tile<16xi32>
    %zero = splat %start : tile<16x16xf32>
    %sum = for %j = %0 to %steps step %1 pipelined carry(%y = %zero) : tile<16x16xf32> {
        %at = mul %j, %16 : i32
        %xt = gather_rows %x[%token, %at] or %pad : tile<16x16xf16>
        %wt = load_tile %w[%n, %j] or %pad : tile<16x16xf16>
        %wu = permute<1, 0> %wt : tile<16x16xf16>
        %z = mma %xt, %wu, %y : tile<16x16xf32>
        continue %z
    }
    store_tile %c[%m, %n], %sum
    return
}
";

/// The kernel with a change of its text.
fn kernel(from: &str, to: &str) -> Verified {
    assert!(TEXT.contains(from), "{from}");
    let text = TEXT.replace(from, to);
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn count(kernel: &Kernel, wanted: impl Fn(&OpKind) -> bool) -> usize {
    let mut n = 0;
    kernel.walk(&mut |_, op| n += usize::from(wanted(&op.kind)));
    n
}

/// The numbers of loads that become copies, and of gathers that cannot, by names.
fn copied(kernel: &Verified) -> (Vec<String>, Vec<String>) {
    let names = |ops: &[titan_core::ir::OpId]| {
        ops.iter().map(|id| kernel.display_name(kernel.op(*id).results[0])).collect::<Vec<_>>()
    };
    let found = candidates(kernel, &|_| true);
    let mut changing = Vec::new();
    kernel.walk(&mut |id, op| {
        if matches!(op.kind, OpKind::For(_)) {
            changing.extend(names(&changing_rows(kernel, id)));
        }
    });
    (found.iter().flat_map(|found| names(&found.loads)).collect(), changing)
}

#[test]
fn rows_and_tiles_fill_one_ring() {
    let kernel = kernel("", "");
    assert_eq!(copied(&kernel), (vec!["xt".to_owned(), "wt".to_owned()], Vec::new()));
    let found = candidates(&kernel, &|_| true).remove(0);
    for slots in [1, 2, 4] {
        let made = pipeline(&kernel, &found, slots).expect("a ring");
        let made = verify(made.canonical()).unwrap_or_else(|e| panic!("{slots}: {e:?}"));
        assert_eq!(count(&made, |kind| matches!(kind, OpKind::GatherRows { .. })), 0);
        let rows = |kind: &OpKind| *kind == OpKind::Ttg(TtgOp::SourceRows { rows: 16, width: 16 });
        assert_eq!(count(&made, rows), 1, "{slots}");
        assert_eq!(count(&made, |kind| matches!(kind, OpKind::Ttg(TtgOp::Source(..)))), 1);
    }
}

#[test]
fn both_roles_load_the_indices() {
    let kernel = kernel("", "");
    let found = candidates(&kernel, &|_| true).remove(0);
    let made = split(&pipeline(&kernel, &found, 3).expect("a ring"), 4).expect("two roles");
    verify(made.clone()).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(made.roles.len(), 2);
    assert_eq!(count(&made, |kind| matches!(kind, OpKind::Ttg(TtgOp::SourceRows { .. }))), 1);
    // Only the role that computes still has the loop's product.
    assert_eq!(count(&made, |kind| *kind == OpKind::Mma), 1);
    assert_eq!(count(&made, |kind| matches!(kind, OpKind::For(_))), 2);
}

/// What one change does to the loop: the loads that become copies, and the gathers whose indices change.
#[test]
fn what_cannot_be_named_ahead_is_not_copied() {
    let gather = "%xt = gather_rows %x[%token, %at] or %pad : tile<16x16xf16>";
    let cases = [
        (
            "indices that are loaded in the loop",
            gather.to_owned(),
            format!("%more = load_tile %row[%j] or %none : tile<16xi32>\n{}", gather.replace("%token", "%more")),
            (vec!["wt"], vec!["xt"]),
        ),
        (
            "indices that are computed from the counter",
            gather.to_owned(),
            format!(
                "%step = splat %j : tile<16xi32>\n%more = add %token, %step : tile<16xi32>\n{}",
                gather.replace("%token", "%more")
            ),
            (vec!["wt"], vec!["xt"]),
        ),
        (
            "a column that is loaded",
            gather.to_owned(),
            format!("%far = get %off[%j] : i32\n{}", gather.replace("%at]", "%far]")),
            (vec!["wt"], vec![]),
        ),
        (
            "padding that is not zero",
            gather.to_owned(),
            format!("%ones = const 1.0 : f16\n{}", gather.replace("or %pad", "or %ones")),
            (vec!["wt"], vec![]),
        ),
        (
            "one index for each iteration, a scalar, is computed ahead",
            gather.to_owned(),
            format!("%far = add %at, %16 : i32\n{}", gather.replace("%at]", "%far]")),
            (vec!["xt", "wt"], vec![]),
        ),
    ];
    for (what, from, to, (loads, changing)) in cases {
        let kernel = kernel(&from, &to);
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(copied(&kernel), (owned(loads), owned(changing)), "{what}");
    }
}

/// The role that copies executes what the indices are computed from a second time, which must therefore read inputs only.
#[test]
fn indices_from_an_output_are_not_loaded_twice() {
    let text = TEXT
        .replace("row: in tensor<i32>[R]", "row: mut tensor<i32>[R]")
        .replace(", cdiv(N, 16))", ")")
        .replace("%n = program_id<1>", "%n = const 0")
        .replace("%zero = splat", "store_tile %row[%m], %token\n%zero = splat");
    let kernel = verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}")));
    let kernel = kernel.unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let found = candidates(&kernel, &|_| true).remove(0);
    assert!(split(&pipeline(&kernel, &found, 2).expect("a ring"), 4).is_none());
}
