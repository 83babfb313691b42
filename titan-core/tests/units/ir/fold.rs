//! Folding of constants, through the builder that folds them.

use titan_core::ir::{BinOp, Builder, Const, Elem, OpKind, Pred};

/// The constant that an operation on two constants becomes.
fn folded(kind: OpKind, e: Elem, a: i64, b: i64) -> Option<Const> {
    let mut builder = Builder::new("k", Vec::new());
    let [a, b] = [a, b].map(|v| builder.constant(Const::Int(e, v)));
    let result = builder.op1(kind, &[a, b]).expect("operands of one type");
    builder.kernel().constant(result)
}

#[test]
fn folding_follows_the_written_meaning() {
    let check = |op, e, a, b, want: i64| {
        assert_eq!(folded(OpKind::Binary(op), e, a, b), Some(Const::Int(e, want)), "{op} {e} {a} {b}")
    };
    check(BinOp::Div, Elem::I32, 7, 0, 0);
    check(BinOp::Rem, Elem::I32, 7, 0, 7);
    check(BinOp::Div, Elem::I32, -7, 2, -3);
    check(BinOp::Div, Elem::I32, i32::MIN.into(), -1, i32::MIN.into());
    check(BinOp::Rem, Elem::I64, i64::MIN, -1, 0);
    check(BinOp::Div, Elem::U64, -1, 2, i64::MAX);
    check(BinOp::Shl, Elem::I32, 1, 32, 0);
    check(BinOp::Shl, Elem::I32, 1, 31, i32::MIN.into());
    check(BinOp::Shr, Elem::I32, -8, 40, -1);
    check(BinOp::Shr, Elem::I32, -8, -1, -1);
    check(BinOp::Shr, Elem::U8, 255, 4, 15);
    check(BinOp::Add, Elem::U8, 255, 1, 0);
    check(BinOp::Max, Elem::U64, -1, 1, -1);
    let compare = |pred, e, a, b| folded(OpKind::Cmp(pred), e, a, b);
    assert_eq!(compare(Pred::Gt, Elem::U64, -1, 1), Some(Const::Int(Elem::Bool, 1)));
    assert_eq!(compare(Pred::Ge, Elem::I32, 3, 3), Some(Const::Int(Elem::Bool, 1)));
}
