//! Functions of pipelines: the constructors of rings and accumulators, and asynchronous MMAs.

use super::super::{ElemSlot, ITy, Infer};
use super::{Fields, PipeTy};
use crate::ast::{Builtin, Expr, GenericArg, GenericArgValue, Path, TypeKind, TypeRef};
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Field, MMA_TRIPLES, PipeDecl};

impl Infer<'_> {
    pub(in crate::infer) fn pipe_builtin(&mut self, b: Builtin, path: &Path, args: &[Expr], span: Span) -> ITy {
        let generics = path.generics.as_ref().map(|(_, g)| &g[..]).unwrap_or_default();
        let made = match b {
            Builtin::RingNew => self.ring("Ring", generics, span).map(|(f, d)| PipeTy::Ring(f, d)),
            Builtin::StagingNew => self.ring("Staging", generics, span).and_then(|(f, d)| self.staging(f, d, span)),
            Builtin::AccZeros | Builtin::AccFromTile => self.acc(generics, args.first(), span),
            Builtin::MmaAsync | Builtin::MmaAsyncReg => self.mma_async(b == Builtin::MmaAsyncReg, args, span),
            Builtin::StageJoin => match self.expr(&args[0]) {
                ITy::Array(item, _) if matches!(*item, ITy::Pipe(PipeTy::Part(_))) => match *item {
                    ITy::Pipe(PipeTy::Part(fields)) => Some(PipeTy::Stage(fields)),
                    _ => None,
                },
                ITy::Array(item, _) if matches!(*item, ITy::Unknown | ITy::Never) => None,
                ITy::Unknown | ITy::Never => None,
                other => {
                    let title = format!("`Stage::join` takes the parts of a stage, not {}", self.describe(&other));
                    let help = "split a stage first: `let [a, b] = stage.split::<2>();`, then `Stage::join([a, b])`";
                    self.cx.error_help(Code::Arguments, args[0].span, title, help);
                    None
                }
            },
            _ => None,
        };
        made.map_or(ITy::Unknown, ITy::Pipe)
    }

    /// `Ring::<(Smem<..>, Smem<..>), D>`
    fn ring(&mut self, name: &str, generics: &[GenericArg], span: Span) -> Option<(Fields, u32)> {
        if let [GenericArg { value: GenericArgValue::Type(_), span, .. }] = generics {
            let (title, help) = (
                "the number of slots is missing",
                format!("write it after the type of a stage: `{name}::<.., 2>::new()` has 2 slots"),
            );
            self.cx.error_help(Code::CannotInfer, *span, title, help);
            return None;
        }
        let [bundle, slots] = generics else {
            self.cannot_infer(
                span,
                "the type of a stage",
                "write it: `Ring::<(Smem<f16, 128, 64>, Smem<f16, 64, 64>), 4>::new()`",
            );
            return None;
        };
        let fields = self.bundle(bundle);
        let d = self.env.const_arg(slots);
        let d = self.fault(d)?;
        let max = PipeDecl::MAX_SLOTS;
        match u32::try_from(d) {
            Ok(d) if (1..=max).contains(&d) => Some((fields?, d)),
            _ => {
                let title = format!("a ring cannot have {d} slots");
                self.cx.error_help(
                    Code::RingMade,
                    slots.span,
                    title,
                    format!("a ring has 1 to {max} slots; 2 to 4 hide the latency of most copies"),
                );
                None
            }
        }
    }

    /// The tiles of a stage.
    fn bundle(&mut self, arg: &GenericArg) -> Option<Fields> {
        let list = match &arg.value {
            GenericArgValue::Type(TypeRef { kind: TypeKind::Tuple(list), .. }) => &list[..],
            GenericArgValue::Type(t) => std::slice::from_ref(t),
            GenericArgValue::Const(_) => &[],
        };
        let in_tuple = matches!(&arg.value, GenericArgValue::Type(TypeRef { kind: TypeKind::Tuple(_), .. }));
        let most = PipeDecl::MAX_FIELDS;
        let help = "one `Smem<T, A, B>`, or a tuple of two to four of them";
        if list.is_empty() || list.len() > most || (in_tuple && list.len() == 1) {
            let what = if list.len() == 1 { "a tuple of one tile".to_owned() } else { format!("{} tiles", list.len()) };
            self.cx.error_help(
                Code::RingMade,
                arg.span,
                format!("a stage cannot hold {what}"),
                format!("a stage holds {help}"),
            );
            return None;
        }
        let mut fields = Vec::new();
        for t in list {
            let TypeKind::Smem(elem, dims, _) = &t.kind else {
                self.cx.error_help(Code::RingMade, t.span, "a stage can only hold tiles in shared memory", help);
                return None;
            };
            let e = self.elem_ref(elem);
            let shape = self.env.shape(dims, t.span);
            let shape = self.fault(shape)?;
            fields.push(Field { elem: self.elem_of(e)?, shape });
        }
        Some(fields)
    }

    fn staging(&self, fields: Fields, slots: u32, span: Span) -> Option<PipeTy> {
        if fields.len() == 1 {
            return Some(PipeTy::Staging(fields, slots));
        }
        let title = format!("a slot of a staging ring cannot hold {} tiles", fields.len());
        self.cx.error_help(Code::RingMade, span, title, "it holds one tile: `Staging::<Smem<f16, 128, 64>, 2>::new()`");
        None
    }

    /// `Acc::<f32, D2<M, N>, KEEP>`
    fn acc(&mut self, generics: &[GenericArg], tile: Option<&Expr>, span: Span) -> Option<PipeTy> {
        let given = tile.map(|t| (self.expr(t), t.span));
        let [elem, shape, keep] = generics else {
            let help = "write them: `Acc::<f32, D2<128, 256>, 1>::zeros()`";
            self.cannot_infer(span, "the type of an accumulator and the number of its MMAs in flight", help);
            return None;
        };
        let e = match &elem.value {
            GenericArgValue::Type(t) => self.elem_ref(t),
            GenericArgValue::Const(_) => self.fresh(ElemSlot::Any),
        };
        if let Some(other) = self.elem_of(e).filter(|e| !MMA_TRIPLES.iter().any(|(_, _, acc)| acc == e)) {
            let title = format!("no MMA accumulates in `{other}`");
            let help = format!(
                "write `Acc::<f32, ..>`, with `i32` for operands of `i8` and `f64` for `f64`; `.finish().cast::<{other}>()` converts the result"
            );
            self.cx.error_help(Code::Operands, elem.span, title, help);
            return None;
        }
        let s = if let GenericArgValue::Type(TypeRef { kind: TypeKind::Infer, .. }) = &shape.value {
            self.fresh_shape()
        } else {
            let shape = self.env.shape(std::slice::from_ref(shape), shape.span);
            let shape = self.fault(shape)?;
            self.known_shape(shape)
        };
        if let Some((ty, at)) = given {
            self.unify(&ITy::Tile(e, s), &ty, at);
        }
        let k = self.env.const_arg(keep);
        let k = self.fault(k)?;
        match u8::try_from(k) {
            Ok(k) if k < 64 => Some(PipeTy::Acc(e, s, k)),
            _ => {
                let title = format!("an accumulator cannot keep {k} MMAs in flight");
                self.cx.error_help(
                    Code::Operands,
                    keep.span,
                    title,
                    "it keeps 0 to 63: with 0 each MMA is waited for at once, with 1 it overlaps with the next one",
                );
                None
            }
        }
    }

    fn mma_async(&mut self, in_registers: bool, args: &[Expr], span: Span) -> Option<PipeTy> {
        let tys: Vec<ITy> = args.iter().map(|a| self.expr(a)).collect();
        let fits = match &tys[..] {
            [ITy::Tile(..), ITy::Pipe(PipeTy::View(..)), ITy::Tile(..)] => in_registers,
            [ITy::Pipe(PipeTy::View(..)), ITy::Pipe(PipeTy::View(..)), ITy::Tile(..)] => !in_registers,
            _ => false,
        };
        if !fits {
            if !tys.iter().any(|t| matches!(t, ITy::Unknown | ITy::Never)) {
                let given: Vec<String> = tys.iter().map(|t| self.describe(t)).collect();
                let (name, left) = if in_registers {
                    ("mma_async_reg", "a tile in registers")
                } else {
                    ("mma_async", "a tile of a stage")
                };
                let title = format!(
                    "`{name}` expects {left}, a tile of a stage and an accumulator tile, found {}",
                    given.join(", ")
                );
                let help = "`mma_async` reads both operands from stages, `mma_async_reg` the left one from registers; `mma` takes either";
                self.cx.error_help(Code::Arguments, span, title, help);
            }
            return None;
        }
        match self.mma_types(&tys, span) {
            ITy::Tile(e, s) => Some(PipeTy::Compute(e, s)),
            _ => None,
        }
    }
}
