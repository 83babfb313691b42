//! Every rule of `verify`, broken once.

use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, Func, NvOp, OpKind, Shuffle, Space, Ty, Value, Vote, verify};
use titan_core::launch::abi::{MapParam, PartMap, Slot};
use titan_core::layout::Swizzle;

fn builder() -> Builder {
    Builder::new("k", vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }], 64, 32)
}

fn done(mut b: Builder) -> Func {
    if !b.is_terminated() {
        b.terminate(OpKind::Return, &[]);
    }
    b.finish().expect("the builder takes it")
}

/// The complaint about a function.
fn says(func: &Func) -> String {
    verify(func).expect_err("it is wrong").message
}

fn lane_below(b: &mut Builder, n: i32) -> Value {
    let (lane, n) = (b.one(OpKind::LaneId, &[]), b.i32(n));
    b.cmp_u(Pred::Lt, lane, n)
}

/// `if cond { first } else {}`, without results.
fn when(b: &mut Builder, cond: Value, first: impl FnOnce(&mut Builder)) {
    let mut arms = b.begin_if(cond, &[]);
    first(b);
    if !b.is_terminated() {
        b.terminate(OpKind::Yield, &[]);
    }
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
}

#[test]
fn what_is_right_passes() {
    let mut b = builder();
    let n = b.one(OpKind::Slot(1), &[]);
    let (zero, one) = (b.i32(0), b.i32(1));
    let (open, i, carried) = b.begin_for([zero, n, one], &[zero]);
    let next = b.add(carried[0], i);
    b.op(OpKind::Barrier, &[]);
    b.terminate(OpKind::Continue(0), &[next]);
    let sum = b.end(open)[0];
    let cond = lane_below(&mut b, 3);
    when(&mut b, cond, |b| {
        let address = b.one(OpKind::Slot(0), &[]);
        b.op(OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false }, &[address, sum]);
    });
    b.op(OpKind::Barrier, &[]);
    assert_eq!(verify(&done(b)), Ok(()));
}

/// A map for parts of a tensor along an axis takes two more coordinates; an entry of a table takes those of the tensor.
#[test]
fn bulk_copies_have_the_coordinates_of_their_maps() {
    let ending = PartMap::Ending { table: 0, axes: vec![1], entries: None };
    for (part, wanted) in [(PartMap::Whole, 2), (PartMap::Along(0), 4), (ending, 2)] {
        for rank in 1..=5u8 {
            let mut b = builder();
            b.buffer("tile", 1024, 0);
            let map = MapParam {
                param: 0,
                elem: Elem::F32,
                extents: vec![16, 16],
                swizzle: Swizzle::B64,
                part: part.clone(),
            };
            let (from, at) = (b.one(OpKind::SharedBase, &[]), b.i32(0));
            let map = match part {
                PartMap::Ending { .. } => {
                    let number = b.map_number(map);
                    b.one(NvOp::MapEntry(number), &[at])
                }
                PartMap::Whole | PartMap::Along(_) => b.tensor_map(map),
            };
            let args = [&[map, from][..], &vec![at; rank.into()]].concat();
            b.op(NvOp::BulkStore { rank }, &args);
            b.op(NvOp::BulkCommit, &[]);
            b.op(NvOp::BulkWait { n: 0, read: false }, &[]);
            let found = verify(&done(b)).map_err(|e| e.message);
            let message = format!("bulk_store.{rank}d: {rank} coordinates, and the tensor map has {wanted}");
            assert_eq!(found, if rank == wanted { Ok(()) } else { Err(message) });
        }
    }
}

#[test]
fn a_block_ends_in_one_terminator() {
    let mut func = done(builder());
    func.blocks[0].ops.clear();
    assert!(says(&func).contains("terminator"));
    let mut b = builder();
    b.one(OpKind::LaneId, &[]);
    let func = done(b);
    let mut none = func.clone();
    none.blocks[0].ops.pop();
    assert!(says(&none).contains("terminator"));
    let mut early = func;
    early.blocks[0].ops.reverse();
    assert!(says(&early).contains("terminator"));
    // An arm without any operation.
    let mut b = builder();
    let cond = lane_below(&mut b, 3);
    when(&mut b, cond, |_| ());
    let mut func = done(b);
    let arm = func.ops.iter().find(|o| o.kind == OpKind::If).expect("there").regions[0];
    func.blocks[arm.index()].ops.clear();
    assert!(says(&func).contains("terminator"));
}

#[test]
fn terminators_belong_to_their_blocks() {
    let mut b = builder();
    b.terminate(OpKind::Yield, &[]);
    assert!(says(&done(b)).contains("yield"));
    let mut b = builder();
    let (open, _) = b.begin_loop(&[], &[]);
    b.terminate(OpKind::Yield, &[]);
    b.end(open);
    assert!(says(&done(b)).contains("yield"));
    let mut b = builder();
    let cond = b.pred(true);
    when(&mut b, cond, |b| b.terminate(OpKind::Break(0), &[]));
    assert!(says(&done(b)).contains("no such loop"));
    let mut b = builder();
    let (open, _) = b.begin_loop(&[], &[]);
    b.terminate(OpKind::Continue(1), &[]);
    b.end(open);
    assert!(says(&done(b)).contains("no such loop"));
}

#[test]
fn values_are_visible_below_their_definition_and_inside() {
    let mut b = builder();
    let cond = lane_below(&mut b, 3);
    let mut inner = cond;
    when(&mut b, cond, |b| inner = b.one(OpKind::WarpId, &[]));
    let after = b.add_const(inner, 9);
    b.add_const(after, 1);
    assert!(says(&done(b)).contains("is not defined here"));
    // In the other arm.
    let mut b = builder();
    let cond = lane_below(&mut b, 3);
    let mut arms = b.begin_if(cond, &[]);
    let inner = b.one(OpKind::WarpId, &[]);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    b.add_const(inner, 9);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
    assert!(says(&done(b)).contains("is not defined here"));
    // Before it.
    let mut b = builder();
    let lane = b.one(OpKind::LaneId, &[]);
    b.op(OpKind::Shuffle(Shuffle::Xor(1)), &[lane]);
    let mut func = done(b);
    func.blocks[0].ops.swap(0, 1);
    assert!(says(&func).contains("is not defined here"));
}

#[test]
fn widths_agree() {
    let wrong = |kind: OpKind, args: &dyn Fn(&mut Builder) -> Vec<Value>| {
        let mut b = builder();
        let args = args(&mut b);
        b.op(kind.clone(), &args);
        b.terminate(OpKind::Return, &[]);
        assert!(b.finish().is_err(), "the builder takes {kind:?}");
    };
    let words = |b: &mut Builder| vec![b.one(OpKind::Slot(1), &[]), b.one(OpKind::Slot(0), &[])];
    wrong(OpKind::Int(titan_core::lane::IntBin::Add), &words);
    wrong(OpKind::Select, &words);
    wrong(OpKind::Vote(Vote::Any), &|b| vec![b.i32(1)]);
    wrong(OpKind::Slot(7), &|_| vec![]);
    wrong(OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false }, &|b| vec![b.i32(1)]);
    wrong(OpKind::Load { space: Space::Shared, bytes: 8, n: 4, offset: 0, masked: false }, &|b| vec![b.i32(1)]);
    wrong(OpKind::Load { space: Space::Shared, bytes: 3, n: 1, offset: 0, masked: false }, &|b| vec![b.i32(1)]);
    wrong(OpKind::Store { space: Space::Shared, bytes: 2, n: 1, offset: 0, masked: false }, &|b| {
        vec![b.i32(1), b.i32(2)]
    });
    wrong(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: true }, &|b| {
        vec![b.i32(1), b.i32(2)]
    });
    // What was right when it was built.
    let mut b = builder();
    let lane = b.one(OpKind::LaneId, &[]);
    let x = b.add_const(lane, 1);
    let mut func = done(b);
    func.values[x.index()].ty = Ty::B64;
    assert!(says(&func).contains("results of another type"));
    let mut b = builder();
    let (open, _) = b.begin_loop(&[], &[Ty::B32]);
    let word = b.i64(1);
    b.terminate(OpKind::Break(0), &[word]);
    b.end(open);
    assert!(says(&done(b)).contains("takes"));
    let mut b = builder();
    let cond = b.pred(true);
    let mut arms = b.begin_if(cond, &[Ty::B32]);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    let one = b.i32(1);
    b.terminate(OpKind::Yield, &[one]);
    b.end(arms);
    assert!(says(&done(b)).contains("takes"));
    let mut b = builder();
    let cond = b.i32(1);
    when(&mut b, cond, |_| ());
    assert!(says(&done(b)).contains("takes a condition and two arms"));
}

#[test]
fn loops_agree_with_what_they_carry() {
    let loops = |change: &dyn Fn(&mut Func)| {
        let mut b = builder();
        let (zero, one) = (b.i32(0), b.i32(1));
        let wide = b.i64(5);
        let (open, _, carried) = b.begin_for([zero, one, one], &[wide]);
        b.terminate(OpKind::Continue(0), &carried);
        b.end(open);
        let mut func = done(b);
        change(&mut func);
        verify(&func).map_err(|e| e.message)
    };
    let at = |f: &Func| f.ops.iter().position(|o| o.kind == OpKind::For).expect("there");
    assert_eq!(loops(&|_| ()), Ok(()));
    let disagree = |r: Result<(), String>| assert!(r.expect_err("it is wrong").contains("do not agree"));
    disagree(loops(&|f| {
        let i = at(f);
        f.ops[i].args.pop();
    }));
    disagree(loops(&|f| {
        let i = at(f);
        f.ops[i].args[0] = f.ops[i].args[3];
    }));
    disagree(loops(&|f| {
        let i = at(f);
        let result = f.ops[i].results[0];
        f.values[result.index()].ty = Ty::B32;
    }));
    disagree(loops(&|f| {
        let i = at(f);
        f.ops[i].args.clear();
    }));
    let two = loops(&|f| {
        let i = at(f);
        let body = f.ops[i].regions[0];
        f.ops[i].regions.push(body);
    });
    assert!(two.expect_err("it is wrong").contains("one body"));
}

#[test]
fn lanes_are_together_where_they_must_be() {
    let convergent: [(OpKind, bool); 5] = [
        (OpKind::Barrier, false),
        (OpKind::Vote(Vote::All), true),
        (OpKind::Shuffle(Shuffle::Xor(1)), true),
        (OpKind::Shuffle(Shuffle::Lane(0)), true),
        (OpKind::Nv(NvOp::LoadMatrix { n: 1, transposed: false, offset: 0 }), true),
    ];
    for (kind, in_warp) in convergent {
        let with = |cond: &dyn Fn(&mut Builder) -> Value| {
            let mut b = builder();
            let cond = cond(&mut b);
            when(&mut b, cond, |b| {
                let args = match kind {
                    OpKind::Barrier => vec![],
                    OpKind::Vote(_) => vec![cond],
                    _ => vec![b.one(OpKind::SharedBase, &[])],
                };
                b.op(kind.clone(), &args);
            });
            verify(&done(b)).is_ok()
        };
        let of_warp = |b: &mut Builder| {
            let (warp, one) = (b.one(OpKind::WarpId, &[]), b.i32(1));
            b.cmp_u(Pred::Lt, warp, one)
        };
        let of_program = |b: &mut Builder| {
            let (n, one) = (b.one(OpKind::Slot(1), &[]), b.i32(1));
            b.cmp_u(Pred::Lt, n, one)
        };
        assert!(!with(&|b| lane_below(b, 3)), "{kind:?} of some lanes");
        assert_eq!(with(&of_warp), in_warp, "{kind:?} of some warps");
        assert!(with(&of_program), "{kind:?} of all or none");
    }
    // Stores and loads of some lanes are ordinary; so are barriers behind them.
    let mut b = builder();
    let cond = lane_below(&mut b, 3);
    when(&mut b, cond, |b| {
        let (base, x) = (b.one(OpKind::SharedBase, &[]), b.i32(1));
        b.op(OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base, x]);
    });
    b.op(OpKind::Barrier, &[]);
    assert_eq!(verify(&done(b)), Ok(()));
    // Not behind some lanes' return.
    let mut b = builder();
    let cond = lane_below(&mut b, 3);
    when(&mut b, cond, |b| b.terminate(OpKind::Return, &[]));
    b.op(OpKind::Barrier, &[]);
    assert!(says(&done(b)).contains("lanes may have diverged"));
}
