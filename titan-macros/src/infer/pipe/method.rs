//! Methods of rings, of stages and of MMAs in flight; those of the role that fills a ring are in [`super::token`].

use super::super::method::Call;
use super::super::{ITy, Infer};
use super::{Fields, PipeTy};
use crate::ast::{Expr, ExprKind};
use crate::method_pipe::PipeMethod as M;
use titan_core::diag::Code;

impl Infer<'_> {
    pub(in crate::infer) fn pipe_method(&mut self, method: M, recv: &PipeTy, call: &Call<'_>) -> ITy {
        let pipe = |ty| ITy::Pipe(ty);
        match (method, recv) {
            (M::Produce, PipeTy::Ring(f, _)) => self.ranged(call, PipeTy::Side(f.clone(), true)),
            (M::Consume, PipeTy::Ring(f, _)) => self.ranged(call, PipeTy::Side(f.clone(), false)),
            (M::Copy(skipped), PipeTy::Slot(f)) => self.copy(skipped.is_some(), f, call),
            (M::AccMma | M::AccMmaReg, PipeTy::Acc(..)) => self.acc_mma(method == M::AccMmaReg, recv, call),
            (M::Split, PipeTy::Stage(f)) => self.split(f, call),
            (M::View(n), PipeTy::Stage(f) | PipeTy::Part(f)) => self.view_of(f, (f.len() > 1).then_some(n), recv, call),
            (M::OnlyView, PipeTy::Stage(f) | PipeTy::Part(f)) => {
                self.view_of(f, (f.len() == 1).then_some(0), recv, call)
            }
            (M::Write, PipeTy::StagingSlot(f)) => self.write(f, call),
            (M::Store(_), PipeTy::Written(f)) => self.store(f, call),
            _ => {
                self.takes(call, 0);
                match (method, recv) {
                    (M::Acquire, PipeTy::Ring(f, _)) => pipe(PipeTy::Slot(f.clone())),
                    (M::Ready, PipeTy::Ring(f, _)) => pipe(PipeTy::Ready(f.clone())),
                    (M::Fill(_), PipeTy::Slot(f)) => pipe(PipeTy::Filling(f.clone())),
                    (M::Wait, PipeTy::Ready(f)) => pipe(PipeTy::Stage(f.clone())),
                    (M::WaitFilled, PipeTy::Ready(f)) => pipe(PipeTy::Filled(f.clone())),
                    (M::Load, PipeTy::View(e, s)) => ITy::Tile(*e, *s),
                    (M::Transpose, PipeTy::View(e, s)) => self.transposed_view(*e, *s, call),
                    (M::ComputeWait, PipeTy::Compute(e, s)) => ITy::Tile(*e, *s),
                    (M::AccFinish, PipeTy::Acc(e, s, _)) => ITy::Tile(*e, *s),
                    (M::StagingAcquire, PipeTy::Staging(f, _)) => pipe(PipeTy::StagingSlot(f.clone())),
                    (M::Indices, PipeTy::Work(own)) => pipe(PipeTy::Indices(own.shape.rank())),
                    (M::WorkTiles, PipeTy::Work(own)) => ITy::OwnIter(*own),
                    _ => ITy::Unit,
                }
            }
        }
    }

    /// `produce(range)` and `consume(range)`
    fn ranged(&mut self, call: &Call<'_>, side: PipeTy) -> ITy {
        if self.takes(call, 1) {
            match self.expr(&call.args[0]) {
                ITy::Range | ITy::Unknown | ITy::Never => {}
                other => self.wrong_kind(&ITy::Range, &other, call.args[0].span),
            }
        }
        ITy::Pipe(side)
    }

    /// `stage.split::<2>()`
    fn split(&mut self, fields: &Fields, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        match call.generics {
            [n] => {
                let count = self.env.const_arg(n);
                match self.fault(count).map(usize::try_from) {
                    Some(Ok(n @ 2..=16)) => ITy::Array(Box::new(ITy::Pipe(PipeTy::Part(fields.clone()))), n),
                    Some(_) => {
                        let title = "a stage can be split for 2 to 16 readers";
                        let help = "write their number, as in `stage.split::<2>()`; one reader uses the stage itself";
                        self.cx.error_help(Code::Arguments, n.span, title, help);
                        ITy::Unknown
                    }
                    None => ITy::Unknown,
                }
            }
            _ => self.cannot_infer(call.span(), "the number of readers", "write it: `stage.split::<2>()`"),
        }
    }

    /// A tile of a stage.
    fn view_of(&mut self, fields: &Fields, n: Option<u8>, stage: &PipeTy, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        match n.and_then(|n| fields.get(usize::from(n))) {
            Some(f) => ITy::Pipe(PipeTy::View(self.known(f.elem), self.known_shape(f.shape))),
            None => {
                let title = format!("{} has no `{}`", self.describe_pipe(stage), call.name);
                self.cx.error(Code::StageContents, call.span(), title);
                ITy::Unknown
            }
        }
    }

    fn transposed_view(&mut self, e: super::super::E, s: super::super::S, call: &Call<'_>) -> ITy {
        let Some(shape) = self.shape_of(s) else { return ITy::Unknown };
        match self.transpose(e, shape, call) {
            ITy::Tile(e, s) => ITy::Pipe(PipeTy::View(e, s)),
            other => other,
        }
    }

    /// `acc.mma(stage, |s| (s.a(), s.b()))` and `acc.mma_reg(stage, tile, |s| s.get())`
    fn acc_mma(&mut self, in_registers: bool, acc: &PipeTy, call: &Call<'_>) -> ITy {
        let same = ITy::Pipe(acc.clone());
        if !self.takes(call, if in_registers { 3 } else { 2 }) {
            return same;
        }
        let stage = match self.expr(&call.args[0]) {
            ITy::Pipe(PipeTy::Stage(f)) => ITy::Pipe(PipeTy::Stage(f)),
            other => {
                if !matches!(other, ITy::Unknown | ITy::Never) {
                    let title = format!("expected a stage for the accumulator, found {}", self.describe(&other));
                    let help = "give it the whole stage, `ring.ready().wait()`: the closure selects the operands in it";
                    self.cx.error_help(Code::Arguments, call.args[0].span, title, help);
                }
                ITy::Unknown
            }
        };
        let example = if in_registers { "as in `|s| s.get()`" } else { "as in `|s| (s.a(), s.b())`" };
        let mut operands: Vec<ITy> = call.args[1..call.args.len() - 1].iter().map(|a| self.expr(a)).collect();
        let named = self.named_operands(call.args.last(), &stage, example);
        match named {
            Some(ITy::Tuple(list)) if !in_registers && list.len() == 2 => operands.extend(list),
            Some(one) if in_registers => operands.push(one),
            Some(ITy::Unknown | ITy::Never) | None => return same,
            Some(other) => {
                let title = format!("the closure must return both operands; it returns {}", self.describe(&other));
                self.cx.error_help(Code::Arguments, call.span(), title, example);
                return same;
            }
        }
        let views = operands.iter().skip(usize::from(in_registers)).all(|o| matches!(o, ITy::Pipe(PipeTy::View(..))));
        let (PipeTy::Acc(e, s, _), true) = (acc, views) else {
            if !operands.iter().any(|o| matches!(o, ITy::Unknown | ITy::Never)) {
                let title = "the closure must return tiles of the stage that is its argument";
                self.cx.error_help(Code::Arguments, call.span(), title, example);
            }
            return same;
        };
        operands.push(ITy::Tile(*e, *s));
        self.mma_types(&operands, call.span());
        same
    }

    /// The operands of an MMA that its closure selects from the stage.
    fn named_operands(&mut self, closure: Option<&Expr>, stage: &ITy, example: &str) -> Option<ITy> {
        let closure = closure?;
        let ExprKind::Closure { params, body } = &closure.kind else {
            let title = "expected a closure that returns the operands in the stage";
            self.cx.error_help(Code::Arguments, closure.span, title, example);
            return None;
        };
        let [param] = &params[..] else {
            self.cx.error_help(Code::Arguments, closure.span, "the closure takes one argument, the stage", example);
            return None;
        };
        self.bind(param, stage);
        let ty = self.expr(body);
        Some(ty)
    }
}
