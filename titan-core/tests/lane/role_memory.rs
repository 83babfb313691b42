//! What roles do to shared memory: which barriers stand there, and which places buffers have.

use crate::roles::{ROLES, builder, done, named, says, split};
use titan_core::lane::hazard::place_barriers;
use titan_core::lane::shared::allocate;
use titan_core::lane::{Builder, Func, OpKind, Region, Space, verify};

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
        split(b, &ROLES, |b, i| {
            if i == 1 {
                touch(b, Region::Buffer(0), true)
            }
        });
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
    for (first, second, write) in [
        (region[0], region[0], true),
        (region[0], region[1], true),
        (region[1], region[0], true),
        (region[0], region[0], false),
    ] {
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
    assert_eq!(
        places(2, |b| split(b, &ROLES, |b, i| if i == 1 {
            (0..2).for_each(|n| touch(b, own(n), true))
        })),
        [0, 0]
    );
    assert_eq!(
        places(2, |b| (0..2).for_each(|n| split(b, &ROLES, |b, i| if i == n {
            touch(b, own(n), true)
        }))),
        [0, 0]
    );
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
