//! What roles do to shared memory, and which barriers the check asks for there.

use crate::roles::{ROLES, builder, done, named, says, split};
use titan_core::lane::hazard::check;
use titan_core::lane::{Builder, Func, NvOp, OpKind, Region, Space, verify};

/// What the check says of a program whose buffers of 64 bytes lie one behind the other; one that it takes is well formed.
fn said(buffers: u32, build: impl FnOnce(&mut Builder)) -> Option<String> {
    let mut func = placed(buffers, build);
    let said = check(&mut func);
    if said.is_none() {
        assert_eq!(verify(&func), Ok(()), "{func}");
    }
    said
}

fn placed(buffers: u32, build: impl FnOnce(&mut Builder)) -> Func {
    let mut b = builder();
    for i in 0..buffers {
        b.buffer(&format!("tile{i}"), 64, 64 * i);
    }
    build(&mut b);
    let mut func = done(b);
    func.shared_bytes = 64 * buffers;
    func
}

/// What is wrong between two threads without a barrier.
fn meets(said: Option<String>) -> bool {
    said.is_some_and(|said| said.starts_with("`Access") || said.starts_with("`Roles"))
}

fn touch(b: &mut Builder, region: Region, write: bool) {
    b.op(OpKind::Access { region, write }, &[]);
    let base = b.one(OpKind::SharedBase, &[]);
    b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base]);
}

fn barrier(b: &mut Builder, kind: Option<OpKind>) {
    kind.into_iter().for_each(|kind| drop(b.op(kind, &[])));
}

#[test]
fn a_roles_own_accesses_are_settled_by_its_barrier() {
    let of_role = |role: usize, kind: Option<OpKind>| {
        said(2, |b| {
            split(b, &ROLES, |b, i| {
                if i == role {
                    touch(b, Region::Buffer(i as u32), true);
                    barrier(b, kind.clone());
                    touch(b, Region::Buffer(i as u32), false);
                }
            });
        })
    };
    assert!(meets(of_role(0, None)) && meets(of_role(1, None)));
    assert_eq!(of_role(0, Some(OpKind::WarpBarrier)), None);
    assert_eq!(of_role(1, Some(named(2, 96))), None);
    // One that not all threads of the role come to settles nothing.
    assert!(meets(of_role(1, Some(named(9, 96)))));
    assert!(meets(of_role(1, Some(OpKind::WarpBarrier))));
    assert!(meets(of_role(1, Some(OpKind::Nv(NvOp::NamedBarrier { id: 2, threads: 96, wait: false })))));
}

#[test]
fn the_programs_barrier_stands_around_roles() {
    // What is written before is read in a role; what a role writes is read behind.
    let around = |barriers: [bool; 2]| {
        said(2, |b| {
            touch(b, Region::Buffer(0), true);
            barrier(b, barriers[0].then_some(OpKind::Barrier));
            split(b, &ROLES, |b, i| {
                if i == 1 {
                    touch(b, Region::Buffer(0), false);
                    touch(b, Region::Buffer(1), true);
                }
            });
            barrier(b, barriers[1].then_some(OpKind::Barrier));
            touch(b, Region::Buffer(1), false);
        })
    };
    assert!(meets(around([false, true])) && meets(around([true, false])) && meets(around([false, false])));
    assert_eq!(around([true, true]), None);
    // Memory that both only read needs no barrier, and neither does memory that neither accesses.
    let reads = said(2, |b| {
        touch(b, Region::Buffer(0), false);
        split(b, &ROLES, |b, _| touch(b, Region::Buffer(0), false));
        touch(b, Region::Buffer(1), true);
    });
    assert_eq!(reads, None);
    // A role's barrier is not the program's.
    let own = said(1, |b| {
        split(b, &ROLES, |b, i| {
            if i == 1 {
                touch(b, Region::Buffer(0), true);
                b.op(named(2, 96), &[]);
            }
        });
        touch(b, Region::Buffer(0), false);
    });
    assert!(meets(own));
    // In a loop this round's roles come after those of the round before.
    for stands in [false, true] {
        let rounds = said(1, |b| {
            let (lo, hi, one) = (b.i32(0), b.i32(9), b.i32(1));
            let (open, ..) = b.begin_for([lo, hi, one], &[]);
            barrier(b, stands.then_some(OpKind::Barrier));
            split(b, &ROLES, |b, i| {
                if i == 1 {
                    touch(b, Region::Buffer(0), true)
                }
            });
            b.terminate(OpKind::Continue(0), &[]);
            b.end(open);
        });
        assert_eq!(meets(rounds), !stands);
    }
}

#[test]
fn a_ring_conflicts_with_everything_but_itself() {
    let ring = Region::Ring(0);
    for (outside, inside, behind, wanted) in [
        (ring, ring, ring, [false, false]),
        (Region::Buffer(0), ring, ring, [true, false]),
        (Region::Buffer(0), ring, Region::Buffer(0), [true, true]),
        (Region::Buffer(1), ring, Region::Tensor(0), [false, false]),
    ] {
        for barriers in [[false, false], [false, true], [true, false], [true, true]] {
            let said = said(2, |b| {
                touch(b, outside, true);
                barrier(b, barriers[0].then_some(OpKind::Barrier));
                split(b, &ROLES, |b, _| (0..2).for_each(|_| touch(b, inside, true)));
                barrier(b, barriers[1].then_some(OpKind::Barrier));
                touch(b, behind, true);
            });
            let lacks = (0..2).any(|i| wanted[i] && !barriers[i]);
            assert_eq!(meets(said), lacks, "{outside:?}, {inside:?}, {behind:?}, {barriers:?}");
        }
    }
    // Without roles it is the same.
    assert_eq!(said(1, |b| [true, false, true].into_iter().for_each(|write| touch(b, ring, write))), None);
}

/// A copy to a region, without anybody waiting for it.
fn copy(b: &mut Builder, region: Region) {
    b.op(OpKind::Access { region, write: true }, &[]);
    let (to, from) = (b.one(OpKind::SharedBase, &[]), b.i64(0));
    b.op(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
}

#[test]
fn copies_into_a_ring_have_arrived_when_the_roles_end() {
    for stands in [false, true] {
        let used_again = said(1, |b| {
            split(b, &ROLES, |b, i| if i == 0 { copy(b, Region::Ring(0)) } else { touch(b, Region::Ring(0), false) });
            barrier(b, stands.then_some(OpKind::Barrier));
            touch(b, Region::Buffer(0), true);
        });
        assert_eq!(meets(used_again), !stands, "its bytes are used again behind a barrier");
    }
    // Others have not, whatever a role waits for.
    let mut func = placed(1, |b| {
        copy(b, Region::Buffer(0));
        split(b, &ROLES, |b, i| {
            b.op(NvOp::CopyCommit, &[]);
            b.op(NvOp::CopyWait(0), &[]);
            if i == 0 {
                touch(b, Region::Buffer(0), false);
            }
        });
    });
    let why = "a role accesses the target of a copy that was issued before the roles and is in flight";
    assert!(says(&func).contains(why));
    assert_eq!(check(&mut func).as_deref(), Some(why));
}

#[test]
fn what_no_barrier_orders_is_refused() {
    let region = [Region::Buffer(0), Region::Ring(0)];
    for (first, second, write) in [
        (region[0], region[0], true),
        (region[0], region[1], true),
        (region[1], region[0], true),
        (region[0], region[0], false),
    ] {
        let mut func = placed(1, |b| {
            split(b, &ROLES, |b, i| {
                touch(b, if i == 0 { first } else { second }, write && i == 0);
                touch(b, Region::Tensor(0), i == 1);
            });
            b.op(OpKind::Barrier, &[]);
            touch(b, Region::Tensor(0), false);
        });
        if write {
            let why = "roles 0 and 1 access `tile0` concurrently, and it is not a ring";
            assert!(says(&func).contains(why));
            assert_eq!(check(&mut func).as_deref(), Some(why));
        } else {
            assert_eq!(
                (check(&mut func), verify(&func)),
                (None, Ok(())),
                "what roles do to tensors was looked at before"
            );
        }
    }
    // Places that overlap are found too.
    let mut b = builder();
    for name in ["a", "b"] {
        b.buffer(name, 64, 0);
    }
    split(&mut b, &ROLES, |b, i| touch(b, Region::Buffer(i as u32), true));
    let mut func = done(b);
    assert_eq!(verify(&func), Ok(()), "they have no places yet");
    func.shared_bytes = 64;
    assert!(says(&func).contains("roles 0 and 1 access `b`"));
}
