//! A block in another order: an instruction at a time, of those whose operands are computed.
//!
//! Time advances with each instruction as in [`crate::model::issue`]. Of the instructions that could be issued first, the one is taken that
//!
//! 1. needs no wait that was not made yet for others, and no wait states: an `s_waitcnt` is for all data that arrived before it;
//! 2. multiplies matrices; otherwise accesses memory or compares, after which there are wait states; otherwise computes;
//! 3. comes first in the given order.
//!
//! The first instruction of the given order that is left may always be taken, so that every block is put in order: all that it comes after is done. Others
//! are only taken while the registers that live then, and a reserve, keep the ceilings.

use super::graph::{Graph, Locations, graph};
use super::pressure::{Pressure, Words};
use super::times::Work;
use crate::codegen::machine_ir::{Code, Inst, Kind, Operand, Reg};
use crate::model::issue::{ISSUE, Sharing};
use crate::model::units::{ENGINES, Engine};

/// The words of scalar and of vector registers that instructions before their turn leave free: those of the instructions in between.
const RESERVE: Words = [6, 8];

/// A block: what is the same for every order of it.
pub(super) struct Parts {
    graph: Graph,
    work: Vec<Work>,
}

impl Parts {
    pub(super) fn of(code: &Code, locations: &Locations, insts: &[Inst], sharing: Sharing) -> Parts {
        let file = |operand: &Operand| match operand {
            Operand::Part(part) => Some(code.register(part.reg).file),
            Operand::Isa(_) | Operand::To(_) => None,
        };
        let work = insts.iter().map(|inst| Work::of(file, inst, sharing)).collect();
        Parts { graph: graph(code, locations, insts), work }
    }
}

/// The state between two instructions.
struct Order<'p> {
    graph: &'p Graph,
    work: &'p [Work],
    pressure: Pressure,
    ceilings: Words,
    /// The next clock at which an instruction is issued.
    now: u64,
    free: [u64; ENGINES.len()],
    /// When the result of each instruction is there, or when it was issued; `None` before.
    issued: Vec<Option<u64>>,
    /// The number of each instruction among those that were issued, and of wait states; and that of the next one.
    places: Vec<u64>,
    placed: u64,
    /// When data of accesses arrive.
    arrives: Vec<Option<u64>>,
    /// The time of the last wait: what had arrived then needs no other one.
    waited: u64,
    left: Vec<usize>,
    open: Vec<Ready>,
    out: Vec<usize>,
}

/// Instructions are compared by this; the least is taken.
type Key = (u64, bool, u8, usize);

/// When an instruction whose operands are computed may be issued.
#[derive(Clone, Copy, Debug, Default)]
struct Ready {
    at: usize,
    /// The clock at which all operands are there.
    clock: u64,
    /// When the last of the data arrive for which there is a wait.
    arrives: u64,
    /// The least number that it may have among those that are issued, wait states included.
    place: u64,
}

impl Order<'_> {
    fn ready(&self, at: usize) -> Ready {
        let mut ready = Ready { at, ..Ready::default() };
        for before in &self.graph.before[at] {
            let issued = self.issued[before.inst].unwrap_or(0);
            let of = &self.work[before.inst];
            let clock = match self.arrives[before.inst].filter(|_| before.flows) {
                Some(arrives) => {
                    ready.arrives = ready.arrives.max(arrives);
                    arrives
                }
                None if before.flows => {
                    let place = self.places[before.inst] + 1 + of.states(&self.work[at]);
                    ready.place = ready.place.max(place);
                    issued + of.until(&self.work[at])
                }
                None => issued + ISSUE,
            };
            ready.clock = ready.clock.max(clock);
        }
        ready
    }

    /// When an instruction could be issued, whether that is a new wait, and the wait states before it.
    fn start(&self, ready: &Ready) -> (u64, bool, u64) {
        let idle = ready.place.saturating_sub(self.placed);
        let mut start = ready.clock.max(self.now + ISSUE * idle);
        match self.work[ready.at].engine {
            Some((engine @ (Engine::Matrix | Engine::Vector | Engine::Scalar | Engine::Local), _)) => {
                start = start.max(self.free[engine as usize]);
            }
            // Loads of vector memory queue up: what computes the address of the next one need not live meanwhile.
            Some((Engine::Memory, _)) | None => {}
        }
        (start, ready.arrives > self.waited, idle)
    }

    fn key(&self, ready: &Ready) -> Key {
        let (start, waits, idle) = self.start(ready);
        let work = &self.work[ready.at];
        let class = match work.engine {
            Some((Engine::Matrix, _)) => 0,
            Some((Engine::Local | Engine::Memory, _)) => 1,
            Some((Engine::Vector | Engine::Scalar, _)) | None if work.sets_mask() => 1,
            Some((Engine::Vector | Engine::Scalar, _)) | None => 2,
        };
        (start, waits || idle > 0, class, ready.at)
    }

    /// Whether the registers that live with an instruction keep the ceilings.
    fn fits(&self, at: usize) -> bool {
        let [mut more, mut fewer] = self.pressure.change(at);
        for start in self.graph.starts[at].iter().filter(|start| self.issued[**start].is_none()) {
            let [begun, ended] = self.pressure.change(*start);
            for file in 0..more.len() {
                // The instruction that writes the register first has counted it, too.
                more[file] = more[file].max(begun[file]);
                fewer[file] = fewer[file].max(ended[file]);
            }
        }
        (0..more.len()).all(|file| {
            let with = self.pressure.words[file] + more[file];
            more[file] <= fewer[file] || with + RESERVE[file] <= self.ceilings[file]
        })
    }

    fn issue(&mut self, ready: &Ready) {
        let at = ready.at;
        let graph = self.graph;
        for start in &graph.starts[at] {
            if self.issued[*start].is_none() {
                self.place(*start);
            }
        }
        let (start, waits, idle) = self.start(ready);
        self.placed += idle;
        if waits {
            self.waited = start;
        }
        self.now = start + if waits { ISSUE } else { 0 };
        self.place(at);
        if let Some((engine, clocks)) = self.work[at].engine {
            let free = &mut self.free[engine as usize];
            *free = self.now.max(*free) + clocks;
            self.arrives[at] = self.work[at].latency.map(|latency| *free + latency);
        }
        self.now += ISSUE;
        self.places[at] = self.placed;
        self.placed += 1;
        for next in &graph.after[at] {
            self.left[*next] -= 1;
            if self.left[*next] == 0 {
                self.open.push(self.ready(*next));
            }
        }
    }

    fn place(&mut self, at: usize) {
        self.issued[at] = Some(self.now);
        self.pressure.step(at);
        self.out.push(at);
    }
}

/// The instructions of a block in another order, at whose end these registers live. The ceilings are the words of scalar and of vector registers that may
/// live at once.
pub(super) fn ordered(
    code: &Code,
    Parts { graph, work }: &Parts,
    insts: &[Inst],
    ends: &[Reg],
    ceilings: Words,
) -> Vec<Inst> {
    let n = insts.len();
    let left: Vec<usize> = graph.before.iter().map(Vec::len).collect();
    let is_start = |at: &usize| insts[*at].kind == Kind::Start;
    let mut order = Order {
        work,
        pressure: Pressure::new(code, insts, ends),
        ceilings,
        now: 0,
        free: [0; ENGINES.len()],
        issued: vec![None; n],
        places: vec![0; n],
        placed: 0,
        arrives: vec![None; n],
        waited: 0,
        open: (0..n).filter(|at| left[*at] == 0 && !is_start(at)).map(|at| Ready { at, ..Ready::default() }).collect(),
        left,
        out: Vec::with_capacity(n),
        graph,
    };
    // This ends: an instruction is placed in each round, since the first that is left is open.
    while let Some(first) = order.open.iter().map(|ready| ready.at).min() {
        let may = |(_, ready): &(usize, &Ready)| ready.at == first || order.fits(ready.at);
        let all = order.open.iter().enumerate().filter(may);
        let Some((place, _)) = all.min_by_key(|(_, ready)| order.key(ready)) else { break };
        let ready = order.open.swap_remove(place);
        order.issue(&ready);
    }
    let late = (0..n).filter(|at| order.issued[*at].is_none()).collect::<Vec<_>>();
    order.out.extend(late);
    order.out.into_iter().map(|at| insts[at].clone()).collect()
}
