//! The origins of a value, for messages: the program indices, memory or loops that it depends on.
//!
//! Only data flow is tracked, not control flow. A carried value depends on its loop; the updates in the loop are not followed.

use crate::ir::{BinOp, Block, ForKind, Kernel, Op, OpKind, Value};

/// A set of origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// `program_id` of these axes.
    pub(super) program: [bool; 3],
    /// The iteration number of a distributed loop.
    pub(super) work: bool,
    /// A value read from memory.
    pub(super) memory: bool,
    /// The induction variable of a loop, or a carried value.
    pub(super) looped: bool,
    /// A quotient or remainder of a value that depends on the program.
    pub(super) quotient: bool,
}

impl Origin {
    fn or(self, other: Origin) -> Origin {
        let [a, b, c] = self.program;
        let [d, e, f] = other.program;
        Origin {
            program: [a || d, b || e, c || f],
            work: self.work || other.work,
            memory: self.memory || other.memory,
            looped: self.looped || other.looped,
            quotient: self.quotient || other.quotient,
        }
    }

    /// Whether the value may differ between programs along an axis of the grid, as far as data flow shows.
    #[must_use]
    pub(super) fn of_axis(self, axis: u8) -> bool {
        self.program.get(usize::from(axis)).copied().unwrap_or(false) || (axis == 0 && self.work)
    }
}

/// The origins of every value.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    table: Vec<Origin>,
}

impl Origins {
    /// The origins of a kernel's values.
    #[must_use]
    pub(super) fn new(kernel: &Kernel) -> Origins {
        let mut origins = Origins { table: vec![Origin::default(); kernel.values.len()] };
        origins.block(kernel, kernel.body);
        origins
    }

    /// The origins of a value.
    #[must_use]
    pub(super) fn of(&self, value: Value) -> Origin {
        self.table.get(value.index()).copied().unwrap_or_default()
    }

    fn add(&mut self, value: Value, origin: Origin) {
        if let Some(slot) = self.table.get_mut(value.index()) {
            *slot = slot.or(origin);
        }
    }

    fn all(&self, values: &[Value]) -> Origin {
        values.iter().fold(Origin::default(), |o, v| o.or(self.of(*v)))
    }

    fn block(&mut self, kernel: &Kernel, block: Block) {
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            let mut origin = self.all(&op.args).or(own(&op.kind));
            let divides = matches!(op.kind, OpKind::Binary(BinOp::Div | BinOp::Rem));
            origin.quotient |= divides && (origin.work || origin.program.contains(&true));
            for region in &op.regions {
                let inside = Origin { work: op.kind == OpKind::For(ForKind::Distributed), ..origin };
                let args = &kernel.block(*region).args;
                args.iter().for_each(|a| self.add(*a, if op.kind.is_loop() { inside } else { origin }));
                self.block(kernel, *region);
                origin = origin.or(self.leaving(kernel, *region));
            }
            op.results.iter().for_each(|r| self.add(*r, origin));
        }
    }

    /// The join of the origins of the operands of all terminators in a block.
    fn leaving(&self, kernel: &Kernel, block: Block) -> Origin {
        let of = |op: &Op| {
            let nested = op.regions.iter().fold(Origin::default(), |o, r| o.or(self.leaving(kernel, *r)));
            if op.kind.is_terminator() { nested.or(self.all(&op.args)) } else { nested }
        };
        kernel.block(block).ops.iter().fold(Origin::default(), |o, id| o.or(of(kernel.op(*id))))
    }
}

/// The origin that an operation adds to those of its operands.
fn own(kind: &OpKind) -> Origin {
    let mut origin = Origin::default();
    if let OpKind::ProgramId(axis) = kind
        && let Some(slot) = origin.program.get_mut(usize::from(*axis))
    {
        *slot = true;
    }
    origin.memory = matches!(kind, OpKind::Load(..) | OpKind::Get | OpKind::GatherRows { .. } | OpKind::Gather);
    origin.looped = kind.is_loop();
    origin
}
