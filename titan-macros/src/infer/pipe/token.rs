//! Copies to slots of rings, and stores from staging slots.

use super::super::method::Call;
use super::super::{ITy, Infer, OwnTy, TensorTy};
use super::{Fields, PipeTy, SourceTy, describe_fields};
use crate::ast::Expr;
use crate::method::Method;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Access, Field};

impl Infer<'_> {
    /// `t.tile([i, j])`, `t.tile_at([r, c])`, `t.rows((i, ..), col)`
    pub(in crate::infer) fn source(&mut self, method: Method, t: TensorTy, call: &Call<'_>) -> ITy {
        let tensor_rank = usize::from(t.rank);
        let written = if call.generics.is_empty() { None } else { self.generic_shape(call) };
        let mut at = None;
        let rank = if method == Method::SourceRows {
            if self.takes(call, 2) {
                self.rows(&call.args[0], tensor_rank, written.map(|s| s[0]), call.span());
                self.index_expr(&call.args[1]);
            }
            2
        } else {
            if self.takes(call, 1) {
                at = self.coordinates(&call.args[0], t, call);
            }
            tensor_rank
        };
        if let Some(shape) = written
            && shape.rank() != rank
            && Some(shape.rank()) != at
        {
            let title = format!("a tile of rank {} for a source of rank {rank}", shape.rank());
            self.cx.error(Code::RankMismatch, call.span(), title);
        }
        let shape = match written {
            Some(shape) => self.known_shape(shape),
            None => self.fresh_shape(),
        };
        ITy::Pipe(PipeTy::Source(SourceTy { elem: t.elem, rank, shape }))
    }

    /// `slot.copy(source)` and, with a condition first, `copy_if` and `copy_or_poison`
    pub(super) fn copy(&mut self, conditional: bool, fields: &Fields, call: &Call<'_>) -> ITy {
        let filling = ITy::Pipe(PipeTy::Filling(fields.clone()));
        if !self.takes(call, 1 + usize::from(conditional)) {
            return filling;
        }
        if conditional {
            self.condition(&call.args[0]);
        }
        let Some(arg) = call.args.last() else { return filling };
        let ty = self.expr(arg);
        let sources = match ty {
            ITy::Tuple(list) if fields.len() > 1 => list,
            one => vec![one],
        };
        if sources.iter().any(|s| matches!(s, ITy::Unknown | ITy::Never)) {
            return filling;
        }
        if sources.len() != fields.len() {
            let title = format!("{} for a copy to a slot of `{}`", counted(sources.len()), describe_fields(fields));
            self.cx.error(Code::StageContents, arg.span, title);
            return filling;
        }
        for (source, field) in sources.iter().zip(fields) {
            self.source_fits(source, field, arg);
        }
        filling
    }

    fn source_fits(&mut self, source: &ITy, field: &Field, arg: &Expr) {
        let holds = describe_fields(std::slice::from_ref(field));
        let ITy::Pipe(PipeTy::Source(s)) = source else {
            let title = format!("{} cannot be copied to a slot of `{holds}`", self.describe(source));
            self.cx.error(Code::StageContents, arg.span, title);
            return;
        };
        let want = self.known_shape(field.shape);
        let fits = s.elem == field.elem && s.rank == field.shape.rank() && self.unify_shape(want, s.shape).is_ok();
        if !fits {
            let what = self.shape_of(s.shape).map_or_else(|| format!("rank {}", s.rank), |s| s.to_string());
            let title = format!("a source of {what} `{}` cannot be copied to a slot of `{holds}`", s.elem);
            self.cx.error(Code::StageContents, arg.span, title);
        }
    }

    /// `slot.write(tile)` of a staging slot
    pub(super) fn write(&mut self, fields: &Fields, call: &Call<'_>) -> ITy {
        if self.takes(call, 1)
            && let [field] = &fields[..]
        {
            let got = self.expr(&call.args[0]);
            let want = ITy::Tile(self.known(field.elem), self.known_shape(field.shape));
            self.unify(&want, &got, call.args[0].span);
        }
        ITy::Pipe(PipeTy::Written(fields.clone()))
    }

    /// `written.store(c, [m, n])` and `written.store_at(c, [r, c])`
    pub(super) fn store(&mut self, fields: &Fields, call: &Call<'_>) -> ITy {
        if self.takes(call, 2)
            && let [field] = &fields[..]
        {
            match self.expr(&call.args[0]) {
                ITy::Tensor(t) => {
                    if t.access == Access::In {
                        self.cx.error(Code::StoreToInput, call.args[0].span, "cannot store to an input");
                    }
                    if t.elem != field.elem || usize::from(t.rank) != field.shape.rank() {
                        let title = format!(
                            "a slot of `{}` cannot be stored to {}",
                            describe_fields(fields),
                            self.describe(&ITy::Tensor(t))
                        );
                        self.cx.error(Code::StageContents, call.args[0].span, title);
                    }
                    self.coordinates(&call.args[1], t, call);
                }
                ITy::Unknown | ITy::Never => drop(self.expr(&call.args[1])),
                other => {
                    self.expr(&call.args[1]);
                    let title = format!("expected a tensor to store to, found {}", self.describe(&other));
                    let help = "name the output, and the place in it: `written.store(y, [i, j])`";
                    self.cx.error_help(Code::Arguments, call.args[0].span, title, help);
                }
            }
        }
        ITy::Pipe(PipeTy::Store)
    }

    /// `out.store_from(written)`
    pub(in crate::infer) fn store_from(&mut self, own: OwnTy, arg: &Expr) -> ITy {
        match self.expr(arg) {
            ITy::Pipe(PipeTy::Written(f)) => {
                if f.first().is_none_or(|f| f.elem != own.elem || f.shape != own.shape) {
                    let title = format!(
                        "a slot of `{}` cannot be stored to a tile of {} `{}`",
                        describe_fields(&f),
                        own.shape,
                        own.elem
                    );
                    self.cx.error(Code::StageContents, arg.span, title);
                }
            }
            ITy::Unknown | ITy::Never => {}
            other => {
                let title = format!("expected a written staging slot, found {}", self.describe(&other));
                let help =
                    "write the tile to a slot first, `staging.acquire().write(v)`, or store it by `out.store(v)`";
                self.cx.error_help(Code::Arguments, arg.span, title, help);
            }
        }
        ITy::Pipe(PipeTy::Store)
    }

    /// `c.work::<..>()` and `c.work_grouped::<.., G>()`
    pub(in crate::infer) fn work(&mut self, t: TensorTy, grouped: bool, call: &Call<'_>, span: Span) -> ITy {
        self.takes(call, 0);
        if grouped {
            return match self.grouped_shape(t, call) {
                Some((shape, group)) => ITy::Pipe(PipeTy::Work(OwnTy { elem: t.elem, shape, ragged: false, group })),
                None => ITy::Unknown,
            };
        }
        let Some(shape) = self.generic_shape(call) else { return ITy::Unknown };
        if shape.rank() != usize::from(t.rank) {
            let title = format!("a tile of rank {} for a tensor of rank {}", shape.rank(), t.rank);
            self.cx.error(Code::RankMismatch, span, title);
        }
        ITy::Pipe(PipeTy::Work(OwnTy { elem: t.elem, shape, ragged: false, group: 1 }))
    }
}

fn counted(n: usize) -> String {
    if n == 1 { "one source".to_owned() } else { format!("{n} sources") }
}
