//! The printer: the canonical text of a kernel.
//!
//! Values are named in the order of the text. A kernel that is not well-formed is printed as far as possible: an invalid reference is
//! written as `%?9`, which does not parse.

mod names;
mod signature;

use self::names::Once;
use super::lex::quote;
use crate::ir::op_table::syntax::{Form, Written};
use crate::ir::op_table::{self, OpRow};
use crate::ir::{
    Block, Const, Elem, Fold, ForKind, Kernel, Loc, LocalOp, Op, OpKind, Origin, Planned, TtgOp, Ty, Typed, Value,
};
use std::fmt::{Display, Write};

/// The canonical text of a kernel.
#[must_use]
pub fn print(kernel: &Kernel) -> String {
    let names = names::names(kernel);
    let mut printer = Printer { kernel, names, blocks: Once::new(kernel), out: String::new(), depth: 0 };
    printer.signature();
    printer.pipelines();
    printer.block(kernel.body);
    printer.out.push('\n');
    printer.out
}

struct Printer<'k> {
    kernel: &'k Kernel,
    names: Vec<Option<String>>,
    blocks: Once,
    out: String,
    depth: usize,
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
            self.out.push_str(if i > 0 { ", " } else { "" });
            match self.names.get(v.index()) {
                Some(Some(name)) => self.out.push_str(name),
                Some(None) | None => self.put(format_args!("%?{}", v.index())),
            }
        }
    }

    fn ty(&self, value: Value) -> Option<Ty> {
        self.kernel.values.get(value.index()).map(|d| d.ty)
    }

    fn typed(&self, value: Value) -> Option<Typed> {
        self.kernel.values.get(value.index()).map(|d| Typed { ty: d.ty, place: d.place })
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
        let known = self.blocks.enter(block, self.depth);
        if !known {
            self.put(format_args!(" ; {block} is not a block of its own"));
        }
        let ops = kernel.blocks.get(block.index()).filter(|_| known).map_or(&[][..], |b| &b.ops);
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
            self.out.push_str("const ");
            self.out.push_str(&literal(c));
        } else if matches!(op.kind, OpKind::For(_) | OpKind::Loop | OpKind::If) {
            self.control(op);
        } else if matches!(
            op.kind,
            OpKind::ReduceWith(_) | OpKind::ScanWith(_) | OpKind::Local(LocalOp::Fold { f: Fold::With, .. })
        ) {
            self.combine(op);
        } else {
            self.simple(op);
        }
        for (i, v) in op.results.iter().enumerate() {
            if let Some(ty) = self.typed(*v) {
                self.out.push_str(if i > 0 { ", " } else { " : " });
                self.put(ty);
            }
        }
        if op.peeled {
            self.out.push_str(" peeled");
        }
        if op.unmasked {
            self.out.push_str(" unmasked");
        }
        if let Some(Planned { stage, order }) = op.planned {
            // Writing to a string cannot fail.
            let _ = write!(self.out, " stage({stage}, {order})");
        }
        if let Some(Origin { op, ahead }) = op.origin {
            let _ = write!(self.out, " of({}, {ahead})", op.index());
        }
        if op.loc != Loc::default() {
            // Writing to a string cannot fail.
            let _ = write!(self.out, " @{}:{}", op.loc.line, op.loc.column);
        }
        for (i, region) in op.regions.iter().enumerate() {
            if op.kind == OpKind::Ttg(TtgOp::Roles) {
                self.role(i);
            }
            self.out.push_str(if i > 0 && op.kind == OpKind::If { " else " } else { " " });
            self.block(*region);
        }
    }

    /// The mnemonic and the integers in angle brackets.
    fn head<'o>(&mut self, op: &'o Op) -> (&'static OpRow, Written<'o>) {
        let row = op_table::row(&op.kind);
        self.out.push_str(row.mnemonic);
        let rank = match op.args.first().and_then(|v| self.ty(*v)) {
            Some(Ty::Tile(_, s) | Ty::Smem(_, s)) => s.rank(),
            Some(
                Ty::Scalar(_)
                | Ty::Tensor(..)
                | Ty::Source(..)
                | Ty::Compute(..)
                | Ty::Acc(..)
                | Ty::Token(..)
                | Ty::Barrier(_),
            )
            | None => 4,
        };
        let mut written = Written::new(rank);
        op_table::written(&op.kind, &mut written);
        for (i, a) in written.ints.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "<" });
            self.put(a);
        }
        self.out.push_str(if written.ints.is_empty() { "" } else { ">" });
        (row, written)
    }

    fn simple(&mut self, op: &Op) {
        let (row, written) = self.head(op);
        let (first, rest) = op.args.split_at(op.args.len().min(1));
        let n = rest.len().saturating_sub(1);
        match row.form.of(op.args.first().and_then(|v| self.ty(*v))) {
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
            Form::AtMany => {
                let rank = first
                    .first()
                    .and_then(|v| self.ty(*v))
                    .map_or(0, |ty| if let Ty::Tensor(_, rank) = ty { rank } else { 0 });
                let (indices, values) = rest.split_at(usize::from(rank).min(rest.len()));
                self.indexed(first, indices);
                self.operands(", ", values);
            }
            Form::TextFirst => {
                self.text(&written);
                self.operands(", ", &op.args);
            }
            Form::TextLast => {
                self.operands(" ", &op.args);
                self.out.push_str(if op.args.is_empty() { "" } else { "," });
                self.text(&written);
            }
        }
        for (i, (name, value)) in written.named.iter().enumerate() {
            self.put(format_args!("{}{name} = {value}", if i > 0 { ", " } else { " {" }));
        }
        self.out.push_str(if written.named.is_empty() { "" } else { "}" });
    }

    /// The name of the role of a region.
    fn role(&mut self, region: usize) {
        self.out.push(' ');
        match self.kernel.roles.get(region) {
            Some(role) => self.word(&role.name),
            None => self.put(format_args!("role{region}")),
        }
    }

    fn text(&mut self, written: &Written<'_>) {
        if let Some(text) = written.text {
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
                let annotation = self.annotation(*index, Some(Ty::I32.into()));
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
            let ty =
                carried.get(i).map_or(String::new(), |v| self.annotation(*v, init.get(i).and_then(|v| self.typed(*v))));
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
        let elem = op.args.first().and_then(|v| self.ty(*v)).map(|t| Typed::from(Ty::Scalar(t.elem())));
        let args = op.regions.first().and_then(|b| self.kernel.blocks.get(b.index())).map_or(&[][..], |b| &b.args);
        for (i, a) in args.iter().enumerate() {
            let text = format!("{}{}", self.value(*a), self.annotation(*a, elem));
            self.put(format_args!("{}{text}", if i > 0 { ", " } else { " |" }));
        }
        self.out.push_str(if args.is_empty() { "" } else { "|" });
    }

    /// Appends `: ty` if the type is not the inferred one.
    fn annotation(&self, value: Value, implied: Option<Typed>) -> String {
        match self.typed(value) {
            Some(ty) if Some(ty) != implied => format!(": {ty}"),
            Some(_) | None => String::new(),
        }
    }
}

/// The literal of a constant, from which the parser restores every bit.
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
