//! Runs of barrier-level programs for given arguments, in the words of the memory model: between an ordinary access and an
//! asynchronous one that must see it lies a fence, which knows of the first and of which the second knows. It knows the text form's
//! operations and nothing of the analysis: happens-before by vector clocks, ranges of bytes as they are.

use std::collections::BTreeMap;
use titan_core::ir::{
    BinOp, Block, CallProxy, Const, FenceSpace, Kernel, NvGroup, NvOp, Op, OpKind, Pred, Proxy, RegionOp, TtgOp, Value,
};

/// What a role does, one thing after the other.
#[derive(Clone, Debug)]
enum Event {
    Touch { bytes: (u64, u64), write: bool, asynchronous: bool, op: String },
    Copy { bytes: (u64, u64) },
    Store { bytes: (u64, u64) },
    Close(NvGroup),
    Await(NvGroup, usize),
    Fence,
    Arrive(Value),
    Wait(Value),
    Sync,
}

struct Trace<'k> {
    kernel: &'k Kernel,
    env: BTreeMap<Value, i64>,
    events: Vec<Event>,
}

enum End {
    Yield,
    Continue,
    Return,
}

impl Trace<'_> {
    fn int(&self, v: Value) -> i64 {
        self.env[&v]
    }

    /// The bytes of a region or part.
    fn bytes(&self, v: Value, most: u64) -> (u64, u64) {
        let op = self.kernel.def_op(v).expect("a region");
        match op.kind {
            OpKind::Region(RegionOp::Place { offset, bytes, .. }) => {
                (u64::from(offset), u64::from(offset) + u64::from(bytes).min(most))
            }
            OpKind::Region(RegionOp::At) => {
                let whole = self.kernel.def_op(op.args[0]).expect("a region");
                let OpKind::Region(RegionOp::Place { offset, bytes, parts }) = whole.kind else {
                    panic!("a part of a part")
                };
                let (part, i) = (u64::from(bytes / parts), u64::try_from(self.int(op.args[1])).expect("an index"));
                assert!(i < u64::from(parts), "there is no such part");
                (u64::from(offset) + part * i, u64::from(offset) + part * i + part.min(most))
            }
            _ => panic!("not a region"),
        }
    }

    fn touch(&mut self, v: Value, most: u64, write: bool, asynchronous: bool, op: &str) {
        let bytes = self.bytes(v, most);
        self.events.push(Event::Touch { bytes, write, asynchronous, op: op.to_owned() });
    }

    fn block(&mut self, block: Block) -> End {
        for id in self.kernel.block(block).ops.clone() {
            let op = self.kernel.op(id).clone();
            match &op.kind {
                OpKind::Yield => return End::Yield,
                OpKind::Continue(0) => return End::Continue,
                OpKind::Return => return End::Return,
                OpKind::If => {
                    let arm = op.regions[usize::from(self.int(op.args[0]) == 0)];
                    if let end @ (End::Continue | End::Return) = self.block(arm) {
                        return end;
                    }
                }
                OpKind::For(_) => {
                    let index = self.kernel.block(op.regions[0]).args[0];
                    let (mut i, hi, step) = (self.int(op.args[0]), self.int(op.args[1]), self.int(op.args[2]));
                    while i < hi {
                        self.env.insert(index, i);
                        if let End::Return = self.block(op.regions[0]) {
                            return End::Return;
                        }
                        i += step;
                    }
                }
                OpKind::Ttg(TtgOp::Roles) => return End::Return,
                _ => self.simple(&op),
            }
        }
        End::Return
    }

    fn simple(&mut self, op: &Op) {
        let last = op.args.last().copied();
        match &op.kind {
            OpKind::Const(Const::Int(_, v)) => {
                self.env.insert(op.results[0], *v);
            }
            OpKind::Binary(b) => {
                let (x, y) = (self.int(op.args[0]), self.int(op.args[1]));
                let v = match b {
                    BinOp::Add => x + y,
                    BinOp::Sub => x - y,
                    BinOp::Rem => x % y,
                    BinOp::Xor => x ^ y,
                    _ => panic!("not in these programs"),
                };
                self.env.insert(op.results[0], v);
            }
            OpKind::Cmp(Pred::Gt) => {
                let v = i64::from(self.int(op.args[0]) > self.int(op.args[1]));
                self.env.insert(op.results[0], v);
            }
            OpKind::Region(RegionOp::Read) => self.touch(op.args[0], u64::MAX, false, false, "read"),
            OpKind::Region(RegionOp::Write) => self.touch(op.args[0], u64::MAX, true, false, "write"),
            OpKind::Region(RegionOp::Call(call)) => {
                for (i, region) in op.args.iter().enumerate() {
                    match call.proxy.unwrap_or(CallProxy::Generic) {
                        CallProxy::None => {}
                        proxy => {
                            self.touch(*region, u64::MAX, call.touch(i).writes(), proxy == CallProxy::Async, "call")
                        }
                    }
                }
            }
            OpKind::Ttg(TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, space, .. })
                if *space != FenceSpace::Global =>
            {
                self.events.push(Event::Fence);
            }
            OpKind::Nv(nv) => self.nv(op, *nv, last),
            OpKind::Region(_) | OpKind::Ttg(_) | OpKind::Shared => {}
            other => panic!("not in these programs: {other:?}"),
        }
    }

    fn nv(&mut self, op: &Op, nv: NvOp, last: Option<Value>) {
        match nv {
            NvOp::Wgmma => op.args.iter().for_each(|r| self.touch(*r, u64::MAX, false, true, "product")),
            NvOp::BulkLoad { bytes, .. } => {
                self.touch(op.args[op.args.len() - 2], u64::from(bytes), true, true, "load")
            }
            NvOp::BulkStore { bytes, .. } => {
                let region = last.expect("a region");
                self.touch(region, u64::from(bytes), false, true, "store");
                let bytes = self.bytes(region, u64::from(bytes));
                self.events.push(Event::Store { bytes });
            }
            NvOp::CpAsync { bytes } => {
                let bytes = self.bytes(last.expect("a region"), u64::from(bytes));
                self.events.push(Event::Copy { bytes });
            }
            NvOp::Commit { group, .. } => self.events.push(Event::Close(group)),
            NvOp::WaitGroup { group, n, .. } => self.events.push(Event::Await(group, n as usize)),
            NvOp::Arrive { .. } => self.events.push(Event::Arrive(op.args[0])),
            NvOp::WaitParity => self.events.push(Event::Wait(op.args[0])),
            NvOp::BarrierSync { .. } => self.events.push(Event::Sync),
            // Waiting for one's own copy orders nothing of the others.
            NvOp::ArriveExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::MbarrierInit { .. }
            | NvOp::FenceMbarrierInit
            | NvOp::WgmmaFence => {}
            other => panic!("not in these programs: {other:?}"),
        }
    }
}

/// Something that must be followed by an act of its own role before others may go on.
struct Record {
    role: usize,
    clock: u64,
    bytes: (u64, u64),
    write: bool,
}

#[derive(Default, Clone)]
struct Queue {
    open: Vec<(u64, u64)>,
    closed: Vec<Vec<(u64, u64)>>,
}

struct Run {
    clocks: Vec<Vec<u64>>,
    /// Ordinary accesses that are done.
    seen: Vec<Record>,
    /// What each role knew at its fences.
    fences: Vec<Vec<Vec<u64>>>,
    copies: Vec<Queue>,
    /// Bulk stores: when they began, and when they were known to have read.
    stores: Vec<(Record, Option<u64>)>,
    groups: Vec<(Vec<usize>, Vec<Vec<usize>>)>,
    wrong: Vec<String>,
}

const fn meet(a: (u64, u64), b: (u64, u64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

impl Run {
    fn touch(&mut self, role: usize, bytes: (u64, u64), write: bool, asynchronous: bool, op: &str) {
        let clock = self.clocks[role].clone();
        if asynchronous {
            for r in self.seen.iter().filter(|r| meet(r.bytes, bytes) && (r.write || write) && clock[r.role] >= r.clock)
            {
                let known = |by: usize, f: &Vec<u64>| clock[by] >= f[by];
                let fenced = self
                    .fences
                    .iter()
                    .enumerate()
                    .any(|(by, all)| all.iter().any(|f| f[r.role] >= r.clock && known(by, f)));
                if !fenced {
                    self.wrong.push(format!("unfenced {op}"));
                }
            }
        } else {
            self.seen.push(Record { role, clock: clock[role], bytes, write });
        }
        if write {
            for (r, done) in &self.stores {
                if meet(r.bytes, bytes) && clock[r.role] >= r.clock && done.is_none_or(|d| clock[r.role] < d) {
                    self.wrong.push(format!("{op} under a store"));
                }
            }
        }
    }

    fn step(&mut self, role: usize, event: &Event) {
        self.clocks[role][role] += 1;
        let now = self.clocks[role][role];
        match event {
            Event::Touch { bytes, write, asynchronous, op } => self.touch(role, *bytes, *write, *asynchronous, op),
            Event::Copy { bytes } => {
                self.copies[role].open.push(*bytes);
                // That it writes a region under a store counts when it begins.
                let before = self.seen.len();
                self.touch(role, *bytes, true, false, "copy");
                self.seen.truncate(before);
            }
            Event::Store { bytes } => {
                self.stores.push((Record { role, clock: now, bytes: *bytes, write: false }, None));
                self.groups[role].0.push(self.stores.len() - 1);
            }
            Event::Close(NvGroup::CpAsync) => {
                let open = std::mem::take(&mut self.copies[role].open);
                self.copies[role].closed.push(open);
            }
            Event::Close(NvGroup::BulkStore) => {
                let open = std::mem::take(&mut self.groups[role].0);
                self.groups[role].1.push(open);
            }
            Event::Await(NvGroup::CpAsync, n) => {
                let closed = &mut self.copies[role].closed;
                let landed: Vec<Vec<(u64, u64)>> = closed.drain(..closed.len().saturating_sub(*n)).collect();
                for bytes in landed.into_iter().flatten() {
                    self.seen.push(Record { role, clock: now, bytes, write: true });
                }
            }
            Event::Await(NvGroup::BulkStore, n) => {
                let closed = &mut self.groups[role].1;
                let done: Vec<Vec<usize>> = closed.drain(..closed.len().saturating_sub(*n)).collect();
                for store in done.into_iter().flatten() {
                    self.stores[store].1.get_or_insert(now);
                }
            }
            Event::Fence => {
                let known = self.clocks[role].clone();
                self.fences[role].push(known);
            }
            Event::Close(NvGroup::Wgmma)
            | Event::Await(NvGroup::Wgmma, _)
            | Event::Arrive(_)
            | Event::Wait(_)
            | Event::Sync => {}
        }
    }

    fn learn(&mut self, role: usize, from: &[u64]) {
        self.clocks[role].iter_mut().zip(from).for_each(|(c, f)| *c = (*c).max(*f));
    }
}

/// What is wrong in one run; `None` if it gets stuck.
pub(crate) fn run(kernel: &Kernel, args: &[i64]) -> Option<Vec<String>> {
    let mut first = Trace { kernel, env: BTreeMap::new(), events: Vec::new() };
    let scalars: Vec<usize> = (0..kernel.sig.params.len())
        .filter(|i| !matches!(kernel.ty(kernel.param(*i)), titan_core::ir::Ty::Tensor(..)))
        .collect();
    first.env.extend(scalars.iter().zip(args).map(|(p, v)| (kernel.param(*p), *v)));
    first.block(kernel.body);
    let roles = kernel.ops.iter().find(|op| op.kind == OpKind::Ttg(TtgOp::Roles));
    let traces: Vec<Vec<Event>> = match roles {
        None => vec![first.events],
        Some(op) => {
            let one = |block: &Block| {
                let mut trace = Trace { kernel, env: first.env.clone(), events: Vec::new() };
                trace.block(*block);
                trace.events
            };
            op.regions.iter().map(one).collect()
        }
    };
    together(&traces)
}

fn together(traces: &[Vec<Event>]) -> Option<Vec<String>> {
    let n = traces.len();
    let mut run = Run {
        clocks: vec![vec![0; n]; n],
        seen: Vec::new(),
        fences: vec![Vec::new(); n],
        copies: vec![Queue::default(); n],
        stores: Vec::new(),
        groups: vec![Default::default(); n],
        wrong: Vec::new(),
    };
    let mut at = vec![0; n];
    let mut arrived: BTreeMap<Value, Vec<Vec<u64>>> = BTreeMap::new();
    let mut waited: BTreeMap<(usize, Value), usize> = BTreeMap::new();
    loop {
        let before = at.clone();
        for role in 0..n {
            while let Some(event) = traces[role].get(at[role]) {
                match event {
                    Event::Sync => break,
                    Event::Wait(bar) => {
                        let k = waited.entry((role, *bar)).or_insert(0);
                        let Some(known) = arrived.get(bar).and_then(|a| a.get(*k)).cloned() else { break };
                        *k += 1;
                        run.learn(role, &known);
                    }
                    Event::Arrive(bar) => {
                        run.step(role, event);
                        arrived.entry(*bar).or_default().push(run.clocks[role].clone());
                    }
                    _ => run.step(role, event),
                }
                at[role] += 1;
            }
        }
        // A named barrier: all come, all go on.
        if (0..n).all(|r| matches!(traces[r].get(at[r]), Some(Event::Sync))) {
            (0..n).for_each(|r| run.clocks[r][r] += 1);
            for (r, other) in (0..n).flat_map(|r| (0..n).map(move |o| (r, o))) {
                let known = run.clocks[other].clone();
                run.learn(r, &known);
            }
            at.iter_mut().for_each(|a| *a += 1);
        }
        if at == before {
            break;
        }
    }
    if run.stores.iter().any(|(_, done)| done.is_none()) {
        run.wrong.push("a store in flight at the end".to_owned());
    }
    let done = (0..n).all(|r| at[r] == traces[r].len());
    done.then_some(run.wrong)
}
