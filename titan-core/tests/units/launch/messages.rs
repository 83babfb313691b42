//! A test for each message, each with a minimally different launch that is accepted.

use titan_core::ir::{Access, Builder, Const, DimSpec, Elem, GridSpec, HostExpr, HostOp, Need, Parts, Signature};
use titan_core::launch::{ArgInfo, Arguments, Grid, MAX_EXTENT, Output, bind, bind_with_grid};

fn sym(b: &mut Builder, name: &str) -> HostExpr {
    HostExpr::Symbol(b.symbol(name))
}

/// `gemm(#[shape(M, K)] a, #[shape(N, K)] b, #[shape(M, N)] c)` with grid `cdiv(M, 16), cdiv(N, 32)`.
fn gemm() -> Builder {
    let mut b = Builder::new("gemm", Vec::new());
    let (m, n, k) = (b.symbol("M"), b.symbol("N"), b.symbol("K"));
    let same = |s| DimSpec::Equals(HostExpr::Symbol(s));
    b.tensor("a", Elem::F16, Access::In, false, vec![DimSpec::Bind(m), DimSpec::Bind(k)]);
    b.tensor("b", Elem::F16, Access::In, false, vec![DimSpec::Bind(n), same(k)]);
    b.tensor("c", Elem::F16, Access::Mut, false, vec![same(m), same(n)]);
    let tiles = |s, by| HostExpr::binary(HostOp::Cdiv, HostExpr::Symbol(s), HostExpr::Const(by));
    b.set_grid(GridSpec::Extents(vec![tiles(m, 16), tiles(n, 32)]));
    b
}

fn tensor<'a>(elem: Elem, extents: &'a [i64], strides: &'a [i64]) -> ArgInfo<'a> {
    ArgInfo::Tensor { elem, extents, strides }
}

fn f16<'a>(extents: &'a [i64], strides: &'a [i64]) -> ArgInfo<'a> {
    tensor(Elem::F16, extents, strides)
}

fn message(sig: &Signature, args: &[ArgInfo<'_>]) -> String {
    bind(sig, args).unwrap_err().to_string()
}

fn first_line(sig: &Signature, args: &[ArgInfo<'_>]) -> String {
    let text = message(sig, args);
    assert!(text.contains("\n  help: "), "no way out: {text}");
    text.lines().next().unwrap().to_owned()
}

#[test]
fn arguments_that_fit_give_symbols_and_grid() {
    let sig = gemm().finish().sig;
    let bound = bind(&sig, &[f16(&[33, 19], &[19, 1]), f16(&[45, 19], &[19, 1]), f16(&[33, 45], &[45, 1])]).unwrap();
    assert_eq!(bound.symbols, [Some(33), Some(45), Some(19)]);
    assert_eq!(bound.grid, Grid::Extents([3, 2, 1]));
}

#[test]
fn an_extent_that_differs_names_the_tensor_that_bound_the_name() {
    let sig = gemm().finish().sig;
    let args = [f16(&[33, 19], &[19, 1]), f16(&[45, 9], &[9, 1]), f16(&[33, 45], &[45, 1])];
    assert_eq!(first_line(&sig, &args), "`b`: extent 1 is 9, but `K` is 19 (bound by `a`, extent 1)");
}

#[test]
fn an_expression_shows_the_values_in_it() {
    let mut b = Builder::new("w4", Vec::new());
    let k = b.symbol("K");
    b.tensor("a", Elem::F16, Access::In, false, vec![DimSpec::Bind(k)]);
    let half = HostExpr::binary(HostOp::Div, HostExpr::Symbol(k), HostExpr::Const(2));
    b.tensor("w", Elem::U8, Access::In, false, vec![DimSpec::Equals(half)]);
    b.tensor("fixed", Elem::U8, Access::In, false, vec![DimSpec::Equals(HostExpr::Const(3))]);
    let sig = b.finish().sig;
    let u8s = |e| tensor(Elem::U8, e, &[1]);
    assert!(bind(&sig, &[f16(&[10], &[1]), u8s(&[5]), u8s(&[3])]).is_ok());
    assert_eq!(
        first_line(&sig, &[f16(&[10], &[1]), u8s(&[6]), u8s(&[3])]),
        "`w`: extent 0 is 6, but `K / 2` is 5 (K = 10, bound by `a`, extent 0)"
    );
    assert_eq!(
        first_line(&sig, &[f16(&[10], &[1]), u8s(&[5]), u8s(&[4])]),
        "`fixed`: extent 0 is 4, but the kernel declares 3"
    );
}

#[test]
fn a_requirement_shows_the_values_in_it() {
    let mut b = Builder::new("q", Vec::new());
    let k = b.symbol("K");
    b.tensor("a", Elem::F16, Access::In, false, vec![DimSpec::Bind(k)]);
    b.scalar("G", Elem::I32);
    let rem = HostExpr::binary(HostOp::Rem, HostExpr::Symbol(k), HostExpr::Scalar(1));
    b.require(HostExpr::binary(HostOp::Eq, rem, HostExpr::Const(0)));
    let sig = b.finish().sig;
    let g = |v| ArgInfo::Scalar(Const::Int(Elem::I32, v));
    assert!(bind(&sig, &[f16(&[12], &[1]), g(4)]).is_ok());
    assert_eq!(first_line(&sig, &[f16(&[10], &[1]), g(4)]), "the kernel requires `K % G == 0`, but K = 10 and G = 4");
    assert_eq!(
        first_line(&sig, &[f16(&[10], &[1]), g(0)]),
        "a requirement of the kernel: `K % G == 0` has no value: a division by zero, but K = 10 and G = 0"
    );
}

#[test]
fn expressions_are_written_with_the_parentheses_that_they_need() {
    let x = || HostExpr::Scalar(0);
    let two = |op, a, b| HostExpr::Binary(op, Box::new(a), Box::new(b));
    let sum = || two(HostOp::Add, x(), HostExpr::Const(1));
    for (expr, text) in [
        (two(HostOp::Mul, sum(), x()), "(x + 1) * x"),
        (two(HostOp::Add, two(HostOp::Mul, x(), x()), x()), "x * x + x"),
        (two(HostOp::Sub, x(), sum()), "x - (x + 1)"),
        (two(HostOp::Sub, sum(), x()), "x + 1 - x"),
        (two(HostOp::And, two(HostOp::Lt, x(), sum()), HostExpr::Not(Box::new(sum()))), "x < x + 1 && !(x + 1)"),
        (two(HostOp::Cdiv, sum(), HostExpr::Dim(1, 1)), "cdiv(x + 1, y.dim(1))"),
    ] {
        let mut b = Builder::new("k", Vec::new());
        b.scalar("x", Elem::I32);
        b.tensor("y", Elem::F16, Access::In, false, vec![DimSpec::Any, DimSpec::Any]);
        // The expression is an extent, and never 1000.
        b.tensor("z", Elem::F16, Access::In, false, vec![DimSpec::Equals(expr)]);
        let sig = b.finish().sig;
        let args = [ArgInfo::Scalar(Const::Int(Elem::I32, 5)), f16(&[2, 4], &[4, 1]), f16(&[1000], &[1])];
        let line = first_line(&sig, &args);
        assert!(line.starts_with(&format!("`z`: extent 0 is 1000, but `{text}` is ")), "{line}");
    }
}

#[test]
fn counts_kinds_elements_and_ranks_are_checked() {
    let sig = gemm().finish().sig;
    let good = f16(&[4, 4], &[4, 1]);
    let one = ArgInfo::Scalar(Const::Int(Elem::I32, 1));
    assert_eq!(first_line(&sig, &[good]), "the kernel takes 3 arguments, but this launch gives 1");
    assert_eq!(first_line(&sig, &[one, good, good]), "`a` is a tensor, but a scalar was given");
    assert_eq!(first_line(&sig, &[ArgInfo::Absent, good, good]), "`a` is a tensor, but nothing was given");
    assert_eq!(
        first_line(&sig, &[tensor(Elem::F32, &[4, 4], &[4, 1]), good, good]),
        "`a` has elements of type `f16`, but `f32` was given"
    );
    assert_eq!(first_line(&sig, &[good, f16(&[4], &[1]), good]), "`b` has rank 2, but a tensor of rank 1 was given");
    let mut b = Builder::new("s", Vec::new());
    b.scalar("eps", Elem::F32);
    let sig = b.finish().sig;
    assert_eq!(first_line(&sig, &[one, one]), "the kernel takes 1 argument, but this launch gives 2");
    assert_eq!(first_line(&sig, &[good]), "`eps` is a scalar, but a tensor was given");
    assert_eq!(first_line(&sig, &[ArgInfo::Absent]), "`eps` is a scalar, but nothing was given");
    assert_eq!(first_line(&sig, &[one]), "`eps` has elements of type `f32`, but `i32` was given");
}

#[test]
fn extents_end_where_i32_does() {
    let mut b = Builder::new("k", Vec::new());
    b.tensor("x", Elem::F16, Access::In, false, vec![DimSpec::Any]);
    let sig = b.finish().sig;
    assert!(bind(&sig, &[f16(&[MAX_EXTENT], &[1])]).is_ok());
    assert_eq!(
        first_line(&sig, &[f16(&[MAX_EXTENT + 1], &[1])]),
        "`x`: extent 0 is 2147483648, but kernels index with `i32`: at most 2147483647"
    );
    assert!(bind(&sig, &[f16(&[-1], &[1])]).is_err());
}

#[test]
fn an_output_must_not_overlap_itself_but_an_input_may() {
    let sig = gemm().finish().sig;
    let broadcast = f16(&[4, 4], &[0, 1]);
    let good = f16(&[4, 4], &[4, 1]);
    assert!(bind(&sig, &[broadcast, good, f16(&[4, 4], &[1, 4])]).is_ok());
    assert_eq!(
        first_line(&sig, &[good, good, broadcast]),
        "`c` is written, but several of its indices name the same element (extents [4, 4], strides [0, 1])"
    );
    assert!(bind(&sig, &[good, good, f16(&[4, 4], &[3, 1])]).is_err());
}

#[test]
fn names_of_absent_tensors_have_no_value_unless_another_gives_one() {
    let mut b = Builder::new("k", Vec::new());
    let (n, k) = (b.symbol("N"), b.symbol("K"));
    let same = DimSpec::Equals(HostExpr::Symbol(n));
    b.tensor("bias", Elem::F16, Access::In, true, vec![DimSpec::Bind(n), DimSpec::Bind(k)]);
    b.tensor("c", Elem::F16, Access::Mut, false, vec![same]);
    let n_programs = sym(&mut b, "N");
    b.set_grid(GridSpec::Extents(vec![n_programs]));
    let sig = b.finish().sig;
    let bound = bind(&sig, &[ArgInfo::Absent, f16(&[7], &[1])]).unwrap();
    assert_eq!((bound.symbols, bound.grid), (vec![Some(7), None], Grid::Extents([7, 1, 1])));
    let mut sig = sig;
    sig.grid = GridSpec::Extents(vec![HostExpr::Symbol(k)]);
    assert_eq!(
        first_line(&sig, &[ArgInfo::Absent, f16(&[7], &[1])]),
        "extent 0 of the grid needs `K`, which has no value because `bias` is absent"
    );
    sig.grid = GridSpec::Extents(vec![HostExpr::Dim(0, 1)]);
    assert_eq!(
        first_line(&sig, &[ArgInfo::Absent, f16(&[7], &[1])]),
        "extent 0 of the grid needs `bias.dim(1)`, which has no value because `bias` is absent"
    );
}

#[test]
fn grids_may_be_empty_but_not_negative_or_huge() {
    let mut b = Builder::new("k", Vec::new());
    b.scalar("n", Elem::I64);
    b.set_grid(GridSpec::Extents(vec![HostExpr::Const(2), HostExpr::Scalar(0)]));
    let sig = b.finish().sig;
    let n = |v| [ArgInfo::Scalar(Const::Int(Elem::I64, v))];
    assert_eq!(bind(&sig, &n(0)).unwrap().grid, Grid::Extents([2, 0, 1]));
    assert_eq!(first_line(&sig, &n(-3)), "extent 1 of the grid, `n`, is -3, but must be 0 to 2147483647");
    assert!(bind(&sig, &n(MAX_EXTENT)).is_ok());
    assert!(bind(&sig, &n(MAX_EXTENT + 1)).is_err());
    let mut four = sig.clone();
    four.grid = GridSpec::Extents(vec![HostExpr::Const(1); 4]);
    assert_eq!(first_line(&four, &n(1)), "the grid has 4 axes, but at most 3 exist");
    assert_eq!(bind_with_grid(&sig, &n(-3), [4, 5, 6]).unwrap().grid, Grid::Extents([4, 5, 6]));
    assert!(bind_with_grid(&sig, &n(1), [1, u32::MAX, 1]).is_err());
    let mut persistent = sig;
    persistent.grid = GridSpec::Persistent;
    assert_eq!(bind(&persistent, &n(1)).unwrap().grid, Grid::Persistent);
}

#[test]
fn an_expression_that_overflows_is_an_error_with_its_values() {
    let mut b = Builder::new("k", Vec::new());
    b.scalar("n", Elem::U64);
    let square = HostExpr::binary(HostOp::Mul, HostExpr::Scalar(0), HostExpr::Scalar(0));
    b.set_grid(GridSpec::Extents(vec![square]));
    let sig = b.finish().sig;
    let n = |v| [ArgInfo::Scalar(Const::Int(Elem::U64, v))];
    assert!(bind(&sig, &n(4)).is_ok());
    assert_eq!(
        first_line(&sig, &n(1 << 40)),
        "extent 0 of the grid: `n * n` has no value: a number outside of 64 bits, but n = 1099511627776"
    );
    assert!(bind(&sig, &n(-1)).is_err(), "2^64 - 1 is not -1");
}

#[test]
fn an_idle_grid_is_refused_where_an_output_waits_for_it() {
    let mut b = gemm();
    let n = sym(&mut b, "N");
    b.set_grid(GridSpec::Extents(vec![HostExpr::Const(2), HostExpr::binary(HostOp::Div, n, HostExpr::Const(32))]));
    let sig = b.finish().sig;
    let idle = |only_updated: bool, (m, n, k): (i64, i64, i64), given: bool| {
        let all = [[m, k], [n, k], [m, n]];
        let args = all.each_ref().map(|extents| f16(extents, &[99, 1]));
        let grid = if given { [1, 0, 1] } else { [2, u32::try_from(n / 32).unwrap(), 1] };
        let outputs = [Output { param: 2, only_updated }].into_iter();
        Arguments::check(&sig, &args).unwrap().refuse_idle(outputs, grid, given).err().map(|e| e.to_string())
    };
    assert_eq!(
        idle(false, (4, 31, 8), false).unwrap(),
        "extent 1 of the grid, `N / 32`, is 0, but N = 31: no program would run, and `c` of extents [4, 31] would keep what it holds\n  \
         help: `cdiv(a, b)` rounds up where `a / b` rounds down; do not launch where there is nothing to do"
    );
    assert!(idle(false, (4, 31, 8), true).unwrap().starts_with("extent 1 of the grid is 0: no program would run"));
    assert_eq!(idle(false, (4, 32, 8), false), None, "there are programs");
    for empty in [(0, 31, 8), (4, 0, 8)] {
        assert_eq!(idle(false, empty, false), None, "there is nothing to write");
    }
    // Adding no terms leaves a sum unchanged; but a store must write its output.
    for only_updated in [false, true] {
        assert_eq!(idle(only_updated, (4, 31, 0), false).is_none(), only_updated);
        assert!(idle(only_updated, (4, 31, 8), false).is_some());
    }
}

#[test]
fn a_grid_that_leaves_parts_unwritten_is_refused() {
    let mut b = gemm();
    let n = sym(&mut b, "N");
    let down = HostExpr::binary(HostOp::Div, n.clone(), HostExpr::Const(32));
    b.set_grid(GridSpec::Extents(vec![HostExpr::Const(2), down]));
    let mut sig = b.finish().sig;
    let parts = vec![Parts { axis: 1, size: Some(32) }];
    let programs = HostExpr::binary(HostOp::Cdiv, n, HostExpr::Const(32));
    let needs = [Need { axis: 1, param: 2, programs, parts }];
    let short = |sig: &Signature, (m, n): (i64, i64), given: Option<u32>| {
        let all = [[m, 8], [n, 8], [m, n]];
        let args = all.each_ref().map(|extents| f16(extents, &[999, 1]));
        let grid = [2, given.unwrap_or_else(|| u32::try_from(n / 32).unwrap()), 1];
        Arguments::check(sig, &args).unwrap().refuse_short(&needs, grid, given.is_some()).err().map(|e| e.to_string())
    };
    assert_eq!(
        short(&sig, (4, 100), None).unwrap(),
        "extent 1 of the grid, `N / 32`, is 3 (N = 100), but `c` of extents [4, 100] has 4 parts of 32 along axis 1, one for each \
         program: the rest would keep what it holds\n  \
         help: declare `cdiv(N, 32)` as extent 1 of the grid; or `grid(unchecked ..)`, if that is meant"
    );
    assert_eq!(
        short(&sig, (4, 100), Some(3)).unwrap(),
        "extent 1 of the grid is 3, but `c` of extents [4, 100] has 4 parts of 32 along axis 1, one for each program: the rest would \
         keep what it holds\n  help: launch at least 4 programs along axis 1; or declare `grid(unchecked ..)`, if that is meant"
    );
    assert_eq!(short(&sig, (4, 96), None), None);
    assert_eq!(short(&sig, (4, 100), Some(9)), None, "more programs than parts");
    assert_eq!(short(&sig, (0, 100), None), None, "there is nothing to write");
    sig.partial = true;
    assert_eq!(short(&sig, (4, 100), None), None, "it is meant");
}
