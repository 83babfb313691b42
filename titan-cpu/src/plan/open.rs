//! The formation of groups: while a block of the IR is lowered there is at most one open group per shape, and operations join it.
//!
//! An operation of a group is on all elements, or on one element for each row: a reduction produces an element per row,
//! and a broadcast along the last axis turns these into all elements. A group is closed, and becomes a step, right before an operation
//! outside of it needs one of its values, and with a store. All other operations in it are pure, so that moving them down to
//! that point changes nothing. A group without uses is dropped.

use super::Place;
use super::close::Closing;
use super::group::{Group, Leaf, MAX_LEAVES, MAX_ROW, Out};
use crate::ops::chain::chain;
use crate::ops::reduce::RowFold;
use crate::ops::rows::DOT;
use crate::ops::{ElementFn, TileFn};
use titan_core::ir::{BinOp, OpId, Value};

/// An operation in a group that is still open.
#[derive(Clone, Debug)]
pub(super) struct OpenOp {
    pub(super) id: OpId,
    pub(super) result: Option<Value>,
    pub(super) act: OpenAct,
    /// The kind of the operation, if it may be merged with another one: an operation of two `f32`s, or their sum.
    pub(super) f32_op: Option<F32Op>,
    /// The size of an element of the result, in bytes.
    pub(super) size: usize,
    pub(super) args: Vec<OpenArg>,
}

/// The operations that may be merged with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum F32Op {
    Binary(BinOp),
    SumOfRows,
}

/// The effect of an operation of an open group.
#[derive(Clone, Debug)]
pub(super) enum OpenAct {
    Map(TileFn),
    Reduce(RowFold),
    /// Computes one element per row from such elements.
    MapRows(ElementFn),
    /// Computes all elements from one element per row.
    Broadcast,
    Store(Place),
}

/// An operand in a group that is still open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenArg {
    /// An operand of the group: its origin, the size of an element in bytes, and whether it has one element per row.
    Leaf(Leaf, usize, bool),
    /// The result of operation number `n` of the group.
    Op(usize),
}

/// A group that is still open.
#[derive(Clone, Debug)]
pub(super) struct OpenGroup {
    pub(super) shape: [i32; 4],
    pub(super) ops: Vec<OpenOp>,
}

impl OpenOp {
    /// Whether its result has one element per row.
    pub(super) fn is_of_rows(&self) -> bool {
        match self.act {
            OpenAct::Reduce(_) | OpenAct::MapRows(_) => true,
            OpenAct::Map(_) | OpenAct::Broadcast | OpenAct::Store(_) => false,
        }
    }
}

impl OpenGroup {
    /// The operation that computes a value.
    pub(super) fn find(&self, value: Value) -> Option<usize> {
        self.ops.iter().position(|op| op.result == Some(value))
    }

    /// The operation that computes a value of one element per row, in a group in which such values may be used.
    pub(super) fn find_row(&self, value: Value) -> Option<usize> {
        let fits = usize::try_from(self.shape[3]).is_ok_and(|cols| cols <= MAX_ROW);
        self.find(value).filter(|n| fits && self.ops[*n].is_of_rows())
    }

    /// Whether there is room for another operation.
    pub(super) fn is_full(&self, max_ops: usize) -> bool {
        self.ops.len() >= max_ops || self.leaves(&vec![true; self.ops.len()]).len() + 3 > MAX_LEAVES
    }

    /// The step, where `outs` are the values needed outside, with their slots.
    pub(super) fn close(mut self, outs: &[(Value, Out)]) -> Group {
        self.merge(outs);
        let needed = self.needed(outs);
        Closing::run(&self, &needed, outs)
    }

    /// Merges two operations if the first one's value is used by the second one only.
    fn merge(&mut self, outs: &[(Value, Out)]) {
        for i in 0..self.ops.len() {
            let only_here = |n: usize| {
                let uses = self.ops.iter().flat_map(|op| &op.args).filter(|arg| **arg == OpenArg::Op(n));
                uses.count() == 1 && outs.iter().all(|(v, _)| self.ops[n].result != Some(*v))
            };
            let first = self.ops[i].args.iter().enumerate().find_map(|(at, arg)| match arg {
                OpenArg::Op(n) if only_here(*n) && self.ops[*n].args.len() == 2 => Some((at, *n)),
                OpenArg::Op(_) | OpenArg::Leaf(..) => None,
            });
            let Some((at, n)) = first else { continue };
            let (Some(F32Op::Binary(inner)), Some(outer)) = (self.ops[n].f32_op, self.ops[i].f32_op) else { continue };
            let act = match (outer, &self.ops[i].act) {
                (F32Op::SumOfRows, _) if inner == BinOp::Mul => OpenAct::Reduce(DOT),
                (F32Op::SumOfRows, _) => continue,
                (F32Op::Binary(outer), act) => match (chain(inner, outer, at == 1), act) {
                    (Some(f), OpenAct::MapRows(_)) => OpenAct::MapRows(f),
                    (Some(f), _) => OpenAct::Map(f.tile),
                    (None, _) => continue,
                },
            };
            let mut args = self.ops[n].args.clone();
            args.extend(self.ops[i].args.iter().enumerate().filter(|(j, _)| *j != at).map(|(_, arg)| *arg));
            (self.ops[i].act, self.ops[i].args, self.ops[i].f32_op) = (act, args, None);
            // Nothing reads the first one any more, so it is dropped.
        }
    }

    /// The operands of the needed operations, each once.
    pub(super) fn leaves(&self, needed: &[bool]) -> Vec<OpenArg> {
        let mut leaves = Vec::new();
        for op in self.ops.iter().zip(needed).filter_map(|(op, needed)| needed.then_some(op)) {
            for arg in &op.args {
                if matches!(arg, OpenArg::Leaf(..)) && !leaves.contains(arg) {
                    leaves.push(*arg);
                }
            }
        }
        leaves
    }

    /// The operations on which the outputs depend, and stores.
    fn needed(&self, outs: &[(Value, Out)]) -> Vec<bool> {
        let is_root =
            |op: &OpenOp| matches!(op.act, OpenAct::Store(_)) || outs.iter().any(|(v, _)| op.result == Some(*v));
        let mut needed: Vec<bool> = self.ops.iter().map(is_root).collect();
        // Operands precede their uses, so one backward pass finds all needed operations.
        for i in (0..self.ops.len()).rev() {
            if needed[i] {
                for arg in &self.ops[i].args {
                    if let OpenArg::Op(n) = arg {
                        needed[*n] = true;
                    }
                }
            }
        }
        needed
    }
}
