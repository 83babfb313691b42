//! The parser never panics, and what it accepts prints and reads back; random kernels too.

use proptest::prelude::*;
use std::sync::LazyLock;
use titan_core::ir::op_table::ops;
use titan_core::ir::{
    Access, BinOp, Block, Builder, Const, DimSpec, Elem, ForKind, GridSpec, HostExpr, HostOp, Kernel, Loc, OpKind,
    Pred, ReduceOp, Symbol, TileShape, Ty, UnOp, Unit, Value,
};
use titan_core::text::{GRAMMAR, MAX_DEPTH, parse, parse_located, parse_one, print};
use titan_core::verify::verify;

/// The filetests: every operation, and most mistakes.
static FILES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let folders = ["text", "verify"].map(|f| std::fs::read_dir(root.join(f)).expect("a folder"));
    let mut paths: Vec<_> = folders.into_iter().flatten().map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|p| std::fs::read_to_string(p).expect("a text")).collect()
});

/// Words of the grammar, mnemonics and pieces that are easily wrong.
static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let quoted = GRAMMAR.split('"').skip(1).step_by(2).map(str::to_owned);
    let mnemonics = ops().map(|r| r.mnemonic.to_owned());
    let pieces = "%a %a.2 %7 %\"x y\" % \"text\" \"\\q\" \" \n \n \n ; 0 1 -1 1.5 1e9 0x7ff8000000000001 128x64xf16 99999999999 \
        f32 i32 bool M N $ kernel {\n }\n %b = %c, @k ( ) { } tile<8x8xf32> : = é \u{0} nan inf carry( |%a, %b| { or [%a]"
        .split(' ')
        .map(str::to_owned);
    quoted.chain(mnemonics).chain(pieces).collect()
});

const CASES: u32 = 400;

/// Reading does not panic; what is read prints, and reads back as the same; verifying it does not panic either.
fn check(text: &str) -> Result<(), TestCaseError> {
    let _ = parse_one(text);
    let located = parse_located(text).is_ok();
    let Ok(kernels) = parse(text) else {
        prop_assert!(!located);
        return Ok(());
    };
    prop_assert!(located);
    for kernel in kernels {
        let printed = print(&kernel);
        let again = parse_one(&printed);
        prop_assert_eq!(again.as_ref(), Ok(&kernel), "{}", printed);
        prop_assert_eq!(&kernel.canonical(), &kernel);
        let _ = verify(kernel);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn soup(tokens in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..120), kernel in any::<bool>()) {
        let mut text = String::from(if kernel { "kernel @k(%a: f32, %t: mut tensor<f32>[M]) {\n" } else { "" });
        for (i, space) in tokens {
            text.push_str(&WORDS[i.index(WORDS.len())]);
            text.push_str(if space { " " } else { "" });
        }
        check(&text)?;
    }

    #[test]
    fn mutated_files(
        file in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..5u8, any::<prop::sample::Index>()), 1..4),
    ) {
        let mut text = FILES[file.index(FILES.len())].clone();
        for (at, how, other) in edits {
            let mut parts: Vec<&str> = text.split_inclusive([' ', '\n', ',', '(', '<', '[']).collect();
            if parts.is_empty() {
                break;
            }
            let (i, j) = (at.index(parts.len()), other.index(parts.len()));
            match how {
                0 => drop(parts.remove(i)),
                1 => parts.insert(i, parts[j]),
                2 => parts.swap(i, j),
                3 => parts.truncate(i),
                _ => parts[i] = &WORDS[other.index(WORDS.len())],
            }
            text = parts.concat();
        }
        check(&text)?;
    }

    #[test]
    fn random_kernels(choices in proptest::collection::vec((any::<u8>(), any::<u16>(), any::<u16>()), 1..60)) {
        let kernel = Random::build(&choices);
        let printed = print(&kernel);
        let again = parse_one(&printed);
        prop_assert_eq!(again.as_ref(), Ok(&kernel), "{}", printed);
        prop_assert_eq!(&kernel.canonical(), &kernel);
    }

    #[test]
    fn floats(bits in any::<u64>(), elem in 0..7usize) {
        let mut b = Builder::new("k", vec![]);
        b.constant(Const::Float(Elem::ALL[elem], f64::from_bits(bits)));
        let kernel = b.finish();
        prop_assert_eq!(parse_one(&print(&kernel)), Ok(kernel));
    }

    #[test]
    fn names(kernel in ".{0,8}", value in ".{0,8}", symbol in ".{0,8}", text in ".{0,20}") {
        let mut b = Builder::new(&kernel, vec![]);
        let s = b.symbol(&symbol);
        let x = b.tensor(&value, Elem::F32, Access::In, false, vec![DimSpec::Bind(s)]);
        b.require(HostExpr::binary(HostOp::Lt, HostExpr::Dim(0, 0), HostExpr::Symbol(s)));
        let n = b.op1(OpKind::Dim(0), &[x]).expect("a tensor");
        b.name(n, &value);
        b.op(OpKind::Print(text), &[n]).expect("a value");
        let kernel = b.finish();
        let printed = print(&kernel);
        prop_assert_eq!(parse_one(&printed), Ok(kernel), "{}", printed);
    }
}

/// A kernel from a list of numbers: operations on values of one tile and one scalar type, loops and branches.
struct Random {
    b: Builder,
    tiles: Vec<Value>,
    ints: Vec<Value>,
    tensor: Value,
}

impl Random {
    fn build(choices: &[(u8, u16, u16)]) -> Kernel {
        let mut b = Builder::new("random", vec![]);
        let n = b.symbol("N");
        let tensor = b.tensor("t", Elem::F32, Access::Mut, false, vec![DimSpec::Bind(n), DimSpec::Any]);
        let x = b.scalar("x", Elem::F32);
        let i = b.op1(OpKind::ProgramId(0), &[]).expect("a grid axis");
        let t = b.op1(OpKind::Splat(TileShape::new(&[8, 16]).expect("a shape")), &[x]).expect("a tile");
        let mut random = Random { b, tiles: vec![t], ints: vec![i], tensor };
        let mut rest = choices;
        random.ops(&mut rest, 0);
        random.b.finish()
    }

    fn op(&mut self, kind: OpKind, args: &[Value]) -> Value {
        self.b.op1(kind, args).expect("operands fit")
    }

    fn ops(&mut self, rest: &mut &[(u8, u16, u16)], depth: usize) {
        while let Some(((what, x, y), tail)) = rest.split_first() {
            *rest = tail;
            let tile = |i: u16, s: &Self| s.tiles[usize::from(i) % s.tiles.len()];
            let int = |i: u16, s: &Self| s.ints[usize::from(i) % s.ints.len()];
            let (t, u, i, j) = (tile(*x, self), tile(*y, self), int(*x, self), int(*y, self));
            self.b.set_loc(Loc { line: u32::from(*x), column: u32::from(*y) });
            match what % 12 {
                0 => self.add_tile(OpKind::Unary(UnOp::ALL[usize::from(*y) % UnOp::ALL.len()]), &[t], *x),
                1 => self.add_tile(OpKind::Binary(BinOp::Mul), &[t, u], *x),
                2 => self.add_tile(OpKind::MulAdd, &[t, u, t], *x),
                3 => {
                    let i = self.op(OpKind::Binary(BinOp::Add), &[i, j]);
                    self.ints.push(i);
                }
                4 => {
                    let i = self.b.i32(i32::from(*x));
                    self.ints.push(i);
                }
                5 => {
                    let r = self.op(OpKind::Reduce(ReduceOp::Sum, 1), &[t]);
                    let t = self.op(OpKind::Broadcast { axis: 1, n: 16 }, &[r]);
                    self.tiles.push(t);
                }
                6 => drop(self.b.op(OpKind::Store(Unit::Elem), &[self.tensor, i, j, t])),
                7 => drop(self.b.op(OpKind::Print("{} {}".to_owned()), &[t, i])),
                8 if depth < 6 => self.for_loop([i, j, i], t, rest, depth),
                9 if depth < 6 => self.branch(t, u, i, rest, depth),
                10 if depth > 0 => return,
                _ => {
                    let zero = self.b.constant(Const::Float(Elem::F32, 0.5));
                    let shape = TileShape::new(&[8, 16]).expect("a shape");
                    self.add_tile(OpKind::Load(Unit::Tile, shape), &[self.tensor, i, j, zero], *y);
                }
            }
        }
    }

    fn add_tile(&mut self, kind: OpKind, args: &[Value], name: u16) {
        let value = self.b.op1(kind, args);
        let Ok(value) = value else { return };
        if name.is_multiple_of(3) {
            self.b.name(value, ["acc", "x", "in", "7"][usize::from(name / 3) % 4]);
        }
        if self.b.ty(value).elem() == Elem::F32 {
            self.tiles.push(value);
        }
    }

    fn for_loop(&mut self, bounds: [Value; 3], init: Value, rest: &mut &[(u8, u16, u16)], depth: usize) {
        let known = (self.tiles.len(), self.ints.len());
        let open = self.b.begin_for(ForKind::Pipelined, bounds, &[init]).expect("bounds");
        self.tiles.push(open.carried[0]);
        self.ints.extend(open.index);
        self.ops(rest, depth + 1);
        let next = self.tiles[self.tiles.len() - 1];
        self.b.terminate(OpKind::Continue(0), &[next]);
        let out = self.b.end_loop(open, &[]);
        self.tiles.truncate(known.0);
        self.ints.truncate(known.1);
        self.tiles.extend(out);
    }

    fn branch(&mut self, t: Value, u: Value, i: Value, rest: &mut &[(u8, u16, u16)], depth: usize) {
        let known = (self.tiles.len(), self.ints.len());
        let cond = self.op(OpKind::Cmp(Pred::Lt), &[i, i]);
        let mut open = self.b.begin_if(cond);
        self.ops(rest, depth + 1);
        self.b.terminate(OpKind::Yield, &[t]);
        self.tiles.truncate(known.0);
        self.ints.truncate(known.1);
        self.b.begin_else(&mut open);
        self.ops(rest, depth + 1);
        self.b.terminate(OpKind::Yield, &[u]);
        self.tiles.truncate(known.0);
        self.ints.truncate(known.1);
        let ty: Ty = self.b.ty(t);
        self.tiles.extend(self.b.end_if(open, &[ty]));
    }
}

#[test]
fn depth_is_limited_and_what_is_within_the_limit_is_read() {
    let nested = |n: usize| format!("kernel @k() {{\n{}{}}}\n", "loop {\n".repeat(n), "}\n".repeat(n));
    assert!(parse_one(&nested(MAX_DEPTH - 1)).is_ok());
    const { assert!(MAX_DEPTH > titan_core::verify::MAX_DEPTH + 1, "verified kernels must be readable") };
    for n in [MAX_DEPTH, MAX_DEPTH + 1, 100_000] {
        let errors = parse_one(&nested(n)).expect_err("too deep");
        assert!(errors[0].title.contains("nest at most"), "{errors:?}");
    }
    let deep = |open: &str, close: &str, n: usize| {
        parse_one(&format!("kernel @k() require({}K{}) {{\n}}\n", open.repeat(n), close.repeat(n)))
    };
    for (open, close) in [("(", ")"), ("!", ""), ("min(1, ", ")"), ("", " + 1"), ("1 - (", ")"), ("1 || ", "")] {
        assert!(deep(open, close, MAX_DEPTH - 1).is_ok(), "{open}K{close}");
        assert!(deep(open, close, 100_000).is_err(), "{open}K{close}");
    }
}

#[test]
fn many_errors_end_the_reading() {
    let text = format!("kernel @k() {{\n{}}}\n", "    nonsense\n".repeat(10_000));
    let errors = parse(&text).expect_err("nonsense");
    assert!(errors.len() < 100, "{}", errors.len());
}

#[test]
fn a_kernel_that_passes_renumbered_reads_back_as_its_canonical_form() {
    let text = "kernel @k(\n    %x: f32,\n) {\n    %1 = neg %x : f32\n    %2 = abs %1 : f32\n    return\n}\n";
    let mut kernel = parse_one(text).expect("a kernel");
    kernel.values.swap(1, 2);
    kernel.ops.swap(0, 1);
    kernel.ops[0].results = vec![Value::new(1)];
    kernel.ops[0].args = vec![Value::new(2)];
    kernel.ops[1].results = vec![Value::new(2)];
    kernel.blocks[0].ops.swap(0, 1);
    let printed = print(&kernel);
    assert_eq!(parse_one(&printed), Ok(kernel.canonical()), "{printed}");
    assert_eq!(print(&kernel.canonical()), text);
}

#[test]
fn kernels_with_dangling_or_circular_parts_print() {
    let mut kernel = parse_one(FILES.iter().find(|f| f.contains("@gemm")).expect("a gemm")).expect("a kernel");
    let body = kernel.body;
    kernel.ops[0].regions = vec![body, Block::new(99)];
    kernel.ops[1].args = vec![Value::new(77)];
    kernel.ops[2].results = vec![Value::new(78)];
    kernel.sig.grid = GridSpec::Extents(vec![HostExpr::Scalar(9), HostExpr::Symbol(Symbol::new(9))]);
    for op in &mut kernel.ops {
        op.args.truncate(1);
    }
    let text = print(&kernel);
    assert!(
        text.contains("block0 is not a block of its own") && text.contains("%?77") && text.contains("$?9"),
        "{text}"
    );
    assert!(parse_one(&text).is_err());
    let _ = print(&kernel.canonical());
    kernel.values.clear();
    kernel.blocks.clear();
    let _ = (print(&kernel), print(&kernel.canonical()));
}
