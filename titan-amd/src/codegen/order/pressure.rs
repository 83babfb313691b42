//! The registers that live while a block is put in order.

use crate::codegen::machine_ir::{Code, File, Inst, Kind, Operand, Reg};
use crate::isa::Access;

/// The words that live, by file: scalar registers, and vector registers of both files.
pub(super) type Words = [u32; 2];

const fn index(file: File) -> usize {
    match file {
        File::S => 0,
        File::V | File::A => 1,
    }
}

/// The registers of a block whose lifetimes begin or end there.
#[derive(Clone, Debug)]
pub(super) struct Pressure<'a> {
    code: &'a Code,
    /// The number of instructions that are left and have to do with each register, by its number; one more if it is read behind the block.
    left: Vec<u32>,
    lives: Vec<bool>,
    pub(super) words: Words,
}

/// The registers of an instruction, each once, with whether it reads it, or keeps a part of it.
fn touched(code: &Code, inst: &Inst) -> Vec<(Reg, bool)> {
    let mut all: Vec<(Reg, bool)> = Vec::new();
    for (access, operand) in inst.accesses() {
        let Operand::Part(part) = operand else { continue };
        let keeps = code.register(part.reg).pieces && inst.kind != Kind::Start;
        let reads = access != Access::Write || keeps;
        match all.iter_mut().find(|(reg, _)| *reg == part.reg) {
            Some((_, known)) => *known |= reads,
            None => all.push((part.reg, reads)),
        }
    }
    all
}

impl<'a> Pressure<'a> {
    /// Those at the start of a block, of which these registers live at the end.
    pub(super) fn new(code: &'a Code, insts: &[Inst], ends: &[Reg]) -> Pressure<'a> {
        let mut found = Pressure {
            code,
            left: vec![0; code.registers.len()],
            lives: vec![false; code.registers.len()],
            words: [0; 2],
        };
        let mut begins: Vec<bool> = vec![false; code.registers.len()];
        for inst in insts {
            for (reg, reads) in touched(code, inst) {
                let is_first = found.left[reg.index()] == 0;
                found.left[reg.index()] += 1;
                begins[reg.index()] |= is_first && !reads;
                if is_first && reads {
                    found.begin(reg);
                }
            }
        }
        for reg in ends {
            found.left[reg.index()] += 1;
            if !begins[reg.index()] {
                found.begin(*reg);
            }
        }
        found
    }

    fn begin(&mut self, reg: Reg) {
        if !std::mem::replace(&mut self.lives[reg.index()], true) {
            let register = self.code.register(reg);
            self.words[index(register.file)] += u32::from(register.words);
        }
    }

    /// The words that begin to live with an instruction, and those that end with it.
    pub(super) fn change(&self, inst: &Inst) -> [Words; 2] {
        let (mut more, mut fewer) = ([0; 2], [0; 2]);
        for (reg, _) in touched(self.code, inst) {
            let register = self.code.register(reg);
            let words = u32::from(register.words);
            if !self.lives[reg.index()] {
                more[index(register.file)] += words;
            }
            if self.left[reg.index()] == 1 {
                fewer[index(register.file)] += words;
            }
        }
        [more, fewer]
    }

    /// The effect of an instruction.
    pub(super) fn step(&mut self, inst: &Inst) {
        for (reg, _) in touched(self.code, inst) {
            self.begin(reg);
        }
        for (reg, _) in touched(self.code, inst) {
            self.left[reg.index()] -= 1;
            if self.left[reg.index()] == 0 && std::mem::replace(&mut self.lives[reg.index()], false) {
                let register = self.code.register(reg);
                self.words[index(register.file)] -= u32::from(register.words);
            }
        }
    }
}
