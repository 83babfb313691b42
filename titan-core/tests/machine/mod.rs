//! A program of the lane IR, run: all of its threads together, with memory, and every access looked at.
//!
//! Threads go through the function side by side, those that take the other way waiting; so what an operation gives to all of
//! its threads can be seen at once. What goes wrong is kept and told: accesses outside of buffers and tensors or not on a
//! multiple of their bytes, two threads at one byte without a barrier between them, bytes of asynchronous copies that were not
//! waited for, lanes missing where all must be.
//!
//! Integers are computed. Floats are computed by a function that a test provides; without one their results are 0, and no address may
//! depend on them. Shares no code with the analyses of `titan_core::lane`, which it checks.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod arith;
mod control;
mod exchange;
pub(crate) mod memory;
mod rng;

pub(crate) use rng::Rng;

use memory::Memory;
use std::collections::BTreeSet;
use titan_core::lane::{AmdOp, AtomicFn, Func, NvOp, Op, OpId, OpKind, Space, Ty, Value};

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    /// Leaves the loop of this number, counted from the outermost.
    Broke(usize),
    /// Goes on with the next iteration of it.
    Continued(usize),
    Returned,
}

/// The results of an operation on floats, or what an atomic update leaves, by the operands: what was there before and the operand.
pub(crate) type Floats = fn(&OpKind, &[u64]) -> Vec<u64>;

/// Threads, by number.
pub(crate) type Mask = Vec<bool>;

pub(crate) struct Machine<'f> {
    pub(crate) func: &'f Func,
    pub(crate) threads: usize,
    pub(crate) values: Vec<Vec<u64>>,
    /// Where the buffer begins that an address comes from.
    from: Vec<Option<u32>>,
    pub(crate) slots: Vec<u64>,
    pub(crate) program: [u32; 3],
    pub(crate) grid: [u32; 3],
    pub(crate) memory: Memory,
    pub(crate) state: Vec<State>,
    /// What computes floats.
    pub(crate) floats: Option<Floats>,
    pub(crate) loops: usize,
    steps: u64,
    pub(crate) wrong: BTreeSet<String>,
    /// Operations that were reached with lanes missing.
    pub(crate) diverged: BTreeSet<OpId>,
    /// Values, with whether they differed in the program and in a warp, among threads that got them together.
    pub(crate) differed: Vec<(bool, bool)>,
}

/// More than any test needs.
const STEPS: u64 = 3_000_000;

impl<'f> Machine<'f> {
    pub(crate) fn new(func: &'f Func, slots: Vec<u64>, memory: Memory) -> Machine<'f> {
        let threads = func.threads as usize;
        Machine {
            func,
            threads,
            values: vec![vec![0; threads]; func.values.len()],
            from: vec![None; func.values.len()],
            slots,
            program: [0; 3],
            grid: [1; 3],
            memory,
            state: vec![State::Running; threads],
            floats: None,
            loops: 0,
            steps: 0,
            wrong: BTreeSet::new(),
            diverged: BTreeSet::new(),
            differed: vec![(false, false); func.values.len()],
        }
    }

    /// Runs one program from its start.
    pub(crate) fn run(&mut self, program: [u32; 3]) {
        self.program = program;
        self.state = vec![State::Running; self.threads];
        self.memory.next_program(self.func.shared_bytes);
        self.block(self.func.body, &vec![true; self.threads]);
    }

    pub(crate) fn say(&mut self, what: String) {
        if self.wrong.len() < 20 {
            self.wrong.insert(what);
        }
    }

    /// Whether something went wrong, or there were too many steps to know.
    pub(crate) fn ran_out(&self) -> bool {
        self.steps >= STEPS
    }

    pub(crate) fn set(&mut self, value: Value, thread: usize, bits: u64) {
        let mask = match self.func.ty(value) {
            Ty::Pred => 1,
            Ty::B16 => 0xffff,
            Ty::B32 => 0xffff_ffff,
            Ty::B64 => u64::MAX,
        };
        self.values[value.index()][thread] = bits & mask;
    }

    pub(crate) fn get(&self, value: Value, thread: usize) -> u64 {
        self.values[value.index()][thread]
    }

    /// Notes whether threads that got a value together got different ones.
    pub(crate) fn compare(&mut self, value: Value, mask: &Mask) {
        let lanes = self.func.lanes as usize;
        let all = &self.values[value.index()];
        let mut program = None;
        let mut warp = (usize::MAX, 0);
        let mut found = (false, false);
        for t in (0..self.threads).filter(|t| mask[*t]) {
            found.0 |= *program.get_or_insert(all[t]) != all[t];
            if warp.0 == t / lanes {
                found.1 |= warp.1 != all[t];
            } else {
                warp = (t / lanes, all[t]);
            }
        }
        let slot = &mut self.differed[value.index()];
        *slot = (slot.0 | found.0, slot.1 | found.1);
    }

    pub(crate) fn op(&mut self, id: OpId, op: &Op, mask: &Mask) {
        self.steps += 1;
        if op.kind.is_convergent() {
            self.meet(id, op, mask);
        }
        let from: BTreeSet<u32> = op.args.iter().filter_map(|a| self.from[a.index()]).collect();
        if let (1, Some(result)) = (from.len(), op.results.first()) {
            self.from[result.index()] = from.first().copied();
        }
        match &op.kind {
            OpKind::Load { .. }
            | OpKind::Store { .. }
            | OpKind::Atomic { .. }
            | OpKind::CompareSwap(_)
            | OpKind::Nv(NvOp::CopyAsync { .. })
            | OpKind::Amd(AmdOp::BufferLoad { .. }) => {
                self.access(op, mask);
            }
            OpKind::Nv(NvOp::CopyCommit) => self.memory.commit(mask),
            OpKind::Nv(NvOp::CopyWait(n)) => self.memory.wait(mask, *n),
            OpKind::Barrier => self.memory.barrier(),
            // They order less than is looked at here.
            OpKind::Access { .. } | OpKind::Nv(NvOp::NamedBarrier { .. }) | OpKind::WarpBarrier => {}
            OpKind::Shuffle(_) | OpKind::Vote(_) | OpKind::Nv(NvOp::LoadMatrix { .. }) | OpKind::Mma(_) => {
                self.exchange(op, mask)
            }
            OpKind::Int(titan_core::lane::IntBin::Add) if self.is_buffer(op) => {
                let (base, offset) = (op.args[0], op.args[1]);
                let result = op.results[0];
                for t in 0..self.threads {
                    let sum = self.get(base, t) + self.get(offset, t);
                    self.set(result, t, sum);
                }
                self.from[result.index()] = Some(self.get(offset, 0) as u32);
            }
            _ => {
                for t in (0..self.threads).filter(|t| mask[*t]) {
                    let args: Vec<u64> = op.args.iter().map(|a| self.get(*a, t)).collect();
                    match self.plain(op, &args, t) {
                        Some(bits) => op.results.iter().zip(bits).for_each(|(r, b)| self.set(*r, t, b)),
                        None => self.say(format!("{} of {args:x?} breaks its contract", name(op))),
                    }
                }
            }
        }
        for result in &op.results {
            self.compare(*result, mask);
        }
    }

    /// Whether an operation gives the place of a buffer: the program's base and a constant.
    fn is_buffer(&self, op: &Op) -> bool {
        self.func.def_op(op.args[0]).is_some_and(|o| o.kind == OpKind::SharedBase)
            && self.func.def_op(op.args[1]).is_some_and(|o| matches!(o.kind, OpKind::Const(..)))
    }

    /// All lanes of a warp, and of the program for a barrier, must be here.
    fn meet(&mut self, id: OpId, op: &Op, mask: &Mask) {
        let group = match &op.kind {
            OpKind::Barrier | OpKind::Roles(_) => self.threads,
            // Its threads begin at a multiple of their number: the tests' roles are of one size.
            OpKind::Nv(NvOp::NamedBarrier { threads, .. }) => *threads as usize,
            _ => self.func.lanes as usize,
        };
        if mask.chunks(group).any(|g| g.iter().any(|m| *m) && !g.iter().all(|m| *m)) {
            self.diverged.insert(id);
        }
    }

    fn plain(&self, op: &Op, args: &[u64], t: usize) -> Option<Vec<u64>> {
        let (lane, warp) = (t as u64 % u64::from(self.func.lanes), t as u64 / u64::from(self.func.lanes));
        Some(match &op.kind {
            OpKind::Slot(slot) => vec![self.slots[*slot as usize]],
            OpKind::ThreadId => vec![t as u64],
            OpKind::LaneId => vec![lane],
            OpKind::WarpId => vec![warp],
            OpKind::ProgramId(axis) => vec![self.program[usize::from(*axis)].into()],
            OpKind::NumPrograms(axis) => vec![self.grid[usize::from(*axis)].into()],
            OpKind::SharedBase => vec![memory::SHARED_BASE.into()],
            OpKind::Amd(AmdOp::Buffer) => vec![args[0] & 0xffff_ffff, args[0] >> 32 & 0xffff, args[1], 0],
            OpKind::Float(..)
            | OpKind::FloatUn(..)
            | OpKind::Fma(_)
            | OpKind::FloatCmp(..)
            | OpKind::Convert { .. } => match self.floats {
                Some(floats) => floats(&op.kind, args),
                None => vec![0; op.results.len()],
            },
            kind => arith::plain(kind, op.args.first().map(|a| self.func.ty(*a)), args)?,
        })
    }

    fn access(&mut self, op: &Op, mask: &Mask) {
        for t in (0..self.threads).filter(|t| mask[*t]) {
            let args: Vec<u64> = op.args.iter().map(|a| self.get(*a, t)).collect();
            let outcome = self.one_access(op, &args, t);
            match outcome {
                Ok(bits) => op.results.iter().zip(bits).for_each(|(r, b)| self.set(*r, t, b)),
                Err(what) => self.say(format!("line {}: {}: {what}", op.loc.line, name(op))),
            }
        }
    }

    /// The range that an address and an offset name, checked.
    fn range(&self, space: Space, address: Value, at: u64, offset: i32, bytes: u64) -> Result<u64, String> {
        let start = match space {
            Space::Global => at.wrapping_add_signed(offset.into()),
            Space::Shared => u64::from((at as u32).wrapping_add_signed(offset)),
        };
        if !start.is_multiple_of(bytes) {
            return Err(format!("{start:#x} is no multiple of {bytes}"));
        }
        if space == Space::Shared {
            let inside = |b: &titan_core::lane::Buffer| {
                let first = u64::from(memory::SHARED_BASE + b.offset);
                self.from[address.index()] == Some(b.offset)
                    && start >= first
                    && start + bytes <= first + u64::from(b.bytes)
            };
            if !self.func.buffers.iter().any(inside) {
                return Err(format!("{start:#x} is outside of the buffer at {:?}", self.from[address.index()]));
            }
        }
        Ok(start)
    }

    fn one_access(&mut self, op: &Op, args: &[u64], t: usize) -> Result<Vec<u64>, String> {
        let masked_off = |masked: bool| masked && args.last() == Some(&0);
        match &op.kind {
            OpKind::Load { space, bytes, n, offset, masked } => {
                let (each, n) = (u64::from(*bytes), u64::from(*n));
                if masked_off(*masked) {
                    return Ok(args[1..=n as usize].to_vec());
                }
                let start = self.range(*space, op.args[0], args[0], *offset, each * n)?;
                self.memory.read(*space, start, each, n, t)
            }
            OpKind::Store { space, bytes, n, offset, masked } => {
                if masked_off(*masked) {
                    return Ok(vec![]);
                }
                let (each, n) = (u64::from(*bytes), u64::from(*n));
                let start = self.range(*space, op.args[0], args[0], *offset, each * n)?;
                self.memory.write(*space, start, each, &args[1..=n as usize], t)?;
                Ok(vec![])
            }
            OpKind::Atomic { op: f, space, masked } => {
                if masked_off(*masked) {
                    return Ok(vec![0]);
                }
                let bytes = self.func.ty(op.args[1]).bytes();
                let start = self.range(*space, op.args[0], args[0], 0, bytes)?;
                let old = self.memory.peek(*space, start, bytes)?;
                let new = match (f, self.floats) {
                    (AtomicFn::AddF32 | AtomicFn::AddF64 | AtomicFn::AddF16x2, Some(floats)) => {
                        floats(&op.kind, &[old, args[1]])[0]
                    }
                    _ => arith::atomic(*f, bytes, old, args[1]),
                };
                self.memory.poke(*space, start, bytes, new)?;
                Ok(vec![old])
            }
            OpKind::CompareSwap(space) => {
                let bytes = self.func.ty(op.args[1]).bytes();
                let start = self.range(*space, op.args[0], args[0], 0, bytes)?;
                let old = self.memory.peek(*space, start, bytes)?;
                if old == args[1] {
                    self.memory.poke(*space, start, bytes, args[2])?;
                }
                Ok(vec![old])
            }
            OpKind::Amd(AmdOp::BufferLoad { bytes, n, offset }) => {
                let [low, high, size, _, at, step] = args[..] else {
                    return Err("is no load from a buffer".to_owned());
                };
                let whole = u64::from(bytes * n);
                let by = self.func.def_op(op.args[0]).map(|by| &by.kind);
                if by != Some(&OpKind::Amd(AmdOp::Buffer)) || size > 1 << 31 || (step != 0 && size < 1 << 31) {
                    return Err("what it loads from is no buffer".to_owned());
                }
                let at = at + u64::from(*offset);
                if at >= size {
                    return Ok(vec![0; usize::from(*n)]);
                }
                if at + whole > size {
                    return Err(format!("{at:#x} is at the end of the buffer"));
                }
                let start = self.range(Space::Global, op.args[0], (low | high << 32) + step + at, 0, whole)?;
                self.memory.read(Space::Global, start, u64::from(*bytes), u64::from(*n), t)
            }
            OpKind::Nv(NvOp::CopyAsync { bytes, offset, masked }) => {
                let n = u64::from(*bytes);
                let to = self.range(Space::Shared, op.args[0], args[0], *offset, n)?;
                let from = if masked_off(*masked) {
                    None
                } else {
                    Some(self.range(Space::Global, op.args[1], args[1], 0, n)?)
                };
                self.memory.copy(to, from, n, t)?;
                Ok(vec![])
            }
            _ => Err("is no access".to_owned()),
        }
    }
}

/// The bytes of a width.
trait Bytes {
    fn bytes(self) -> u64;
}

impl Bytes for Ty {
    fn bytes(self) -> u64 {
        match self {
            Ty::Pred => 1,
            Ty::B16 => 2,
            Ty::B32 => 4,
            Ty::B64 => 8,
        }
    }
}

pub(crate) fn name(op: &Op) -> String {
    titan_core::lane::mnemonic(&op.kind)
}
