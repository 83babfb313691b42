//! Name resolution: determines what every path of an expression refers to, the variable of every binding, and the loop of every label.
//!
//! Variables and labels are compared as rustc compares them, by their [`Mark`]s. All other names are not hygienic in `macro_rules!` macros
//! and are compared by their text: generic parameters and items as in Rust, shape names as generic parameters. [`crate::judge`] has rustc
//! check the result.
//!
//! Names that are neither local nor of the language refer to other items: functions and constants that are obtained through their
//! companion macros (see [`crate::chain`]). They are collected here.

mod lower_case;

pub(crate) use lower_case::lower_case;

use crate::ast::{
    Block, Callee, Cond, Expr, ExprKind, Function, GenericKind, Label, LoopId, Pat, PatKind, Path, Res, Stmt, Var,
    VarId,
};
use crate::ast::{GenericArg, GenericArgValue, GenericParam, TypeKind, TypeRef};
use crate::chain::Kind;
use crate::consts;
use crate::ctxt::Ctxt;
use crate::extents;
use crate::hygiene::{Mark, Names};
use crate::method;
use crate::names::{Companion, Needed, builtin, is_constant_name, is_constant_of_others};
use crate::usage;
use proc_macro2::Ident;
use titan_core::diag::Code;

/// Resolves the names of a kernel or a device function. `symbols` are the shape names of a kernel.
pub(crate) fn resolve(cx: &Ctxt, kind: Kind, func: &mut Function, symbols: &[String]) -> Vec<Companion> {
    let mut body =
        std::mem::replace(&mut func.body, Block { stmts: Vec::new(), close: func.name.span(), span: func.name.span() });
    extents::check_signature(cx, func);
    let mut r = Resolver::new(cx, kind, func, symbols);
    for i in 0..r.func.params.len() {
        let (name, mark) = (r.func.params[i].name.clone(), r.func.params[i].mark);
        r.bind(&name, mark);
    }
    r.block(&mut body);
    let companions = r.companions;
    func.body = body;
    companions
}

/// Resolves the names of host expressions (`grid`, `require`, `#[shape]`): generics, shape names, parameters.
pub(crate) fn resolve_host(
    cx: &Ctxt,
    func: &mut Function,
    symbols: &[String],
    exprs: &mut [&mut Expr],
) -> Vec<Companion> {
    let mut r = Resolver { host: true, ..Resolver::new(cx, Kind::Kernel, func, symbols) };
    let n = r.func.vars.len().min(r.func.params.len());
    for (i, var) in r.func.vars[..n].iter().enumerate() {
        r.scopes[0].push((var.mark, i));
    }
    for e in exprs {
        r.expr(e);
    }
    r.companions
}

/// Resolves the values of `instances(..)`, which may be constants of other items.
pub(crate) fn resolve_values(cx: &Ctxt, func: &mut Function, values: &mut [&mut GenericArgValue]) -> Vec<Companion> {
    let mut r = Resolver::new(cx, Kind::Kernel, func, &[]);
    for v in values {
        match v {
            GenericArgValue::Type(t) => r.ty(t),
            GenericArgValue::Const(e) => r.expr(e),
        }
    }
    r.companions
}

/// Resolves the expression of a constant item: it names constants only.
pub(crate) fn resolve_constant(cx: &Ctxt, expr: &mut Expr) -> Vec<Companion> {
    let span = expr.span;
    let body = Block { stmts: Vec::new(), close: span, span };
    let name = Ident::new("constant", span);
    let mut func = Function {
        name,
        generics: Vec::new(),
        params: Vec::new(),
        ret: None,
        body,
        n_exprs: 0,
        vars: Vec::new(),
        intrinsics: Vec::new(),
        mentions: Vec::new(),
        names: Names::by_text(),
    };
    let mut r = Resolver::new(cx, Kind::Constant, &mut func, &[]);
    r.expr(expr);
    r.companions
}

struct Resolver<'a> {
    cx: &'a Ctxt,
    /// Of the item whose names these are.
    kind: Kind,
    func: &'a mut Function,
    symbols: &'a [String],
    scopes: Vec<Vec<(Mark, VarId)>>,
    /// The enclosing loops that have labels.
    labels: Vec<(Mark, LoopId)>,
    /// The number of loops so far.
    loops: usize,
    companions: Vec<Companion>,
    /// In a grid, shape or requirement: only functions of the language are allowed, and an unknown name that is not written like a
    /// constant is an undeclared shape name.
    host: bool,
    /// In a closure: the first of the closure's variables.
    closure: Option<VarId>,
}

impl<'a> Resolver<'a> {
    fn new(cx: &'a Ctxt, kind: Kind, func: &'a mut Function, symbols: &'a [String]) -> Self {
        Resolver {
            cx,
            kind,
            func,
            symbols,
            scopes: vec![Vec::new()],
            labels: Vec::new(),
            loops: 0,
            companions: Vec::new(),
            host: false,
            closure: None,
        }
    }

    fn bind(&mut self, name: &Ident, mark: Mark) -> VarId {
        let var = self.func.vars.len();
        self.func.vars.push(Var { name: name.clone(), mark });
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((mark, var));
        }
        var
    }

    fn lookup(&self, mark: Mark) -> Option<VarId> {
        self.scopes.iter().rev().flat_map(|s| s.iter().rev()).find(|(m, _)| *m == mark).map(|(_, v)| *v)
    }

    /// Resolves a loop's parts in which its label is visible.
    fn labelled(&mut self, label: Option<&mut Label>, parts: impl FnOnce(&mut Self)) {
        let depth = self.labels.len();
        if let Some(label) = label {
            label.of = Some(self.loops);
            self.labels.push((label.mark, self.loops));
        }
        self.loops += 1;
        parts(self);
        self.labels.truncate(depth);
    }

    /// The loop of the label of a `break` or `continue`.
    fn left(&self, label: Option<&mut Label>) {
        if let Some(label) = label {
            label.of = self.labels.iter().rev().find(|(m, _)| *m == label.mark).map(|(_, l)| *l);
        }
    }

    fn pat(&mut self, pat: &mut Pat) {
        match &mut pat.kind {
            PatKind::Wild | PatKind::Bad => {}
            PatKind::Bind { name, mark, var, .. } => *var = self.bind(name, *mark),
            PatKind::Tuple(list) | PatKind::Array(list) => list.iter_mut().for_each(|p| self.pat(p)),
        }
    }

    fn block(&mut self, block: &mut Block) {
        self.scopes.push(Vec::new());
        for stmt in &mut block.stmts {
            match stmt {
                Stmt::Let { pat, ty, init, .. } => {
                    if let Some(t) = ty {
                        self.ty(t);
                    }
                    if let Some(e) = init {
                        self.expr(e);
                    }
                    self.pat(pat);
                }
                Stmt::Expr { expr, .. } => self.expr(expr),
            }
        }
        self.scopes.pop();
    }

    fn exprs(&mut self, list: &mut [Expr]) {
        list.iter_mut().for_each(|e| self.expr(e));
    }

    fn expr(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(..) | ExprKind::Bad => {}
            ExprKind::Continue { label } => self.left(label.as_mut()),
            ExprKind::Path(path, res) => *res = self.path(path),
            ExprKind::Unary(_, a) | ExprKind::Paren(a, _) | ExprKind::Field(a, ..) | ExprKind::Ref { inner: a, .. } => {
                self.expr(a)
            }
            ExprKind::As(a, ty) => {
                self.expr(a);
                self.ty(ty);
            }
            ExprKind::Assign(a, b) | ExprKind::AssignOp(_, a, b) => {
                self.expr(a);
                self.expr(b);
                self.own_place(a);
            }
            ExprKind::Binary(_, a, b)
            | ExprKind::Lazy(_, a, b)
            | ExprKind::Index(a, b)
            | ExprKind::Range { lo: a, hi: b, .. } => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Call { path, callee, args, .. } => {
                *callee = self.callee(path);
                if let (Callee::Builtin(_), Some((_, generics))) = (&*callee, &path.generics) {
                    extents::check(self.cx, self.func, generics);
                }
                self.generic_args(path.generics.as_mut().map(|(_, g)| &mut g[..]).unwrap_or_default());
                self.exprs(args);
            }
            ExprKind::Method { recv, name, generics, args, .. } => {
                self.expr(recv);
                extents::check_method(self.cx, self.func, name, generics, args);
                self.generic_args(generics);
                self.exprs(args);
            }
            ExprKind::Array(list, _) | ExprKind::Tuple(list, _) | ExprKind::Macro { args: list, .. } => {
                self.exprs(list)
            }
            ExprKind::Break { label, value } => {
                self.left(label.as_mut());
                if let Some(v) = value {
                    self.expr(v);
                }
            }
            ExprKind::Return(value) => {
                if let Some(v) = value {
                    self.expr(v);
                }
                if self.closure.is_some() {
                    let help = "the value of a closure is its last expression: `|v| if v > 0.0 { v } else { 0.0 }`";
                    self.cx.error_help(Code::Syntax, e.span, "`return` is not supported in a closure", help);
                }
            }
            ExprKind::If { .. }
            | ExprKind::Block(_)
            | ExprKind::Unsafe(_)
            | ExprKind::For { .. }
            | ExprKind::While { .. }
            | ExprKind::Loop { .. }
            | ExprKind::Closure { .. }
            | ExprKind::Roles { .. } => self.scoped(&mut e.kind),
        }
    }

    fn scoped(&mut self, kind: &mut ExprKind) {
        match kind {
            ExprKind::If { cond, then, other } => {
                self.scopes.push(Vec::new());
                match &mut **cond {
                    Cond::Expr(e) => self.expr(e),
                    Cond::LetSome { pat, option, .. } => {
                        self.expr(option);
                        self.pat(pat);
                    }
                }
                self.block(then);
                self.scopes.pop();
                if let Some(e) = other {
                    self.expr(e);
                }
            }
            ExprKind::Block(b) | ExprKind::Unsafe(b) => self.inner(b),
            ExprKind::Loop { label, body } => self.labelled(label.as_mut(), |r| r.inner(body)),
            ExprKind::For { label, pat, iter, body } => {
                self.expr(iter);
                self.scopes.push(Vec::new());
                self.pat(pat);
                self.labelled(label.as_mut(), |r| r.block(body));
                self.scopes.pop();
            }
            ExprKind::While { label, cond, body } => self.labelled(label.as_mut(), |r| {
                r.expr(cond);
                r.block(body);
            }),
            ExprKind::Closure { params, body } => {
                let outer = self.closure.replace(self.func.vars.len());
                // Labels do not reach into closures.
                let labels = std::mem::take(&mut self.labels);
                self.scopes.push(Vec::new());
                params.iter_mut().for_each(|p| self.pat(p));
                self.expr(body);
                self.scopes.pop();
                self.labels = labels;
                self.closure = outer;
            }
            ExprKind::Roles { path, arms } => {
                self.callee(path);
                arms.iter_mut().for_each(|a| self.expr(&mut a.body));
            }
            _ => {}
        }
    }

    fn inner(&mut self, block: &mut Block) {
        let host = std::mem::replace(&mut self.host, false);
        self.block(block);
        self.host = host;
    }

    /// Rejects assignments in a closure to variables outside of it: it runs on the elements in no particular order.
    fn own_place(&self, place: &Expr) {
        match &place.kind {
            ExprKind::Path(path, Res::Local(var)) if self.closure.is_some_and(|first| *var < first) => {
                let title = format!("a closure cannot assign to `{}`, a variable outside of it", path.text());
                let help = "closures run on the elements in any order; combine elements by `reduce_..` or `scan_..`";
                self.cx.error_help(Code::Syntax, place.span, title, help);
            }
            ExprKind::Tuple(list, _) | ExprKind::Array(list, _) => list.iter().for_each(|e| self.own_place(e)),
            ExprKind::Paren(inner, _) => self.own_place(inner),
            _ => {}
        }
    }

    fn generic_args(&mut self, args: &mut [GenericArg]) {
        for a in args {
            match &mut a.value {
                GenericArgValue::Type(t) => {
                    self.ty(t);
                    self.argument(t);
                }
                GenericArgValue::Const(e) => self.expr(e),
            }
        }
    }

    fn ty(&mut self, ty: &mut TypeRef) {
        match &mut ty.kind {
            TypeKind::Infer => {}
            // A single name in a type position may be a constant: `Tile<f32, HEAD_DIM>`.
            TypeKind::Elem(name, path) => {
                if is_constant_of_others(self.func, &name.to_string()) {
                    self.companion(path, Needed::Constant);
                }
            }
            TypeKind::Tile(elem, args, _) | TypeKind::Smem(elem, args, _) => {
                extents::check(self.cx, self.func, args);
                self.ty(elem);
                self.generic_args(args);
            }
            TypeKind::Dims(args) => self.generic_args(args),
            TypeKind::Tensor { elem, .. } => self.ty(elem),
            TypeKind::Tuple(list) => list.iter_mut().for_each(|t| self.ty(t)),
            TypeKind::Array(t, n) => {
                self.ty(t);
                self.expr(n);
            }
        }
    }

    fn path(&mut self, path: &Path) -> Res {
        if let Some(name) = path.single() {
            let text = name.to_string();
            if let Some(var) = self.lookup(path.mark) {
                return Res::Local(var);
            }
            let is_const = |k| matches!(k, GenericKind::ConstInt(_) | GenericKind::ConstBool);
            if let Some(i) = self.func.generics.iter().position(|g| g.name == text && is_const(g.kind)) {
                return Res::ConstParam(i);
            }
            if self.symbols.contains(&text) {
                return Res::Symbol(text);
            }
            // In a constant there are no variables.
            if !is_constant_name(&text) && self.kind != Kind::Constant {
                self.not_found(name, &text);
                return Res::None;
            }
        } else if consts::builtin(path).is_some() {
            return Res::Builtin;
        } else if let [.., ty, name] = &path.segments[..]
            && titan_core::ir::Elem::from_name(&ty.to_string()).is_some()
        {
            // Element types have no companion macro.
            if name.to_string().starts_with(|c: char| c.is_lowercase()) {
                let title = format!("`{}` cannot be used as a value in kernels", path.text());
                self.cx.error_help(
                    Code::NotForKernels,
                    name.span(),
                    title,
                    format!("write a closure: `|v| v.{name}()`"),
                );
                return Res::None;
            }
            let help = "write its value; of integers, kernels can use `MAX`, `MIN`, `BITS`; of floats, `MAX`, `MIN`, `INFINITY`, `NEG_INFINITY`, `NAN`, `EPSILON`, `MIN_POSITIVE`";
            self.cx.error_help(
                Code::NotForKernels,
                name.span(),
                format!("`{}` is not a constant that kernels can use", path.text()),
                help,
            );
            return Res::None;
        } else if let [first, _] = &path.segments[..]
            && let Some(i) = self.func.generics.iter().position(|g| g.name == *first && g.kind == GenericKind::Elem)
        {
            return Res::Assoc(i);
        }
        Res::Constant(self.companion(path, Needed::Constant))
    }

    fn callee(&mut self, path: &Path) -> Callee {
        if let Some(name) = path.single().filter(|_| self.lookup(path.mark).is_some()) {
            let help = "closures are only allowed as arguments of `.map`, `.reduce` and `.scan`; write a function: `#[titan::device] fn`";
            self.cx.error_help(Code::Syntax, name.span(), format!("`{name}` is a variable, not a function"), help);
            return Callee::None;
        }
        if let Some(b) = builtin(path) {
            if let Some(name) = path.single()
                && !self.host
                && !self.func.intrinsics.contains(name)
            {
                self.func.intrinsics.push(name.clone());
            }
            return Callee::Builtin(b);
        }
        if self.host {
            return Callee::None;
        }
        // `f32::max`: element types have no companion macro.
        if let [.., ty, f] = &path.segments[..]
            && self.is_elem(ty)
        {
            let name = f.to_string();
            let help = match usage::example(&name) {
                Some(example) if method::is_of_values(&name) => format!("it is a method: `{example}`"),
                None if method::is_of_values(&name) => format!("it is a method: `x.{name}()`"),
                _ if name.starts_with("from_") => format!(
                    "convert values by `.cast::<{ty}>()`; a literal takes the type of the other operand: `x * 2.0`"
                ),
                _ => usage::foreign_method(&name).unwrap_or("docs/language.md lists the operations").to_owned(),
            };
            let title = format!("`{}` is not a function that kernels can call", path.text());
            self.cx.error_help(Code::NotForKernels, f.span(), title, help);
            return Callee::None;
        }
        // `Vec::new`: a function of a type, which has no companion macro.
        if let [.., ty, _] = &path.segments[..]
            && ty.to_string().starts_with(|c: char| c.is_uppercase())
        {
            let help = "kernels can call the functions of the language and those marked `#[titan::device]`";
            self.cx.error_help(Code::Syntax, ty.span(), format!("`{}` is not supported in kernels", path.text()), help);
            return Callee::None;
        }
        Callee::Device(self.companion(path, Needed::Function))
    }

    /// Whether a name is that of an element type.
    fn is_elem(&self, name: &Ident) -> bool {
        let is_generic = |g: &GenericParam| g.name == *name && g.kind == GenericKind::Elem;
        titan_core::ir::Elem::from_name(&name.to_string()).is_some() || self.func.generics.iter().any(is_generic)
    }

    /// Adds the companion of an item, and returns its key.
    fn companion(&mut self, path: &Path, needed: Needed) -> String {
        let key = path.key();
        if !self.companions.iter().any(|c| c.key == key) {
            self.companions.push(Companion { key: key.clone(), path: path.tokens(), needed });
        }
        key
    }
}
