//! Printing and parsing give back the kernel, down to the numbering.

use titan_core::ir::{
    Access, BinOp, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, HostOp, InstanceArg, Kernel, Loc,
    OpKind, Pred, TileShape, Ty, Unit, Value,
};
use titan_core::text::{parse_one, print};

fn shape(dims: &[i32]) -> TileShape {
    TileShape::new(dims).expect("a shape")
}

fn op(b: &mut Builder, kind: OpKind, args: &[Value]) -> Value {
    b.op1(kind, args).expect("operands fit")
}

#[track_caller]
fn comes_back(kernel: &Kernel) -> String {
    let text = print(kernel);
    let again = parse_one(&text);
    assert_eq!(again.as_ref(), Ok(kernel), "{text}");
    assert_eq!(again.as_ref().map(print), Ok(text.clone()));
    assert_eq!(&kernel.canonical(), kernel, "builders number canonically\n{text}");
    text
}

fn gemm() -> Kernel {
    let instance = [("T", "f16"), ("BM", "128"), ("PAD", "-1"), ("S", "[1, 2]")];
    let instance = instance.map(|(n, v)| InstanceArg { name: n.to_owned(), value: v.to_owned() }).to_vec();
    let mut b = Builder::new("gemm", instance);
    let (m, k) = (b.symbol("M"), b.symbol("K"));
    let half = HostExpr::binary(HostOp::Div, HostExpr::Symbol(b.symbol("N")), HostExpr::Const(2));
    let a = b.tensor("a", Elem::F16, Access::In, false, vec![DimSpec::Bind(m), DimSpec::Bind(k)]);
    let bias = b.tensor("bias", Elem::Bf16, Access::In, true, vec![DimSpec::Any]);
    let c =
        b.tensor("c", Elem::F32, Access::Mut, false, vec![DimSpec::Equals(HostExpr::Symbol(m)), DimSpec::Equals(half)]);
    let eps = b.scalar("eps", Elem::F32);
    let rows = HostExpr::binary(HostOp::Cdiv, HostExpr::Symbol(m), HostExpr::Const(128));
    b.set_grid(GridSpec::Extents(vec![rows, HostExpr::Dim(2, 1), HostExpr::Scalar(3)]));
    let rest = HostExpr::binary(HostOp::Rem, HostExpr::Symbol(k), HostExpr::Const(4));
    b.require(HostExpr::binary(HostOp::Eq, rest, HostExpr::Const(0)));
    b.set_loc(Loc { line: 3, column: 10 });
    let pm = op(&mut b, OpKind::ProgramId(0), &[]);
    b.name(pm, "m");
    let zero = b.constant(Const::Float(Elem::F32, 0.0));
    let zero_h = b.constant(Const::Float(Elem::F16, -0.0));
    let acc0 = op(&mut b, OpKind::Splat(shape(&[128, 128])), &[zero]);
    b.name(acc0, "acc");
    let (lo, hi, step) = (b.i32(0), op(&mut b, OpKind::Dim(1), &[a]), b.i32(1));
    let mut open = b.begin_for(ForKind::Pipelined, [lo, hi, step], &[acc0]).expect("bounds");
    let kk = open.index.take().expect("an index");
    b.name(kk, "k");
    b.name(open.carried[0], "acc");
    b.set_loc(Loc { line: 5, column: 1 });
    let at = op(&mut b, OpKind::Load(Unit::Tile, shape(&[128, 64])), &[a, pm, kk, zero_h]);
    let t = op(&mut b, OpKind::Permute([1, 0, 2, 3]), &[at]);
    let acc = op(&mut b, OpKind::Mma, &[at, t, open.carried[0]]);
    let narrow = op(&mut b, OpKind::Cast(Elem::Bf16), &[acc]);
    let wide = op(&mut b, OpKind::Cast(Elem::F32), &[narrow]);
    b.terminate(OpKind::Continue(0), &[wide]);
    let out = b.end_loop(open, &[])[0];
    b.name(out, "acc");
    let present = op(&mut b, OpKind::Present, &[bias]);
    let mut arms = b.begin_if(present);
    b.terminate(OpKind::Yield, &[eps]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[zero]);
    let picked = b.end_if(arms, &[Ty::Scalar(Elem::F32)])[0];
    b.name(picked, "weird name.2");
    b.op(OpKind::Print("eps = {}\n\"quoted\"; é".to_owned()), &[picked]).expect("printable");
    b.op(OpKind::Store(Unit::Tile), &[c, pm, pm, out]).expect("stored");
    b.finish()
}

#[test]
fn a_gemm_comes_back() {
    let text = comes_back(&gemm());
    assert!(text.contains("%acc.2 = for %k = "), "{text}");
}

#[test]
fn every_grid_comes_back() {
    for grid in ["grid(N)", "grid unchecked(N)", "grid unchecked()", "grid persistent", "grid unchecked persistent"] {
        let kernel = parse_one(&format!("kernel @k(%c: mut tensor<f32>[N]) {grid} {{\n    return\n}}\n")).expect(grid);
        assert_eq!(kernel.sig.partial, grid.contains("unchecked"), "{grid}");
        assert!(comes_back(&kernel).contains(grid), "{grid}");
    }
}

#[test]
fn loops_and_regions_come_back() {
    let mut b = Builder::new("type", vec![]);
    let n = b.scalar("n", Elem::I32);
    let one = b.i32(1);
    let mut outer = b.begin_loop(&[n]);
    let i = outer.carried.remove(0);
    outer.carried.push(i);
    let done = op(&mut b, OpKind::Cmp(Pred::Lt), &[i, one]);
    let mut arms = b.begin_if(done);
    b.terminate(OpKind::Break(0), &[i, done]);
    b.begin_else(&mut arms);
    let inner = b.begin_loop(&[]);
    b.terminate(OpKind::Continue(1), &[one]);
    b.end_loop(inner, &[]);
    b.terminate(OpKind::Yield, &[]);
    b.end_if(arms, &[]);
    b.terminate(OpKind::Continue(0), &[i]);
    b.end_loop(outer, &[Ty::I32, Ty::BOOL]);
    let lanes = op(&mut b, OpKind::Iota(16), &[]);
    let (body, [x, y]) = b.begin_combine(Elem::I32);
    let z = op(&mut b, OpKind::Binary(BinOp::Max), &[x, y]);
    b.terminate(OpKind::Yield, &[z]);
    let r = b.end_combine(OpKind::ReduceWith(0), &[lanes, one], body).expect("a reduction");
    b.name(r, "type");
    let text = comes_back(&b.finish());
    assert!(text.contains("|%7, %8|"), "{text}");
}
