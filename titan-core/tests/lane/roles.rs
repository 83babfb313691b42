//! Roles and what they wait with: types, rules and divergence, each in the smallest program that shows it.

use titan_core::ir::Pred;
use titan_core::lane::uniform::{Level, analyze};
use titan_core::lane::{Builder, Func, NvOp, OpKind, Role, Ty, Value, eliminate_dead, mnemonic, verify};
use titan_core::launch::abi::Slot;

/// Four warps; one has the first role, three the second.
pub(crate) const ROLES: [Role; 2] = [Role { warps: 1, barrier: 1 }, Role { warps: 3, barrier: 2 }];

pub(crate) fn builder() -> Builder {
    Builder::new("k", vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }], 128, 32)
}

pub(crate) fn done(mut b: Builder) -> Func {
    if !b.is_terminated() {
        b.terminate(OpKind::Return, &[]);
    }
    b.finish().expect("the builder takes it")
}

pub(crate) fn says(func: &Func) -> String {
    verify(func).expect_err("it is wrong").message
}

/// Roles with this code; the rest of the program follows.
pub(crate) fn split(b: &mut Builder, roles: &[Role], mut code: impl FnMut(&mut Builder, usize)) {
    let mut open = b.begin_roles(roles, &[]);
    for i in 0..roles.len() {
        if i > 0 {
            b.begin_else(&mut open);
        }
        code(b, i);
        if !b.is_terminated() {
            b.terminate(OpKind::Yield, &[]);
        }
    }
    b.end(open);
}

fn when(b: &mut Builder, cond: Value, code: impl FnOnce(&mut Builder)) {
    let mut arms = b.begin_if(cond, &[]);
    code(b);
    b.terminate(OpKind::Yield, &[]);
    b.begin_else(&mut arms);
    b.terminate(OpKind::Yield, &[]);
    b.end(arms);
}

pub(crate) fn named(id: u8, threads: u32) -> OpKind {
    OpKind::Nv(NvOp::NamedBarrier { id, threads, wait: true })
}

/// An operation, what it is given, and what it gives if it takes that.
type Typed<'t> = (OpKind, &'t [Ty], Option<&'t [Ty]>);

#[test]
fn operands_and_attributes_are_checked() {
    use Ty::{B32, B64, Pred};
    let init = |count, masked| OpKind::Nv(NvOp::MbarrierInit { count, masked });
    let arrive = |count, masked| OpKind::Nv(NvOp::MbarrierArrive { count, masked });
    let cases: [Typed<'_>; 22] = [
        (init(1, false), &[B32], Some(&[])),
        (init((1 << 20) - 1, true), &[B32, Pred], Some(&[])),
        (init(0, false), &[B32], None),
        (init(1 << 20, false), &[B32], None),
        (init(1, true), &[B32], None),
        (OpKind::Nv(NvOp::MbarrierInvalidate { masked: false }), &[B32], Some(&[])),
        (OpKind::Nv(NvOp::MbarrierInvalidate { masked: true }), &[B32, Pred], Some(&[])),
        (arrive(1, false), &[B32], Some(&[])),
        (arrive(3, true), &[B32, Pred], Some(&[])),
        (arrive(0, false), &[B32], None),
        (arrive(1, false), &[B64], None),
        (OpKind::Nv(NvOp::CopyArrive { masked: true }), &[B32, Pred], Some(&[])),
        (OpKind::Nv(NvOp::CopyArrive { masked: false }), &[B64], None),
        (OpKind::Nv(NvOp::MbarrierWait), &[B32, B32], Some(&[])),
        (OpKind::Nv(NvOp::MbarrierWait), &[B32, Pred], None),
        (OpKind::StoreRelease { masked: true }, &[B32, B32, Pred], Some(&[])),
        (OpKind::StoreRelease { masked: false }, &[B32, B64], None),
        (OpKind::LoadAcquire, &[B32], Some(&[B32])),
        (OpKind::SequenceWait, &[B32, B32], Some(&[])),
        (OpKind::SequenceWait, &[B32], None),
        (OpKind::WarpBarrier, &[], Some(&[])),
        (OpKind::WarpBarrier, &[B32], None),
    ];
    for (kind, args, gives) in cases {
        let mut b = builder();
        let args: Vec<Value> = args.iter().map(|ty| b.one(OpKind::Const(*ty, 1), &[])).collect();
        let given: Vec<Ty> = b.op(kind.clone(), &args).iter().map(|v| b.ty(*v)).collect();
        b.terminate(OpKind::Return, &[]);
        match (b.finish(), gives) {
            (Ok(func), Some(gives)) => {
                assert_eq!(given, gives, "{kind:?}");
                assert_eq!(verify(&func), Ok(()), "{kind:?}");
            }
            (Err(_), None) => {}
            (found, _) => panic!("{kind:?}: {found:?}"),
        }
    }
}

#[test]
fn named_barriers_have_a_number_and_whole_warps() {
    for (id, threads, right) in [
        (1, 32, true),
        (15, 128, true),
        (0, 32, false),
        (16, 32, false),
        (3, 33, false),
        (3, 0, false),
        (3, 160, false),
    ] {
        let mut b = builder();
        b.op(named(id, threads), &[]);
        b.terminate(OpKind::Return, &[]);
        assert_eq!(b.finish().is_ok(), right, "barrier {id} of {threads}");
    }
}

#[test]
fn nothing_that_waits_is_dropped_or_merged() {
    let mut b = builder();
    let base = b.one(OpKind::SharedBase, &[]);
    let zero = b.i32(0);
    let kinds = [
        (OpKind::Nv(NvOp::MbarrierInit { count: 1, masked: false }), vec![base]),
        (OpKind::Nv(NvOp::MbarrierArrive { count: 1, masked: false }), vec![base]),
        (OpKind::Nv(NvOp::CopyArrive { masked: false }), vec![base]),
        (OpKind::Nv(NvOp::MbarrierWait), vec![base, zero]),
        (OpKind::StoreRelease { masked: false }, vec![base, zero]),
        (OpKind::LoadAcquire, vec![base]),
        (OpKind::SequenceWait, vec![base, zero]),
        (named(3, 64), vec![]),
        (OpKind::WarpBarrier, vec![]),
        (OpKind::Nv(NvOp::MbarrierInvalidate { masked: false }), vec![base]),
    ];
    for (kind, args) in kinds.iter().flat_map(|k| [k, k]) {
        b.op(kind.clone(), args);
    }
    split(&mut b, &ROLES, |_, _| ());
    let mut func = done(b);
    eliminate_dead(&mut func);
    let mut left = Vec::new();
    func.walk(&mut |_, op| left.push(op.kind.clone()));
    for (kind, _) in kinds {
        assert_eq!(left.iter().filter(|k| **k == kind).count(), 2, "{kind:?}");
    }
    assert!(left.contains(&OpKind::Roles(ROLES.to_vec())));
}

#[test]
fn the_text_names_them() {
    let mut b = builder();
    split(&mut b, &ROLES, |b, i| {
        if i == 1 {
            b.op(named(2, 96), &[]);
        }
    });
    let text = done(b).to_string();
    let wanted = "  roles(1 warps with barrier 1, 3 warps with barrier 2) {\n    yield\n  } and {\n    named_barrier.sync 2 of 96\n    yield\n  }\n";
    assert!(text.contains(wanted), "{text}");
    let arrive = OpKind::Nv(NvOp::NamedBarrier { id: 7, threads: 64, wait: false });
    assert_eq!(mnemonic(&arrive), "named_barrier.arrive 7 of 64");
    assert_eq!(mnemonic(&OpKind::Nv(NvOp::MbarrierArrive { count: 2, masked: true })), "mbarrier_arrive.masked 2");
}

#[test]
fn roles_are_all_warps_and_each_has_a_barrier() {
    let role = |warps, barrier| Role { warps, barrier };
    let cases: [(&[Role], &str); 7] = [
        (&[role(1, 1), role(2, 2)], "roles of 96 threads in a program of 128"),
        (&[role(4, 1), role(4, 2)], "roles of 256 threads in a program of 128"),
        (&[role(u32::MAX, 1), role(u32::MAX, 2)], "threads in a program of 128"),
        (&[role(4, 1), role(0, 2)], "roles of 128 threads"),
        (&[role(1, 2), role(3, 2)], "a barrier of its own, 1 to 15"),
        (&[role(1, 0), role(3, 2)], "a barrier of its own, 1 to 15"),
        (&[role(1, 3), role(3, 16)], "a barrier of its own, 1 to 15"),
    ];
    for (roles, what) in cases {
        let mut b = builder();
        split(&mut b, roles, |_, _| ());
        let said = says(&done(b));
        assert!(said.contains(what), "{said}");
    }
    let mut b = builder();
    split(&mut b, &ROLES, |_, _| ());
    let mut func = done(b);
    assert_eq!(verify(&func), Ok(()));
    let roles = func.ops.iter().position(|op| matches!(op.kind, OpKind::Roles(_))).expect("there");
    func.ops[roles].regions.pop();
    assert!(says(&func).contains("the code of each role"));
}

#[test]
fn a_role_stays_in_its_code() {
    // It ends no thread, leaves no loop around it, and has no roles in it.
    let mut b = builder();
    split(&mut b, &ROLES, |b, _| b.terminate(OpKind::Return, &[]));
    assert!(says(&done(b)).contains("its code ends in `yield`"));
    let mut b = builder();
    let (open, _) = b.begin_loop(&[], &[]);
    split(&mut b, &ROLES, |b, _| b.terminate(OpKind::Break(0), &[]));
    b.terminate(OpKind::Continue(0), &[]);
    b.end(open);
    assert!(says(&done(b)).contains("no such loop"));
    let mut b = builder();
    split(&mut b, &ROLES, |b, _| split(b, &ROLES, |_, _| ()));
    assert!(says(&done(b)).contains("no roles in it"));
    // Nor does it part where lanes have parted already, or yield what it should not.
    let mut b = builder();
    let (warp, one) = (b.one(OpKind::WarpId, &[]), b.i32(1));
    let cond = b.cmp_u(Pred::Lt, warp, one);
    when(&mut b, cond, |b| split(b, &ROLES, |_, _| ()));
    assert!(says(&done(b)).contains("lanes may have diverged"));
    let mut b = builder();
    let one = b.i32(1);
    split(&mut b, &ROLES, |b, _| b.terminate(OpKind::Yield, &[one]));
    assert!(says(&done(b)).contains("yield"));
}

/// One kind of barrier in the code of the second role, there under a condition that is the same for a level of threads.
fn barrier_under(kind: &OpKind, level: Option<Level>) -> Func {
    let mut b = builder();
    let (n, warp, lane) = (b.one(OpKind::Slot(1), &[]), b.one(OpKind::WarpId, &[]), b.one(OpKind::LaneId, &[]));
    split(&mut b, &ROLES, |b, i| {
        if i == 0 {
            return;
        }
        let of = match level {
            None => return drop(b.op(kind.clone(), &[])),
            Some(Level::Program | Level::Role) => n,
            Some(Level::Warp) => warp,
            Some(Level::Lane) => lane,
        };
        let two = b.i32(2);
        let cond = b.cmp_u(Pred::Lt, of, two);
        when(b, cond, |b| drop(b.op(kind.clone(), &[])));
    });
    done(b)
}

#[test]
fn in_the_code_of_a_role_its_own_barriers_stand_and_the_programs_does_not() {
    let everywhere = [None, Some(Level::Program), Some(Level::Warp), Some(Level::Lane)];
    let cases = [
        (OpKind::Barrier, [false, false, false, false]),
        (named(2, 96), [true, true, false, false]),
        // One that some warps of the program share.
        (named(7, 64), [true, true, true, false]),
        (OpKind::WarpBarrier, [true, true, true, false]),
    ];
    for (kind, right) in cases {
        for (level, right) in everywhere.into_iter().zip(right) {
            let found = verify(&barrier_under(&kind, level));
            assert_eq!(found.is_ok(), right, "{kind:?} under {level:?}: {found:?}");
        }
    }
    assert!(says(&barrier_under(&named(2, 64), None)).contains("barrier 2 is of all 3 warps of its role"));
    assert!(says(&barrier_under(&named(1, 32), None)).contains("barrier 1 belongs to a role"));
    let mut b = builder();
    split(&mut b, &ROLES, |_, _| ());
    b.op(named(1, 128), &[]);
    assert!(says(&done(b)).contains("barrier 1 belongs to a role"));
    // Behind the roles all are together again.
    let mut b = builder();
    split(&mut b, &ROLES, |_, _| ());
    b.op(OpKind::Barrier, &[]);
    split(&mut b, &ROLES, |_, _| ());
    assert_eq!(verify(&done(b)), Ok(()));
}

#[test]
fn what_roles_yield_differs_from_warp_to_warp() {
    let mut b = builder();
    let (n, lane) = (b.one(OpKind::Slot(1), &[]), b.one(OpKind::LaneId, &[]));
    let mut open = b.begin_roles(&ROLES, &[Ty::B32, Ty::B32]);
    let inner = b.add_const(n, 3);
    b.terminate(OpKind::Yield, &[inner, n]);
    b.begin_else(&mut open);
    b.terminate(OpKind::Yield, &[n, lane]);
    let given = b.end(open);
    let base = b.one(OpKind::SharedBase, &[]);
    let polled = b.one(OpKind::LoadAcquire, &[base]);
    let found = analyze(&done(b));
    let levels: Vec<Level> = [inner, given[0], given[1], polled].iter().map(|v| found.level(*v)).collect();
    assert_eq!(levels, [Level::Program, Level::Warp, Level::Lane, Level::Lane]);
}
