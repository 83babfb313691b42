//! Conflicts between programs of different clusters. Programs of a grid run in any order, or concurrently: nothing orders their
//! accesses to outputs, so any two to the same byte, one of them a write, are a race. Here they run one after the other; conflicts are
//! found nevertheless, and when every order of each cluster is explored, every possible pair of accesses is seen.
//!
//! Two scatters, and two atomic updates, have defined results: they do not conflict with each other, but they do with ordinary accesses.
//!
//! Deliberately absent: elements of less than a byte.

use super::finding::{Found, Kind, Side};
use super::machine::{Machine, index};
use super::tensor::{Setup, Tensor};
use crate::engine::{Access, AccessKind, SpaceId, Stop, Strength};
use std::collections::BTreeMap;
use titan_core::ir::OpId;

/// The origin of an access to an output: the cluster, the agent in it, the operation.
type Who = (u32, usize, OpId);

/// The accesses to a byte, as numbers of their origins from 1 on; 0 is none.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    writer: u32,
    /// The origin of the last scatter or atomic update.
    updater: u32,
    /// The readers, of at most two different clusters: enough to detect a conflict with any writer.
    readers: [u32; 2],
}

/// Two conflicting accesses to a byte: their origins, and whether each is a write.
#[derive(Clone, Copy, Debug)]
struct Conflict {
    sides: [(Who, bool); 2],
    at: u64,
}

/// A tracked output: its first byte, the byte after its last, and the accesses to each byte, allocated at the first access.
#[derive(Debug)]
struct Output {
    base: u64,
    end: u64,
    cells: Vec<Cell>,
}

/// The accesses of all clusters to the outputs.
#[derive(Debug)]
pub(super) struct Grid {
    /// The cluster that runs now.
    pub(super) cluster: u32,
    clusters: Vec<Vec<[u32; 3]>>,
    /// The outputs whose elements are whole bytes.
    outputs: Vec<Output>,
    who: Vec<Who>,
    known: BTreeMap<Who, u32>,
    found: Option<Conflict>,
}

/// The length in bytes from a tensor's first element to the end of its last.
fn reach(t: &Tensor) -> u64 {
    let elements: i64 = t.extents.iter().zip(&t.strides).map(|(n, s)| (n - 1).max(0) * s.abs()).sum();
    (u64::try_from(elements).unwrap_or(0) + 1) * u64::from(t.elem.bits().max(8)) / 8
}

impl Grid {
    /// Tracks the outputs of these clusters; `None` if there is only one.
    pub(super) fn new(setup: &Setup, clusters: &[Vec<[u32; 3]>]) -> Option<Grid> {
        let outputs = setup.tensors.iter().flatten().filter(|t| t.bytes.is_none() && t.elem.bits() >= 8);
        let outputs = outputs.map(|t| Output { base: t.base, end: t.base + reach(t), cells: Vec::new() }).collect();
        (clusters.len() > 1).then(|| Grid {
            cluster: 0,
            clusters: clusters.to_vec(),
            outputs,
            who: Vec::new(),
            known: BTreeMap::new(),
            found: None,
        })
    }

    fn number(&mut self, who: Who) -> u32 {
        let next = index(self.who.len() + 1);
        let number = *self.known.entry(who).or_insert(next);
        if number == next {
            self.who.push(who);
        }
        number
    }

    /// Checks an access to device memory against those of other clusters, and records it.
    pub(super) fn access(&mut self, a: &Access, global: SpaceId) -> Result<(), Stop> {
        let Some(at) = self.outputs.iter().position(|o| a.space == global && (o.base..o.end).contains(&a.address))
        else {
            return Ok(());
        };
        let who = (self.cluster, a.agent.index(), OpId::new(a.place.index()));
        let (number, write) = (self.number(who), a.kind != AccessKind::Read);
        let strong = a.strength == Strength::Strong;
        let Grid { outputs, who: all, found, cluster, .. } = self;
        let touched = |n: u32| (n as usize).checked_sub(1).and_then(|i| all.get(i)).copied();
        let other = |n: u32| touched(n).filter(|w| w.0 != *cluster);
        let Output { base, end, cells } = &mut outputs[at];
        cells.resize(usize::try_from(*end - *base).unwrap_or(0), Cell::default());
        let first = usize::try_from(a.address - *base).unwrap_or(0);
        for (i, cell) in cells.iter_mut().enumerate().skip(first).take(a.len as usize) {
            let updater = if strong { 0 } else { cell.updater };
            let others = [(cell.writer, true), (updater, true), (cell.readers[0], false), (cell.readers[1], false)];
            let old = others
                .into_iter()
                .filter(|(_, writes)| write || *writes)
                .find_map(|(n, writes)| Some((other(n)?, writes)));
            if let Some(old) = old.filter(|_| found.is_none()) {
                *found = Some(Conflict { sides: [(who, write), old], at: *base + i as u64 });
            }
            if write && strong {
                cell.updater = number;
            } else if write {
                cell.writer = number;
            } else if cell.readers[0] == 0 {
                cell.readers[0] = number;
            } else if cell.readers[1] == 0 && other(cell.readers[0]).is_some() {
                cell.readers[1] = number;
            }
        }
        if found.is_some() { Err(Stop) } else { Ok(()) }
    }

    /// The finding for a conflict, in terms of the kernel.
    pub(super) fn found(&self, machine: &Machine<'_>, name: impl Fn(u64) -> String) -> Option<Box<Found>> {
        let Conflict { sides: [new, old], at } = self.found?;
        let what = name(at);
        let program = |(who, _): (Who, bool)| {
            let programs = self.clusters.get(who.0 as usize)?;
            programs.get(who.1 / machine.plan.agents().max(1)).map(|p| format!("program {p:?}"))
        };
        let side = |s: (Who, bool)| -> Side {
            let mut side = machine.side(s.0.1, s.0.2, None, None);
            side.what.clone_from(&what);
            if let Some(program) = program(s) {
                let name = machine.role_name(s.0.1);
                side.role = if name.starts_with('`') { format!("{name} of {program}") } else { program };
            }
            side
        };
        let (a, b) = (side(new), side(old));
        let verb = |s: (Who, bool)| if s.1 { "written" } else { "read" };
        let message = format!(
            "`{what}` is {} by {}, and nothing orders that with `{}` of {}, by which it is {}: programs run in any order, or at once",
            verb(new),
            a.role,
            b.op,
            b.role,
            verb(old),
        );
        Some(Found::new(Kind::Race, message).side(a).side(b))
    }
}
