//! Random descriptions, of which many are right.

use crate::describe::{Case, Expr, Mode, Touch, View};
use proptest::prelude::*;
use titan_core::ir::{BinOp, Unit};

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        6 => any::<bool>().prop_map(Expr::Program),
        6 => (0..3usize).prop_map(Expr::Part),
        2 => Just(Expr::Looped),
        2 => Just(Expr::Scalar),
        4 => prop_oneof![8 => -3..9i32, 1 => Just(1 << 20), 1 => Just(i32::MAX)].prop_map(Expr::Const),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let op = prop_oneof![
            6 => Just(BinOp::Add), 2 => Just(BinOp::Sub), 1 => Just(BinOp::Min), 1 => Just(BinOp::Max),
            1 => Just(BinOp::And), 1 => Just(BinOp::Mul), 2 => Just(BinOp::Or), 2 => Just(BinOp::Xor),
        ];
        let by = prop_oneof![
            6 => Just(BinOp::Mul), 1 => Just(BinOp::Div), 1 => Just(BinOp::Rem), 1 => Just(BinOp::Shl), 1 => Just(BinOp::Shr),
        ];
        let factor = prop_oneof![8 => -2..9i32, 1 => Just(128), 1 => Just(1 << 20), 1 => Just(1 << 30)];
        let binary = |op, x, y| Expr::Binary(op, Box::new(x), Box::new(y));
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(move |(op, x, y)| binary(op, x, y)),
            6 => (by, inner.clone(), factor).prop_map(move |(op, x, c)| binary(op, x, Expr::Const(c))),
            1 => (inner.clone(), inner).prop_map(|(x, y)| Expr::Select(Box::new(x), Box::new(y))),
        ]
    })
}

fn binary(op: BinOp, x: Expr, y: Expr) -> Expr {
    Expr::Binary(op, Box::new(x), Box::new(y))
}

fn source() -> impl Strategy<Value = Expr> {
    prop_oneof![any::<bool>().prop_map(Expr::Program), (0..3usize).prop_map(Expr::Part)]
}

/// Numbers made of bits as kernels make them: offsets by shift and or, permutations by exclusive or. Some are wrong by a bit.
fn bits() -> impl Strategy<Value = Expr> {
    let low = prop_oneof![Just(Expr::Looped), source(), Just(Expr::Scalar), (0..9i32).prop_map(Expr::Const)];
    let op = prop_oneof![Just(BinOp::Or), Just(BinOp::Xor)];
    let mask = prop_oneof![Just(1), Just(3), Just(7), Just(-4), Just(-8)];
    prop_oneof![
        (source(), 0..4i32, op, low).prop_map(|(p, by, op, i)| binary(op, binary(BinOp::Shl, p, Expr::Const(by)), i)),
        (source(), 0..9i32).prop_map(|(p, c)| binary(BinOp::Xor, p, Expr::Const(c))),
        (source(), source(), mask.clone())
            .prop_map(|(p, q, mask)| { binary(BinOp::Xor, p, binary(BinOp::And, q, Expr::Const(mask))) }),
        (source(), 1..9i32, mask).prop_map(|(p, c, mask)| {
            let scaled = binary(BinOp::Mul, p, Expr::Const(c));
            binary(BinOp::And, binary(BinOp::Add, scaled, Expr::Looped), Expr::Const(mask))
        }),
    ]
}

/// Mostly the plain sources, so that many kernels are right.
fn index() -> impl Strategy<Value = Expr> {
    prop_oneof![
        3 => any::<bool>().prop_map(Expr::Program),
        3 => (0..3usize).prop_map(Expr::Part),
        2 => Just(Expr::Looped),
        1 => Just(Expr::Const(0)),
        2 => bits(),
        4 => expr(),
    ]
}

/// A range of a few numbers from `size · p` on, whose ends are clamped in some way.
fn range() -> impl Strategy<Value = (Expr, Expr)> {
    let clamp = prop_oneof![
        4 => Just(None),
        4 => expr().prop_map(|e| Some((BinOp::Min, e))),
        1 => expr().prop_map(|e| Some((BinOp::Max, e))),
    ];
    let size = prop_oneof![6 => 1..5i32, 1 => Just(1 << 30)];
    let above = prop_oneof![4 => Just(None), 1 => expr().prop_map(Some)];
    (source(), size, -1..6i32, clamp, above, any::<bool>()).prop_map(|(p, size, n, clamp, above, early)| {
        let start = binary(BinOp::Mul, p, Expr::Const(size));
        let clamped = |end: Expr| match clamp.clone() {
            Some((op, by)) => binary(op, end, by),
            None => end,
        };
        // Either the end or the length is clamped.
        let end = if early {
            binary(BinOp::Add, start.clone(), clamped(Expr::Const(n)))
        } else {
            clamped(binary(BinOp::Add, start.clone(), Expr::Const(n)))
        };
        (above.map_or(start.clone(), |by| binary(BinOp::Max, start, by)), end)
    })
}

fn touch() -> impl Strategy<Value = Touch> {
    let view = prop_oneof![
        4 => Just(View::Whole),
        1 => (expr(), 1..9i32).prop_map(|(lo, n)| {
            let hi = Expr::Binary(BinOp::Add, Box::new(lo.clone()), Box::new(Expr::Const(n)));
            View::Slice(lo, hi)
        }),
        1 => (expr(), expr()).prop_map(|(lo, hi)| View::Slice(lo, hi)),
        2 => range().prop_map(|(lo, hi)| View::Slice(lo, hi)),
        3 => index().prop_map(View::Segment),
        2 => index().prop_map(View::Index),
    ];
    let unit = prop_oneof![Just(Unit::Tile), Just(Unit::Elem)];
    let extent = prop_oneof![4 => 1..5i32, 1 => Just(128)];
    (any::<bool>(), unit, view, [index(), index()], [extent.clone(), extent])
        .prop_map(|(store, unit, view, at, extent)| Touch { store, unit, view, at, extent })
}

/// Descriptions of kernels with few accesses to one output.
pub(crate) fn case() -> impl Strategy<Value = Case> {
    let mode = prop_oneof![3 => Just(Mode::Grid), 1 => Just(Mode::Deal), 1 => Just(Mode::Ragged)];
    let grid = prop_oneof![6 => [1..7i64, 1..4i64], 1 => Just([i64::from(i32::MAX), 1])];
    let of_scalar = prop_oneof![5 => Just(None), 1 => prop_oneof![Just(1), Just(128), Just(4)].prop_map(Some)];
    let extents = prop_oneof![3 => [1..60i32, 1..60i32], 1 => [Just(i32::MAX), Just(i32::MAX)]];
    // Mostly enough of them for the grid, so that launches get through.
    let off = prop_oneof![
        3 => proptest::collection::vec(0..5i32, 7..9).prop_map(|steps| {
            steps.iter().scan(0, |sum, s| { *sum += s; Some(*sum) }).collect()
        }),
        1 => proptest::collection::vec(0..12i32, 2..9),
    ];
    let scalar = prop_oneof![2 => 1..30i32, 1 => -3..3i32, 1 => Just(i32::MAX)];
    let exit = prop_oneof![4 => Just(None), 1 => (0..3i32).prop_map(Some)];
    let looped = prop_oneof![
        3 => Just(None),
        1 => (expr(), expr(), 1..4i32).prop_map(Some),
        3 => (range(), 1..3i32).prop_map(|((lo, hi), step)| Some((lo, hi, step))),
        1 => (expr(), 1..6i32, 1..3i32).prop_map(|(lo, n, step)| {
            let hi = Expr::Binary(BinOp::Add, Box::new(lo.clone()), Box::new(Expr::Const(n)));
            Some((lo, hi, step))
        }),
    ];
    let touches = proptest::collection::vec(touch(), 1..3);
    let parts =
        ([1..5i32, 1..5i32], proptest::option::of(1..4i32), prop_oneof![5 => Just(Expr::Program(false)), 1 => expr()]);
    ((mode, grid, of_scalar, extents, parts), (off, scalar, exit, looped, touches, any::<bool>())).prop_map(
        |((mode, grid, of_scalar, extents, (parts, group, base)), (off, scalar, exit, looped, mut touches, same))| {
            if same && touches.len() > 1 {
                // A load of what is stored, as kernels do.
                touches[1] = Touch { store: !touches[0].store, ..touches[0].clone() };
            }
            touches[0].store = true;
            let large = mode == Mode::Grid;
            let grid = if large { grid } else { grid.map(|g| g.min(7)) };
            let extents = if mode == Mode::Ragged { extents.map(|d| d.min(40)) } else { extents };
            let off = off.into_iter().map(|o: i32| o.min(extents[0])).collect();
            let of_scalar = of_scalar.filter(|_| large);
            Case { mode, grid, of_scalar, extents, base, parts, group, off, scalar, exit, looped, touches }
        },
    )
}
