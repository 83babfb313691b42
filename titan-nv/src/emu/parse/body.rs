//! A kernel or a function: its declaration and its body, to the end of its braces.

use super::Parser;

use crate::emu::ast::{Entry, Instr, Loc, Name, Operand, Reg};
use crate::emu::decode::special;
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::lex::Tok;
use crate::emu::ty::{Kind, Space, Ty};
use std::collections::BTreeMap;

/// The state of a body while it is parsed.
pub(super) struct Body {
    pub(super) entry: Entry,
    /// The names of each scope, innermost last.
    pub(super) scopes: Vec<Scope>,
    /// The labels, by scope number and name.
    labels: BTreeMap<(usize, String), usize>,
    /// The lists of branch targets, by scope number and name.
    lists: BTreeMap<(usize, String), Vec<String>>,
    /// Label operands that are to be resolved: instruction, operand, name, scopes from the innermost out, line.
    pub(super) open: Vec<OpenLabel>,
    n_scopes: usize,
    /// Whether it is a function, whose variables that are the same in all calls belong to the module.
    is_function: bool,
}

pub(super) struct Scope {
    number: usize,
    names: BTreeMap<String, Name>,
}

/// A label that is used, perhaps before it is defined.
pub(super) struct OpenLabel {
    pub(super) operand: usize,
    pub(super) name: String,
    pub(super) line: u32,
    scopes: Vec<usize>,
    instr: usize,
}

impl Body {
    /// A body with the scope of its parameters.
    pub(super) fn new(entry: Entry, is_function: bool) -> Body {
        let mut body = Body {
            entry,
            scopes: vec![],
            labels: BTreeMap::new(),
            lists: BTreeMap::new(),
            open: vec![],
            n_scopes: 0,
            is_function,
        };
        body.enter();
        body
    }

    fn enter(&mut self) {
        self.scopes.push(Scope { number: self.n_scopes, names: BTreeMap::new() });
        self.n_scopes += 1;
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Name> {
        self.scopes.iter().rev().find_map(|s| s.names.get(name).copied())
    }

    pub(super) fn define(&mut self, text: String, name: Name, line: u32) -> Result<(), EmuError> {
        let twice = EmuError::at(ErrorCode::Symbol, line, format!("`{text}` is declared twice"));
        let scope = self.scopes.last_mut();
        let free = scope.is_some_and(|s| s.names.insert(text, name).is_none());
        if free { Ok(()) } else { Err(twice) }
    }

    /// Records that the operand with this index of the next instruction is a label.
    pub(super) fn use_label(&mut self, operand: usize, name: &str, line: u32) {
        let scopes = self.scopes.iter().rev().map(|s| s.number).collect();
        let instr = self.entry.code.len();
        self.open.push(OpenLabel { operand, name: name.to_owned(), line, scopes, instr });
    }

    fn find_label(&self, name: &str, scopes: &[usize]) -> Option<usize> {
        scopes.iter().find_map(|s| self.labels.get(&(*s, name.to_owned())).copied())
    }

    /// Replaces labels by positions.
    pub(super) fn close(&mut self) -> Result<(), EmuError> {
        for open in std::mem::take(&mut self.open) {
            let list = open.scopes.iter().find_map(|s| self.lists.get(&(*s, open.name.clone())));
            let target = match list {
                Some(names) => {
                    let found: Option<Vec<_>> = names.iter().map(|n| self.find_label(n, &open.scopes)).collect();
                    found.map(Operand::Targets)
                }
                None => self.find_label(&open.name, &open.scopes).map(Operand::Label),
            };
            let Some(target) = target else {
                let message = format!("`{}` is not declared", open.name);
                return Err(EmuError::at(ErrorCode::Symbol, open.line, message));
            };
            if let Some(place) = self.entry.code.get_mut(open.instr).and_then(|i| i.operands.get_mut(open.operand)) {
                *place = target;
            }
        }
        Ok(())
    }
}

impl Parser<'_> {
    /// `.entry name (params) directives { body }`
    pub(super) fn entry(&mut self) -> Result<(), EmuError> {
        self.next();
        let line = self.peek().line;
        let name = self.word("the name of a kernel")?.to_owned();
        let params = if self.accept('(') { self.params()? } else { Vec::new() };
        let mut body = Body::new(Entry::new(name, params), false);
        for i in 0..body.entry.params.len() {
            body.define(body.entry.params[i].name.clone(), Name::Param(i), line)?;
        }
        self.limits(&mut body.entry)?;
        if self.accept(';') {
            return Ok(());
        }
        self.expect('{')?;
        self.body(&mut body)?;
        body.close()?;
        self.push_entry(body.entry, line)
    }

    /// Directives between the parameters of a kernel or function and its body.
    pub(super) fn limits(&mut self, entry: &mut Entry) -> Result<(), EmuError> {
        while self.peek().tok == Tok::Word {
            let token = self.next();
            match token.text {
                ".reqntid" => entry.required = Some(self.extents()?),
                ".maxntid" => entry.max = Some(self.extents()?),
                ".reqnctapercluster" => entry.cluster = Some(self.extents()?),
                ".explicitcluster" => entry.explicit_cluster = true,
                ".maxnreg" => entry.max_registers = Some(self.small()?),
                ".minnctapersm" | ".maxnctapersm" | ".maxclusterrank" => {
                    self.small()?;
                }
                ".noreturn" => {}
                ".pragma" => {
                    self.at -= 1;
                    self.pragma()?;
                }
                other => {
                    let message = format!("`{other}` before a kernel's body is not emulated");
                    return Err(EmuError::at(ErrorCode::Unknown, token.line, message));
                }
            }
        }
        Ok(())
    }

    pub(super) fn body(&mut self, body: &mut Body) -> Result<(), EmuError> {
        body.enter();
        let mut depth = 1;
        while depth > 0 {
            let token = self.peek();
            match token.tok {
                Tok::Punct('{') => {
                    self.next();
                    body.enter();
                    depth += 1;
                }
                Tok::Punct('}') => {
                    self.next();
                    body.scopes.pop();
                    depth -= 1;
                }
                Tok::Punct(';') => {
                    self.next();
                }
                Tok::Word if self.ahead(1).tok == Tok::Punct(':') => self.label(body)?,
                Tok::Word if token.text.starts_with('.') => self.local_directive(body)?,
                Tok::Word | Tok::Punct('@') => self.instruction(body)?,
                _ => return Err(self.expected("an instruction")),
            }
        }
        Ok(())
    }

    fn label(&mut self, body: &mut Body) -> Result<(), EmuError> {
        let token = self.next();
        self.next();
        let scope = body.scopes.last().map_or(0, |s| s.number);
        let key = (scope, token.text.to_owned());
        if self.accept_word(".branchtargets") {
            let mut names = vec![self.word("a label")?.to_owned()];
            while self.accept(',') {
                names.push(self.word("a label")?.to_owned());
            }
            self.expect(';')?;
            body.lists.insert(key, names);
            return Ok(());
        }
        if body.labels.insert(key, body.entry.code.len()).is_some() {
            let message = format!("label `{}` is declared twice", token.text);
            return Err(EmuError::at(ErrorCode::Symbol, token.line, message));
        }
        Ok(())
    }

    fn local_directive(&mut self, body: &mut Body) -> Result<(), EmuError> {
        let token = self.peek();
        match token.text {
            ".reg" => self.registers(body),
            ".loc" => {
                let loc: Loc = self.loc()?;
                body.entry.locs.push(loc);
                Ok(())
            }
            ".pragma" => self.pragma(),
            ".file" => self.file(),
            text => {
                let Some(space) = text.strip_prefix('.').and_then(Space::named) else {
                    let message = format!("`{text}` inside a kernel is not emulated");
                    return Err(EmuError::at(ErrorCode::Unknown, token.line, message));
                };
                self.next();
                for var in self.variables(space, false)? {
                    let of_module = body.is_function && !matches!(space, Space::Local | Space::Param);
                    let vars = if of_module { &mut self.ast.vars } else { &mut body.entry.vars };
                    let name = if of_module { Name::Global(vars.len()) } else { Name::Local(vars.len()) };
                    let text = var.name.clone();
                    vars.push(var);
                    body.define(text, name, token.line)?;
                }
                Ok(())
            }
        }
    }

    /// `.reg .b32 %r<9>, %x;`
    fn registers(&mut self, body: &mut Body) -> Result<(), EmuError> {
        let line = self.next().line;
        let ty = self.type_of_register()?;
        loop {
            let base = self.word("the name of a register")?.to_owned();
            // `%tid.x` would be a component of a register `%tid`.
            if special(&base).is_some() || special(&format!("{base}.x")).is_some() {
                return Err(EmuError::at(ErrorCode::Symbol, line, format!("`{base}` is a special register")));
            }
            let names = if self.accept('<') {
                let n = self.small()?;
                self.expect('>')?;
                if n > 1 << 17 {
                    return Err(self.error("more than 131072 registers of one name"));
                }
                (0..n).map(|i| format!("{base}{i}")).collect()
            } else {
                vec![base]
            };
            for name in names {
                body.define(name.clone(), Name::Reg(body.entry.regs.len()), line)?;
                body.entry.regs.push(Reg { name, ty });
            }
            if !self.accept(',') {
                return self.expect(';');
            }
        }
    }

    pub(super) fn type_of_register(&mut self) -> Result<Ty, EmuError> {
        let line = self.peek().line;
        let word = self.word("a type")?;
        let ty = word.strip_prefix('.').and_then(Ty::named);
        let unknown = || EmuError::at(ErrorCode::Unknown, line, format!("registers of type `{word}` are not emulated"));
        ty.filter(|t| t.kind() == Kind::Pred || (16..=64).contains(&t.bits())).ok_or_else(unknown)
    }

    fn instruction(&mut self, body: &mut Body) -> Result<(), EmuError> {
        let first = self.peek();
        let mut guard = None;
        if self.accept('@') {
            let negated = self.accept('!');
            let token = self.next();
            let Some(Name::Reg(reg)) = body.lookup(token.text) else {
                return Err(EmuError::at(ErrorCode::Symbol, token.line, format!("`{}` is not declared", token.text)));
            };
            guard = Some((reg, negated));
        }
        let opcode = self.word("an opcode")?;
        let is_call = opcode == "call" || opcode == "call.uni";
        let mut operands = Vec::new();
        while !self.is(';') {
            if !operands.is_empty() {
                self.expect(',')?;
            }
            let n = operands.len();
            let list = is_call && self.is('(');
            let operand = if list { self.arguments(body, n)? } else { self.operand(body, n)? };
            operands.push(operand);
        }
        let end = self.peek().span.1;
        self.expect(';')?;
        let loc = body.entry.locs.len().checked_sub(1);
        let parts = opcode.split('.').map(str::to_owned).collect();
        body.entry.code.push(Instr { guard, parts, operands, line: first.line, span: (first.span.0, end), loc });
        Ok(())
    }
}
