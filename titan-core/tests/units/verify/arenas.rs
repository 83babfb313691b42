//! Kernels that have no text form: inconsistent arenas, and random changes of valid kernels. The other rules are tested by
//! `filetests/verify`.

use proptest::prelude::*;
use proptest::sample::Index;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{
    Access, AtomicOp, BinOp, Block, BlockData, Builder, Const, Def, DimSpec, Elem, FetchOp, ForKind, GridSpec,
    HostExpr, Kernel, Loc, Op, OpId, OpKind, ReduceOp, Symbol, TileShape, Ty, UnOp, Unit, Value,
};
use titan_core::text::parse_one;
use titan_core::verify::{MAX_DEPTH, verify};

fn sound() -> Kernel {
    let mut b = Builder::new("sound", vec![]);
    let n = b.symbol("N");
    let bias = b.tensor("bias", Elem::F32, Access::In, true, vec![DimSpec::Any]);
    let off = b.tensor("off", Elem::I32, Access::In, false, vec![DimSpec::Any]);
    let c = b.tensor("c", Elem::F32, Access::Mut, false, vec![DimSpec::Bind(n), DimSpec::Any]);
    b.set_grid(GridSpec::Extents(vec![HostExpr::Symbol(n)]));
    let p = b.op1(OpKind::ProgramId(0), &[]).unwrap();
    let zero = b.constant(Const::Float(Elem::F32, 0.0));
    let shape = TileShape::new(&[8, 16]).unwrap();
    let tile = b.op1(OpKind::Splat(shape), &[zero]).unwrap();
    let bounds = [0, 4, 1].map(|v| b.i32(v));
    let open = b.begin_for(ForKind::Pipelined, bounds, &[tile]).unwrap();
    let (combine, [x, y]) = b.begin_combine(Elem::F32);
    let sum = b.op1(OpKind::Binary(BinOp::Add), &[x, y]).unwrap();
    b.terminate(OpKind::Yield, &[sum]);
    let row = b.end_combine(OpKind::ReduceWith(1), &[open.carried[0], zero], combine).unwrap();
    let wide = b.op1(OpKind::Broadcast { axis: 1, n: 16 }, &[row]).unwrap();
    b.terminate(OpKind::Continue(0), &[wide]);
    let out = b.end_loop(open, &[])[0];
    let has = b.op1(OpKind::Present, &[bias]).unwrap();
    let mut arms = b.begin_if(has);
    let e = b.op1(OpKind::Get, &[bias, p]).unwrap();
    b.terminate(OpKind::Yield, &[e]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[zero]);
    b.end_if(arms, &[Ty::Scalar(Elem::F32)]);
    let rows = b.op1(OpKind::Segment, &[c, off, p]).unwrap();
    let first = b.i32(0);
    b.op(OpKind::Store(Unit::Tile), &[rows, first, first, out]).unwrap();
    b.finish()
}

fn codes(kernel: Kernel) -> Vec<Code> {
    verify(kernel).err().unwrap_or_default().into_iter().map(|e| e.code).collect()
}

#[track_caller]
fn broken(damage: impl Fn(&mut Kernel), code: Code, text: &str) {
    let mut kernel = sound();
    damage(&mut kernel);
    let errors = verify(kernel).expect_err("a broken kernel");
    let told: Vec<String> = errors.iter().map(Diagnostic::text).collect();
    assert!(errors.iter().any(|e| e.code == code && e.title.contains(text)), "{told:#?}");
}

#[test]
fn the_sound_one_is_sound_and_comes_back() {
    let kernel = sound();
    let verified = verify(kernel.clone()).expect("sound");
    assert_eq!(verified.partition().outputs.len(), 1);
    assert_eq!(verified.sig.name, "sound");
    assert_eq!(verified.into_kernel(), kernel);
}

#[test]
fn ids_must_exist() {
    let far = 1000;
    broken(|k| k.body = Block::new(far), Code::Structure, "the body is block1000, which does not exist");
    broken(|k| k.ops[2].args.push(Value::new(far)), Code::Structure, "op2 takes %1000, which does not exist");
    broken(|k| k.ops[2].results.push(Value::new(far)), Code::Structure, "op2 gives %1000");
    broken(|k| k.ops[2].regions.push(Block::new(far)), Code::Structure, "op2 has the region block1000");
    broken(|k| k.blocks[0].args.push(Value::new(far)), Code::Structure, "block0 has the argument %1000");
    broken(|k| k.blocks[0].ops.push(OpId::new(far)), Code::Structure, "block0 holds op1000");
}

#[test]
fn everything_has_one_owner() {
    broken(|k| k.ops[2].regions.push(Block::new(0)), Code::Structure, "block0 is a region twice");
    broken(|k| k.blocks[0].ops.push(OpId::new(0)), Code::Structure, "op0 stands in two places");
    broken(|k| k.blocks.push(BlockData::default()), Code::Structure, "is the region of nothing");
    let lost = Op {
        kind: OpKind::Return,
        args: vec![],
        results: vec![],
        regions: vec![],
        planned: None,
        peeled: false,
        unmasked: false,
        origin: None,
        loc: Loc::default(),
    };
    broken(|k| k.ops.push(lost.clone()), Code::Structure, "stands in no block");
}

#[test]
fn a_cycle_beside_the_body_is_found() {
    broken(
        |k| {
            let (op, block) = (OpId::new(k.ops.len()), Block::new(k.blocks.len()));
            k.ops.push(Op {
                kind: OpKind::Loop,
                args: vec![],
                results: vec![],
                regions: vec![block],
                planned: None,
                peeled: false,
                unmasked: false,
                origin: None,
                loc: Loc::default(),
            });
            k.blocks.push(BlockData { args: vec![], ops: vec![op] });
        },
        Code::Structure,
        "is the region of nothing",
    );
}

#[test]
fn values_know_their_definition() {
    broken(|k| k.values[5].def = Def::Param(0), Code::Visibility, "but says that it is parameter 0");
    broken(
        |k| {
            let v = k.values[4].clone();
            k.values.push(v)
        },
        Code::Visibility,
        "is defined nowhere",
    );
    broken(
        |k| {
            let v = k.ops[1].results[0];
            k.ops[2].results.push(v)
        },
        Code::Visibility,
        "is defined twice",
    );
    broken(|k| k.values.swap(0, 3), Code::Visibility, "is parameter 0");
    let mut few = sound();
    few.values.clear();
    few.ops.clear();
    few.blocks = vec![BlockData::default()];
    assert_eq!(codes(few), vec![Code::Visibility; 3]);
}

#[test]
fn regions_do_not_nest_without_end() {
    let nested = |depth: usize| {
        let mut b = Builder::new("deep", vec![]);
        let on = b.scalar("on", Elem::Bool);
        let mut open = Vec::new();
        for _ in 0..depth {
            let mut arms = b.begin_if(on);
            b.terminate(OpKind::Yield, &[]);
            b.begin_else(&mut arms);
            open.push(arms);
        }
        for arms in open.into_iter().rev() {
            b.terminate(OpKind::Yield, &[]);
            b.end_if(arms, &[]);
        }
        b.finish()
    };
    assert_eq!(codes(nested(MAX_DEPTH)), vec![]);
    assert_eq!(codes(nested(MAX_DEPTH + 1)), vec![Code::Structure]);
    assert_eq!(codes(nested(100_000)), vec![Code::Structure]);
}

#[test]
fn structure_of_region_operations() {
    let damage = |kind: fn(&OpKind) -> bool, f: fn(&mut Op)| {
        move |k: &mut Kernel| k.ops.iter_mut().filter(|o| kind(&o.kind)).for_each(f)
    };
    let is_for = |k: &OpKind| matches!(k, OpKind::For(_));
    broken(damage(is_for, |o| o.args.truncate(2)), Code::Structure, "`for` takes a first index, an end and a step");
    broken(damage(is_for, |o| o.kind = OpKind::Loop), Code::Structure, "a block of `loop` has 4 arguments, not 2");
    let is_if = |k: &OpKind| *k == OpKind::If;
    broken(damage(is_if, |o| o.args.clear()), Code::Structure, "`if` takes one condition, but has no values");
    broken(damage(is_if, |o| o.kind = OpKind::ReduceWith(0)), Code::Structure, "`reduce_with` has one region, not 2");
    let is_return = |k: &OpKind| *k == OpKind::Return;
    broken(
        damage(is_return, |o| o.args.push(Value::new(0))),
        Code::Structure,
        "`return` passes one value, but its target takes no values",
    );
    broken(
        damage(is_return, |o| o.kind = OpKind::Yield),
        Code::Structure,
        "the body of a kernel ends in `return`, not in `yield`",
    );
    broken(
        damage(is_return, |o| o.kind = OpKind::Continue(0)),
        Code::Structure,
        "`continue` leaves more loops than there are around it, 0",
    );
    let is_continue = |k: &OpKind| matches!(k, OpKind::Continue(_));
    broken(damage(is_continue, |o| o.kind = OpKind::Yield), Code::Structure, "the body of `for` ends in");
    broken(
        |k| k.blocks.iter_mut().for_each(|b| b.ops.retain(|o| o.index() != 0)),
        Code::Structure,
        "stands in no block",
    );
    broken(
        |k| {
            let v = Value::new(0);
            k.blocks[0].args.push(v)
        },
        Code::Visibility,
        "is defined twice",
    );
}

#[test]
fn closures_yield() {
    let text = "kernel @k(%c: mut tensor<f32>[N]) grid(N) {\n%z = const 0.0 : f32\n%t = splat %z : tile<8xf32>\n\
                %r = reduce_with<0> %t, %z |%a, %b| : f32 {\nreturn\n}\nreturn\n}";
    let errors = verify(parse_one(text).unwrap()).unwrap_err();
    assert!(errors[0].title.contains("the closure of `reduce_with` ends in `yield`, not in `return`"), "{errors:?}");
    let nested = text.replace(
        "{\nreturn\n}\nreturn",
        "{\n%on = const true : bool\nif %on {\nyield\n} else {\nyield\n}\nyield %a\n}\nreturn",
    );
    let errors = verify(parse_one(&nested).unwrap()).unwrap_err();
    assert!(errors[0].title.contains("`if` in the closure of a reduction"), "{errors:?}");
    let typed = text.replace("|%a, %b|", "|%a: i32, %b|").replace("{\nreturn\n}\nreturn", "{\nyield %a\n}\nreturn");
    let errors = verify(parse_one(&typed).unwrap()).unwrap_err();
    let titles: Vec<&str> = errors.iter().map(|e| e.title.as_str()).collect();
    assert_eq!(
        titles,
        ["the closure combines `f32`, but its argument is `i32`", "the closure combines `f32`, but yields `i32`"]
    );
}

#[test]
fn stored_types_must_follow() {
    broken(|k| k.values[4].ty = Ty::I32, Code::TypeAnnotation, "gives `f32`, not `i32`");
    broken(
        |k| {
            let op = k.ops.iter_mut().find(|o| matches!(o.kind, OpKind::Splat(_))).unwrap();
            op.args.clear()
        },
        Code::Operands,
        "takes one scalar",
    );
    broken(|k| k.values[0].ty = Ty::Tensor(Elem::F32, 3), Code::Operands, "indices");
    broken(|k| k.values[1].ty = Ty::Tensor(Elem::F32, 1), Code::Operands, "offsets");
}

#[test]
fn host_expressions_name_what_exists() {
    let grid = |e: HostExpr| move |k: &mut Kernel| k.sig.grid = GridSpec::Extents(vec![e.clone()]);
    broken(grid(HostExpr::Symbol(Symbol::new(7))), Code::ShapeName, "the grid names $7, which does not exist");
    broken(grid(HostExpr::Scalar(9)), Code::ShapeName, "the grid uses parameter 9, which does not exist");
    broken(grid(HostExpr::Dim(9, 0)), Code::ShapeName, "the grid uses parameter 9");
    broken(grid(HostExpr::Dim(2, 5)), Code::ShapeName, "the grid uses axis 5 of `c`");
    broken(grid(HostExpr::Dim(0, 0)), Code::MaybeAbsent, "the grid uses an extent of `bias`, which may be absent");
}

#[test]
fn a_parameter_has_its_declared_type_and_an_axis() {
    let text = "kernel @k(%a: in tensor<f32>[], %c: mut tensor<f32>[N]) grid(N) {\n%p = program_id<0>\n%z = const 0.0 : f32\nset %c[%p], %z\nreturn\n}";
    let errors = verify(parse_one(text).unwrap()).unwrap_err();
    assert_eq!(errors[0].title, "`a` is a tensor of 0 axes");
    let mut other = parse_one(&text.replace("[]", "[_]")).unwrap();
    other.values[0].ty = Ty::I32;
    let errors = verify(other).unwrap_err();
    assert_eq!(errors[0].title, "the value of the parameter `a` is not of its type");
}

/// A change of a kernel.
#[derive(Clone, Debug)]
enum Damage {
    Arg(Index, Index, usize),
    Result(Index, Index, usize),
    Region(Index, usize),
    BlockOp(Index, Index, usize),
    BlockArg(Index, usize),
    Kind(Index, Box<OpKind>),
    Type(Index, Ty),
    Definition(Index, Def),
    DropArg(Index),
    DropOp(Index),
    Swap(Index, Index),
}

fn kinds() -> impl Strategy<Value = OpKind> {
    let shape = |dims: &[i32]| TileShape::new(dims).unwrap();
    proptest::sample::select(vec![
        OpKind::Const(Const::Int(Elem::F32, 3)),
        OpKind::Const(Const::Int(Elem::I32, i64::MIN)),
        OpKind::ProgramId(7),
        OpKind::NumPrograms(2),
        OpKind::Dim(9),
        OpKind::Present,
        OpKind::Iota(-1),
        OpKind::Splat(shape(&[0, -3, 1 << 30])),
        OpKind::Unary(UnOp::Abs),
        OpKind::Binary(BinOp::Rem),
        OpKind::Select,
        OpKind::MulAdd,
        OpKind::Cast(Elem::I32),
        OpKind::Bitcast(Elem::U4),
        OpKind::Reshape(shape(&[1 << 20, 1 << 20])),
        OpKind::Broadcast { axis: 200, n: -7 },
        OpKind::Permute([9, 9, 9, 9]),
        OpKind::Interleave,
        OpKind::Split,
        OpKind::Cut { axis: 200, from: i32::MIN, n: i32::MAX },
        OpKind::Cut { axis: 0, from: 1, n: 0 },
        OpKind::Concat(3),
        OpKind::Reduce(ReduceOp::Max, 3),
        OpKind::ReduceWith(0),
        OpKind::ScanWith(1),
        OpKind::Mma,
        OpKind::Index(0),
        OpKind::Index(7),
        OpKind::Slice(0),
        OpKind::Segment,
        OpKind::Shared,
        OpKind::Load(Unit::Elem, shape(&[4])),
        OpKind::Store(Unit::Elem),
        OpKind::Get,
        OpKind::Set,
        OpKind::GatherRows { rows: -1, width: 0 },
        OpKind::ScatterRows,
        OpKind::Gather,
        OpKind::Scatter,
        OpKind::Atomic(AtomicOp::Add),
        OpKind::Fetch(FetchOp::Xor),
        OpKind::CompareExchange,
        OpKind::Unflatten,
        OpKind::UnflattenGrouped(0),
        OpKind::UnflattenGrouped(8),
        OpKind::RaggedCount { rows: 0, cols: 0 },
        OpKind::RaggedTile { rows: 1, cols: 1 },
        OpKind::For(ForKind::Distributed),
        OpKind::Loop,
        OpKind::If,
        OpKind::Yield,
        OpKind::Break(0),
        OpKind::Break(u32::MAX),
        OpKind::Continue(1),
        OpKind::Return,
    ])
}

fn damage() -> impl Strategy<Value = Damage> {
    let ix = any::<Index>;
    let id = 0..40usize;
    let tys = proptest::sample::select(vec![
        Ty::I32,
        Ty::BOOL,
        Ty::Scalar(Elem::F32),
        Ty::Scalar(Elem::I4),
        Ty::Tensor(Elem::I4, 0),
        Ty::Tensor(Elem::I32, 1),
        Ty::Tensor(Elem::F32, 255),
        Ty::Tile(Elem::I32, TileShape::new(&[8]).unwrap()),
        Ty::Tile(Elem::F32, TileShape::new(&[-1, 0]).unwrap()),
    ]);
    let defs = prop_oneof![
        (0..9usize).prop_map(Def::Param),
        (0..9usize, 0..4usize).prop_map(|(b, i)| Def::BlockArg(Block::new(b), i)),
        (id.clone(), 0..3usize).prop_map(|(o, i)| Def::Result(OpId::new(o), i)),
    ];
    prop_oneof![
        4 => (ix(), ix(), id.clone()).prop_map(|(o, a, v)| Damage::Arg(o, a, v)),
        1 => (ix(), ix(), id.clone()).prop_map(|(o, a, v)| Damage::Result(o, a, v)),
        1 => (ix(), 0..9usize).prop_map(|(o, b)| Damage::Region(o, b)),
        1 => (ix(), ix(), id.clone()).prop_map(|(b, i, o)| Damage::BlockOp(b, i, o)),
        1 => (ix(), id).prop_map(|(b, v)| Damage::BlockArg(b, v)),
        4 => (ix(), kinds()).prop_map(|(o, k)| Damage::Kind(o, Box::new(k))),
        2 => (ix(), tys).prop_map(|(v, t)| Damage::Type(v, t)),
        1 => (ix(), defs).prop_map(|(v, d)| Damage::Definition(v, d)),
        1 => ix().prop_map(Damage::DropArg),
        1 => ix().prop_map(Damage::DropOp),
        2 => (ix(), ix()).prop_map(|(a, b)| Damage::Swap(a, b)),
    ]
}

fn apply(kernel: &mut Kernel, damage: &Damage) {
    let replace = |list: &mut Vec<Value>, at: &Index, v: usize| {
        if !list.is_empty() {
            let at = at.index(list.len());
            list[at] = Value::new(v);
        }
    };
    let (ops, blocks, values) = (kernel.ops.len(), kernel.blocks.len(), kernel.values.len());
    match damage {
        Damage::Arg(o, a, v) => replace(&mut kernel.ops[o.index(ops)].args, a, *v),
        Damage::Result(o, a, v) => replace(&mut kernel.ops[o.index(ops)].results, a, *v),
        Damage::Region(o, b) => kernel.ops[o.index(ops)].regions.push(Block::new(*b)),
        Damage::BlockOp(b, i, o) => {
            let list = &mut kernel.blocks[b.index(blocks)].ops;
            let at = i.index(list.len() + 1);
            list.insert(at, OpId::new(*o));
        }
        Damage::BlockArg(b, v) => kernel.blocks[b.index(blocks)].args.push(Value::new(*v)),
        Damage::Kind(o, kind) => kernel.ops[o.index(ops)].kind = kind.as_ref().clone(),
        Damage::Type(v, ty) => kernel.values[v.index(values)].ty = *ty,
        Damage::Definition(v, def) => kernel.values[v.index(values)].def = *def,
        Damage::DropArg(o) => drop(kernel.ops[o.index(ops)].args.pop()),
        Damage::DropOp(b) => drop(kernel.blocks[b.index(blocks)].ops.pop()),
        Damage::Swap(a, b) => {
            let (a, b) = (a.index(ops), b.index(ops));
            let (x, y) = (kernel.ops[a].kind.clone(), kernel.ops[b].kind.clone());
            kernel.ops[a].kind = y;
            kernel.ops[b].kind = x;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: test_depth::cases(20_000, 5_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_gives_errors_and_never_a_panic(list in proptest::collection::vec(damage(), 1..4)) {
        let mut kernel = sound();
        list.iter().for_each(|d| apply(&mut kernel, d));
        let again = kernel.clone();
        if let Err(errors) = verify(kernel) {
            prop_assert!(!errors.is_empty());
            prop_assert_eq!(verify(again).err(), Some(errors));
        }
    }
}
