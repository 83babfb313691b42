//! Elementwise operations of one shape as one step, evaluated block by block so that intermediate values stay in the first
//! cache and never become tiles. Reductions along the last axis and stores take their blocks right there.
//!
//! While a block of the IR is lowered there is at most one open group per shape; an elementwise operation joins it. A group
//! is closed, and becomes a step, right before something outside of it needs one of its values, and with a store. All other
//! operations in it are pure, so that moving them down to there changes nothing. A group without uses is dropped.

use super::{Place, ScalarSlot, Slot, TileSlot};
use crate::ops::TileFn;
use crate::ops::chain::chain;
use crate::ops::reduce::RowFold;
use crate::ops::rows::DOT;
use titan_core::ir::{BinOp, Elem, OpId, Value};

/// Elements of a block.
pub(crate) const BLOCK: usize = 1024;
/// Operations of one group at most.
pub(crate) const MAX_OPS: usize = 48;
/// Operands of one group at most.
pub(crate) const MAX_LEAVES: usize = 12;

/// Where an operand of a group comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    Tile(TileSlot),
    /// The same in every element.
    Scalar(ScalarSlot),
}

/// An operand or a result inside of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    /// None: the operation has fewer.
    Nothing,
    Leaf(usize),
    /// A block-sized register.
    Reg(usize),
    /// A tile that the group makes.
    Out(usize),
}

/// One operation of a group, on one block.
#[derive(Clone, Debug)]
pub(crate) struct Micro {
    pub(crate) act: Act,
    /// Operands, with the bytes of an element.
    pub(crate) args: [(Operand, usize); 3],
}

/// What an operation of a group does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Elements from elements.
    Map {
        f: TileFn,
        to: Operand,
        /// Bytes of a result.
        size: usize,
    },
    /// Folds rows into elements of the output of this number.
    Reduce {
        f: RowFold,
        to: usize,
        /// Bytes of a result.
        size: usize,
    },
    /// Stores rows where the group stores.
    Store,
    /// Elements from elements, right into the tensor: rows that are whole and whose elements follow each other there. Where
    /// they are not, by way of a register.
    MapStore {
        f: TileFn,
        register: usize,
        size: usize,
    },
}

/// What a group makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    Tile(TileSlot),
    /// The one element of a reduction.
    Scalar(ScalarSlot, Elem),
}

impl Out {
    /// Where it is.
    pub(crate) fn slot(&self) -> Slot {
        match self {
            Out::Tile(tile) => Slot::Tile(*tile),
            Out::Scalar(scalar, _) => Slot::Scalar(*scalar),
        }
    }
}

/// A closed group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) shape: [i32; 4],
    pub(crate) len: usize,
    /// Elements of a row.
    pub(crate) cols: usize,
    /// Elements evaluated at a time: whole rows, or a part of one.
    pub(crate) block: usize,
    /// Operands, with the bytes of an element.
    pub(crate) leaves: Vec<(Leaf, usize)>,
    /// Operands that are reduced or stored as they are: of these, every element is wanted.
    pub(crate) whole: Vec<bool>,
    pub(crate) outs: Vec<Out>,
    pub(crate) ops: Vec<Micro>,
    /// Where the last operation stores, if it is a store. No other one is: a group is closed with its store.
    pub(crate) store: Option<Place>,
    /// How many registers the operations need.
    pub(crate) registers: usize,
}

/// An operation in a group that is still open.
#[derive(Clone, Debug)]
pub(super) struct OpenOp {
    pub(super) id: OpId,
    pub(super) result: Option<Value>,
    pub(super) act: OpenAct,
    /// Which operation it is, if it may become one with another: of two `f32`s, or their sum.
    pub(super) f32_op: Option<F32Op>,
    /// Bytes of a result.
    pub(super) size: usize,
    pub(super) args: Vec<OpenArg>,
}

/// Operations that may become one with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum F32Op {
    Binary(BinOp),
    SumOfRows,
}

/// What an operation of an open group does.
#[derive(Clone, Debug)]
pub(super) enum OpenAct {
    Map(TileFn),
    Reduce(RowFold),
    Store(Place),
}

/// An operand in a group that is still open.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenArg {
    Leaf(Leaf, usize),
    /// The result of operation number `n` of the group.
    Op(usize),
}

/// A group that is still open.
#[derive(Clone, Debug)]
pub(super) struct OpenGroup {
    pub(super) shape: [i32; 4],
    pub(super) ops: Vec<OpenOp>,
}

impl OpenGroup {
    /// The operation that makes a value.
    pub(super) fn find(&self, value: Value) -> Option<usize> {
        self.ops.iter().position(|op| op.result == Some(value))
    }

    /// The step, where `outs` are the values needed outside, with their slots.
    pub(super) fn close(mut self, outs: &[(Value, Out)]) -> Group {
        self.merge(outs);
        let needed = self.needed(outs);
        let last_use = self.last_uses(&needed);
        let leaves = self.leaves(&needed);
        let mut places: Vec<Option<Operand>> = vec![None; self.ops.len()];
        let mut busy = Vec::new();
        let (mut ops, mut store) = (Vec::new(), None);
        for (i, op) in self.ops.iter().enumerate().filter(|(i, _)| needed[*i]) {
            let mut args = [(Operand::Nothing, 0); 3];
            for (slot, arg) in args.iter_mut().zip(&op.args) {
                *slot = match arg {
                    OpenArg::Leaf(leaf, size) => {
                        let number = leaves.iter().position(|l| l == &(*leaf, *size));
                        (number.map_or(Operand::Nothing, Operand::Leaf), *size)
                    }
                    OpenArg::Op(n) => (places[*n].unwrap_or(Operand::Nothing), self.ops[*n].size),
                };
            }
            let out = outs.iter().position(|(v, _)| op.result == Some(*v));
            let (size, mut register) = (op.size, || Operand::Reg(free_register(&mut busy)));
            let act = match &op.act {
                OpenAct::Map(f) => {
                    let to = out.map_or_else(&mut register, Operand::Out);
                    places[i] = Some(to);
                    Act::Map { f: *f, to, size }
                }
                OpenAct::Reduce(f) => Act::Reduce { f: *f, to: out.unwrap_or(0), size },
                OpenAct::Store(place) => {
                    store = Some(place.clone());
                    Act::Store
                }
            };
            push_merged(&mut ops, Micro { act, args });
            // A register is free again after the last operation that reads it, not before this one has its own.
            for (n, place) in places.iter().enumerate() {
                if let (Some(Operand::Reg(r)), true) = (place, last_use[n] == Some(i)) {
                    busy[*r] = false;
                }
            }
        }
        let len = self.shape.iter().map(|n| usize::try_from(*n).unwrap_or(0)).product();
        let cols = usize::try_from(self.shape[3]).unwrap_or(1).max(1);
        let outs = outs.iter().map(|(_, out)| *out).collect();
        let mut whole = vec![false; leaves.len()];
        for op in &ops {
            for (operand, _) in &op.args {
                if let (Act::Reduce { .. } | Act::Store, Operand::Leaf(leaf)) = (&op.act, operand) {
                    whole[*leaf] = true;
                }
            }
        }
        let (shape, block, registers) = (self.shape, block_len(self.shape), busy.len());
        Group { shape, len, cols, block, leaves, whole, outs, ops, store, registers }
    }

    /// Whether there is room for another operation.
    pub(super) fn is_full(&self, max_ops: usize) -> bool {
        self.ops.len() >= max_ops || self.leaves(&vec![true; self.ops.len()]).len() + 3 > MAX_LEAVES
    }

    /// Makes one of two operations where the first one's value is wanted by the second one only.
    fn merge(&mut self, outs: &[(Value, Out)]) {
        for i in 0..self.ops.len() {
            let only_here = |n: usize| {
                let uses = self.ops.iter().flat_map(|op| &op.args).filter(|arg| matches!(arg, OpenArg::Op(m) if *m == n));
                uses.count() == 1 && outs.iter().all(|(v, _)| self.ops[n].result != Some(*v))
            };
            let first = self.ops[i].args.iter().enumerate().find_map(|(at, arg)| match arg {
                OpenArg::Op(n) if only_here(*n) && self.ops[*n].args.len() == 2 => Some((at, *n)),
                OpenArg::Op(_) | OpenArg::Leaf(..) => None,
            });
            let Some((at, n)) = first else { continue };
            let (Some(F32Op::Binary(inner)), Some(outer)) = (self.ops[n].f32_op, self.ops[i].f32_op) else { continue };
            let act = match outer {
                F32Op::SumOfRows if inner == BinOp::Mul => OpenAct::Reduce(DOT),
                F32Op::SumOfRows => continue,
                F32Op::Binary(outer) => match chain(inner, outer, at == 1) {
                    Some(f) => OpenAct::Map(f),
                    None => continue,
                },
            };
            let mut args = self.ops[n].args.clone();
            args.extend(self.ops[i].args.iter().enumerate().filter(|(j, _)| *j != at).map(|(_, arg)| *arg));
            (self.ops[i].act, self.ops[i].args, self.ops[i].f32_op) = (act, args, None);
            // Nothing reads the first one any more, so it is not needed.
        }
    }

    fn leaves(&self, needed: &[bool]) -> Vec<(Leaf, usize)> {
        let mut leaves = Vec::new();
        for op in self.ops.iter().zip(needed).filter_map(|(op, needed)| needed.then_some(op)) {
            for arg in &op.args {
                if let OpenArg::Leaf(leaf, size) = arg
                    && !leaves.contains(&(*leaf, *size))
                {
                    leaves.push((*leaf, *size));
                }
            }
        }
        leaves
    }

    /// Operations that the outputs depend on, and stores.
    fn needed(&self, outs: &[(Value, Out)]) -> Vec<bool> {
        let is_root = |op: &OpenOp| {
            matches!(op.act, OpenAct::Store(_)) || outs.iter().any(|(v, _)| op.result == Some(*v))
        };
        let mut needed: Vec<bool> = self.ops.iter().map(is_root).collect();
        for i in (0..self.ops.len()).rev().filter(|i| needed[*i]).collect::<Vec<_>>() {
            self.mark(i, &mut needed);
        }
        needed
    }

    fn mark(&self, op: usize, needed: &mut [bool]) {
        needed[op] = true;
        for arg in &self.ops[op].args {
            if let OpenArg::Op(n) = arg
                && !needed[*n]
            {
                self.mark(*n, needed);
            }
        }
    }

    fn last_uses(&self, needed: &[bool]) -> Vec<Option<usize>> {
        let mut last = vec![None; self.ops.len()];
        for (i, op) in self.ops.iter().enumerate().filter(|(i, _)| needed[*i]) {
            for arg in &op.args {
                if let OpenArg::Op(n) = arg {
                    last[*n] = Some(i);
                }
            }
        }
        last
    }
}

/// Appends an operation. A store joins the operation before it that makes what it stores.
fn push_merged(ops: &mut Vec<Micro>, op: Micro) {
    if let (Act::Store, Some(last)) = (&op.act, ops.last_mut())
        && let Act::Map { f, to: Operand::Reg(register), size } = last.act
        && op.args[0].0 == Operand::Reg(register)
    {
        // Nothing else reads the register: a group is closed with its store.
        last.act = Act::MapStore { f, register, size };
        return;
    }
    ops.push(op);
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

/// Whole rows, if they are short.
fn block_len(shape: [i32; 4]) -> usize {
    let cols = usize::try_from(shape[3]).unwrap_or(1).max(1);
    if cols < BLOCK { BLOCK / cols * cols } else { BLOCK }
}
