//! Operations of laid-out kernels.

use super::facts::{PURE, operation, synchronous};
use super::syntax::{Form, Head, HeadError, Int, Written};
use super::*;
use crate::ir::Completion::Prefix;
use crate::ir::Effect::{Pipeline, Read};
use crate::ir::Proxy::Generic;
use crate::ir::Stated::Nothing;
use crate::ir::traffic::On::{Local, Tensor};
use crate::ir::traffic::{NO_TRAFFIC, one, reads, two, writes};
use crate::ir::{ArgOp, Class, Fold, LocalOp, ReduceOp};

/// The meaning of the integers in angle brackets.
const FOLD: &str = "the axis and the parts of a line";

table! {
    LocalOp, facts -> Facts;

    "ttg.local.alloc" Laid [LocalOp::Alloc { elem, shape }] : smem(elem, shape)
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "smem", ANY, "shared memory for a tile", [];
    "ttg.local.store" Laid [LocalOp::Store] Plain, synchronous(Pipeline, one(writes(Local, Generic))),
        "", "x, smem" => "", ANY, "a tile from registers to shared memory", [];
    "ttg.local.load" Laid [LocalOp::Load] Plain, synchronous(Read, one(reads(Local, Generic))),
        "", "smem" => "tile", ANY, "a tile from shared memory to registers", [];
    "ttg.local.copy" Laid [LocalOp::Copy { asynchronous: false }]
        Plain, synchronous(Read, two(writes(Local, Generic), reads(Tensor, Generic))),
        "", "source, smem" => "", ANY, "a tile of a tensor to shared memory, through registers", [];
    "ttg.local.copy_async" Laid [LocalOp::Copy { asynchronous: true }]
        Plain, operation(Read, two(writes(Local, Generic), reads(Tensor, Generic)), Prefix(Class::CpAsync), Nothing),
        "", "source, smem" => "", ANY, "starts an asynchronous copy of a tile of a tensor to shared memory", [];
    "ttg.local.fetch" Laid [LocalOp::Fetch { guarded: false }] Plain, synchronous(Read, one(reads(Tensor, Generic))),
        "", "source" => "tile", ANY, "a tile of a tensor to registers: the first half of a copy to a stage", [];
    "ttg.local.fetch_if" Laid [LocalOp::Fetch { guarded: true }] Plain, synchronous(Read, one(reads(Tensor, Generic))),
        "", "source, condition: bool" => "tile", ANY, "the same; all of it is outside of the tensor unless the condition holds", [];
    "ttg.local.settle" Laid [LocalOp::Settle { read }] {read = true} Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "any number of: smem" => "", ANY,
        "waits for the copies to tiles in shared memory and for the bulk stores from them; without operands, for all bulk stores", [];
    "ttg.local.guard" Laid [LocalOp::Guard] Plain, PURE,
        "", "source, condition: bool" => "source", ANY, "the same tile of a tensor; all of it is outside unless the condition holds", [];
    "ttg.local.slice" Laid [LocalOp::Slice { axis, n }] <axis, n> "the axis and its extent" Plain, PURE,
        "", "x: tile or smem, at: i32" => "as x, shorter", ANY, "a part of a tile along an axis", [];
    "ttg.local.stack" Laid [LocalOp::Stack] Plain, PURE,
        "", "x, …" => "tile", ANY, "stacks tiles along a new first axis", [];
    "ttg.local.reshape" Laid [LocalOp::Reshape(shape)] : extents(shape) Plain, PURE,
        "", "smem" => "smem", ANY, "the same shared memory as another tile, its elements in row-major order", [];
    "ttg.local.mma" Laid [LocalOp::Mma] Plain, PURE,
        "", "a, b, acc" => "as acc", NUMBERS, "a · b + acc, on fragments", [];
    "ttg.local.convert" Laid [LocalOp::Convert] Plain, PURE,
        "", "x" => "as x", ANY, "a tile in another layout; each thread has what it needs", [];
    "ttg.local.fold_sum" Laid [LocalOp::Fold { f: Fold::Plain(ReduceOp::Sum), axis, parts }] <axis, parts> FOLD
        Plain, PURE,
        "", "x" => "partial results", NUMBERS, "sums along an axis, by the lanes of each warp", [];
    "ttg.local.fold_prod" Laid [LocalOp::Fold { f: Fold::Plain(ReduceOp::Prod), axis, parts }] <axis, parts> FOLD
        Plain, PURE,
        "", "x" => "partial results", NUMBERS, "products along an axis, by the lanes of each warp", [];
    "ttg.local.fold_max" Laid [LocalOp::Fold { f: Fold::Plain(ReduceOp::Max), axis, parts }] <axis, parts> FOLD
        Plain, PURE,
        "", "x" => "partial results", NUMBERS, "the greatest along an axis, by the lanes of each warp", [];
    "ttg.local.fold_min" Laid [LocalOp::Fold { f: Fold::Plain(ReduceOp::Min), axis, parts }] <axis, parts> FOLD
        Plain, PURE,
        "", "x" => "partial results", NUMBERS, "the least along an axis, by the lanes of each warp", [];
    "ttg.local.fold_argmax" Laid [LocalOp::Fold { f: Fold::Arg(ArgOp::Max), axis, parts }] <axis, parts> FOLD
        Plain, PURE,
        "", "x, index: i32" => "partial results", NUMBERS, "the greatest along an axis and its index, by each warp", [];
    "ttg.local.fold_argmin" Laid [LocalOp::Fold { f: Fold::Arg(ArgOp::Min), axis, parts }] <axis, parts> FOLD
        Plain, PURE,
        "", "x, index: i32" => "partial results", NUMBERS, "the least along an axis and its index, by each warp", [];
    "ttg.local.fold_with" Laid [LocalOp::Fold { f: Fold::With, axis, parts }] <axis, parts> FOLD Plain, PURE,
        "", "x, neutral: scalar" => "partial results", ANY, "combines along an axis by a region, by each warp", [];
}
