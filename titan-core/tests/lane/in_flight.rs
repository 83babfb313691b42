//! Reads of shared memory that are complete only after a wait, across roles and marks; and the registers of MMAs in flight.

use crate::roles::{ROLES, builder, done, split};
use titan_core::ir::{Elem, Pred};
use titan_core::lane::hazard::check;
use titan_core::lane::{Builder, Func, GroupMma, GroupOperand, MmaAtom, NvOp, OpKind, Region, Space, Value, verify};

fn touch(b: &mut Builder, write: bool) {
    b.op(OpKind::Access { region: Region::Buffer(0), write }, &[]);
    access(b);
}

fn access(b: &mut Builder) {
    let base = b.one(OpKind::SharedBase, &[]);
    b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base]);
}

/// What the check of barriers says of a program with one buffer.
fn said(build: impl FnOnce(&mut Builder)) -> Option<String> {
    let mut b = builder();
    b.buffer("tile", 64, 0);
    build(&mut b);
    let mut func = done(b);
    func.shared_bytes = 64;
    check(&mut func)
}

/// Starts a read of the buffer, which is complete after [`await_reads`].
#[derive(Clone, Copy, Debug)]
enum Reader {
    Store,
    Mma,
}

fn mma(b: &mut Builder, fresh: bool, c: &[Value]) -> Vec<Value> {
    let atom = MmaAtom { m: 64, n: 8, k: 16, a: Elem::F16, b: Elem::F16, acc: Elem::F32 };
    let kind = GroupMma { atom, a: GroupOperand::Shared { transposed: false }, b_transposed: false, fresh };
    let descriptor = b.i64(0);
    let args = [&[descriptor, descriptor][..], c].concat();
    b.op(NvOp::GroupMma(kind), &args)
}

fn start(b: &mut Builder, reader: Reader) {
    b.op(OpKind::Access { region: Region::Buffer(0), write: false }, &[]);
    match reader {
        Reader::Store => {
            let (map, from) = (b.i64(0), b.one(OpKind::SharedBase, &[]));
            let at = b.i32(0);
            b.op(NvOp::BulkStore { rank: 1 }, &[map, from, at]);
            b.op(NvOp::BulkCommit, &[]);
        }
        Reader::Mma => {
            mma(b, true, &[]);
            b.op(NvOp::GroupCommit, &[]);
        }
    }
}

fn await_reads(b: &mut Builder, reader: Reader) {
    match reader {
        Reader::Store => b.op(NvOp::BulkWait { n: 0, read: true }, &[]),
        Reader::Mma => b.op(NvOp::GroupWait(0), &[]),
    };
}

fn barrier(b: &mut Builder, stands: bool) {
    if stands {
        b.op(OpKind::Barrier, &[]);
    }
}

#[test]
fn a_barrier_before_a_wait_does_not_settle_a_read_in_flight() {
    for reader in [Reader::Store, Reader::Mma] {
        for after in [false, true] {
            let said = said(|b| {
                start(b, reader);
                b.op(OpKind::Barrier, &[]);
                await_reads(b, reader);
                barrier(b, after);
                touch(b, true);
            });
            assert_eq!(said.is_none(), after, "{reader:?}: {said:?}");
        }
    }
}

#[test]
fn a_mark_before_a_wait_says_nothing_after_it() {
    for reader in [Reader::Store, Reader::Mma] {
        let said = said(|b| {
            start(b, reader);
            b.op(OpKind::Barrier, &[]);
            b.op(OpKind::Access { region: Region::Buffer(0), write: true }, &[]);
            await_reads(b, reader);
            access(b);
        });
        assert!(said.is_some(), "{reader:?}: other threads write before they know that the reads are complete");
    }
}

#[test]
fn what_a_role_leaves_in_flight_is_read_until_it_is_waited_for() {
    for reader in [Reader::Store, Reader::Mma] {
        for after in [false, true] {
            let said = said(|b| {
                split(b, &ROLES, |b, i| {
                    if i == 0 {
                        start(b, reader);
                    }
                });
                b.op(OpKind::Barrier, &[]);
                await_reads(b, reader);
                barrier(b, after);
                touch(b, true);
            });
            assert_eq!(said.is_none(), after, "{reader:?}: {said:?}");
        }
    }
}

#[test]
fn what_is_in_flight_when_roles_begin_is_read_in_them() {
    for reader in [Reader::Store, Reader::Mma] {
        for write in [false, true] {
            let said = said(|b| {
                start(b, reader);
                b.op(OpKind::Barrier, &[]);
                split(b, &ROLES, |b, i| {
                    if i == 1 {
                        await_reads(b, reader);
                        touch(b, write);
                    }
                });
            });
            assert_eq!(said.is_some(), write, "{reader:?}: {said:?}");
        }
    }
}

/// A program of one warpgroup.
fn group(build: impl FnOnce(&mut Builder)) -> Func {
    let mut b = Builder::new("k", vec![], 128, 32);
    build(&mut b);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("operands fit")
}

/// A loop that carries the registers of an MMA, and leaves it with zeros at a `break`, or continues with zeros.
fn left(kind: &OpKind, waits: bool) -> Func {
    group(|b| {
        let zeros: Vec<Value> = (0..4).map(|_| b.i32(0)).collect();
        let (lo, hi, one) = (b.i32(0), b.i32(9), b.i32(1));
        let (open, i, carried) = b.begin_for([lo, hi, one], &zeros);
        let next = mma(b, false, &carried);
        b.op(NvOp::GroupCommit, &[]);
        let next = if waits { b.op(NvOp::GroupWait(0), &next) } else { next };
        let leaves = b.cmp_u(Pred::Eq, i, one);
        let mut arms = b.begin_if(leaves, &[]);
        b.terminate(kind.clone(), &zeros);
        b.begin_else(&mut arms);
        b.terminate(OpKind::Yield, &[]);
        b.end(arms);
        b.terminate(OpKind::Continue(0), &next);
        let out = b.end(open);
        b.op(NvOp::GroupWait(0), &out);
    })
}

#[test]
fn registers_of_mmas_in_flight_are_in_flight_on_every_edge_of_a_loop() {
    for kind in [OpKind::Break(0), OpKind::Continue(0)] {
        let said = verify(&left(&kind, false)).map_err(|e| e.message);
        assert!(said.as_ref().is_err_and(|said| said.contains("on one path only")), "{kind:?}: {said:?}");
        assert_eq!(verify(&left(&kind, true)), Ok(()), "{kind:?}");
    }
}

#[test]
fn registers_of_mmas_in_flight_are_read_by_waits_only() {
    let plain = |with: &dyn Fn(&mut Builder, &[Value])| {
        verify(&group(|b| {
            let d = mma(b, true, &[]);
            b.op(NvOp::GroupCommit, &[]);
            with(b, &d);
        }))
        .map_err(|e| e.message)
    };
    assert_eq!(plain(&|b, d| drop(b.op(NvOp::GroupWait(0), d))), Ok(()));
    let early = plain(&|b, d| drop(b.op(OpKind::Pack, &d[..2])));
    assert!(early.is_err());
    let twice = plain(&|b, d| (0..2).for_each(|_| drop(b.op(NvOp::GroupWait(0), d))));
    assert!(twice.is_err_and(|said| said.contains("a second time")));
}
