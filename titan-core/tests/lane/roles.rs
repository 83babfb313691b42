//! Roles and what they wait with: types, rules, divergence, barriers and places, each in the smallest program that shows it.

use titan_core::ir::Pred;
use titan_core::lane::hazard::place_barriers;
use titan_core::lane::shared::allocate;
use titan_core::lane::uniform::{Level, analyze};
use titan_core::lane::{Builder, Func, OpKind, Region, Role, Space, Ty, Value, eliminate_dead, mnemonic, verify};
use titan_core::launch::abi::Slot;

/// Four warps; one has the first role, three the second.
const ROLES: [Role; 2] = [Role { warps: 1, barrier: 1 }, Role { warps: 3, barrier: 2 }];

fn builder() -> Builder {
    Builder::new("k", vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }], 128, 32)
}

fn done(mut b: Builder) -> Func {
    if !b.is_terminated() {
        b.terminate(OpKind::Return, &[]);
    }
    b.finish().expect("the builder takes it")
}

fn says(func: &Func) -> String {
    verify(func).expect_err("it is wrong").message
}

/// Roles with this code; the rest of the program follows.
fn split(b: &mut Builder, roles: &[Role], mut code: impl FnMut(&mut Builder, usize)) {
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

fn named(id: u8, threads: u32) -> OpKind {
    OpKind::NamedBarrier { id, threads, wait: true }
}

#[test]
fn operands_and_attributes_are_checked() {
    use Ty::{B32, B64, Pred};
    let init = |count, masked| OpKind::MbarrierInit { count, masked };
    let arrive = |count, masked| OpKind::MbarrierArrive { count, masked };
    let cases: [(OpKind, &[Ty], Option<&[Ty]>); 22] = [
        (init(1, false), &[B32], Some(&[])),
        (init((1 << 20) - 1, true), &[B32, Pred], Some(&[])),
        (init(0, false), &[B32], None),
        (init(1 << 20, false), &[B32], None),
        (init(1, true), &[B32], None),
        (OpKind::MbarrierInvalidate { masked: false }, &[B32], Some(&[])),
        (OpKind::MbarrierInvalidate { masked: true }, &[B32, Pred], Some(&[])),
        (arrive(1, false), &[B32], Some(&[])),
        (arrive(3, true), &[B32, Pred], Some(&[])),
        (arrive(0, false), &[B32], None),
        (arrive(1, false), &[B64], None),
        (OpKind::CopyArrive { masked: true }, &[B32, Pred], Some(&[])),
        (OpKind::CopyArrive { masked: false }, &[B64], None),
        (OpKind::MbarrierWait, &[B32, B32], Some(&[])),
        (OpKind::MbarrierWait, &[B32, Pred], None),
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
    for (id, threads, right) in [(1, 32, true), (15, 128, true), (0, 32, false), (16, 32, false), (3, 33, false), (3, 0, false), (3, 160, false)] {
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
        (OpKind::MbarrierInit { count: 1, masked: false }, vec![base]),
        (OpKind::MbarrierArrive { count: 1, masked: false }, vec![base]),
        (OpKind::CopyArrive { masked: false }, vec![base]),
        (OpKind::MbarrierWait, vec![base, zero]),
        (OpKind::StoreRelease { masked: false }, vec![base, zero]),
        (OpKind::LoadAcquire, vec![base]),
        (OpKind::SequenceWait, vec![base, zero]),
        (named(3, 64), vec![]),
        (OpKind::WarpBarrier, vec![]),
        (OpKind::MbarrierInvalidate { masked: false }, vec![base]),
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
    let arrive = OpKind::NamedBarrier { id: 7, threads: 64, wait: false };
    assert_eq!(mnemonic(&arrive), "named_barrier.arrive 7 of 64");
    assert_eq!(mnemonic(&OpKind::MbarrierArrive { count: 2, masked: true }), "mbarrier_arrive.masked 2");
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
    assert!(says(&done(b)).contains("lanes may have parted"));
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

/// A program whose buffers of 64 bytes lie one behind the other.
fn placed(buffers: u32, build: impl FnOnce(&mut Builder)) -> (Func, usize) {
    let mut b = builder();
    (0..buffers).for_each(|i| {
        b.buffer(&format!("tile{i}"), 64, 16);
    });
    build(&mut b);
    let mut func = done(b);
    for (i, buffer) in func.buffers.iter_mut().enumerate() {
        buffer.offset = 64 * i as u32;
    }
    func.shared_bytes = 64 * buffers;
    let count = place_barriers(&mut func);
    (func, count)
}

fn touch(b: &mut Builder, region: Region, write: bool) {
    b.op(OpKind::Access { region, write }, &[]);
    let base = b.one(OpKind::SharedBase, &[]);
    b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base]);
}

/// The barriers of a function, in program order.
fn kinds(func: &Func) -> Vec<OpKind> {
    let mut all = Vec::new();
    func.walk(&mut |_, op| {
        if matches!(op.kind, OpKind::Barrier | OpKind::NamedBarrier { .. } | OpKind::WarpBarrier | OpKind::Roles(_)) {
            all.push(op.kind.clone());
        }
    });
    all
}

#[test]
fn a_roles_own_accesses_are_settled_by_its_barrier() {
    let (func, count) = placed(2, |b| {
        split(b, &ROLES, |b, i| {
            touch(b, Region::Buffer(i as u32), true);
            touch(b, Region::Buffer(i as u32), false);
        });
    });
    assert_eq!(count, 2);
    assert_eq!(kinds(&func), [OpKind::Roles(ROLES.to_vec()), OpKind::WarpBarrier, named(2, 96)]);
    assert_eq!(verify(&func), Ok(()));
    // One that stands there already is enough, if it is of the whole role.
    for (barrier, more) in [(named(2, 96), 0), (named(9, 96), 1), (OpKind::WarpBarrier, 1)] {
        let (_, count) = placed(1, |b| {
            split(b, &ROLES, |b, i| {
                if i == 1 {
                    touch(b, Region::Buffer(0), true);
                    b.op(barrier.clone(), &[]);
                    touch(b, Region::Buffer(0), false);
                }
            });
        });
        assert_eq!(count, more, "{barrier:?}");
    }
}

#[test]
fn the_programs_barrier_stands_around_roles() {
    // What is written before is read in a role; what a role writes is read behind.
    let (func, count) = placed(2, |b| {
        touch(b, Region::Buffer(0), true);
        split(b, &ROLES, |b, i| {
            if i == 1 {
                touch(b, Region::Buffer(0), false);
                touch(b, Region::Buffer(1), true);
            }
        });
        touch(b, Region::Buffer(1), false);
    });
    assert_eq!((count, kinds(&func)), (2, vec![OpKind::Barrier, OpKind::Roles(ROLES.to_vec()), OpKind::Barrier]));
    assert_eq!(verify(&func), Ok(()));
    // What both only read needs none, nor does what nobody touches.
    let (_, count) = placed(2, |b| {
        touch(b, Region::Buffer(0), false);
        split(b, &ROLES, |b, _| touch(b, Region::Buffer(0), false));
        touch(b, Region::Buffer(1), true);
    });
    assert_eq!(count, 0);
    // A role's barrier is not the program's.
    let (_, count) = placed(1, |b| {
        split(b, &ROLES, |b, i| {
            if i == 1 {
                touch(b, Region::Buffer(0), true);
                b.op(named(2, 96), &[]);
            }
        });
        touch(b, Region::Buffer(0), false);
    });
    assert_eq!(count, 1);
    // In a loop this round's roles come after those of the round before.
    let (func, count) = placed(1, |b| {
        let (lo, hi, one) = (b.i32(0), b.i32(9), b.i32(1));
        let (open, ..) = b.begin_for([lo, hi, one], &[]);
        split(b, &ROLES, |b, i| if i == 1 { touch(b, Region::Buffer(0), true) });
        b.terminate(OpKind::Continue(0), &[]);
        b.end(open);
    });
    assert_eq!((count, kinds(&func)), (1, vec![OpKind::Barrier, OpKind::Roles(ROLES.to_vec())]));
}

#[test]
fn a_ring_conflicts_with_everything_but_itself() {
    let ring = Region::Ring(0);
    for (outside, inside, behind, wanted) in [
        (ring, ring, ring, 0),
        (Region::Buffer(0), ring, ring, 1),
        (Region::Buffer(0), ring, Region::Buffer(0), 2),
        (Region::Buffer(1), ring, Region::Tensor(0), 0),
    ] {
        let (func, count) = placed(2, |b| {
            touch(b, outside, true);
            split(b, &ROLES, |b, _| (0..2).for_each(|_| touch(b, inside, true)));
            touch(b, behind, true);
        });
        assert_eq!(count, wanted, "{outside:?}, {inside:?}, {behind:?}");
        assert_eq!(verify(&func), Ok(()));
    }
    // Without roles it is the same.
    let (_, count) = placed(1, |b| [true, false, true].map(|write| touch(b, ring, write)).into_iter().collect());
    assert_eq!(count, 0);
}

/// A copy to a region, without anybody waiting for it.
fn copy(b: &mut Builder, region: Region) {
    b.op(OpKind::Access { region, write: true }, &[]);
    let (to, from) = (b.one(OpKind::SharedBase, &[]), b.i64(0));
    b.op(OpKind::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
}

#[test]
fn copies_into_a_ring_have_arrived_when_the_roles_end() {
    let (_, count) = placed(1, |b| {
        split(b, &ROLES, |b, i| if i == 0 { copy(b, Region::Ring(0)) } else { touch(b, Region::Ring(0), false) });
        touch(b, Region::Buffer(0), true);
    });
    assert_eq!(count, 1, "its bytes are used again behind a barrier");
    // Others have not, whatever a role waits for.
    let (func, count) = placed(1, |b| {
        copy(b, Region::Buffer(0));
        split(b, &ROLES, |b, i| {
            b.op(OpKind::CopyCommit, &[]);
            b.op(OpKind::CopyWait(0), &[]);
            if i == 0 {
                touch(b, Region::Buffer(0), false);
            }
        });
    });
    assert_eq!(count, 0);
    assert!(says(&func).contains("a role touches what a copy from before it is still on its way to"));
}

#[test]
fn what_no_barrier_orders_is_refused_and_nothing_is_placed() {
    let region = [Region::Buffer(0), Region::Ring(0)];
    for (first, second, write) in [(region[0], region[0], true), (region[0], region[1], true), (region[1], region[0], true), (region[0], region[0], false)] {
        let (func, count) = placed(1, |b| {
            split(b, &ROLES, |b, i| {
                touch(b, if i == 0 { first } else { second }, write && i == 0);
                touch(b, Region::Tensor(0), i == 1);
            });
            touch(b, Region::Tensor(0), false);
        });
        if write {
            let marks = func.ops.iter().filter(|op| matches!(op.kind, OpKind::Access { .. })).count();
            assert_eq!((count, marks), (0, 5), "the marks stay");
            assert!(says(&func).contains("roles 0 and 1 touch `tile0` at the same time, and it is not their ring"));
        } else {
            assert_eq!((count, verify(&func)), (1, Ok(())), "what roles do to tensors was looked at before");
        }
    }
    // Places that overlap are found too.
    let mut b = builder();
    for name in ["a", "b"] {
        b.buffer(name, 64, 16);
    }
    split(&mut b, &ROLES, |b, i| touch(b, Region::Buffer(i as u32), true));
    let mut func = done(b);
    assert_eq!(verify(&func), Ok(()), "they have no places yet");
    func.shared_bytes = 64;
    assert!(says(&func).contains("roles 0 and 1 touch `b`"));
}

/// The places of buffers of 64 bytes.
fn places(buffers: u32, build: impl FnOnce(&mut Builder)) -> Vec<u32> {
    let mut b = builder();
    (0..buffers).for_each(|_| {
        b.buffer("b", 64, 16);
    });
    build(&mut b);
    let mut func = done(b);
    allocate(&mut func);
    func.buffers.iter().map(|b| b.offset).collect()
}

#[test]
fn buffers_of_different_roles_have_different_places() {
    let own = |i: usize| Region::Buffer(i as u32);
    assert_eq!(places(2, |b| split(b, &ROLES, |b, i| touch(b, own(i), true))), [0, 64]);
    // Of one role they take each other's, and so do those of roles that follow each other.
    assert_eq!(places(2, |b| split(b, &ROLES, |b, i| if i == 1 { (0..2).for_each(|n| touch(b, own(n), true)) })), [0, 0]);
    assert_eq!(places(2, |b| (0..2).for_each(|n| split(b, &ROLES, |b, i| if i == n { touch(b, own(n), true) }))), [0, 0]);
    // What a role reads from before lies apart from what the other one has, and what it leaves behind too.
    for before in [true, false] {
        for (reads, has) in [(0, 1), (1, 0)] {
            let found = places(2, |b| {
                if before {
                    touch(b, own(0), true);
                }
                split(b, &ROLES, |b, i| {
                    if i == reads {
                        touch(b, own(0), !before);
                    } else if i == has {
                        touch(b, own(1), true);
                    }
                });
                if !before {
                    touch(b, own(0), false);
                }
            });
            assert_ne!(found[0], found[1], "before {before}, role {reads} and role {has}");
        }
    }
}

#[test]
fn a_ring_is_needed_in_all_of_its_loops() {
    let around = |region: fn(u32) -> Region| {
        places(2, |b| {
            let (lo, hi, one) = (b.i32(0), b.i32(9), b.i32(1));
            let (open, ..) = b.begin_for([lo, hi, one], &[]);
            copy(b, region(0));
            b.op(OpKind::CopyCommit, &[]);
            b.op(OpKind::CopyWait(0), &[]);
            touch(b, region(0), false);
            touch(b, Region::Buffer(1), true);
            b.terminate(OpKind::Continue(0), &[]);
            b.end(open);
        })
    };
    assert_eq!(around(Region::Buffer), [0, 0]);
    assert_eq!(around(Region::Ring), [0, 64], "a slot holds something in the next round");
}
