//! Prints the signature: the parts before the body.

use super::Printer;
use crate::ir::{
    Access, Def, DimSpec, GridSpec, HostExpr, HostNames, Loc, ParamKind, PipeSpace, Signature, Symbol, Ty, Value,
};
use crate::text::lex::{is_word, quote};

impl Printer<'_> {
    pub(super) fn signature(&mut self) {
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
            GridSpec::Persistent if sig.partial => self.out.push_str(" grid unchecked persistent"),
            GridSpec::Persistent => self.out.push_str(" grid persistent"),
            GridSpec::Extents(extents) if extents.is_empty() && sig.partial => self.out.push_str(" grid unchecked()"),
            GridSpec::Extents(extents) if extents.is_empty() => {}
            GridSpec::Extents(extents) if sig.partial => self.exprs(" grid unchecked(", extents),
            GridSpec::Extents(extents) => self.exprs(" grid(", extents),
        }
        if !sig.requires.is_empty() {
            self.exprs(" require(", &sig.requires);
        }
        if let Some(tails) = sig.tails {
            self.put(format_args!(" tails({})", tails.name()));
        }
        if let Some(scheduler) = sig.scheduler {
            self.put(format_args!(" schedule({})", scheduler.name()));
        }
        self.out.push(' ');
    }

    /// `pipe(4, "ring", tile<128x64xf16>)` and `role(producer, 4)`, one each.
    pub(super) fn pipelines(&mut self) {
        let kernel = self.kernel;
        for pipe in &kernel.pipes {
            self.put(format_args!("pipe({}", pipe.slots));
            if let Some(name) = &pipe.name {
                self.out.push_str(", ");
                quote(name, &mut self.out);
            }
            if pipe.space != PipeSpace::Shared {
                self.put(format_args!(", {}", pipe.space));
            }
            for field in &pipe.fields {
                self.put(format_args!(", {}", Ty::Tile(field.elem, field.shape)));
            }
            self.out.push(')');
            if pipe.loc != Loc::default() {
                self.put(format_args!(" @{}:{}", pipe.loc.line, pipe.loc.column));
            }
            self.out.push(' ');
        }
        for role in &kernel.roles {
            self.out.push_str("role(");
            self.word(&role.name);
            self.put(format_args!(", {}", role.warps));
            if role.instances != 1 {
                self.put(format_args!(", {}", role.instances));
            }
            self.out.push_str(") ");
        }
        for line in kernel.laid_out.iter().flat_map(|plan| crate::text::place::lines(plan)) {
            self.put(format_args!("\n    {line}"));
        }
        self.out.push_str(if kernel.laid_out.is_some() { "\n" } else { "" });
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
                    self.out.push_str(match access {
                        Access::In => "in ",
                        Access::Mut => "mut ",
                    });
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

    /// A bare name binds at its first mention in a shape; `bind` and `=` are printed where that would be wrong.
    fn dim(&mut self, dim: &DimSpec, bound: &mut [bool]) {
        let first =
            |s: &Symbol, bound: &mut [bool]| bound.get_mut(s.index()).is_some_and(|b| !std::mem::replace(b, true));
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

    pub(super) fn word(&mut self, word: &str) {
        if is_word(word) { self.out.push_str(word) } else { quote(word, &mut self.out) }
    }

    /// Words and integers are printed without quotes.
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

/// Whether the symbols are numbered in the order in which the text mentions them, so that no list of them is needed.
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
