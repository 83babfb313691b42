//! Rule 83: shared memory is written, on every path, before it is read.
//!
//! The dual of rule 66, on the same control flow: the state, before each node, is what *every* path to it has left. Shared memory is divided at
//! the bounds of all accesses, so that an access is to whole pieces. For each piece, the state has the region through which all of it was last
//! written; nothing if that is unknown, or differs between paths. A write of a tile sets its pieces. Regions may share bytes one after the other,
//! so a write through another region takes a piece away from its region, and the next read through that one is an error as well:
//!
//! ```text
//!                                   a: bytes 0 to 512      b: bytes 256 to 768     the pieces 0 to 256, 256 to 512, 512 to 768
//! ttg.local.store .. %a                                                            a, a, nothing
//! if %x { ttg.local.store .. %b }                                                  a, nothing, nothing: a or b, and nothing or b
//! ttg.local.load %a                 refused: on one path, bytes 256 to 512 are those of b
//! ```
//!
//! # Why it finds every such read
//!
//! Let a piece that is read have been written last through another region, or never, on the path that was taken. Then no node on the path after
//! that write, or on all of it, sets the piece to the region of the read, so that the state of the path at the read does not have it. At
//! joins, a piece stays only if both states have it with the same region, so that the state at the read has no more than that of the path.
//!
//! # Why it ends
//!
//! At first nothing is known of a node, which stands for all; a state is set once, and then only loses pieces, of which there are finitely many.
//!
//! A write of a part of a tile sets nothing, since which part it is may depend on numbers; but it takes pieces away from other regions. Opaque code
//! is taken to write all that it may write, and to need nothing. Copies count as written when they are started: rule 66 asks for their wait.
//!
//! Deliberately absent: slots of rings, whose contents the co-execution follows ([`crate::verify::coexecution::rings::touches`]); a write to one takes
//! away what it overlaps.

use super::accesses::{Access, Accesses, Place};
use super::graph::{Graph, Kind};
use crate::collections::{SortedMap, SortedSet};
use crate::diag::Code;
use crate::ir::{BarrierTy, Kernel, OpId, Ty, Value};
use crate::verify::Error;

/// For each piece, the region through which it was last written.
type State = Vec<Option<Value>>;

/// Violations of rule 83.
pub(super) fn check(kernel: &Kernel, graph: &Graph, accesses: &Accesses) -> Vec<Error> {
    let run = Run { accesses, pieces: Pieces::new(accesses) };
    // At the entry nothing has been written. Nodes that were not reached yet have no state, which stands for
    // everything: the first path to a node sets it, and each further one only takes away.
    let nothing: State = vec![None; run.pieces.0.len()];
    let after = |node: usize, mut state: State| {
        if let Kind::Op(id) = graph.kinds[node] {
            run.write(id, &mut state);
        }
        state
    };
    let mut wrong: SortedMap<OpId, bool> = SortedMap::new();
    for (node, state) in graph.states(nothing, after, meet).iter().enumerate() {
        let (Kind::Op(id), Some(state)) = (graph.kinds[node], state) else { continue };
        if let Some(known) = run.unwritten(id, state) {
            wrong.insert(id, known);
        }
    }
    wrong.into_iter().map(|(id, some)| error(kernel, id, some)).collect()
}

fn error(kernel: &Kernel, id: OpId, some: bool) -> Error {
    let op = kernel.op(id);
    let shared = |v: &&Value| matches!(kernel.ty(**v), Ty::Smem(..) | Ty::Barrier(BarrierTy::Region));
    let name = op.args.iter().find(shared).map_or_else(String::new, |v| format!(" of `{}`", kernel.display_name(*v)));
    let what = if some { "some bytes" } else { "bytes" };
    let title = format!(
        "{what}{name} are read here that nothing has written on some path, or that another region has overwritten"
    );
    Error::new(Code::NeverWritten, op.loc, title).help("write the whole tile on every path to this")
}

/// The pieces of shared memory between the bounds of all accesses, by their first bytes.
struct Pieces(Vec<u64>);

impl Pieces {
    fn new(accesses: &Accesses) -> Pieces {
        let ranges = accesses.all.iter().filter_map(|access| range(access.place));
        // Every access begins and ends at one of these, so that a piece is in an access as a whole or not at all.
        let bounds: SortedSet<u64> = ranges.flat_map(|(_, first, end)| [first, end]).collect();
        Pieces(bounds.iter().copied().collect())
    }

    /// The numbers of the pieces of a range.
    fn of(&self, (first, end): (u64, u64)) -> std::ops::Range<usize> {
        let at = |byte: u64| self.0.partition_point(|bound| *bound < byte);
        at(first)..at(end)
    }
}

/// The bytes of a place in shared memory, and the region if it is one of a tile or a region.
fn range(place: Place) -> Option<(Option<Value>, u64, u64)> {
    match place {
        Place::Region(region, first, end) => Some((Some(region), first, end)),
        Place::Slot(_, first, end) => Some((None, first, end)),
        Place::Words(..) | Place::Output(..) => None,
    }
}

struct Run<'a> {
    accesses: &'a Accesses,
    pieces: Pieces,
}

impl Run<'_> {
    fn accesses_of(&self, id: OpId) -> impl Iterator<Item = Access> + '_ {
        self.accesses.of(id).0.iter().map(|access| self.accesses.all[*access])
    }

    /// The effect of an operation.
    fn write(&self, id: OpId, state: &mut State) {
        for access in self.accesses_of(id).filter(|access| access.writes) {
            let Some((region, first, end)) = range(access.place) else { continue };
            for piece in state.get_mut(self.pieces.of((first, end))).into_iter().flatten() {
                if access.whole {
                    *piece = region;
                // A part was written, and it is not known which. Of the same region this takes nothing away that was
                // written whole before.
                } else if *piece != region {
                    *piece = None;
                }
            }
        }
    }

    /// Whether an operation reads pieces that may not have been written, and whether it reads others that have been.
    fn unwritten(&self, id: OpId, state: &State) -> Option<bool> {
        let (mut missing, mut known) = (false, false);
        for access in self.accesses_of(id).filter(|access| access.needs) {
            let Some((region @ Some(_), first, end)) = range(access.place) else { continue };
            for piece in self.pieces.of((first, end)) {
                // Written through another region counts as not written: the tile that is read would have the bytes of
                // another one.
                let written = state.get(piece).copied().flatten() == region;
                missing |= !written;
                known |= written;
            }
        }
        missing.then_some(known)
    }
}

/// Keeps what both states have; returns whether that is less.
fn meet(own: &mut State, other: &State) -> bool {
    let mut less = false;
    for (own, other) in own.iter_mut().zip(other) {
        // It only ever turns `Some` into `None`, so a state changes at most once for each piece.
        if own.is_some() && own != other {
            *own = None;
            less = true;
        }
    }
    less
}
