//! Types of pipelines: rings, their tokens, copy sources, tiles of stages, MMAs in flight.

mod call;
mod method;
mod token;

use super::{E, ITy, Infer, OwnTy, S};
use crate::method_pipe::PipeKind;
use proc_macro2::Span;
use titan_core::diag::{Code, counted};
use titan_core::ir::{Elem, Field};

/// The element types and shapes of the tiles in a stage.
pub(crate) type Fields = Vec<Field>;

/// The type of a value that belongs to a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PipeTy {
    Ring(Fields, u32),
    /// `ring.produce(range)` or, with `false`, `ring.consume(range)`
    Side(Fields, bool),
    Slot(Fields),
    Filling(Fields),
    Ready(Fields),
    Stage(Fields),
    /// The result of `wait_filled`, an option of a stage.
    Filled(Fields),
    Part(Fields),
    Source(SourceTy),
    /// A tile of a stage.
    View(E, S),
    Compute(E, S),
    Acc(E, S, u8),
    Staging(Fields, u32),
    StagingSlot(Fields),
    Written(Fields),
    Store,
    Work(OwnTy),
    /// `work.indices()`, with the rank of the tiles.
    Indices(usize),
}

/// The part of a tensor that a copy reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SourceTy {
    pub(crate) elem: Elem,
    /// The number of axes of its tiles.
    pub(crate) rank: usize,
    /// Its extents; where they are not written, they follow from the slot.
    pub(crate) shape: S,
}

impl PipeTy {
    /// Its kind as a receiver of methods; `None` for iterators and options, which have no methods in kernels.
    pub(crate) const fn kind(&self) -> Option<PipeKind> {
        Some(match self {
            PipeTy::Ring(..) => PipeKind::Ring,
            PipeTy::Slot(_) => PipeKind::Slot,
            PipeTy::Filling(_) => PipeKind::Filling,
            PipeTy::Ready(_) => PipeKind::Ready,
            PipeTy::Stage(_) => PipeKind::Stage,
            PipeTy::Part(_) => PipeKind::Part,
            PipeTy::Source(_) => PipeKind::Source,
            PipeTy::View(..) => PipeKind::View,
            PipeTy::Compute(..) => PipeKind::Compute,
            PipeTy::Acc(..) => PipeKind::Acc,
            PipeTy::Staging(..) => PipeKind::Staging,
            PipeTy::StagingSlot(_) => PipeKind::StagingSlot,
            PipeTy::Written(_) => PipeKind::Written,
            PipeTy::Store => PipeKind::Store,
            PipeTy::Work(_) => PipeKind::Work,
            PipeTy::Side(..) | PipeTy::Filled(_) | PipeTy::Indices(_) => return None,
        })
    }
}

/// The tiles of a stage, as the user writes their types.
pub(super) fn describe_fields(fields: &[Field]) -> String {
    let one = |f: &Field| {
        let dims: Vec<String> = f.shape.iter().map(ToString::to_string).collect();
        format!("Smem<{}, {}>", f.elem, dims.join(", "))
    };
    match fields {
        [f] => one(f),
        _ => format!("({})", fields.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

impl Infer<'_> {
    /// A type of a pipeline, as messages call it.
    pub(super) fn describe_pipe(&self, ty: &PipeTy) -> String {
        let tile = |e: E, s: S| self.describe(&ITy::Tile(e, s));
        match ty {
            PipeTy::Ring(f, d) => format!("`Ring<{}, {d}>`", describe_fields(f)),
            PipeTy::Side(_, true) => "an iterator over the slots of a ring".to_owned(),
            PipeTy::Side(_, false) => "an iterator over the stages of a ring".to_owned(),
            PipeTy::Slot(f) => format!("a slot of `{}`", describe_fields(f)),
            PipeTy::Filling(f) => format!("a copy to a slot of `{}`", describe_fields(f)),
            PipeTy::Ready(f) => format!("a pending wait for a stage of `{}`", describe_fields(f)),
            PipeTy::Stage(f) => format!("a stage of `{}`", describe_fields(f)),
            PipeTy::Filled(_) => "the result of `wait_filled`".to_owned(),
            PipeTy::Part(f) => format!("a part of a stage of `{}`", describe_fields(f)),
            PipeTy::Source(s) => format!("a copy source of `{}`", s.elem),
            PipeTy::View(e, s) => format!("a tile of a stage, {}", tile(*e, *s)),
            PipeTy::Compute(e, s) => format!("an MMA in flight, {}", tile(*e, *s)),
            PipeTy::Acc(e, s, keep) => {
                format!("an accumulator of {} with {} in flight", tile(*e, *s), counted(*keep, "MMA"))
            }
            PipeTy::Staging(f, d) => format!("`Staging<{}, {d}>`", describe_fields(f)),
            PipeTy::StagingSlot(f) => format!("a staging slot of `{}`", describe_fields(f)),
            PipeTy::Written(f) => format!("a written slot of `{}`", describe_fields(f)),
            PipeTy::Store => "a store in flight".to_owned(),
            PipeTy::Work(_) => "the output tiles of `work`".to_owned(),
            PipeTy::Indices(_) => "an iterator over output tiles".to_owned(),
        }
    }

    /// Unifies two types of pipelines; reports a mismatch.
    pub(super) fn unify_pipe(&mut self, a: &PipeTy, b: &PipeTy, span: Span) -> ITy {
        let parts = match (a, b) {
            (PipeTy::View(x, s), PipeTy::View(y, r)) | (PipeTy::Compute(x, s), PipeTy::Compute(y, r)) => {
                Some((*x, *y, *s, *r))
            }
            (PipeTy::Acc(x, s, k), PipeTy::Acc(y, r, l)) if k == l => Some((*x, *y, *s, *r)),
            _ => None,
        };
        if let Some((x, y, s, r)) = parts {
            self.unify(&ITy::Tile(x, s), &ITy::Tile(y, r), span);
        } else if a != b {
            let title = format!("expected {}, found {}", self.describe_pipe(a), self.describe_pipe(b));
            self.cx.error(Code::StageContents, span, title);
            return ITy::Unknown;
        }
        ITy::Pipe(a.clone())
    }

    /// The element type and shape of an operand of an MMA, in registers or in a stage.
    pub(super) fn operand_tile(ty: &ITy) -> Option<(E, S)> {
        match ty {
            ITy::Tile(e, s) | ITy::Pipe(PipeTy::View(e, s)) => Some((*e, *s)),
            _ => None,
        }
    }
}
