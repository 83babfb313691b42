//! Where parts of tensors end.

use titan_core::analysis::ends::{At, End, EndOp, Ends, of_view};
use titan_core::ir::OpKind;
use titan_core::text::parse_one;
use titan_core::verify::verify;

/// The ends of the view `%v` of `%x`; or the reason why they are not known.
fn ends(views: &str) -> Result<Ends, String> {
    let text = format!(
        "kernel @k(%x: in tensor<f16>[M, T], %off: in tensor<i32>[E], %too: in tensor<i32>[F], %y: mut tensor<i32>[M], %n: i32)
             grid(M) {{
            %p = program_id<0> : i32
            %one = const 1 : i32
            %three = const 3 : i32
            {views}
            %extent = dim<1> %v : i32
            set %y[%p], %extent
            return
        }}"
    );
    let kernel = verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).expect("a valid kernel");
    let view = kernel.ops.iter().find_map(|op| match (&op.kind, &op.args[..]) {
        (OpKind::Dim(1), [view]) => Some(*view),
        _ => None,
    });
    of_view(&kernel, view.expect("a view")).map_err(|why| why.to_string())
}

fn binary(op: EndOp, a: End, b: End) -> End {
    End::Binary(op, Box::new(a), Box::new(b))
}

fn min(a: End, b: End) -> End {
    binary(EndOp::Min, a, b)
}

const T: End = End::Extent(0, 1);

#[test]
fn ends_are_elements_of_arguments() {
    let found = ends(
        "%q = add %p, %three : i32
         %lo = get %off[%p] : i32
         %hi = get %off[%q] : i32
         %v = slice<1> %x, %lo, %hi : tensor<f16, 2>",
    )
    .expect("an element");
    assert_eq!(found.entry.map(|e| (e.of, e.plus)), Some((1, 3)));
    assert_eq!(found.of_axes, [(1, min(End::Element(1, At::Entry(0)), T))]);
    // Two arguments by one number; the second element is relative to the first one.
    let found = ends(
        "%q = sub %p, %one : i32
         %a = get %off[%p] : i32
         %b = get %too[%q] : i32
         %c = get %off[%three] : i32
         %s = add %a, %b : i32
         %hi = min %s, %c : i32
         %v = slice<1> %x, %p, %hi : tensor<f16, 2>",
    )
    .expect("elements");
    let sum = binary(EndOp::Add, End::Element(1, At::Entry(0)), End::Element(2, At::Entry(-1)));
    assert_eq!(found.entry.map(|e| (e.of, e.plus)), Some((1, 0)));
    assert_eq!(found.of_axes, [(1, min(min(sum, End::Element(1, At::Fixed(3))), T))]);
}

#[test]
fn a_part_of_a_part_ends_where_the_first_of_them_does() {
    let found = ends(
        "%hi = get %off[%p] : i32
         %u = slice<1> %x, %n, %hi : tensor<f16, 2>
         %v = slice<1> %u, %p, %three : tensor<f16, 2>",
    )
    .expect("an element");
    let begin = min(binary(EndOp::Max, End::Scalar(4), End::Const(0)), T);
    let inner = binary(EndOp::Add, begin, min(End::Const(3), T));
    assert_eq!(found.of_axes, [(1, min(inner, min(End::Element(1, At::Entry(0)), T)))]);
    // Only of parts of which there are parts along the same axis the beginning matters.
    let found = ends(
        "%u = slice<0> %x, %p, %n : tensor<f16, 2>
         %v = slice<1> %u, %p, %three : tensor<f16, 2>",
    )
    .expect("arguments");
    assert_eq!(found.entry, None);
    assert_eq!(found.of_axes, [(0, min(End::Scalar(4), End::Extent(0, 0))), (1, min(End::Const(3), T))]);
}

#[test]
fn other_ends_are_not_known() {
    for (views, why) in [
        ("%v = slice<1> %x, %one, %p : tensor<f16, 2>", "its end depends on `p`, which is no `i32` argument and no"),
        (
            "%a = get %off[%p] : i32
             %b = get %off[%a] : i32
             %s = min %a, %b : i32
             %v = slice<1> %x, %one, %s : tensor<f16, 2>",
            "its end depends on elements of arguments at two numbers, `p` and `a`",
        ),
        (
            "%u = slice<1> %x, %p, %three : tensor<f16, 2>
             %v = slice<1> %u, %one, %three : tensor<f16, 2>",
            "its end depends on `p`, which is no `i32` argument and no",
        ),
        (
            "%a = get %y[%p] : i32
             %v = slice<1> %x, %one, %a : tensor<f16, 2>",
            "its end depends on `y`, which the kernel writes",
        ),
        (
            "%q = div %n, %three : i32
             %v = slice<1> %x, %one, %q : tensor<f16, 2>",
            "its end depends on `q`, which is no `i32` argument and no",
        ),
    ] {
        let found = ends(views).expect_err(why);
        assert!(found.contains(why), "{found}");
    }
}
