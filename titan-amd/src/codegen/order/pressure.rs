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

/// A register that an instruction has to do with.
#[derive(Clone, Copy, Debug)]
struct Touch {
    reg: Reg,
    /// Whether it is read, or a part of it kept.
    reads: bool,
    file: usize,
    words: u32,
}

/// The registers of a block whose lifetimes begin or end there.
#[derive(Clone, Debug)]
pub(super) struct Pressure {
    /// The registers of each instruction, each once.
    touched: Vec<Vec<Touch>>,
    /// The number of instructions that are left and have to do with each register, by its number; one more if it is read behind the block.
    left: Vec<u32>,
    lives: Vec<bool>,
    pub(super) words: Words,
}

fn touched(code: &Code, inst: &Inst) -> Vec<Touch> {
    let mut all: Vec<Touch> = Vec::new();
    for (access, operand) in inst.accesses() {
        let Operand::Part(part) = operand else { continue };
        let register = code.register(part.reg);
        let keeps = register.pieces && inst.kind != Kind::Start;
        let reads = access != Access::Write || keeps;
        match all.iter_mut().find(|touch| touch.reg == part.reg) {
            Some(known) => known.reads |= reads,
            None => {
                all.push(Touch { reg: part.reg, reads, file: index(register.file), words: register.words.into() });
            }
        }
    }
    all
}

impl Pressure {
    /// Those at the start of a block, of which these registers live at the end.
    pub(super) fn new(code: &Code, insts: &[Inst], ends: &[Reg]) -> Pressure {
        let n = code.registers.len();
        let touched: Vec<Vec<Touch>> = insts.iter().map(|inst| touched(code, inst)).collect();
        let mut found = Pressure { touched: Vec::new(), left: vec![0; n], lives: vec![false; n], words: [0; 2] };
        let mut begins: Vec<bool> = vec![false; n];
        for touch in touched.iter().flatten() {
            let at = touch.reg.index();
            let is_first = found.left[at] == 0;
            found.left[at] += 1;
            begins[at] |= is_first && !touch.reads;
            if is_first && touch.reads {
                found.begin(*touch);
            }
        }
        for reg in ends {
            found.left[reg.index()] += 1;
            if !begins[reg.index()] {
                let register = code.register(*reg);
                let (file, words) = (index(register.file), register.words.into());
                found.begin(Touch { reg: *reg, reads: true, file, words });
            }
        }
        Pressure { touched, ..found }
    }

    fn begin(&mut self, touch: Touch) {
        if !std::mem::replace(&mut self.lives[touch.reg.index()], true) {
            self.words[touch.file] += touch.words;
        }
    }

    /// The words that begin to live with an instruction, by its number, and those that end with it.
    pub(super) fn change(&self, at: usize) -> [Words; 2] {
        let (mut more, mut fewer) = ([0; 2], [0; 2]);
        for touch in &self.touched[at] {
            if !self.lives[touch.reg.index()] {
                more[touch.file] += touch.words;
            }
            if self.left[touch.reg.index()] == 1 {
                fewer[touch.file] += touch.words;
            }
        }
        [more, fewer]
    }

    /// The effect of an instruction.
    pub(super) fn step(&mut self, at: usize) {
        for touch in self.touched[at].clone() {
            self.begin(touch);
            let left = &mut self.left[touch.reg.index()];
            *left -= 1;
            if *left == 0 && std::mem::replace(&mut self.lives[touch.reg.index()], false) {
                self.words[touch.file] -= touch.words;
            }
        }
    }
}
