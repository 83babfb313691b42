//! Matrix instructions.
//!
//! The lane IR has instructions with exchanged operands ([`titan_core::layout::atoms::Atom::exchanged`]): what it calls A is the instruction's
//! B. An accumulator is one tuple of registers, which the instruction updates in place where nothing else reads its previous contents
//! (`tuples`); a new one begins with the constant 0 if that is what it adds to.
//!
//! A matrix instruction ignores which lanes are active (ISA §7.1.2), so it is only selected where all of them are.

use super::control::Frame;
use super::memory::consecutive;
use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault};
use crate::codegen::machine_ir::{Block, File, Inst, Operand, Part};
use crate::isa::{Access, Form, Operand as Isa, Row};
use titan_core::ir::Elem;
use titan_core::lane::op::OpKind;
use titan_core::lane::{MmaAtom, Op, Ty, Value};

/// The row of the instruction that computes an MMA with exchanged operands.
#[must_use]
pub fn matrix_row(mma: &MmaAtom) -> Option<&'static Row> {
    let MmaAtom { m, n, k, a, b, acc } = mma;
    let name = |elem: Elem| {
        Some(match elem {
            Elem::F64 => "f64",
            Elem::F32 => "f32",
            Elem::Tf32 => "xf32",
            Elem::F16 => "f16",
            Elem::Bf16 => "bf16",
            Elem::I8 => "i8",
            Elem::I32 => "i32",
            Elem::E4m3
            | Elem::E5m2
            | Elem::Bool
            | Elem::I4
            | Elem::U4
            | Elem::U8
            | Elem::I16
            | Elem::U16
            | Elem::U32
            | Elem::I64
            | Elem::U64 => return None,
        })
    };
    let name = format!("v_mfma_{}_{n}x{m}x{k}_{}", name(*acc)?, name(*a).filter(|_| a == b)?);
    crate::isa::by_name(&name).first().copied()
}

impl Select<'_> {
    pub(super) fn mma(&mut self, atom: &MmaAtom, op: &Op) -> Done {
        let Some(row) = matrix_row(atom) else {
            let MmaAtom { m, n, k, a, b, acc } = atom;
            return Err(Fault::Refused(format!("no instruction multiplies {m}x{n}x{k} of {a} and {b} to {acc}")));
        };
        let masked = |frame: &Frame| match frame {
            Frame::Arm { .. } => true,
            Frame::Loop(inner) => inner.masks.is_some(),
        };
        if self.frames.iter().any(masked) {
            return Err(Fault::Defect("a matrix instruction where not all lanes are active".to_owned()));
        }
        let count = atom.registers(self.func.lanes);
        let missing = || Fault::Defect("a matrix instruction without its operands".to_owned());
        let (a, rest) = op.args.split_at_checked(count.a).ok_or_else(missing)?;
        let (b, c) = rest.split_at_checked(count.b).ok_or_else(missing)?;
        let (a, b) = (self.tuple(a)?, self.tuple(b)?);
        let (from, to) = self.accumulator(c)?;
        self.full(row.name, Form::Base, &[to.into(), b.into(), a.into(), from], &[])?;
        let words = if count.acc == Ty::B64 { 2 } else { 1 };
        for (n, value) in (0u8..).zip(&op.results) {
            self.set(*value, Spot::V(to.slice(n * words, words)));
        }
        Ok(())
    }

    /// The words of values, the lowest first.
    fn words_of(&self, values: &[Value]) -> Result<Vec<Src>, Fault> {
        let mut words = Vec::with_capacity(values.len());
        for value in values {
            let src = self.src(*value)?;
            if self.words(*value) == 2 { words.extend(src.halves()) } else { words.push(src) }
        }
        Ok(words)
    }

    /// Values as one tuple that is only read. One that has to be made is made once for all instructions of the region.
    fn tuple(&mut self, values: &[Value]) -> Result<Part, Fault> {
        let words = self.words_of(values)?;
        if let Some(part) = consecutive(&words) {
            return Ok(part);
        }
        if let [one] = words.as_slice() {
            return self.in_vector(*one, 1);
        }
        let known = self.made.iter().find(|(region, all, _)| *region == self.region && all == values);
        if let Some((_, _, part)) = known {
            return Ok(*part);
        }
        let part = self.gathered(words)?;
        self.made.push((self.region, values.to_vec(), part));
        Ok(part)
    }

    /// Words in a new tuple.
    fn gathered(&mut self, words: Vec<Src>) -> Result<Part, Fault> {
        let Ok(n @ 1..=32) = u8::try_from(words.len()) else {
            return Err(Fault::Defect(format!("a tuple of {} registers", words.len())));
        };
        let part = self.pieces(File::V, n);
        self.move_words(part, &words)?;
        Ok(part)
    }

    /// What an instruction adds to, and where its result is: the same registers, unless it begins with 0.
    fn accumulator(&mut self, c: &[Value]) -> Result<(Operand, Part), Fault> {
        let words = self.words_of(c)?;
        let n = u8::try_from(words.len()).map_err(|_| Fault::Defect("an accumulator of too many words".to_owned()))?;
        if words.iter().all(|word| *word == Src::Bits(0))
            && let Some(zero) = Isa::int(0)
        {
            let to = self.fresh(File::V, n);
            self.accumulators.push(to.reg);
            return Ok((zero.into(), to));
        }
        let own = consecutive(&words)
            .filter(|part| self.accumulators.contains(&part.reg) && c.iter().all(|value| self.is_replaced(*value)));
        let to = match own {
            Some(part) => part,
            None => {
                let to = self.gathered(words)?;
                self.accumulators.push(to.reg);
                to
            }
        };
        Ok((to.into(), to))
    }

    /// Whether an instruction may overwrite an element of an accumulator: it is a value with registers of its own, and is not read again.
    fn is_replaced(&self, value: Value) -> bool {
        let own = self.placed.contains(&value)
            || self
                .func
                .def_op(value)
                .is_none_or(|op| matches!(op.kind, OpKind::Mma(_) | OpKind::For | OpKind::Loop | OpKind::If));
        own && self.tuples.dies(value, self.region)
    }

    /// Moves the result of an operation to its place in the tuple of an accumulator, if the last of the operation's instructions makes it, and
    /// the others do not know it: that instruction then writes there. `registers` is the number of registers before the operation, and
    /// `start` the place of its first instruction.
    pub(super) fn place_result(&mut self, op: &Op, registers: usize, start: (Block, usize)) {
        let ([value], false) = (op.results.as_slice(), matches!(op.kind, OpKind::Mma(_))) else { return };
        let (Some((list, at)), Some(Spot::V(part))) = (self.tuples.place(*value), self.spots[value.index()]) else {
            return;
        };
        let n = self.tuples.values(list).len();
        let words = self.words(*value);
        let register = self.code.register(part.reg);
        let own = part.reg.index() >= registers && register.words == words && !register.pieces;
        let (Ok(all), Ok(at)) = (u8::try_from(n * usize::from(words)), u8::try_from(at * usize::from(words))) else {
            return;
        };
        if !own || part.words != words || all > 32 || self.block != start.0 {
            return;
        }
        let insts = self.code.insts(self.block).get(start.1..).unwrap_or_default();
        let refers =
            |inst: &Inst| inst.operands.iter().filter(|o| matches!(o, Operand::Part(p) if p.reg == part.reg)).count();
        let Some((last, others)) = insts.split_last() else { return };
        let made = last.accesses().find(|(_, operand)| **operand == Operand::Part(part)).map(|(access, _)| access);
        if made != Some(Access::Write) || refers(last) != 1 || others.iter().any(|inst| refers(inst) > 0) {
            return;
        }
        let known = self.gathering.iter().find(|(of, _)| *of == list).map(|(_, tuple)| *tuple);
        if known.is_none()
            && let Some(tuple) = self.replaced_tuple(list)
        {
            self.gathering.push((list, tuple));
            return self.place_at(*value, part, tuple.slice(at, words));
        }
        let tuple = known.unwrap_or_else(|| {
            let last = self.code.blocks[self.block.index()].insts.pop();
            let tuple = self.pieces(File::V, all);
            self.code.blocks[self.block.index()].insts.extend(last);
            self.accumulators.push(tuple.reg);
            self.gathering.push((list, tuple));
            tuple
        });
        self.place_at(*value, part, tuple.slice(at, words));
    }

    /// The tuple of a loop that the values of a list replace, word by word: each is computed of the word in its place, which nothing else
    /// reads. So a loop that scales an accumulator before it adds to it keeps it where it is.
    fn replaced_tuple(&self, list: usize) -> Option<Part> {
        let values = self.tuples.values(list);
        let mut whole: Option<Part> = None;
        for (at, value) in (0u8..).zip(values) {
            let op = self.func.def_op(*value).filter(|_| self.words(*value) == 1)?;
            let word = |arg: &Value| match self.spots[arg.index()] {
                Some(Spot::V(part)) if part.words == 1 && self.func.def_op(*arg).is_none() => Some(part),
                Some(Spot::V(_) | Spot::S(_) | Spot::Mask(_) | Spot::Bits(_)) | None => None,
            };
            let fits = |part: &Part| whole.is_none_or(|w| part.reg == w.reg && part.first == w.first + at);
            let dies = |arg: &&Value| self.tuples.dies(**arg, self.region);
            let part = op.args.iter().filter(dies).filter_map(word).find(fits)?;
            whole = whole.or(Some(Part { words: u8::try_from(values.len()).ok()?, ..part }));
        }
        whole.filter(|part| self.accumulators.contains(&part.reg) && part.first.is_multiple_of(2))
    }

    /// Makes the last instruction write a value to other registers than those that it has.
    fn place_at(&mut self, value: Value, part: Part, to: Part) {
        if let Some(last) = self.code.blocks[self.block.index()].insts.last_mut() {
            for operand in last.operands.iter_mut().filter(|operand| **operand == Operand::Part(part)) {
                *operand = to.into();
            }
        }
        self.set(value, Spot::V(to));
        self.placed.push(value);
    }

    /// The registers of values that several places set ([`Select::variable`]); those of an accumulator are one tuple.
    pub(super) fn variables(&mut self, values: &[Value], together: bool) -> Result<Vec<Spot>, Fault> {
        let mut spots = Vec::with_capacity(values.len());
        let mut rest = values;
        while let (all @ [_, ..], others) = rest.split_at(self.tuples.together(rest)) {
            rest = others;
            let words: u8 = all.iter().map(|v| self.words(*v)).sum();
            let numbers = |v: &Value| matches!(self.func.ty(*v), Ty::B32 | Ty::B64) && !self.is_uniform(*v);
            if all.len() == 1 || words > 32 || !all.iter().all(numbers) {
                for value in all {
                    let scalar = self.is_uniform(*value);
                    spots.push(self.variable(*value, scalar, together)?);
                }
                continue;
            }
            let tuple = self.pieces(File::V, words);
            self.accumulators.push(tuple.reg);
            let mut at = 0;
            for value in all {
                let spot = Spot::V(tuple.slice(at, self.words(*value)));
                at += self.words(*value);
                self.set(*value, spot);
                spots.push(spot);
            }
        }
        Ok(spots)
    }
}
