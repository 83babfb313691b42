//! Hoists steps that are the same in every program, to be run once by each thread of a launch: steps of the outermost block that
//! are pure and depend only on arguments. Loads of inputs are among them, because nothing in the launch writes an input.

use super::group::{Group, Leaf, Out};
use super::{FactStep, MemoryStep, Node, ParamKind, Place, Plan, Step, TileStep};
use titan_core::ir::Access;

/// The slots that have the same value in every program.
struct Known {
    scalars: Vec<bool>,
    tiles: Vec<bool>,
    views: Vec<bool>,
    /// The views of inputs.
    inputs: Vec<bool>,
}

/// Moves invariant steps from the body to the prologue.
pub(super) fn hoist(plan: &mut Plan) {
    let mut known = Known {
        scalars: constants(plan),
        tiles: vec![false; plan.tiles.len()],
        views: vec![false; plan.views],
        inputs: vec![false; plan.views],
    };
    for param in &plan.params {
        match param.kind {
            ParamKind::Scalar { slot, .. } => known.scalars[slot as usize] = true,
            ParamKind::Tensor { view, access, .. } => {
                known.views[view as usize] = true;
                known.inputs[view as usize] = access == Access::In;
            }
        }
    }
    let body = std::mem::take(&mut plan.blocks[plan.body]);
    let (prologue, body): (Vec<Node>, Vec<Node>) = body.into_iter().partition(|node| known.take(&node.step));
    plan.blocks[plan.body] = body;
    plan.prologue = plan.blocks.len();
    plan.blocks.push(prologue);
    plan.kept = known.tiles;
}

/// The scalars that no step sets.
fn constants(plan: &Plan) -> Vec<bool> {
    let mut constant = vec![true; plan.scalars.len()];
    for param in &plan.params {
        if let ParamKind::Scalar { slot, .. } = param.kind {
            constant[slot as usize] = false;
        }
    }
    for node in plan.blocks.iter().flatten() {
        node.step.for_each_set(&mut |slot| constant[slot as usize] = false);
    }
    constant
}

impl Known {
    fn scalar(&self, slot: u32) -> bool {
        self.scalars[slot as usize]
    }

    fn view(&self, slot: u32) -> bool {
        self.views[slot as usize]
    }

    fn place(&self, place: &Place) -> bool {
        self.view(place.view) && self.inputs[place.view as usize] && place.at.iter().all(|s| self.scalar(*s))
    }

    fn group(&self, group: &Group) -> bool {
        group.store.is_none()
            && group.inputs.iter().all(|input| match input.leaf {
                Leaf::Tile(tile) => self.tiles[tile as usize],
                Leaf::Scalar(scalar) => self.scalar(scalar),
            })
    }

    /// Whether a step moves to the prologue. If so, its results are known from there on.
    fn take(&mut self, step: &Step) -> bool {
        match step {
            Step::Fact(fact) => self.take_fact(fact),
            Step::Tile(tile) => self.take_tile(tile),
            Step::Memory(MemoryStep::Load { to, from, pad }) => {
                self.place(from) && self.scalar(*pad) && self.know_tile(*to)
            }
            Step::Scalar { to, args, .. } => args.iter().all(|a| self.scalar(*a)) && self.know_scalar(*to),
            Step::Elements(group) => {
                self.group(group)
                    && group.outs.iter().all(|out| match out {
                        Out::Tile(tile) => self.know_tile(*tile),
                        Out::Scalar(scalar, _) => self.know_scalar(*scalar),
                    })
            }
            // Gathers could be invariant too, but rarely are.
            Step::Memory(
                MemoryStep::Store { .. }
                | MemoryStep::Get { .. }
                | MemoryStep::Set { .. }
                | MemoryStep::GatherRows { .. }
                | MemoryStep::ScatterRows { .. }
                | MemoryStep::Gather { .. }
                | MemoryStep::Scatter { .. }
                | MemoryStep::Atomic { .. }
                | MemoryStep::AtomicTile { .. }
                | MemoryStep::Fetch { .. }
                | MemoryStep::CompareExchange { .. },
            )
            | Step::Ring(_)
            | Step::Print { .. }
            | Step::Assert { .. }
            | Step::For(_)
            | Step::Loop { .. }
            | Step::If { .. }
            | Step::Roles(_)
            | Step::Yield(_)
            | Step::Break(..)
            | Step::Continue(..)
            | Step::Return => false,
        }
    }

    fn take_fact(&mut self, step: &FactStep) -> bool {
        match step {
            FactStep::NumPrograms { to, .. } => self.know_scalar(*to),
            FactStep::Dim { to, view, .. } | FactStep::Present { to, view } => {
                self.view(*view) && self.know_scalar(*to)
            }
            FactStep::Index { to, from, at, .. } => self.view(*from) && self.scalar(*at) && self.know_view(*to, *from),
            FactStep::Slice { to, from, range, .. } => {
                self.view(*from) && range.iter().all(|s| self.scalar(*s)) && self.know_view(*to, *from)
            }
            // The last three may trap, which only programs may do.
            FactStep::ProgramId { .. }
            | FactStep::Unflatten { .. }
            | FactStep::Segment { .. }
            | FactStep::RaggedCount { .. }
            | FactStep::RaggedTile { .. } => false,
        }
    }

    fn take_tile(&mut self, step: &TileStep) -> bool {
        match step {
            TileStep::Iota { to } => self.know_tile(*to),
            TileStep::Splat { to, from } => self.scalar(*from) && self.know_tile(*to),
            TileStep::Restride { to, from, .. } => self.tiles[*from as usize] && self.know_tile(*to),
            TileStep::Extract { to, from, .. } => self.tiles[*from as usize] && self.know_scalar(*to),
            TileStep::Interleave { .. }
            | TileStep::Concat { .. }
            | TileStep::Split { .. }
            | TileStep::Reduce { .. }
            | TileStep::ArgReduce { .. }
            | TileStep::ReduceWith { .. }
            | TileStep::Scan { .. }
            | TileStep::ScanWith { .. }
            | TileStep::Mma { .. } => false,
        }
    }

    fn know_scalar(&mut self, slot: u32) -> bool {
        self.scalars[slot as usize] = true;
        true
    }

    fn know_tile(&mut self, slot: u32) -> bool {
        self.tiles[slot as usize] = true;
        true
    }

    fn know_view(&mut self, to: u32, from: u32) -> bool {
        self.views[to as usize] = true;
        self.inputs[to as usize] = self.inputs[from as usize];
        true
    }
}
