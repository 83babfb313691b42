//! Parses `kernel @name<T = f16>[M, N](parameters) grid(..) require(..)`, and the body after it.

use super::expr::Scope;
use super::{Body, Name, Parse, Parser};
use crate::collections::SortedMap;
use crate::diag::{Code, Diagnostic};
use crate::ir::{
    Access, Block, BlockData, Def, DimSpec, Field, GridSpec, HostExpr, InstanceArg, Kernel, Loc, Param, ParamKind,
    PipeDecl, PipeSpace, Place, RoleDecl, Scheduler, Signature, Tails, Ty, Value, ValueData,
};
use crate::text::lex::{Tok, unquote};

impl<'a> Parser<'a> {
    /// Parses a kernel; after an error in the signature, everything up to the next kernel is skipped.
    pub(super) fn kernel(&mut self) -> Parse<Kernel> {
        let start = self.next.at;
        let known = self.errors.len();
        let Ok((sig, names)) = self.signature() else {
            self.skip_kernel(start);
            return Err(super::Failed);
        };
        let mut body = Body::new(sig);
        for name in names {
            self.declare_param(&mut body, name);
        }
        if self.pipelines(&mut body).and_then(|()| self.block(&mut body)).is_err() {
            self.skip_kernel(start);
        } else if !(self.next.fresh && (self.is_word("kernel") || self.next.tok == Tok::End)) {
            let error = self.unexpected("a kernel or the end of the text");
            self.report(error);
            self.skip_kernel(start);
        }
        if self.errors.len() > known { Err(super::Failed) } else { Ok(body.kernel) }
    }

    fn skip_kernel(&mut self, start: usize) {
        while self.next.tok != Tok::End && !(self.is_word("kernel") && self.next.fresh && self.next.at != start) {
            self.bump();
        }
    }

    fn signature(&mut self) -> Parse<(Signature, Vec<Name<'a>>)> {
        if !self.eat_word("kernel") {
            let error = self.unexpected("`kernel`");
            return self.error(error);
        }
        self.expect("@")?;
        let name = self.name("the kernel's name")?;
        let instance = if self.eat("<") { self.list(">", Self::instance_arg)? } else { Vec::new() };
        let mut scope = Scope::default();
        if self.eat("[") {
            self.list("]", |p| p.declare_symbol(&mut scope))?;
        }
        self.expect("(")?;
        let mut bound = Vec::new();
        let declared = self.list(")", |p| p.param(&mut scope, &mut bound))?;
        let (grid, partial) = self.grid(&mut scope)?;
        let requires = if self.eat_word("require") { self.exprs(&mut scope)? } else { Vec::new() };
        let tails = if self.eat_word("tails") { Some(self.word_of(&Tails::ALL, Tails::name)?) } else { None };
        let scheduler =
            if self.eat_word("schedule") { Some(self.word_of(&Scheduler::ALL, Scheduler::name)?) } else { None };
        let (names, params): (Vec<Name<'a>>, Vec<Param>) = declared.into_iter().unzip();
        let mut sig =
            Signature { name, instance, symbols: scope.symbols, params, grid, partial, requires, tails, scheduler };
        self.resolve(&mut sig, &names, &scope.mentioned)?;
        Ok((sig, names))
    }

    /// `pipe(4, "ring", tile<128x64xf16>) @1:2 role(producer, 4)`
    fn pipelines(&mut self, body: &mut Body<'a>) -> Parse<()> {
        loop {
            let at = self.next.at;
            if self.eat_word("pipe") {
                let mut pipe = self.pipe()?;
                pipe.loc = self.loc_of(at)?;
                body.kernel.pipes.push(pipe);
            } else if self.eat_word("role") {
                self.expect("(")?;
                let name = self.name("the name of a role")?;
                self.expect(",")?;
                let warps = self.int("how many warps a role has")?;
                let instances = if self.eat(",") { self.int("how many instances a role has")? } else { 1 };
                self.expect(")")?;
                body.kernel.roles.push(RoleDecl { name, warps, instances });
            } else if self.eat_word("plan") {
                self.plan(body)?;
            } else if self.eat_word("layout") {
                self.layout(body)?;
            } else if self.eat_word("encoding") {
                self.encoding(body)?;
            } else {
                return Ok(());
            }
        }
    }

    fn pipe(&mut self) -> Parse<PipeDecl> {
        self.expect("(")?;
        let slots = self.int("how many slots a ring has")?;
        let mut pipe =
            PipeDecl { name: None, slots, fields: Vec::new(), space: PipeSpace::Shared, loc: Loc::default() };
        while self.eat(",") {
            match self.next.tok {
                Tok::Text(_) => pipe.name = Some(self.string("the name of a ring")?),
                Tok::Word(word) if PipeSpace::from_name(word).is_some() => {
                    pipe.space = PipeSpace::from_name(word).unwrap_or(PipeSpace::Shared);
                    self.bump();
                }
                Tok::Word(_) | Tok::Value(_) | Tok::Number(_) | Tok::Sign(_) | Tok::Bad(_) | Tok::End => {
                    let at = self.next.at;
                    let Ty::Tile(elem, shape) = self.ty()? else { return self.fail(at, "a stage holds tiles") };
                    pipe.fields.push(Field { elem, shape });
                }
            }
        }
        self.expect(")")?;
        Ok(pipe)
    }

    fn instance_arg(&mut self) -> Parse<InstanceArg> {
        let name = self.name("a generic parameter")?;
        self.expect("=")?;
        let negative = self.eat("-");
        let value = if let Tok::Number(n) = self.next.tok {
            self.bump();
            format!("{}{n}", if negative { "-" } else { "" })
        } else if negative {
            return self.expected("an integer");
        } else {
            self.name("the value of a generic parameter")?
        };
        Ok(InstanceArg { name, value })
    }

    fn declare_symbol(&mut self, scope: &mut Scope<'a>) -> Parse<()> {
        let at = self.next.at;
        let name = if self.eat("$") {
            self.string("the name of a symbol, in quotes")?
        } else {
            self.name("the name of a symbol")?
        };
        if scope.symbols.contains(&name) {
            return self.fail(at, format!("the symbol `{name}` is listed twice"));
        }
        scope.symbol(&name);
        Ok(())
    }

    /// `%a: in optional tensor<f16>[M, K]` or `%eps: f32`
    fn param(&mut self, scope: &mut Scope<'a>, bound: &mut Vec<bool>) -> Parse<(Name<'a>, Param)> {
        let name = self.value("a parameter")?;
        self.expect(":")?;
        let access = if self.eat_word("in") {
            Some(Access::In)
        } else if self.eat_word("mut") {
            Some(Access::Mut)
        } else {
            None
        };
        let kind = match access {
            None if self.is_word("tensor") => {
                let error = self.unexpected("`in` or `mut`");
                return self.error(
                    error.help("a tensor is read only, `%a: in tensor<f16>[M]`, or written, `%c: mut tensor<f16>[M]`"),
                );
            }
            None => ParamKind::Scalar(self.elem()?),
            Some(access) => {
                let optional = self.eat_word("optional");
                self.expect_word("tensor")?;
                self.expect("<")?;
                let elem = self.elem()?;
                self.expect(">")?;
                self.expect("[")?;
                let shape = self.list("]", |p| p.dim(scope, bound))?;
                ParamKind::Tensor { elem, access, optional, shape }
            }
        };
        let plain = self.plain_name(name)?.unwrap_or_else(|| name.text.trim_start_matches('%').to_owned());
        Ok((name, Param { name: plain, kind }))
    }

    /// `_`, `M`, `bind M`, `= M`, or an expression. A bare name binds at its first mention.
    fn dim(&mut self, scope: &mut Scope<'a>, bound: &mut Vec<bool>) -> Parse<DimSpec> {
        if self.eat_word("_") {
            return Ok(DimSpec::Any);
        }
        let at = self.next.at;
        let binds = self.eat_word("bind");
        let equals = !binds && self.eat("=");
        let expr = self.expr(scope)?;
        let HostExpr::Symbol(symbol) = expr else {
            return if binds { self.fail(at, "only a name can be bound") } else { Ok(DimSpec::Equals(expr)) };
        };
        bound.resize(bound.len().max(symbol.index() + 1), false);
        let first = !bound[symbol.index()];
        if binds || (first && !equals) {
            bound[symbol.index()] = true;
            return Ok(DimSpec::Bind(symbol));
        }
        Ok(DimSpec::Equals(expr))
    }

    /// Parses the grid, and whether it may leave parts of outputs unwritten.
    fn grid(&mut self, scope: &mut Scope<'a>) -> Parse<(GridSpec, bool)> {
        if !self.eat_word("grid") {
            return Ok((GridSpec::Extents(Vec::new()), false));
        }
        let partial = self.eat_word("unchecked");
        if self.eat_word("persistent") {
            return Ok((GridSpec::Persistent, partial));
        }
        Ok((GridSpec::Extents(self.exprs(scope)?), partial))
    }

    /// One of some words: `(split)`
    fn word_of<T: Copy>(&mut self, all: &[T], name: fn(T) -> &'static str) -> Parse<T> {
        self.expect("(")?;
        let Some(found) = all.iter().copied().find(|one| self.eat_word(name(*one))) else {
            let words: Vec<String> = all.iter().map(|one| format!("`{}`", name(*one))).collect();
            let error = self.unexpected(&words.join(" or "));
            return self.error(error);
        };
        self.expect(")")?;
        Ok(found)
    }

    fn exprs(&mut self, scope: &mut Scope<'a>) -> Parse<Vec<HostExpr>> {
        self.expect("(")?;
        self.list(")", |p| p.expr(scope))
    }

    /// Replaces the parameters in host expressions by their indices.
    fn resolve(&mut self, sig: &mut Signature, names: &[Name<'a>], mentioned: &[Name<'a>]) -> Parse<()> {
        let mut indices = Vec::with_capacity(mentioned.len());
        for m in mentioned {
            match names.iter().position(|n| n.text == m.text) {
                Some(i) => indices.push(i),
                None => return self.fail(m.at, format!("`{}` is not a parameter", m.text)),
            }
        }
        for param in &mut sig.params {
            if let ParamKind::Tensor { shape, .. } = &mut param.kind {
                for dim in shape {
                    match dim {
                        DimSpec::Any | DimSpec::Bind(_) => {}
                        DimSpec::Equals(e) => renumber(e, &indices),
                    }
                }
            }
        }
        if let GridSpec::Extents(extents) = &mut sig.grid {
            extents.iter_mut().for_each(|e| renumber(e, &indices));
        }
        sig.requires.iter_mut().for_each(|e| renumber(e, &indices));
        Ok(())
    }

    /// The user's name of a value: none for `%7`, and `acc` for `%acc.2`.
    pub(super) fn plain_name(&mut self, name: Name<'a>) -> Parse<Option<String>> {
        let rest = &name.text[1..];
        if let Some(quoted) = rest.strip_prefix('"') {
            let raw = quoted.rfind('"').map_or(quoted, |end| &quoted[..end]);
            return match unquote(raw) {
                Ok(s) => Ok(Some(s)),
                Err(offset) => self.fail(name.at + 2 + offset, "an escape that strings do not have"),
            };
        }
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            if rest.bytes().all(|b| b.is_ascii_digit()) {
                return Ok(None);
            }
            let error = Diagnostic::new(Code::Text, name.at, format!("`{}` is neither a number nor a name", name.text));
            return self.error(error.help("names start with a letter; numbers are digits only, as in `%7`"));
        }
        Ok(Some(rest.split('.').next().unwrap_or(rest).to_owned()))
    }

    fn declare_param(&mut self, body: &mut Body<'a>, name: Name<'a>) {
        let index = body.kernel.values.len();
        let Some(param) = body.kernel.sig.params.get(index) else { return };
        let ty = match &param.kind {
            ParamKind::Tensor { elem, shape, .. } => Ty::Tensor(*elem, u8::try_from(shape.len()).unwrap_or(u8::MAX)),
            ParamKind::Scalar(e) => Ty::Scalar(*e),
        };
        let data = ValueData { ty, name: Some(param.name.clone()), def: Def::Param(index), place: Place::None };
        body.kernel.values.push(data);
        self.declare(body, name, Some(Value::new(index)));
    }
}

fn renumber(expr: &mut HostExpr, indices: &[usize]) {
    match expr {
        HostExpr::Const(_) | HostExpr::Symbol(_) => {}
        HostExpr::Scalar(p) | HostExpr::Dim(p, _) => *p = indices.get(*p).copied().unwrap_or(*p),
        HostExpr::Not(a) => renumber(a, indices),
        HostExpr::Binary(_, a, b) => {
            renumber(a, indices);
            renumber(b, indices);
        }
    }
}

impl Body<'_> {
    fn new(sig: Signature) -> Self {
        let kernel = Kernel {
            sig,
            pipes: Vec::new(),
            roles: Vec::new(),
            laid_out: None,
            body: Block::new(0),
            values: Vec::new(),
            ops: Vec::new(),
            blocks: vec![BlockData::default()],
        };
        Body { kernel, values: SortedMap::new(), open: vec![Block::new(0)], loops: Vec::new() }
    }
}
