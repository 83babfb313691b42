//! Minima and maxima of many `f32`, three numbers by each instruction.
//!
//! An operation of which nothing but another one of its kind in the same region reads the result is made together with that:
//!
//! ```text
//! x = max a, b     y = max c, d     z = max x, y          ─▶    t = max3 a, b, c     z = max t, d
//! ```
//!
//! The order does not matter: the result is one of the numbers, and a NaN only if all of them are. All numbers of a group live until it is
//! computed, so that there are few.

use super::uses::Uses;
use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first};
use std::collections::VecDeque;
use titan_core::lane::op::OpKind;
use titan_core::lane::{FloatBin, FloatTy, Func, Op, Value};

/// The greatest number of operands of a group.
const MOST: u32 = 16;

const fn is_extreme(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Float(FloatBin::Min | FloatBin::Max, FloatTy::F32))
}

/// Of each value, whether it is computed together with the one operation that reads it.
pub(super) fn joined(func: &Func, uses: &Uses) -> Vec<bool> {
    let mut joined = vec![false; func.values.len()];
    let mut numbers = vec![1u32; func.values.len()];
    func.walk(&mut |_, op| {
        let (true, [result]) = (is_extreme(&op.kind), op.results.as_slice()) else { return };
        let may_join = |arg: &&Value| {
            let by = func.def_op(**arg).filter(|by| by.kind == op.kind);
            let only = uses.only(func, **arg).is_some();
            by.is_some() && only && func.constant(**arg).is_none() && uses.home(**arg) == uses.home(*result)
        };
        let alone = |arg: &Value| if may_join(&arg) { numbers[arg.index()] } else { 1 };
        let all: u32 = op.args.iter().map(alone).sum();
        let group: Vec<Value> =
            if all <= MOST { op.args.iter().filter(may_join).copied().collect() } else { Vec::new() };
        numbers[result.index()] = if all <= MOST { all } else { 2 };
        for arg in group {
            joined[arg.index()] = true;
        }
    });
    joined
}

impl Select<'_> {
    /// A minimum or maximum of `f32`, with those that are parts of it.
    pub(super) fn extreme(&mut self, bin: FloatBin, op: &Op) -> Done {
        let value = first(&op.results)?;
        if self.joined[value.index()] {
            return Ok(());
        }
        let mut numbers: VecDeque<Src> = VecDeque::new();
        let mut open: Vec<Value> = op.args.iter().rev().copied().collect();
        while let Some(arg) = open.pop() {
            match self.func.def_op(arg).filter(|_| self.joined[arg.index()]) {
                Some(inner) => open.extend(inner.args.iter().rev()),
                None => numbers.push_back(self.src(arg)?),
            }
        }
        let (of_two, of_three) =
            if bin == FloatBin::Min { ("v_min_f32", "v_min3_f32") } else { ("v_max_f32", "v_max3_f32") };
        while let (Some(a), Some(b)) = (numbers.pop_front(), numbers.pop_front()) {
            let part = match numbers.pop_front() {
                Some(c) => self.valu_new(of_three, 1, &[a, b, c])?,
                None => self.valu_new(of_two, 1, &[a, b])?,
            };
            if numbers.is_empty() {
                self.set(value, Spot::V(part));
                return Ok(());
            }
            numbers.push_back(Src::V(part));
        }
        Err(Fault::Defect("an extreme of no numbers".to_owned()))
    }
}
