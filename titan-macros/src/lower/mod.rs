//! Lowers the AST to tile IR, for one instance. Types are known ([`crate::infer`]). Control flow becomes structured SSA,
//! broadcasting becomes explicit, device functions are inlined, and each output tile is checked to be stored or skipped once.
//!
//! Tile IR has no variables: a loop carries those that its body assigns, an `if` yields them.

mod assigned;
mod call;
mod compose;
mod control;
mod expr;
pub(crate) mod host;
mod loops;
mod memory;
mod method;
mod ops;
mod own;
mod parts;
mod pipe;
mod table;
mod val;

use crate::ast::{Function, Pat, PatKind, VarId};
use crate::ctxt::{Ctxt, Diag};
use crate::infer::{E, ITy, Infer};
use crate::items::FnEnv;
use proc_macro2::{LineColumn, Span};
use titan_core::collections::SortedMap;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Builder, Const, Elem, Loc, OpKind, RoleDecl, TileShape, Ty, TypeError, UnOp, Value};
use val::{OwnVal, PipeVal, Val};

/// Lowering stops here: an error has been reported.
#[derive(Debug)]
pub(crate) struct Stop;

type Lowered<T> = Result<T, Stop>;

/// Places of the kernel: IR locations are relative to its first line, errors need the token.
#[derive(Debug)]
pub(crate) struct Places {
    origin: LineColumn,
    spans: SortedMap<Loc, Span>,
}

impl Places {
    pub(crate) fn new(origin: Span) -> Self {
        Places { origin: origin.start(), spans: SortedMap::new() }
    }

    fn loc(&mut self, span: Span) -> Loc {
        let start = span.start();
        let to_u32 = |n: usize| u32::try_from(n).unwrap_or(0);
        let loc = Loc::relative(to_u32(start.line), to_u32(start.column + 1), to_u32(self.origin.line));
        self.spans.entry(loc).or_insert(span);
        loc
    }

    /// The token at a place, if there is one.
    pub(crate) fn known(&self, loc: Loc) -> Option<Span> {
        self.spans.get(&loc).copied()
    }

    /// The places of these tokens.
    pub(crate) fn of(origin: Span, tokens: impl Iterator<Item = Span>) -> Self {
        let mut places = Places::new(origin);
        for span in tokens {
            places.loc(span);
        }
        places
    }

    /// The token at a place; the kernel's name for places without one.
    pub(crate) fn span(&self, loc: Loc, name: Span) -> Span {
        self.spans.get(&loc).copied().unwrap_or(name)
    }
}

/// The state that all functions of one kernel share.
pub(crate) struct Shared<'c> {
    pub(crate) cx: &'c Ctxt,
    pub(crate) b: Builder,
    pub(crate) places: &'c mut Places,
    /// The values of the shape names.
    pub(crate) symbols: SortedMap<String, Value>,
    /// The roles of the attribute, each with the name of its arm.
    pub(crate) roles: Vec<(String, RoleDecl)>,
    /// The constants that are literals, with their places.
    literals: SortedMap<Value, Span>,
    owns: Vec<own::OwnState>,
    /// The number of open loops.
    depth: usize,
    /// The nesting depth of inlined calls.
    inlined: usize,
}

impl<'c> Shared<'c> {
    pub(crate) fn new(cx: &'c Ctxt, b: Builder, places: &'c mut Places) -> Self {
        Shared {
            cx,
            b,
            places,
            symbols: SortedMap::new(),
            roles: Vec::new(),
            literals: SortedMap::new(),
            owns: Vec::new(),
            depth: 0,
            inlined: 0,
        }
    }
}

/// Lowers one function body.
pub(crate) struct FnLower<'s, 'c, 'a> {
    sh: &'s mut Shared<'c>,
    env: FnEnv<'a>,
    infer: Infer<'a>,
    vars: Vec<Option<Val>>,
    loops: Vec<loops::LoopCtx>,
    /// In an inlined function with an early `return`: the loop that it leaves.
    return_loop: Option<usize>,
    /// The place of all operations of an inlined function: its call.
    call_site: Option<Loc>,
    closure: Closure,
    /// In a conditional part of a closure: it is always executed, so it must not trap.
    chosen: bool,
}

/// The closure that contains the code: in it `if`, `&&` and `||` evaluate both sides and select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closure {
    None,
    /// `.map(|v| ..)`: the parameter is the whole tile.
    Map,
    /// `.reduce(init, |a, b| ..)`: scalars, in a region that must be pure.
    Combine,
}

/// Lowers the body of a kernel whose parameters have been added to the builder.
pub(crate) fn kernel(sh: &mut Shared<'_>, env: FnEnv<'_>, infer: Infer<'_>) -> Lowered<()> {
    let n = env.func.params.len();
    let mut f = FnLower::new(sh, env, infer, None);
    for i in 0..n {
        let value = f.sh.b.kernel().param(i);
        f.vars[i] = Some(match f.sh.b.ty(value) {
            Ty::Tensor(..) => Val::Tensor(value),
            _ => Val::Value(value),
        });
    }
    f.block(&f.env.func.body)?;
    Ok(())
}

impl<'s, 'c, 'a> FnLower<'s, 'c, 'a> {
    fn new(sh: &'s mut Shared<'c>, env: FnEnv<'a>, infer: Infer<'a>, call_site: Option<Loc>) -> Self {
        let vars = vec![None; env.func.vars.len()];
        FnLower {
            sh,
            env,
            infer,
            vars,
            loops: Vec::new(),
            return_loop: None,
            call_site,
            closure: Closure::None,
            chosen: false,
        }
    }

    // Reporting.

    fn error(&self, code: Code, span: Span, title: impl Into<String>) -> Stop {
        self.sh.cx.error(code, span, title);
        Stop
    }

    fn push_diag(&self, diag: Diag) -> Stop {
        self.sh.cx.push(diag);
        Stop
    }

    fn type_error(&self, span: Span, e: TypeError) -> Stop {
        let mut diag = Diagnostic::new(e.code, span, e.message);
        if e.code == Code::ElementUnsupported && e.help.is_none() {
            diag = diag.help("convert it first: `.cast::<f32>()`");
        }
        diag.help.extend(e.help);
        self.push_diag(diag)
    }

    fn internal(&self, span: Span, what: &str) -> Stop {
        self.error(Code::Internal, span, format!("{what}; please report this kernel"))
    }

    // Operations.

    fn at(&mut self, span: Span) {
        let loc = self.call_site.unwrap_or_else(|| self.sh.places.loc(span));
        self.sh.b.set_loc(loc);
    }

    fn ops(&mut self, span: Span, kind: OpKind, args: &[Value]) -> Lowered<Vec<Value>> {
        self.may_be_chosen(&kind, span)?;
        self.at(span);
        self.sh.b.op(kind, args).map_err(|e| self.type_error(span, e))
    }

    fn op(&mut self, span: Span, kind: OpKind, args: &[Value]) -> Lowered<Value> {
        self.may_be_chosen(&kind, span)?;
        self.at(span);
        self.sh.b.op1(kind, args).map_err(|e| self.type_error(span, e))
    }

    /// Rejects operations that may trap or have side effects where both branches are executed.
    fn may_be_chosen(&self, kind: &OpKind, span: Span) -> Lowered<()> {
        let what = match kind {
            OpKind::Get => "`get`",
            OpKind::Segment => "`segment`",
            OpKind::Assert(_) => "`tassert!`",
            OpKind::Print(_) => "`tprint!`",
            _ => return Ok(()),
        };
        if !self.chosen {
            return Ok(());
        }
        let title = format!("{what} under a condition in a closure, where both branches are executed");
        let help = "move it out of the closure, or out of the `if`, `&&` or `||`";
        self.sh.cx.error_help(Code::Syntax, span, title, help);
        Err(Stop)
    }

    /// An operation without result.
    fn effect(&mut self, span: Span, kind: OpKind, args: &[Value]) -> Lowered<Val> {
        self.ops(span, kind, args).map(|_| Val::Unit)
    }

    fn i32(&mut self, v: i32) -> Value {
        self.sh.b.i32(v)
    }

    /// Zero of a type: the padding of loads.
    fn zero(&mut self, e: Elem) -> Value {
        let c = if e.is_float() { Const::Float(e, 0.0) } else { Const::Int(e, 0) };
        self.sh.b.constant(c)
    }

    fn ty(&self, v: Value) -> Ty {
        self.sh.b.ty(v)
    }

    // Types from inference.

    fn elem(&self, e: E, span: Span) -> Lowered<Elem> {
        self.infer.elem_of(e).ok_or_else(|| {
            let diag = Diagnostic::new(Code::CannotInfer, span, "the element type cannot be inferred here");
            self.sh.cx.unless_broken(diag.help("write it, as in `.cast::<f32>()`"));
            Stop
        })
    }

    fn shape(&self, s: crate::infer::S, span: Span) -> Lowered<TileShape> {
        self.infer.shape_of(s).ok_or_else(|| {
            let diag = Diagnostic::new(Code::CannotInfer, span, "the shape of the tile cannot be inferred here");
            self.sh.cx.unless_broken(diag.help("write it, as in `Tile::<f32, 16, 16>::zeros()`"));
            Stop
        })
    }

    /// The element and shape of an expression that is a tile.
    fn tile_ty(&self, id: usize, span: Span) -> Lowered<(Elem, TileShape)> {
        match self.infer.ty(id) {
            ITy::Tile(e, s) => Ok((self.elem(*e, span)?, self.shape(*s, span)?)),
            _ => Err(self.internal(span, "a tile was expected")),
        }
    }

    // Values.

    fn value(&self, val: Val, span: Span) -> Lowered<Value> {
        match val {
            Val::Value(v) => Ok(v),
            _ => Err(self.internal(span, "a scalar or tile was expected")),
        }
    }

    fn tensor(&self, val: Val, span: Span) -> Lowered<Value> {
        match val {
            Val::Tensor(v) => Ok(v),
            _ => Err(self.internal(span, "a tensor was expected")),
        }
    }

    /// A value as an operand of a tile: scalars, rows and columns are broadcast.
    fn beside(&mut self, val: Val, elem: Elem, shape: TileShape, span: Span) -> Lowered<Value> {
        match val {
            Val::Value(v) => match self.ty(v) {
                Ty::Scalar(e) => {
                    self.check_beside(v, elem)?;
                    let v = if e == elem { v } else { self.op(span, OpKind::Cast(elem), &[v])? };
                    self.op(span, OpKind::Splat(shape), &[v])
                }
                _ => Ok(v),
            },
            Val::Row(v) if shape.rank() == 2 => self.op(span, OpKind::Broadcast { axis: 0, n: shape[0] }, &[v]),
            Val::Col(v) if shape.rank() == 2 => self.op(span, OpKind::Broadcast { axis: 1, n: shape[1] }, &[v]),
            _ => Err(self.internal(span, "this cannot stand beside a tile")),
        }
    }

    /// A scalar operand of an `f16` or `bf16`, rounded to its type. A tile, in a closure, is left as it is.
    fn scalar_as(&mut self, v: Value, half: Elem, span: Span) -> Lowered<Value> {
        match self.ty(v) {
            Ty::Scalar(e) if e != half => {
                self.check_beside(v, half)?;
                self.op(span, OpKind::Cast(half), &[v])
            }
            _ => Ok(v),
        }
    }

    /// Checks that a literal is not rounded to infinity beside a tile of these elements.
    fn check_beside(&self, v: Value, elem: Elem) -> Lowered<()> {
        let Some(span) = self.sh.literals.get(&v) else { return Ok(()) };
        let Some(OpKind::Const(Const::Float(own, x))) = self.sh.b.kernel().def_op(v).map(|op| op.kind.clone()) else {
            return Ok(());
        };
        if own == elem || !elem.is_float() || elem.holds(x) {
            return Ok(());
        }
        let title = format!("`{x:?}` is out of range for `{elem}`");
        let help =
            format!("beside a tile of `{elem}` a number is rounded to that type: cast the tile, `.cast::<{own}>()`");
        self.sh.cx.error_help(Code::LiteralRange, *span, title, help);
        Err(Stop)
    }

    fn not(&mut self, span: Span, v: Value) -> Lowered<Value> {
        self.op(span, OpKind::Unary(UnOp::Not), &[v])
    }

    // Variables.

    fn bind(&mut self, pat: &Pat, val: Val) -> Lowered<()> {
        match (&pat.kind, val) {
            (PatKind::Wild | PatKind::Bad, val) => {
                if let Val::Own(own) = val {
                    self.sh.owns[own.id].span = pat.span;
                }
                Ok(())
            }
            (PatKind::Bind { name, var, .. }, val) => {
                self.name(&val, &name.to_string());
                if let Val::Own(own) = &val {
                    self.sh.owns[own.id].name = name.to_string();
                    self.sh.owns[own.id].span = name.span();
                }
                self.vars[*var] = Some(val);
                Ok(())
            }
            (PatKind::Tuple(pats), Val::Tuple(vals)) | (PatKind::Array(pats), Val::Array(vals))
                if pats.len() == vals.len() =>
            {
                pats.iter().zip(vals).try_for_each(|(p, v)| self.bind(p, v))
            }
            (PatKind::Tuple(_) | PatKind::Array(_), _) => Err(self.internal(pat.span, "a pattern does not fit")),
        }
    }

    /// Names SSA values after the user's variable.
    fn name(&mut self, val: &Val, name: &str) {
        match val {
            Val::Value(v) | Val::Row(v) | Val::Col(v) | Val::Tensor(v) => self.sh.b.name(*v, name),
            Val::Pipe(PipeVal::Ring(pipe)) => self.sh.b.name_pipe(*pipe, name),
            Val::Unit | Val::Own(_) | Val::Tiles(_) | Val::Range(_) | Val::Array(_) | Val::Tuple(_) | Val::Pipe(_) => {}
        }
    }

    fn var(&self, var: VarId, span: Span) -> Lowered<Val> {
        self.vars[var].clone().ok_or_else(|| {
            // rustc reports the use of an uninitialised variable.
            self.error(Code::UnknownName, span, format!("`{}` has no value here", self.env.func.vars[var].name))
        })
    }

    fn func(&self) -> &'a Function {
        self.env.func
    }
}
