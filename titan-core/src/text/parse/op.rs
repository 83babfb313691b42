//! Statements: an operation with the names of its results.

use super::{Body, MAX_DEPTH, Name, Parse, Parser};
use crate::diag::{Code, Diagnostic};
use crate::ir::op_table::syntax::{Head, HeadError};
use crate::ir::{Block, Def, Loc, Op, OpId, OpKind, Origin, Planned, Ty, Typed, Value, ValueData, infer, op_table};
use crate::text::TextPos;
use crate::text::lex::Tok;
use crate::text::suggest::closest;

/// The part of a statement before the operands: the names of the results, and its position.
pub(super) struct Left<'a> {
    pub(super) names: Vec<Name<'a>>,
    pub(super) start: usize,
    pub(super) mnemonic: &'a str,
    /// The position of the mnemonic.
    pub(super) at: usize,
}

/// What is written behind an operation.
#[derive(Clone, Copy, Default)]
pub(super) struct Tail {
    pub(super) planned: Option<Planned>,
    pub(super) peeled: bool,
    pub(super) unmasked: bool,
    pub(super) origin: Option<Origin>,
    pub(super) loc: Loc,
}

impl Tail {
    /// The operation before it, without results.
    pub(super) fn op(self, kind: OpKind, args: Vec<Value>, regions: Vec<Block>) -> Op {
        Op {
            kind,
            args,
            results: vec![],
            regions,
            planned: self.planned,
            peeled: self.peeled,
            unmasked: self.unmasked,
            origin: self.origin,
            loc: self.loc,
        }
    }
}

impl<'a> Parser<'a> {
    /// Parses `{ statements }`; the statements are added to the innermost open block.
    pub(super) fn block(&mut self, body: &mut Body<'a>) -> Parse<()> {
        let opened = self.next.at;
        if body.open.len() > MAX_DEPTH {
            return self.fail(opened, format!("blocks nest at most {MAX_DEPTH} deep"));
        }
        self.expect("{")?;
        loop {
            if self.eat("}") {
                return Ok(());
            }
            if self.next.tok == Tok::End || (self.is_word("kernel") && self.next.fresh) {
                let error = self.unexpected("`}`");
                return self.error(error.related(opened, "the block that is open"));
            }
            if self.errors.len() >= super::MAX_ERRORS {
                return Err(super::Failed);
            }
            self.statement(body);
        }
    }

    fn statement(&mut self, body: &mut Body<'a>) {
        let start = self.next.at;
        let mut names = Vec::new();
        let open = (body.open.len(), body.loops.len());
        if self.left(&mut names, start).and_then(|left| self.right(body, left)).is_ok() {
            return;
        }
        body.open.truncate(open.0);
        body.loops.truncate(open.1);
        for name in names {
            body.values.entry(name.text).or_insert((None, name.at));
        }
        self.recover(start);
    }

    fn left(&mut self, names: &mut Vec<Name<'a>>, start: usize) -> Parse<Left<'a>> {
        if let Tok::Value(_) = self.next.tok {
            names.push(self.value("a result")?);
            while self.eat(",") {
                names.push(self.value("a result")?);
            }
            self.expect("=")?;
        }
        let Tok::Word(mnemonic) = self.next.tok else {
            let error = self.unexpected("an operation");
            return if names.is_empty() { self.error(error) } else { self.expected("an operation") };
        };
        if self.next.fresh && !names.is_empty() {
            return self.expected("an operation");
        }
        Ok(Left { names: names.clone(), start, mnemonic, at: self.bump().at })
    }

    fn right(&mut self, body: &mut Body<'a>, left: Left<'a>) -> Parse<()> {
        match left.mnemonic {
            "const" => self.constant(body, &left)?,
            "for" | "loop" | "if" | "reduce_with" | "scan_with" | "ttg.local.fold_with" | "ttg.roles" => {
                self.region_op(body, &left)?
            }
            _ => self.simple(body, &left)?,
        }
        if self.next.fresh || self.is("}") {
            return Ok(());
        }
        let error = self.unexpected("the end of the line");
        self.report(error);
        self.recover(left.start);
        Ok(())
    }

    fn simple(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let attrs = self.attributes()?;
        let operands = self.operands(body)?;
        let named = self.named()?;
        let types = self.types()?;
        let tail = self.tail(left)?;
        let head = Head {
            attrs: &attrs,
            ty: types.first().map(|t| t.ty),
            text: operands.text.as_ref().map(|(t, _)| t.clone()),
            named: &named,
        };
        let kind = match op_table::read(left.mnemonic, &head) {
            Ok(kind) => kind,
            Err(why) => return self.bad_head(left, &why),
        };
        let first = operands.values.first().copied().flatten();
        let form = op_table::row(&kind).form.of(first.map(|v| body.kernel.ty(v)));
        if !operands.fits(form) {
            let error = Diagnostic::new(
                Code::Text,
                left.at,
                format!("the operands of `{}` are not written like this", left.mnemonic),
            );
            return self.error(error.help(format!("`{} {}`", left.mnemonic, form.example())));
        }
        let args: Option<Vec<Value>> = operands.values.into_iter().collect();
        let Some(args) = args else {
            self.poison(body, left);
            return Ok(());
        };
        if let OpKind::Break(level) = kind {
            body.note_break(level, &args);
        }
        self.typed(body, left, tail.op(kind, args, vec![]), &types)
    }

    /// Checks the stated types of an operation whose types `infer` computes, and adds it.
    pub(super) fn typed(&mut self, body: &mut Body<'a>, left: &Left<'a>, op: Op, written: &[Typed]) -> Parse<()> {
        let args: Vec<Ty> = op.args.iter().map(|v| body.kernel.ty(*v)).collect();
        match infer::infer(&op.kind, &args) {
            Ok(types) => {
                let types: Vec<Typed> = types.into_iter().map(Typed::from).collect();
                self.agreed(body, left, op, written, &types)
            }
            // The verifier reports the error.
            Err(_) if written.len() == left.names.len() => self.finish(body, left, op, written),
            Err(e) => {
                let error = Diagnostic::new(e.code, left.at, e.message);
                self.error(e.help.into_iter().fold(error, Diagnostic::help))
            }
        }
    }

    /// Checks the stated types against the inferred ones, and adds the operation.
    pub(super) fn agreed(
        &mut self,
        body: &mut Body<'a>,
        left: &Left<'a>,
        op: Op,
        written: &[Typed],
        types: &[Typed],
    ) -> Parse<()> {
        if written.is_empty() {
            return self.finish(body, left, op, types);
        }
        if written.iter().map(|t| t.ty).ne(types.iter().map(|t| t.ty)) {
            let message = format!("the type is written {}, but the operation gives {}", list(written), list(types));
            return self.error(Diagnostic::new(Code::TypeAnnotation, left.at, message));
        }
        self.finish(body, left, op, written)
    }

    /// Adds an operation whose results have these types.
    pub(super) fn finish(&mut self, body: &mut Body<'a>, left: &Left<'a>, mut op: Op, types: &[Typed]) -> Parse<()> {
        if types.len() != left.names.len() {
            let (n, named) = (types.len(), left.names.len());
            let message = format!(
                "`{}` gives {n} value{}, and {named} {} named",
                left.mnemonic,
                plural(n),
                if named == 1 { "is" } else { "are" }
            );
            return self.fail(left.at, message);
        }
        let id = OpId::new(body.kernel.ops.len());
        for (i, (name, ty)) in left.names.iter().zip(types).enumerate() {
            op.results.push(self.define(body, *name, *ty, Def::Result(id, i))?);
        }
        body.kernel.ops.push(op);
        if let Some(block) = body.open.last() {
            body.kernel.blocks[block.index()].ops.push(id);
        }
        Ok(())
    }

    /// Marks the names of the results of an operation with poisoned operands as poisoned.
    pub(super) fn poison(&mut self, body: &mut Body<'a>, left: &Left<'a>) {
        for name in &left.names {
            self.declare(body, *name, None);
        }
    }

    pub(super) fn define(&mut self, body: &mut Body<'a>, name: Name<'a>, typed: Typed, def: Def) -> Parse<Value> {
        let Typed { ty, place } = typed;
        let plain = self.plain_name(name)?;
        let value = Value::new(body.kernel.values.len());
        body.kernel.values.push(ValueData { ty, name: plain, def, place });
        self.declare(body, name, Some(value));
        Ok(value)
    }

    /// Defines a name; a second definition is an error.
    pub(super) fn declare(&mut self, body: &mut Body<'a>, name: Name<'a>, value: Option<Value>) {
        if let Some((_, first)) = body.values.insert(name.text, (value, name.at)) {
            let error = Diagnostic::new(Code::Text, name.at, format!("`{}` is defined twice", name.text));
            let stem = name.text.split('.').next().unwrap_or(name.text);
            let error = error.related(first, "the first definition");
            self.report(error.help(format!("`{stem}.2` is another value of this name")));
        }
    }

    /// `: f32, i32`
    pub(super) fn types(&mut self) -> Parse<Vec<Typed>> {
        let mut types = Vec::new();
        if self.eat(":") {
            types.push(self.typed_ty()?);
            while self.eat(",") {
                types.push(self.typed_ty()?);
            }
        }
        Ok(types)
    }

    /// Parses `peeled unmasked stage(1, 4) of(12, 1) @3:14`, each of which may be missing; the location is then the position in the text if that was
    /// requested.
    pub(super) fn tail(&mut self, left: &Left<'a>) -> Parse<Tail> {
        let (mut planned, mut origin) = (None, None);
        let peeled = self.eat_word("peeled");
        let unmasked = self.eat_word("unmasked");
        if self.eat_word("stage") {
            self.expect("(")?;
            let stage = self.int("a stage")?;
            self.expect(",")?;
            planned = Some(Planned { stage, order: self.int("a place")? });
            self.expect(")")?;
        }
        if self.eat_word("of") {
            self.expect("(")?;
            let op = OpId::new(self.int("an operation")?);
            self.expect(",")?;
            origin = Some(Origin { op, ahead: self.int("iterations")? });
            self.expect(")")?;
        }
        Ok(Tail { planned, peeled, unmasked, origin, loc: self.loc_of(left.start)? })
    }

    /// The stated location of what starts at a byte.
    pub(super) fn loc_of(&mut self, start: usize) -> Parse<Loc> {
        if !self.eat("@") {
            return Ok(self.place(start));
        }
        let line = self.int("a line")?;
        self.expect(":")?;
        let loc = Loc { line, column: self.int("a column")? };
        if let Some(found) = &mut self.located {
            found.cursor.advance(self.text, start);
            found.stated.push((loc, found.cursor.pos));
        }
        Ok(loc)
    }

    /// The position of a byte as a location, if that was requested.
    pub(super) fn place(&mut self, at: usize) -> Loc {
        let Some(found) = &mut self.located else { return Loc::default() };
        found.cursor.advance(self.text, at);
        let TextPos { line, column } = found.cursor.pos;
        let loc = Loc { line, column };
        found.own.push(loc);
        loc
    }

    pub(super) fn bad_head<T>(&mut self, left: &Left<'a>, why: &HeadError) -> Parse<T> {
        let name = left.mnemonic;
        let error = |message: String| Diagnostic::new(Code::Text, left.at, message);
        let error = match why {
            HeadError::Unknown => {
                let near = closest(name, op_table::ops().map(|row| row.mnemonic));
                let error = error(format!("there is no operation `{name}`"));
                match near {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help("docs/ir.md lists the operations"),
                }
            }
            HeadError::Attributes(0, _) => error(format!("`{name}` takes nothing in angle brackets")),
            HeadError::Attributes(n, what) => {
                let example = if *n == 1 { "1" } else { "1, 64" };
                error(format!("`{name}` takes {what} in angle brackets")).help(format!("as in `{name}<{example}>`"))
            }
            HeadError::Range(v) => error(format!("{v} is out of range for `{name}`")),
            HeadError::NeedsType(what) => {
                error(format!("`{name}` needs its result type, {what}")).help("as in `: tile<128x64xf16>`")
            }
            HeadError::NeedsText => error(format!("`{name}` needs a text in quotes")),
            HeadError::Named("") => error(format!("`{name}` takes nothing in braces")),
            HeadError::Named(what) => {
                error(format!("`{name}` needs its attributes in braces")).help(format!("as in `{{{what}}}`"))
            }
        };
        self.error(error)
    }
}

fn list(types: &[Typed]) -> String {
    let all: Vec<String> = types.iter().map(|t| format!("`{}`", t.ty)).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

const fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

impl Body<'_> {
    /// Records the types of a loop's results, from a `break`.
    fn note_break(&mut self, level: u32, args: &[Value]) {
        let types = args.iter().map(|v| self.kernel.typed(*v)).collect();
        let n = self.loops.len();
        let left = usize::try_from(level).ok().and_then(|l| n.checked_sub(l)?.checked_sub(1));
        if let Some(slot) = left.and_then(|i| self.loops.get_mut(i)) {
            slot.get_or_insert(types);
        }
    }

    pub(super) fn new_block(&mut self) -> Block {
        self.kernel.blocks.push(crate::ir::BlockData::default());
        Block::new(self.kernel.blocks.len() - 1)
    }
}
