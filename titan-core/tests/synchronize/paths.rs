//! A barrier program, followed along one path with concrete numbers: who touches which bytes from when to when, and where
//! barriers stand.

use titan_core::ir::{
    BarrierTy, BinOp, Block, Const, Def, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, Pred, RegionOp, TtgOp, Ty,
    Value,
};

/// What a choice is of, and what was chosen: the arm of a branch, the rounds of a loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices {
    /// What was chosen so far, of how many.
    made: Vec<(u32, u32)>,
    at: usize,
    /// Where nothing is prescribed: 0, or what this gives.
    seed: Option<u64>,
}

impl Choices {
    pub(crate) fn random(seed: u64) -> Choices {
        Choices { seed: Some(seed), ..Choices::default() }
    }

    fn choose(&mut self, of: u32) -> u32 {
        if self.at == self.made.len() {
            let value = self.seed.as_mut().map_or(0, |s| {
                *s = s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((*s >> 40) % u64::from(of)) as u32
            });
            self.made.push((value, of));
        }
        self.at += 1;
        self.made[self.at - 1].0
    }

    /// The next path, if all of them are looked at in turn.
    pub(crate) fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((value, of)) = self.made.pop() {
            if value + 1 < of {
                self.made.push((value + 1, of));
                return true;
            }
        }
        false
    }
}

/// Which run of which roles, and which of them.
pub(crate) type Code = (usize, usize);

/// Bytes of shared memory, or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Bytes { region: OpId, from: u32, to: u32 },
    Output(usize),
}

/// What threads do to memory, from when to when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    #[expect(dead_code, reason = "failures show it")]
    op: OpId,
    pub(crate) place: Place,
    pub(crate) write: bool,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) code: Option<Code>,
}

/// What happened on a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) accesses: Vec<Access>,
    /// When all threads met, or those of a role.
    pub(crate) barriers: Vec<(usize, Option<Code>)>,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    Int(i64),
    Region { region: OpId, from: u32, bytes: u32, parts: u32 },
    Tensor(usize),
    Nothing,
}

enum Out {
    End(Vec<Known>),
    Break(u32, Vec<Known>),
    Continue(u32, Vec<Known>),
    Return,
}

struct Follow<'k, 'c> {
    kernel: &'k Kernel,
    choices: &'c mut Choices,
    known: Vec<Known>,
    trace: Trace,
    now: usize,
    /// Copies of the threads of each role, by commit group, the open one last.
    queues: Vec<Vec<Vec<usize>>>,
    /// How many queues each copy is still in.
    in_flight: Vec<usize>,
    code: Option<Code>,
    splits: usize,
}

/// Operations of a path, at most: a longer one ends there.
const LONGEST: usize = 300;

/// Follows a path.
pub(crate) fn follow(kernel: &Kernel, choices: &mut Choices) -> Trace {
    let queues = vec![vec![vec![]]; kernel.roles.len().max(1)];
    let known = vec![Known::Nothing; kernel.values.len()];
    let mut run = Follow {
        kernel,
        choices,
        known,
        trace: Trace::default(),
        now: 0,
        queues,
        in_flight: vec![],
        code: None,
        splits: 0,
    };
    for (i, param) in kernel.sig.params.iter().enumerate() {
        let value = kernel.param(i);
        run.known[value.index()] = match (kernel.ty(value), param.name.strip_prefix('q')) {
            (Ty::Tensor(..), _) => Known::Tensor(i),
            (_, Some(slots)) => Known::Int(run.choices.choose(slots.parse().expect("a number")).into()),
            _ => Known::Nothing,
        };
    }
    run.block(kernel.body);
    run.trace
}

impl Follow<'_, '_> {
    fn of(&self, value: Value) -> Known {
        self.known[value.index()]
    }

    fn int(&self, value: Value) -> i64 {
        match self.of(value) {
            Known::Int(n) => n,
            other => panic!("{value} is {other:?}"),
        }
    }

    fn all(&self, values: &[Value]) -> Vec<Known> {
        values.iter().map(|v| self.of(*v)).collect()
    }

    fn set(&mut self, values: &[Value], to: &[Known]) {
        for (value, to) in values.iter().zip(to) {
            self.known[value.index()] = *to;
        }
    }

    fn block(&mut self, block: Block) -> Out {
        for id in &self.kernel.block(block).ops {
            let op = self.kernel.op(*id);
            self.now += 1;
            if self.now > LONGEST {
                return Out::Return;
            }
            match op.kind {
                OpKind::Yield => return Out::End(self.all(&op.args)),
                OpKind::Break(n) => return Out::Break(n, self.all(&op.args)),
                OpKind::Continue(n) => return Out::Continue(n, self.all(&op.args)),
                OpKind::Return => return Out::Return,
                OpKind::If => {
                    let arm = self.choices.choose(2) as usize;
                    match self.block(op.regions[arm]) {
                        Out::End(values) => self.set(&op.results, &values),
                        out => return out,
                    }
                }
                OpKind::For(_) | OpKind::Loop => {
                    if let Some(out) = self.repeat(op) {
                        return out;
                    }
                }
                OpKind::Ttg(TtgOp::Roles) => {
                    self.splits += 1;
                    for (role, code) in op.regions.iter().enumerate() {
                        self.code = Some((self.splits, role));
                        self.block(*code);
                    }
                    self.code = None;
                }
                _ => self.op(*id, op),
            }
        }
        Out::End(vec![])
    }

    /// Goes through a loop; what is left if it leaves more than itself.
    fn repeat(&mut self, op: &Op) -> Option<Out> {
        let counted = matches!(op.kind, OpKind::For(_));
        let skip = usize::from(counted);
        let mut carried = self.all(&op.args[3 * skip..]);
        let rounds = if counted { [0, 1, 2, 5][self.choices.choose(4) as usize] } else { usize::MAX };
        let args = &self.kernel.block(op.regions[0]).args;
        let mut round = 0;
        while round < rounds {
            self.set(&args[skip..], &carried);
            match self.block(op.regions[0]) {
                Out::Continue(0, values) | Out::End(values) => carried = values,
                Out::Break(0, values) => {
                    carried = values;
                    break;
                }
                Out::Break(n, values) => return Some(Out::Break(n - 1, values)),
                Out::Continue(n, values) => return Some(Out::Continue(n - 1, values)),
                Out::Return => return Some(Out::Return),
            }
            round += 1;
        }
        self.set(&op.results, &carried);
        None
    }

    fn access(&mut self, op: OpId, value: Value, write: bool) -> Option<usize> {
        let place = match self.of(value) {
            Known::Region { region, from, bytes, .. } => Place::Bytes { region, from, to: from + bytes },
            Known::Tensor(i) if i > 0 => Place::Output(i),
            _ => return None,
        };
        let (from, code) = (self.now, self.code);
        self.trace.accesses.push(Access { op, place, write, from, to: from, code });
        self.in_flight.push(0);
        Some(self.trace.accesses.len() - 1)
    }

    /// The queues of the threads that run here.
    fn here(&self) -> std::ops::Range<usize> {
        self.code.map_or(0..self.queues.len(), |(_, role)| role..role + 1)
    }

    fn wait(&mut self, n: usize) {
        for queue in self.here() {
            let closed = self.queues[queue].len() - 1;
            let done: Vec<Vec<usize>> = self.queues[queue].drain(..closed.saturating_sub(n)).collect();
            for copy in done.into_iter().flatten() {
                self.in_flight[copy] -= 1;
                if self.in_flight[copy] == 0 {
                    self.trace.accesses[copy].to = self.now;
                }
            }
        }
    }

    fn meet(&mut self, threads: u32) {
        let warps = self.code.map_or(4, |(_, role)| self.kernel.roles[role].warps);
        if threads == 32 * warps {
            self.trace.barriers.push((self.now, self.code));
        }
    }

    fn op(&mut self, id: OpId, op: &Op) {
        match op.kind {
            OpKind::Load(..) => drop(self.access(id, op.args[0], false)),
            OpKind::Store(_) => drop(self.access(id, op.args[0], true)),
            OpKind::Local(LocalOp::Load) => drop(self.access(id, op.args[0], false)),
            OpKind::Local(LocalOp::Store) => drop(self.access(id, op.args[1], true)),
            OpKind::Local(LocalOp::Copy { asynchronous: true }) => {
                for (value, write) in [(op.args[0], false), (op.args[1], true)] {
                    let Some(copy) = self.access(id, value, write) else { continue };
                    self.trace.accesses[copy].to = usize::MAX;
                    self.in_flight[copy] = self.here().len();
                    for queue in self.here() {
                        self.queues[queue].last_mut().expect("open").push(copy);
                    }
                }
            }
            OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, .. }) => {
                self.here().for_each(|queue| self.queues[queue].push(vec![]));
            }
            OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, n, .. }) => self.wait(n as usize),
            OpKind::Nv(NvOp::WarpSync) => self.meet(32),
            OpKind::Nv(NvOp::BarrierSync { threads, .. }) => self.meet(threads),
            _ => {
                let known = self.value(id, op);
                let is_raw = |v: &&Value| matches!(self.kernel.ty(**v), Ty::Barrier(BarrierTy::Vtok(..)));
                if let Some(result) = op.results.first().filter(|v| !is_raw(v)) {
                    self.known[result.index()] = known;
                }
            }
        }
    }

    fn value(&self, id: OpId, op: &Op) -> Known {
        match &op.kind {
            OpKind::Const(Const::Int(_, n)) => Known::Int(*n),
            OpKind::Binary(f) => {
                let (x, y) = (self.int(op.args[0]), self.int(op.args[1]));
                match f {
                    BinOp::Add => Known::Int(x + y),
                    BinOp::Rem => Known::Int(x % y),
                    other => panic!("{other:?}"),
                }
            }
            OpKind::Cmp(Pred::Eq) => Known::Int((self.int(op.args[0]) == self.int(op.args[1])).into()),
            OpKind::Select => self.of(op.args[if self.int(op.args[0]) == 1 { 1 } else { 2 }]),
            OpKind::Ttg(TtgOp::Source(..)) => self.of(op.args[0]),
            OpKind::Region(RegionOp::Place { offset, bytes, parts }) => {
                Known::Region { region: id, from: *offset, bytes: *bytes, parts: *parts }
            }
            OpKind::Region(RegionOp::At) => {
                let Known::Region { region, from, bytes, parts } = self.of(op.args[0]) else { panic!("no region") };
                let (slot, each) = (self.int(op.args[1]) as u32, bytes / parts);
                assert!(slot < parts, "slot {slot} of {parts}");
                Known::Region { region, from: from + slot * each, bytes: each, parts: 1 }
            }
            OpKind::Region(RegionOp::Tile { offset, .. }) => {
                let Known::Region { region, from, .. } = self.of(op.args[0]) else { panic!("no region") };
                let bytes = self.kernel.encoding(op.results[0]).expect("an encoding").bytes();
                Known::Region { region, from: from + offset, bytes, parts: 1 }
            }
            _ => Known::Nothing,
        }
    }
}

/// The region that an access names, by the operation that makes it.
pub(crate) fn region_of(kernel: &Kernel, value: Value) -> Option<OpId> {
    let Def::Result(id, _) = kernel.value(value).def else { return None };
    let op = kernel.op(id);
    match op.kind {
        OpKind::Region(RegionOp::Place { .. }) => Some(id),
        OpKind::Region(_) => region_of(kernel, *op.args.first()?),
        _ => None,
    }
}
