//! Types of pipelines: rings, their tokens, sources, tiles of stages, products under way.

mod call;
mod method;
mod token;

use super::{E, ITy, Infer, OwnTy, S};
use crate::method_pipe::PipeKind;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, Field};

/// What a stage holds.
pub(crate) type Fields = Vec<Field>;

/// The type of something of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PipeTy {
    Ring(Fields, u32),
    /// `ring.produce(range)` or, with `false`, `ring.consume(range)`
    Side(Fields, bool),
    Slot(Fields),
    Filling(Fields),
    Ready(Fields),
    Stage(Fields),
    /// What `wait_filled` gives.
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
    /// `work.indices()`, of tiles of so many axes
    Indices(usize),
}

/// A part of a tensor that is named for a copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SourceTy {
    pub(crate) elem: Elem,
    /// The number of axes of its tiles.
    pub(crate) rank: usize,
    /// Its extents: perhaps those of the slot.
    pub(crate) shape: S,
}

impl PipeTy {
    /// What it is as a receiver; iterators and options are none.
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

/// The tiles of a stage in the user's words.
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
    /// A type of a pipeline in the user's words.
    pub(super) fn describe_pipe(&self, ty: &PipeTy) -> String {
        let tile = |e: E, s: S| self.describe(&ITy::Tile(e, s));
        match ty {
            PipeTy::Ring(f, d) => format!("`Ring<{}, {d}>`", describe_fields(f)),
            PipeTy::Side(_, true) => "a walk over the slots of a ring".to_owned(),
            PipeTy::Side(_, false) => "a walk over the stages of a ring".to_owned(),
            PipeTy::Slot(f) => format!("a slot of `{}`", describe_fields(f)),
            PipeTy::Filling(f) => format!("a copy to a slot of `{}`", describe_fields(f)),
            PipeTy::Ready(f) => format!("a claimed stage of `{}`", describe_fields(f)),
            PipeTy::Stage(f) => format!("a stage of `{}`", describe_fields(f)),
            PipeTy::Filled(_) => "what `wait_filled` gives".to_owned(),
            PipeTy::Part(f) => format!("a part of a stage of `{}`", describe_fields(f)),
            PipeTy::Source(s) => format!("a source of `{}`", s.elem),
            PipeTy::View(e, s) => format!("a tile of a stage, {}", tile(*e, *s)),
            PipeTy::Compute(e, s) => format!("a product under way to {}", tile(*e, *s)),
            PipeTy::Acc(e, s, keep) => format!("an accumulator of {} with {keep} under way", tile(*e, *s)),
            PipeTy::Staging(f, d) => format!("`Staging<{}, {d}>`", describe_fields(f)),
            PipeTy::StagingSlot(f) => format!("a staging slot of `{}`", describe_fields(f)),
            PipeTy::Written(f) => format!("a written slot of `{}`", describe_fields(f)),
            PipeTy::Store => "a store under way".to_owned(),
            PipeTy::Work(_) => "a schedule of output tiles".to_owned(),
            PipeTy::Indices(_) => "a walk over output tiles".to_owned(),
        }
    }

    /// Makes two types of pipelines one; reports a mismatch.
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
            let title = format!("{} where {} is expected", self.describe_pipe(b), self.describe_pipe(a));
            self.cx.error(Code::StageContents, span, title);
            return ITy::Unknown;
        }
        ITy::Pipe(a.clone())
    }

    /// The element and shape of an operand of a product, wherever it lies.
    pub(super) fn operand_tile(ty: &ITy) -> Option<(E, S)> {
        match ty {
            ITy::Tile(e, s) | ITy::Pipe(PipeTy::View(e, s)) => Some((*e, *s)),
            _ => None,
        }
    }
}
