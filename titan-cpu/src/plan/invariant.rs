//! What is the same in every program, run once by each thread of a launch: steps of the outermost block that are pure and
//! depend only on arguments. Loads of inputs are among them: nothing in the launch writes an input.

use super::group::{Group, Leaf, Out};
use super::{Node, ParamKind, Place, Plan, Slot, Step};
use titan_core::ir::Access;

/// Which slots have the same value in every program.
struct Known {
    scalars: Vec<bool>,
    tiles: Vec<bool>,
    views: Vec<bool>,
    /// Views of inputs.
    inputs: Vec<bool>,
}

/// Moves such steps from the body to the prologue.
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

/// Scalars that no step sets.
fn constants(plan: &Plan) -> Vec<bool> {
    let mut constant = vec![true; plan.scalars.len()];
    let mut set = |slot: u32| constant[slot as usize] = false;
    let set_all = |slots: &[(Slot, Slot)], set: &mut dyn FnMut(u32)| {
        for (_, to) in slots {
            if let Slot::Scalar(to) = to {
                set(*to);
            }
        }
    };
    for param in &plan.params {
        if let ParamKind::Scalar { slot, .. } = param.kind {
            set(slot);
        }
    }
    for step in plan.blocks.iter().flatten().map(|n| &n.step) {
        match step {
            Step::ProgramId { to, .. } | Step::NumPrograms { to, .. } | Step::Dim { to, .. } | Step::Present { to, .. }
            | Step::Scalar { to, .. } | Step::Extract { to, .. } | Step::Get { to, .. } | Step::RaggedCount { to, .. } => set(*to),
            Step::Elements(group) => group.outs.iter().for_each(|out| set_all(&[(out.slot(), out.slot())], &mut set)),
            Step::Unflatten { to, .. } => to.iter().for_each(|to| set(*to)),
            Step::RaggedTile { to, .. } => to.iter().for_each(|to| set(*to)),
            Step::Reduce { to, .. } => set_all(&[(*to, *to)], &mut set),
            Step::ArgReduce { to, index, .. } => set_all(&[(*to, *to), (*index, *index)], &mut set),
            Step::ReduceWith { to, f, .. } => {
                set_all(&[(*to, *to)], &mut set);
                f.args.iter().chain([&f.result]).for_each(|to| set(*to));
            }
            Step::ScanWith { f, .. } => f.args.iter().chain([&f.result]).for_each(|to| set(*to)),
            Step::For(f) => {
                set(f.index);
                set_all(&f.enter, &mut set);
                set_all(&f.leave, &mut set);
            }
            Step::Loop { enter: moves, .. } | Step::Yield(moves) | Step::Break(_, moves) | Step::Continue(_, moves) => {
                set_all(moves, &mut set);
            }
            Step::Iota { .. } | Step::Splat { .. } | Step::Restride { .. } | Step::Interleave { .. }
            | Step::Split { .. } | Step::Scan { .. } | Step::Mma { .. } | Step::Index { .. } | Step::Slice { .. }
            | Step::Segment { .. } | Step::Load { .. } | Step::Store { .. } | Step::Set { .. } | Step::GatherRows { .. }
            | Step::ScatterRows { .. } | Step::Gather { .. } | Step::Scatter { .. } | Step::Atomic { .. }
            | Step::AtomicTile { .. } | Step::Print { .. } | Step::Assert { .. } | Step::If { .. } | Step::Return => {}
        }
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

    /// Whether a step goes to the prologue. If so, what it makes is known from there on.
    fn take(&mut self, step: &Step) -> bool {
        match step {
            Step::NumPrograms { to, .. } => self.know_scalar(*to),
            Step::Dim { to, view, .. } | Step::Present { to, view } if self.view(*view) => self.know_scalar(*to),
            Step::Scalar { to, args, .. } if args.iter().all(|a| self.scalar(*a)) => self.know_scalar(*to),
            Step::Iota { to } => self.know_tile(*to),
            Step::Extract { to, from, .. } if self.tiles[*from as usize] => self.know_scalar(*to),
            Step::Splat { to, from } if self.scalar(*from) => self.know_tile(*to),
            Step::Restride { to, from, .. } if self.tiles[*from as usize] => self.know_tile(*to),
            Step::Load { to, from, pad } if self.place(from) && self.scalar(*pad) => self.know_tile(*to),
            Step::Elements(group) if self.group(group) => {
                group.outs.iter().all(|out| match out {
                    Out::Tile(tile) => self.know_tile(*tile),
                    Out::Scalar(scalar, _) => self.know_scalar(*scalar),
                })
            }
            Step::Index { to, from, at, .. } if self.view(*from) && self.scalar(*at) => self.know_view(*to, *from),
            Step::Slice { to, from, range, .. } if self.view(*from) && range.iter().all(|s| self.scalar(*s)) => {
                self.know_view(*to, *from)
            }
            _ => false,
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
