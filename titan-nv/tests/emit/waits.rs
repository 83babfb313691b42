//! One kernel for each way to wait for others: every thread stores its operand to shared memory, something orders it, and
//! some threads read what another stored.

use crate::cases::{self, Case, THREADS};
use titan_core::ir::Pred;
use titan_core::lane::{Builder, NvOp, OpKind, Role, Space, Ty, Value};

/// A case, and whose operand each thread reads.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub case: Case,
    pub reads: fn(usize) -> usize,
}

/// A kernel that is being built: the shared words of its threads lie behind the ones that order them.
struct Cells {
    b: Builder,
    to: Value,
    base: Value,
    thread: Value,
    value: Value,
}

/// Where a thread's word lies from the base on.
const WORDS: i64 = 64;

fn open(name: &str) -> Cells {
    let (mut b, from, to) = cases::begin(name, 1, 1);
    let value = cases::load(&mut b, Ty::B32, from, 0);
    let (base, thread) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::ThreadId, &[]));
    Cells { b, to, base, thread, value }
}

impl Cells {
    fn word(&mut self, xor: i32) -> Value {
        let (bits, four) = (self.b.i32(xor), self.b.i32(4));
        let other = self.b.int(titan_core::lane::IntBin::Xor, self.thread, bits);
        let offset = self.b.mul(other, four);
        let at = self.b.add(self.base, offset);
        self.b.add_const(at, WORDS)
    }

    fn put(&mut self) {
        let (at, value) = (self.word(0), self.value);
        self.b.op(OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[at, value]);
    }

    /// Reads the word of another thread, and gives it as the result.
    fn take(&mut self, xor: i32) {
        let at = self.word(xor);
        let kind = OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false };
        let value = self.b.one(kind, &[at]);
        self.give(value);
    }

    fn give(&mut self, value: Value) {
        let to = self.to;
        cases::store(&mut self.b, value, to, 0);
    }

    fn is(&mut self, thread: i32) -> Value {
        let n = self.b.i32(thread);
        self.b.cmp_u(Pred::Eq, self.thread, n)
    }

    fn is_even(&mut self) -> Value {
        let (one, zero) = (self.b.i32(1), self.b.i32(0));
        let low = self.b.and(self.thread, one);
        self.b.cmp_u(Pred::Eq, low, zero)
    }

    fn op(&mut self, kind: impl Into<OpKind>, args: &[Value]) {
        self.b.op(kind, args);
    }

    /// One thread does something at the base, under a mask or in a branch.
    fn one_thread(&mut self, kind: OpKind, masked: bool) {
        let (first, base) = (self.is(0), self.base);
        if masked {
            self.op(kind, &[base, first]);
            return;
        }
        let mut arms = self.b.begin_if(first, &[]);
        self.op(kind, &[base]);
        self.b.terminate(OpKind::Yield, &[]);
        self.b.begin_else(&mut arms);
        self.b.terminate(OpKind::Yield, &[]);
        self.b.end(arms);
    }

    fn init(&mut self, count: u32, masked: bool) {
        self.one_thread(OpKind::Nv(NvOp::MbarrierInit { count, masked }), masked);
        self.op(OpKind::Barrier, &[]);
    }

    /// All threads wait for the first phase; the words are read; the second phase is not complete.
    fn wait(&mut self) {
        let (base, zero) = (self.base, self.b.i32(0));
        self.op(NvOp::MbarrierWait, &[base, zero]);
    }

    fn close(self, kind: OpKind, reads: fn(usize) -> usize) -> Wait {
        let mut b = self.b;
        b.terminate(OpKind::Return, &[]);
        let mut func = b.finish().expect("operands are what waits take");
        func.shared_bytes = WORDS as u32 + 4 * THREADS;
        Wait { case: Case { kind, args: vec![Ty::B32], func }, reads }
    }
}

fn name(kind: &OpKind) -> String {
    titan_core::lane::mnemonic(kind)
}

/// Every warp reads what the other one stored.
fn across(thread: usize) -> usize {
    thread ^ 32
}

/// The second warp reads what the first one stored.
fn from_the_first(thread: usize) -> usize {
    thread % 32
}

fn arrivals(count: u32, masked: bool) -> Wait {
    let kind = OpKind::Nv(NvOp::MbarrierArrive { count, masked });
    let mut c = open(&name(&kind));
    c.init(if masked { THREADS / 2 } else { count * THREADS }, !masked);
    c.put();
    let base = c.base;
    if masked {
        // An odd thread's word is ordered by its warp.
        c.op(OpKind::WarpBarrier, &[]);
        let even = c.is_even();
        c.op(kind.clone(), &[base, even]);
    } else {
        c.op(kind.clone(), &[base]);
    }
    c.wait();
    c.take(32);
    c.close(kind, across)
}

fn ends_of_barriers(masked: bool) -> Wait {
    let kind = OpKind::Nv(NvOp::MbarrierInvalidate { masked });
    let mut c = open(&name(&kind));
    // The same bytes are a barrier twice.
    for _ in 0..2 {
        c.init(THREADS, masked);
        c.put();
        let base = c.base;
        c.op(NvOp::MbarrierArrive { count: 1, masked: false }, &[base]);
        c.wait();
        c.take(32);
        c.op(OpKind::Barrier, &[]);
        c.one_thread(kind.clone(), masked);
    }
    c.close(kind, across)
}

/// Every thread copies 4 bytes from its operand.
fn copied(masked: bool) -> Wait {
    let kind = OpKind::Nv(NvOp::CopyArrive { masked });
    let (mut b, from, to) = cases::begin(&name(&kind), 1, 1);
    let (base, thread) = (b.one(OpKind::SharedBase, &[]), b.one(OpKind::ThreadId, &[]));
    let value = thread;
    let mut c = Cells { b, to, base, thread, value };
    c.init(THREADS, true);
    let at = c.word(0);
    c.op(NvOp::CopyAsync { bytes: 4, offset: 0, masked: false }, &[at, from]);
    if masked {
        // The others wait for their copies and arrive themselves.
        let even = c.is_even();
        c.op(kind.clone(), &[base, even]);
        c.op(NvOp::CopyCommit, &[]);
        c.op(NvOp::CopyWait(0), &[]);
        let odd = c.b.not(even);
        c.op(NvOp::MbarrierArrive { count: 1, masked: true }, &[base, odd]);
    } else {
        c.op(kind.clone(), &[base]);
    }
    c.wait();
    c.take(33);
    c.close(kind, |thread| thread ^ 33)
}

/// The first warp stores and signals the second; the second waits and reads.
fn one_way(
    kind: OpKind,
    before: impl FnOnce(&mut Cells),
    tell: impl FnOnce(&mut Cells),
    hear: impl FnOnce(&mut Cells),
) -> Wait {
    let mut c = open(&name(&kind));
    before(&mut c);
    let warp = c.b.one(OpKind::WarpId, &[]);
    let zero = c.b.i32(0);
    let first = c.b.cmp_u(Pred::Eq, warp, zero);
    let mut arms = c.b.begin_if(first, &[]);
    c.put();
    let value = c.value;
    c.give(value);
    tell(&mut c);
    c.b.terminate(OpKind::Yield, &[]);
    c.b.begin_else(&mut arms);
    hear(&mut c);
    c.take(32);
    c.b.terminate(OpKind::Yield, &[]);
    c.b.end(arms);
    c.close(kind, from_the_first)
}

fn named() -> Vec<Wait> {
    let kind = |wait| OpKind::Nv(NvOp::NamedBarrier { id: 5, threads: THREADS, wait });
    let once = |arrives: bool| {
        let (tell, hear) = (kind(!arrives), kind(true));
        one_way(kind(!arrives), |_| (), |c| c.op(tell, &[]), |c| c.op(hear, &[]))
    };
    vec![once(false), once(true)]
}

fn warp() -> Wait {
    let mut c = open("warp_barrier");
    c.put();
    c.op(OpKind::WarpBarrier, &[]);
    c.take(5);
    c.close(OpKind::WarpBarrier, |thread| thread ^ 5)
}

/// The word at the base begins as `from`.
fn counter(c: &mut Cells, from: i32) {
    let (first, base, from) = (c.is(0), c.base, c.b.i32(from));
    c.op(OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: true }, &[base, from, first]);
    c.op(OpKind::Barrier, &[]);
}

/// The first warp's number goes up to `to`, by one thread of it.
fn tell(c: &mut Cells, to: i32, masked: bool) {
    c.op(OpKind::WarpBarrier, &[]);
    let (base, to, first) = (c.base, c.b.i32(to), c.is(0));
    if masked {
        c.op(OpKind::StoreRelease { masked }, &[base, to, first]);
        return;
    }
    let mut arms = c.b.begin_if(first, &[]);
    c.op(OpKind::StoreRelease { masked }, &[base, to]);
    c.b.terminate(OpKind::Yield, &[]);
    c.b.begin_else(&mut arms);
    c.b.terminate(OpKind::Yield, &[]);
    c.b.end(arms);
}

/// Waits for a number; around the end of numbers too.
fn sequences() -> Vec<Wait> {
    let each = [
        (OpKind::SequenceWait, 0, 3),
        (OpKind::SequenceWait, -2, 1),
        (OpKind::StoreRelease { masked: false }, i32::MAX, i32::MIN),
    ];
    let wait = |(kind, from, to): (OpKind, i32, i32)| {
        let masked = kind == OpKind::SequenceWait;
        one_way(
            kind,
            |c| counter(c, from),
            |c| tell(c, to, masked),
            |c| {
                let (base, to) = (c.base, c.b.i32(to));
                c.op(OpKind::SequenceWait, &[base, to]);
            },
        )
    };
    let mut all: Vec<Wait> = each.into_iter().map(wait).collect();
    all.push(polling());
    all
}

/// The same as a loop of loads.
fn polling() -> Wait {
    one_way(
        OpKind::LoadAcquire,
        |c| counter(c, 0),
        |c| tell(c, 7, true),
        |c| {
            let seven = c.b.i32(7);
            let (open, _) = c.b.begin_loop(&[], &[]);
            let base = c.base;
            let now = c.b.one(OpKind::LoadAcquire, &[base]);
            let there = c.b.cmp_u(Pred::Eq, now, seven);
            let mut arms = c.b.begin_if(there, &[]);
            c.b.terminate(OpKind::Break(0), &[]);
            c.b.begin_else(&mut arms);
            c.b.terminate(OpKind::Yield, &[]);
            c.b.end(arms);
            c.b.terminate(OpKind::Continue(0), &[]);
            c.b.end(open);
        },
    )
}

/// Two warps with roles, and what each yields.
fn roles() -> Wait {
    let roles = vec![Role { warps: 1, barrier: 1 }, Role { warps: 1, barrier: 2 }];
    let kind = OpKind::Roles(roles.clone());
    let mut c = open("roles");
    c.init(32, true);
    let mut open = c.b.begin_roles(&roles, &[Ty::B32]);
    c.put();
    let (base, own) = (c.base, c.value);
    c.op(NvOp::MbarrierArrive { count: 1, masked: false }, &[base]);
    c.b.terminate(OpKind::Yield, &[own]);
    c.b.begin_else(&mut open);
    c.wait();
    let at = c.word(32);
    let load = OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false };
    let value = c.b.one(load, &[at]);
    c.b.terminate(OpKind::Yield, &[value]);
    let value = c.b.end(open)[0];
    c.give(value);
    c.close(kind, from_the_first)
}

/// Every case.
pub(crate) fn all() -> Vec<Wait> {
    let mut all = vec![arrivals(1, false), arrivals(1, true), arrivals(2, false), warp(), roles()];
    for masked in [false, true] {
        all.extend([ends_of_barriers(masked), copied(masked)]);
    }
    // An initialisation in a branch is a case of its own.
    let mut init = arrivals(1, true);
    init.case.kind = OpKind::Nv(NvOp::MbarrierInit { count: THREADS / 2, masked: false });
    all.push(init);
    all.extend(named());
    all.extend(sequences());
    all
}
