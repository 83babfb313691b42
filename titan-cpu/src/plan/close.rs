//! Closes an open group into its step: allocates registers for values, and orders the operations.

use super::group::{Act, BLOCK, Group, Input, LONG_ROW, Micro, Operand, Out};
use super::open::{OpenAct, OpenArg, OpenGroup};
use titan_core::ir::Value;

/// A group that is being closed.
#[derive(Debug)]
pub(super) struct Closing<'a> {
    open: &'a OpenGroup,
    leaves: Vec<OpenArg>,
    outs: &'a [(Value, Out)],
    /// The number of elements of a block, and of a row.
    block: [usize; 2],
    /// The location of each operation's result.
    places: Vec<Operand>,
    /// For each register, whether it holds a value.
    busy: Vec<bool>,
    rows: usize,
    ops: Vec<Micro>,
}

impl<'a> Closing<'a> {
    /// The step with the operations that are needed.
    pub(super) fn run(open: &'a OpenGroup, needed: &[bool], outs: &'a [(Value, Out)]) -> Group {
        let whole_rows =
            open.ops.iter().zip(needed).any(|(op, n)| *n && matches!(op.act, OpenAct::MapRows(_) | OpenAct::Broadcast));
        let cols = usize::try_from(open.shape[3]).unwrap_or(1).max(1);
        let block = [block_len(cols, whole_rows), cols];
        let places = vec![Operand::Nothing; open.ops.len()];
        let mut closing = Closing {
            open,
            leaves: open.leaves(needed),
            outs,
            block,
            places,
            busy: Vec::new(),
            rows: 0,
            ops: Vec::new(),
        };
        let last_uses = last_uses(open, needed);
        for i in (0..open.ops.len()).filter(|i| needed[*i]) {
            closing.operation(i, needed);
            // A register is free after the last operation that reads it, but not before that operation has its own register.
            for (place, last) in closing.places.iter().zip(&last_uses) {
                if let (Operand::Reg(r), true) = (place, *last == Some(i)) {
                    closing.busy[*r] = false;
                }
            }
        }
        closing.finish()
    }

    fn operation(&mut self, i: usize, needed: &[bool]) {
        let op = &self.open.ops[i];
        let mut args = [(Operand::Nothing, 0); 3];
        for (slot, arg) in args.iter_mut().zip(&op.args) {
            *slot = match arg {
                OpenArg::Leaf(_, size, _) => {
                    (self.leaves.iter().position(|l| l == arg).map_or(Operand::Nothing, Operand::Leaf), *size)
                }
                OpenArg::Op(n) => (self.places[*n], self.open.ops[*n].size),
            };
        }
        let out = self.outs.iter().position(|(v, _)| op.result == Some(*v));
        let act = match &op.act {
            OpenAct::Map(f) => Act::Map(*f, self.place(i, out)),
            OpenAct::MapRows(f) => Act::MapRow(*f, self.row(i)),
            OpenAct::Reduce(f) => Act::Reduce(*f, self.row(i)),
            OpenAct::Broadcast => match (args[0].0, out) {
                (row @ Operand::Row(_), None) if self.stands_for_all(i, needed) => {
                    self.places[i] = row;
                    return;
                }
                _ => Act::Expand(self.place(i, out)),
            },
            OpenAct::Store(_) => Act::Store,
        };
        self.push(Micro { act, args, size: op.size });
        if let (Operand::Row(_), Some(out)) = (self.places[i], out) {
            let args = [(self.places[i], op.size), (Operand::Nothing, 0), (Operand::Nothing, 0)];
            self.push(Micro { act: Act::Give(out), args, size: op.size });
        }
    }

    /// Whether, where a broadcast is used, one element of a row can stand for all.
    fn stands_for_all(&self, i: usize, needed: &[bool]) -> bool {
        let [block, cols] = self.block;
        let mut users =
            self.open.ops.iter().zip(needed).filter(|(op, needed)| **needed && op.args.contains(&OpenArg::Op(i)));
        block == cols && users.all(|(op, _)| matches!(op.act, OpenAct::Map(_)))
    }

    /// Allocates the location of a result with all elements.
    fn place(&mut self, i: usize, out: Option<usize>) -> Operand {
        let place = out.map_or_else(|| Operand::Reg(free_register(&mut self.busy)), Operand::Out);
        self.places[i] = place;
        place
    }

    /// Allocates the location of a result with one element per row.
    fn row(&mut self, i: usize) -> usize {
        self.rows += 1;
        self.places[i] = Operand::Row(self.rows - 1);
        self.rows - 1
    }

    /// Appends an operation. A store is merged with the operation before it that computes its operand.
    fn push(&mut self, op: Micro) {
        if let (Act::Store, Some(last)) = (op.act, self.ops.last_mut())
            && let Act::Map(f, Operand::Reg(register)) = last.act
            && op.args[0].0 == Operand::Reg(register)
        {
            // Nothing else reads the register, because a group is closed with its store.
            last.act = Act::MapStore(f, register);
            return;
        }
        self.ops.push(op);
    }

    fn finish(self) -> Group {
        let mut inputs: Vec<Input> = Vec::with_capacity(self.leaves.len());
        for (i, leaf) in self.leaves.iter().enumerate() {
            if let OpenArg::Leaf(leaf, size, of_rows) = *leaf {
                let as_is = |op: &Micro| match op.act {
                    Act::Reduce(..) | Act::Store => op.args.iter().any(|(operand, _)| *operand == Operand::Leaf(i)),
                    Act::Map(..) | Act::MapRow(..) | Act::MapStore(..) | Act::Expand(_) | Act::Give(_) => false,
                };
                inputs.push(Input { leaf, size, of_rows, whole: self.ops.iter().any(as_is) });
            }
        }
        let store = self.open.ops.iter().find_map(|op| match &op.act {
            OpenAct::Store(place) => Some(place.clone()),
            OpenAct::Map(_) | OpenAct::Reduce(_) | OpenAct::MapRows(_) | OpenAct::Broadcast => None,
        });
        let (shape, [block, cols]) = (self.open.shape, self.block);
        let len = shape.iter().map(|n| usize::try_from(*n).unwrap_or(0)).product();
        let width = self.ops.iter().map(|op| op.size).max().unwrap_or(1);
        let outs = self.outs.iter().map(|(_, out)| *out).collect();
        let registers = [self.busy.len(), (block * width).next_multiple_of(64)];
        let rows = [self.rows, ((block / cols).max(1) * width).next_multiple_of(64)];
        let reduced = self.ops.iter().rposition(|op| matches!(op.act, Act::Reduce(..)));
        Group { shape, len, cols, block, inputs, outs, ops: self.ops, store, reduced, registers, rows }
    }
}

fn last_uses(open: &OpenGroup, needed: &[bool]) -> Vec<Option<usize>> {
    let mut last = vec![None; open.ops.len()];
    for (i, op) in open.ops.iter().enumerate().filter(|(i, _)| needed[*i]) {
        for arg in &op.args {
            if let OpenArg::Op(n) = arg {
                last[*n] = Some(i);
            }
        }
    }
    last
}

fn free_register(busy: &mut Vec<bool>) -> usize {
    let free = busy.iter().position(|b| !b).unwrap_or(busy.len());
    if free == busy.len() {
        busy.push(true);
    } else {
        busy[free] = true;
    }
    free
}

/// The length of a block: whole rows, if they are short or if they must be whole.
fn block_len(cols: usize, whole_rows: bool) -> usize {
    match whole_rows {
        true if cols >= LONG_ROW => cols,
        true => BLOCK / cols * cols,
        false if cols < BLOCK => BLOCK / cols * cols,
        false => BLOCK,
    }
}
