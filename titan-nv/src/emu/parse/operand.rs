//! Parses the operands of instructions.

use super::Parser;
use super::body::Body;
use crate::emu::ast::{Base, Name, Operand};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::lex::Tok;

impl Parser<'_> {
    /// Parses one operand; `index` is its position, for labels that are resolved later.
    pub(super) fn operand(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        let first = self.simple(body, index)?;
        if self.accept('|') {
            let second = self.simple(body, index)?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        Ok(first)
    }

    fn simple(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        self.nested(|p| p.one(body, index))
    }

    fn one(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        let token = self.peek();
        match token.tok {
            Tok::Word if token.text != "WARP_SZ" => self.named(body, index),
            Tok::Punct('{') => self.vector(body, index),
            Tok::Punct('[') => self.memory(body, index),
            Tok::Punct('!') if self.ahead(1).tok == Tok::Word => {
                self.next();
                match self.named(body, index)? {
                    Operand::Reg(r) => Ok(Operand::Not(r)),
                    _ => Err(self.error("`!` stands before a predicate register")),
                }
            }
            Tok::F32(bits) => {
                self.next();
                Ok(Operand::F32(bits))
            }
            Tok::F64(bits) => {
                self.next();
                Ok(Operand::F64(bits))
            }
            Tok::Punct('-') if matches!(self.ahead(1).tok, Tok::F64(_) | Tok::F32(_)) => {
                self.next();
                match self.next().tok {
                    Tok::F32(bits) => Ok(Operand::F32(bits ^ 1 << 31)),
                    Tok::F64(bits) => Ok(Operand::F64(bits ^ 1 << 63)),
                    _ => Err(self.expected("a number")),
                }
            }
            _ => Ok(Operand::Int(self.constant()?)),
        }
    }

    /// A register, special register, variable, function or label.
    fn named(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        let token = self.next();
        let name = token.text;
        if name == "_" {
            return Ok(Operand::Sink);
        }
        match body.lookup(name).or_else(|| self.names.get(name).copied()) {
            Some(Name::Reg(r)) => return Ok(Operand::Reg(r)),
            Some(other) => return Ok(Operand::Address(other, self.offset()?)),
            None => {}
        }
        if name.starts_with('%') {
            if super::super::decode::special(name).is_none() {
                let what = format!("`{name}` is neither declared nor a special register that is emulated");
                return Err(EmuError::at(ErrorCode::Symbol, token.line, what));
            }
            return Ok(Operand::Special(name.to_owned()));
        }
        if self.functions.contains_key(name) {
            return Ok(Operand::Function(name.to_owned()));
        }
        body.use_label(index, name, token.line);
        Ok(Operand::Label(usize::MAX))
    }

    /// Parses `+ n` after a name; 0 if it is absent.
    fn offset(&mut self) -> Result<i64, EmuError> {
        if !self.accept('+') {
            return Ok(0);
        }
        let value = self.constant()?;
        i64::try_from(value).map_err(|_| self.error("the offset does not fit 64 bits"))
    }

    fn vector(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        self.expect('{')?;
        let mut all = Vec::new();
        while !self.accept('}') {
            if !all.is_empty() {
                self.expect(',')?;
            }
            all.push(self.simple(body, index)?);
        }
        Ok(Operand::Vector(all))
    }

    /// Parses the arguments or results of a call.
    pub(super) fn arguments(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        self.expect('(')?;
        let mut all = Vec::new();
        while !self.accept(')') {
            if !all.is_empty() {
                self.expect(',')?;
            }
            all.push(self.simple(body, index)?);
        }
        Ok(Operand::Vector(all))
    }

    fn memory(&mut self, body: &mut Body, index: usize) -> Result<Operand, EmuError> {
        self.expect('[')?;
        if self.peek().tok != Tok::Word {
            let address = self.constant()?;
            self.expect(']')?;
            let address = i64::try_from(address).map_err(|_| self.error("the address does not fit 64 bits"))?;
            return Ok(Operand::Mem(Base::Zero, address));
        }
        let base = self.named(body, index)?;
        let operand = match base {
            Operand::Reg(r) => Operand::Mem(Base::Reg(r), self.offset()?),
            Operand::Address(name, offset) => Operand::Mem(Base::Name(name), offset),
            _ => return Err(self.error("an address is a register or a variable, and an offset")),
        };
        if self.is(',') {
            let mut all = vec![operand];
            while self.accept(',') {
                all.push(self.simple(body, index)?);
            }
            self.expect(']')?;
            return Ok(Operand::MemList(all));
        }
        self.expect(']')?;
        Ok(operand)
    }
}
