//! The printer: the canonical text of a kernel.
//!
//! Values are named in the order of the text. A kernel that is not well formed prints as far as it goes: what dangles is
//! written `%?9` and does not parse.

use super::form::{Form, attributes, form};
use super::lex::{is_word, quote};
use crate::ir::op_table::mnemonic;
use crate::ir::{
    Access, Block, Const, Def, DimSpec, Elem, ForKind, GridSpec, HostExpr, HostNames, Kernel, Loc, Op, OpKind, ParamKind,
    Signature, Symbol, Ty, Value,
};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// The canonical text of a kernel.
#[must_use]
pub fn print(kernel: &Kernel) -> String {
    let mut printer = Printer { kernel, names: names(kernel), out: String::new(), depth: 0 };
    printer.signature();
    printer.block(kernel.body);
    printer.out.push('\n');
    printer.out
}

struct Printer<'k> {
    kernel: &'k Kernel,
    names: Vec<Option<String>>,
    out: String,
    depth: usize,
}

/// The names of the values, in the order of the text: the second `acc` is `%acc.2`, a value without a name has its number.
fn names(kernel: &Kernel) -> Vec<Option<String>> {
    let mut names = Names { kernel, seen: BTreeMap::new(), names: vec![None; kernel.values.len()] };
    for i in 0..kernel.sig.params.len().min(kernel.values.len()) {
        names.add(Value::new(i), Some(&kernel.sig.params[i].name));
    }
    names.block(kernel.body);
    names.names
}

struct Names<'k> {
    kernel: &'k Kernel,
    seen: BTreeMap<&'k str, u32>,
    names: Vec<Option<String>>,
}

impl<'k> Names<'k> {
    fn add(&mut self, value: Value, name: Option<&'k str>) {
        let Some(slot) = self.names.get_mut(value.index()) else { return };
        let Some(name) = name else {
            *slot = Some(value.to_string());
            return;
        };
        let n = self.seen.entry(name).and_modify(|n| *n += 1).or_insert(1);
        let mut text = String::from("%");
        if is_word(name) { text.push_str(name) } else { quote(name, &mut text) }
        if *n > 1 {
            text.push_str(&format!(".{n}"));
        }
        *slot = Some(text);
    }

    fn add_all(&mut self, values: &'k [Value]) {
        for v in values {
            self.add(*v, self.kernel.values.get(v.index()).and_then(|d| d.name.as_deref()));
        }
    }

    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        let Some(data) = kernel.blocks.get(block.index()) else { return };
        for op in data.ops.iter().filter_map(|id| kernel.ops.get(id.index())) {
            self.add_all(&op.results);
            for region in &op.regions {
                if let Some(inner) = kernel.blocks.get(region.index()) {
                    self.add_all(&inner.args);
                }
                self.block(*region);
            }
        }
    }
}

impl Printer<'_> {
    fn put(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{text}");
    }

    fn value(&self, value: Value) -> String {
        self.names.get(value.index()).cloned().flatten().unwrap_or_else(|| format!("%?{}", value.index()))
    }

    fn values(&mut self, values: &[Value]) {
        for (i, v) in values.iter().enumerate() {
            let name = self.value(*v);
            self.put(format_args!("{}{name}", if i > 0 { ", " } else { "" }));
        }
    }

    fn ty(&self, value: Value) -> Option<Ty> {
        self.kernel.values.get(value.index()).map(|d| d.ty)
    }

    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
    }

    fn block(&mut self, block: Block) {
        self.out.push('{');
        self.depth += 1;
        let kernel = self.kernel;
        let ops = kernel.blocks.get(block.index()).map_or(&[][..], |b| &b.ops);
        for op in ops.iter().filter_map(|id| kernel.ops.get(id.index())) {
            self.line();
            self.op(op);
        }
        self.depth -= 1;
        self.line();
        self.out.push('}');
    }

    fn op(&mut self, op: &Op) {
        if !op.results.is_empty() {
            self.values(&op.results);
            self.out.push_str(" = ");
        }
        if let OpKind::Const(c) = op.kind {
            self.put(format_args!("const {}", literal(c)));
        } else if matches!(op.kind, OpKind::For(_) | OpKind::Loop | OpKind::If) {
            self.control(op);
        } else if matches!(op.kind, OpKind::ReduceWith(_) | OpKind::ScanWith(_)) {
            self.combine(op);
        } else {
            self.simple(op);
        }
        for (i, v) in op.results.iter().enumerate() {
            if let Some(ty) = self.ty(*v) {
                self.put(format_args!("{}{ty}", if i > 0 { ", " } else { " : " }));
            }
        }
        if op.loc != Loc::default() {
            self.put(format_args!(" @{}:{}", op.loc.line, op.loc.column));
        }
        for (i, region) in op.regions.iter().enumerate() {
            self.out.push_str(if i > 0 { " else " } else { " " });
            self.block(*region);
        }
    }

    fn head(&mut self, op: &Op) {
        self.put(mnemonic(&op.kind));
        let rank = match op.args.first().and_then(|v| self.ty(*v)) {
            Some(Ty::Tile(_, s)) => s.rank(),
            Some(Ty::Scalar(_) | Ty::Tensor(..)) | None => 4,
        };
        for (i, a) in attributes(&op.kind, rank).iter().enumerate() {
            self.put(format_args!("{}{a}", if i > 0 { ", " } else { "<" }));
            if i + 1 == attributes(&op.kind, rank).len() {
                self.out.push('>');
            }
        }
    }

    fn simple(&mut self, op: &Op) {
        self.head(op);
        let (first, rest) = op.args.split_at(op.args.len().min(1));
        let n = rest.len().saturating_sub(1);
        match form(&op.kind) {
            Form::Plain => self.operands(" ", &op.args),
            Form::At => self.indexed(first, rest),
            Form::AtOr => {
                self.indexed(first, &rest[..n]);
                self.operands(" or ", &rest[n..]);
            }
            Form::AtValue => {
                self.indexed(first, &rest[..n]);
                self.operands(", ", &rest[n..]);
            }
            Form::TextFirst => {
                self.text(&op.kind);
                self.operands(", ", &op.args);
            }
            Form::TextLast => {
                self.operands(" ", &op.args);
                self.out.push_str(if op.args.is_empty() { "" } else { "," });
                self.text(&op.kind);
            }
        }
    }

    fn text(&mut self, kind: &OpKind) {
        if let OpKind::Print(text) | OpKind::Assert(text) = kind {
            self.out.push(' ');
            quote(text, &mut self.out);
        }
    }

    fn operands(&mut self, before: &str, values: &[Value]) {
        if !values.is_empty() {
            self.out.push_str(before);
            self.values(values);
        }
    }

    fn indexed(&mut self, tensor: &[Value], indices: &[Value]) {
        self.operands(" ", tensor);
        self.out.push('[');
        self.values(indices);
        self.out.push(']');
    }

    /// `for %k = %lo to %hi step %one pipelined carry(%x = %x0)`, `loop carry(..)` or `if %c`.
    fn control(&mut self, op: &Op) {
        let args = op.regions.first().and_then(|b| self.kernel.blocks.get(b.index())).map_or(&[][..], |b| &b.args);
        match (&op.kind, &op.args[..], args) {
            (OpKind::For(kind), [lo, hi, step, init @ ..], [index, carried @ ..]) => {
                let [k, lo, hi, step] = [index, lo, hi, step].map(|v| self.value(*v));
                let annotation = self.annotation(*index, Some(Ty::I32));
                self.put(format_args!("for {k}{annotation} = {lo} to {hi} step {step}"));
                if *kind != ForKind::Sequential {
                    self.put(format_args!(" {kind}"));
                }
                self.carry(init, carried);
            }
            (OpKind::Loop, init, carried) => {
                self.out.push_str("loop");
                self.carry(init, carried);
            }
            _ => {
                self.head(op);
                self.operands(" ", &op.args);
            }
        }
    }

    fn carry(&mut self, init: &[Value], carried: &[Value]) {
        for i in 0..init.len().max(carried.len()) {
            self.out.push_str(if i > 0 { ", " } else { " carry(" });
            let name = carried.get(i).map_or("%?".to_owned(), |v| self.value(*v));
            let from = init.get(i).map_or("%?".to_owned(), |v| self.value(*v));
            let ty = carried.get(i).map_or(String::new(), |v| {
                self.annotation(*v, init.get(i).and_then(|v| self.ty(*v)))
            });
            self.put(format_args!("{name}{ty} = {from}"));
        }
        if !(init.is_empty() && carried.is_empty()) {
            self.out.push(')');
        }
    }

    /// `reduce_with<1> %x, %init |%a, %b|`
    fn combine(&mut self, op: &Op) {
        self.head(op);
        self.operands(" ", &op.args);
        let elem = op.args.first().and_then(|v| self.ty(*v)).map(|t| Ty::Scalar(t.elem()));
        let args = op.regions.first().and_then(|b| self.kernel.blocks.get(b.index())).map_or(&[][..], |b| &b.args);
        for (i, a) in args.iter().enumerate() {
            let text = format!("{}{}", self.value(*a), self.annotation(*a, elem));
            self.put(format_args!("{}{text}", if i > 0 { ", " } else { " |" }));
        }
        self.out.push_str(if args.is_empty() { "" } else { "|" });
    }

    /// `: ty` where the type is not the one that follows.
    fn annotation(&self, value: Value, implied: Option<Ty>) -> String {
        match self.ty(value) {
            Some(ty) if Some(ty) != implied => format!(": {ty}"),
            Some(_) | None => String::new(),
        }
    }

    fn signature(&mut self) {
        let sig = &self.kernel.sig;
        self.out.push_str("kernel @");
        self.word(&sig.name);
        for (i, arg) in sig.instance.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "<" });
            self.word(&arg.name);
            self.out.push_str(" = ");
            self.instance_value(&arg.value);
        }
        self.out.push_str(if sig.instance.is_empty() { "" } else { ">" });
        if !symbols_follow_from_text(sig) {
            for i in 0..sig.symbols.len() {
                self.put(format_args!("{}{}", if i > 0 { ", " } else { "[" }, self.symbol(Symbol::new(i))));
            }
            self.out.push(']');
        }
        self.params(sig);
        match &sig.grid {
            GridSpec::Persistent => self.out.push_str(" grid persistent"),
            GridSpec::Extents(extents) if extents.is_empty() => {}
            GridSpec::Extents(extents) => self.exprs(" grid(", extents),
        }
        if !sig.requires.is_empty() {
            self.exprs(" require(", &sig.requires);
        }
        self.out.push(' ');
    }

    fn params(&mut self, sig: &Signature) {
        self.out.push('(');
        let mut bound = vec![false; sig.symbols.len()];
        self.depth += 1;
        for (i, param) in sig.params.iter().enumerate() {
            self.line();
            let name = self.value(Value::new(i));
            self.put(format_args!("{name}: "));
            match &param.kind {
                ParamKind::Scalar(e) => self.put(e),
                ParamKind::Tensor { elem, access, optional, shape } => {
                    self.out.push_str(match access { Access::In => "in ", Access::Mut => "mut " });
                    self.out.push_str(if *optional { "optional " } else { "" });
                    self.put(format_args!("tensor<{elem}>["));
                    for (axis, dim) in shape.iter().enumerate() {
                        self.out.push_str(if axis > 0 { ", " } else { "" });
                        self.dim(dim, &mut bound);
                    }
                    self.out.push(']');
                }
            }
            self.out.push(',');
        }
        self.depth -= 1;
        if !sig.params.is_empty() {
            self.line();
        }
        self.out.push(')');
    }

    /// A bare name binds at its first mention in a shape; the words `bind` and `=` say otherwise.
    fn dim(&mut self, dim: &DimSpec, bound: &mut [bool]) {
        let first = |s: &Symbol, bound: &mut [bool]| bound.get_mut(s.index()).is_some_and(|b| !std::mem::replace(b, true));
        match dim {
            DimSpec::Any => self.out.push('_'),
            DimSpec::Bind(s) => {
                let prefix = if first(s, bound) { "" } else { "bind " };
                self.put(format_args!("{prefix}{}", self.symbol(*s)));
            }
            DimSpec::Equals(HostExpr::Symbol(s)) => {
                let is_bound = bound.get(s.index()).is_some_and(|b| *b);
                self.put(format_args!("{}{}", if is_bound { "" } else { "= " }, self.symbol(*s)));
            }
            DimSpec::Equals(e) => self.expr(e),
        }
    }

    fn exprs(&mut self, open: &str, exprs: &[HostExpr]) {
        for (i, e) in exprs.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { open });
            self.expr(e);
        }
        self.out.push(')');
    }

    fn expr(&mut self, e: &HostExpr) {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = e.write(&mut text, self);
        self.out.push_str(&text);
    }

    fn word(&mut self, word: &str) {
        if is_word(word) { self.out.push_str(word) } else { quote(word, &mut self.out) }
    }

    /// Words and integers stand for themselves.
    fn instance_value(&mut self, value: &str) {
        let digits = value.strip_prefix('-').unwrap_or(value);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            self.out.push_str(value);
        } else {
            self.word(value);
        }
    }
}

impl HostNames for Printer<'_> {
    fn symbol(&self, symbol: Symbol) -> String {
        let Some(name) = self.kernel.sig.symbols.get(symbol.index()) else { return format!("$?{}", symbol.index()) };
        if is_word(name) && name != "_" && name != "bind" {
            return name.clone();
        }
        let mut quoted = String::from("$");
        quote(name, &mut quoted);
        quoted
    }

    fn param(&self, param: usize) -> String {
        if self.kernel.values.get(param).is_some_and(|v| v.def == Def::Param(param)) {
            self.value(Value::new(param))
        } else {
            format!("%?{param}")
        }
    }
}

/// Whether the symbols are numbered in the order in which the text mentions them, so that no list is needed.
fn symbols_follow_from_text(sig: &Signature) -> bool {
    let mut seen = 0;
    let mut in_order = true;
    let mut mention = |s: &Symbol| {
        in_order &= s.index() <= seen;
        seen = seen.max(s.index() + 1);
    };
    let mut leaves = |e: &HostExpr| {
        e.visit(&mut |e| {
            if let HostExpr::Symbol(s) = e {
                mention(s);
            }
        });
    };
    for param in &sig.params {
        if let ParamKind::Tensor { shape, .. } = &param.kind {
            for dim in shape {
                match dim {
                    DimSpec::Any => {}
                    DimSpec::Bind(s) => leaves(&HostExpr::Symbol(*s)),
                    DimSpec::Equals(e) => leaves(e),
                }
            }
        }
    }
    if let GridSpec::Extents(extents) = &sig.grid {
        extents.iter().for_each(&mut leaves);
    }
    sig.requires.iter().for_each(leaves);
    in_order && seen == sig.symbols.len()
}

/// The literal of a constant, which reads back bit for bit.
fn literal(c: Const) -> String {
    match c {
        Const::Int(Elem::Bool, v @ (0 | 1)) => (v == 1).to_string(),
        Const::Int(Elem::U64, v) => v.cast_unsigned().to_string(),
        Const::Int(_, v) => v.to_string(),
        Const::Float(_, v) if v.is_nan() && v.to_bits() != f64::NAN.to_bits() => format!("nan({:#x})", v.to_bits()),
        Const::Float(_, v) if v.is_nan() => "nan".to_owned(),
        Const::Float(_, v) => format!("{v:?}"),
    }
}
