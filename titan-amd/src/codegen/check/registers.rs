//! The checker of the allocation of registers: a symbolic run of the allocated code.
//!
//! The state says which word of which virtual register each register of the machine holds. The code on virtual registers is run beside the
//! allocated code, instruction by instruction; where an instruction reads a word, its register of the machine must hold that word on every
//! way there. Where ways meet, only what is the same on all of them is known. So every use reads its own definition.
//!
//! **Lanes.** An instruction writes the active lanes only. A definition of a register of pieces keeps the others, so it must write to where
//! that register already is. A copy copies the active lanes only. So a copy into a vector register holds its word only until the mask of
//! active lanes changes, and a word is copied away only while the lanes that were written are the active ones. A word of pieces may be written
//! elsewhere first (*fresh*): it must be copied to the rest of the word, which is *old* meanwhile.
//!
//! **Constants.** A register whose only definition moves a constant to it *is* that constant. Allocated code may omit the definition
//! ([`Kind::Rematerialized`]), and read a register of the machine to which an added instruction has moved the same constant. Such a move to a vector
//! register sets the active lanes only, so that it holds until their mask changes, as copies do.
//!
//! It computes no lifetimes, and shares no code with the allocation.

use crate::codegen::machine_ir::{Block, Code, File, Inst, Kind, Operand, Part, Place, Reg};
use crate::isa::{Access, Form, Inline, Operand as Isa};
use std::collections::BTreeMap;

/// A register of the machine, or a lane of a vector register in which a scalar word is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Machine {
    Register(File, u8),
    Lane(u8, u8),
}

/// A word of a virtual register.
type Word = (Reg, u8);

/// What a register of the machine holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// What it held at the start of the kernel.
    Initial,
    /// A word in all lanes that have it. `whole`: the active lanes are still those of its definition, or more than were copied.
    Word { word: Word, copied: bool, recent: bool },
    /// The lanes of a word of pieces that were just written.
    Fresh(Word),
    /// A word of pieces without the lanes that were just written.
    Old(Word),
    /// A constant to which an added instruction has set it.
    Constant(Isa),
}

/// The code on virtual registers, and the constants that some of them are.
#[derive(Clone, Copy, Debug)]
struct Wanted<'a> {
    code: &'a Code,
    constants: &'a BTreeMap<Reg, Isa>,
}

/// The registers of one word that a single instruction defines, as a constant.
fn constants(code: &Code) -> BTreeMap<Reg, Isa> {
    let mut found: BTreeMap<Reg, Option<Isa>> = BTreeMap::new();
    for inst in code.order.iter().flat_map(|block| code.insts(*block)) {
        let value = constant(inst).map(|(_, value)| value);
        for (access, operand) in inst.accesses() {
            if let (Operand::Part(part), true) = (operand, access != Access::Read) {
                let register = code.register(part.reg);
                let one = register.words == 1 && !register.pieces && !found.contains_key(&part.reg);
                found.insert(part.reg, value.filter(|_| one));
            }
        }
    }
    found.into_iter().filter_map(|(reg, value)| Some((reg, value?))).collect()
}

/// What an instruction sets to a constant, if it is a plain move of one.
fn constant(inst: &Inst) -> Option<(&Operand, Isa)> {
    match (&inst.kind, inst.operands.as_slice()) {
        (Kind::Row { row, form: Form::Base, mods }, [to, Operand::Isa(value @ (Isa::Inline(_) | Isa::Literal(_)))])
            if mods.is_empty() && matches!(row.name, "s_mov_b32" | "v_mov_b32") =>
        {
            Some((to, *value))
        }
        (_, _) => None,
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct State(BTreeMap<Machine, Holds>);

/// Checks that allocated code computes what the code on virtual registers does.
///
/// # Errors
/// A description of the first instruction that may read something else than its operand.
pub fn check(virtual_code: &Code, allocated: &Code) -> Result<(), String> {
    if virtual_code.order != allocated.order {
        return Err("the blocks are in another order".to_owned());
    }
    let constants = constants(virtual_code);
    let wanted = Wanted { code: virtual_code, constants: &constants };
    let mut starts: Vec<Option<State>> = vec![None; allocated.blocks.len()];
    if let Some(entry) = allocated.order.first() {
        starts[entry.index()] = Some(initial());
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (position, block) in allocated.order.iter().enumerate() {
            let Some(state) = starts[block.index()].clone() else { continue };
            let end = run(wanted, allocated, *block, state, false)?;
            for next in allocated.successors(position) {
                changed |= meet(&mut starts[next.index()], &end);
            }
        }
    }
    for block in &allocated.order {
        if let Some(state) = starts[block.index()].clone() {
            run(wanted, allocated, *block, state, true)?;
        }
    }
    Ok(())
}

/// The arguments' address, the indices of the workgroup, and the number of the work item.
fn initial() -> State {
    let scalars = (0..5).map(|n| (Machine::Register(File::S, n), Holds::Initial));
    State(scalars.chain([(Machine::Register(File::V, 0), Holds::Initial)]).collect())
}

/// Keeps what is the same in both; returns whether anything was lost.
fn meet(into: &mut Option<State>, from: &State) -> bool {
    let Some(state) = into else {
        *into = Some(from.clone());
        return true;
    };
    let before = state.clone();
    state.0.retain(|machine, holds| match (*holds, from.0.get(machine)) {
        (Holds::Word { word, copied, recent }, Some(Holds::Word { word: other, copied: c, recent: r })) => {
            *holds = Holds::Word { word, copied: copied || *c, recent: recent && *r };
            word == *other
        }
        (a, Some(b)) => a == *b,
        (_, None) => false,
    });
    *state != before
}

fn run(of: Wanted<'_>, allocated: &Code, block: Block, mut state: State, report: bool) -> Result<State, String> {
    let mut wanted = of.code.insts(block).iter();
    for (index, inst) in allocated.insts(block).iter().enumerate() {
        let wrong = |what: String| format!("registers: {}: {}: {what}", Place { block, index }, inst.name());
        if inst.added && inst.kind != Kind::Start {
            match state.copy(inst) {
                Err(what) if report => return Err(wrong(what)),
                Err(_) | Ok(()) => continue,
            }
        }
        if inst.added {
            continue;
        }
        let Some(original) = wanted.next() else { return Err(wrong("is not in the code".to_owned())) };
        if inst.kind == Kind::Rematerialized {
            match constant(original) {
                Some((Operand::Part(part), _)) if of.constants.contains_key(&part.reg) => continue,
                Some(_) | None => return Err(wrong(format!("`{}` defines no constant", original.name()))),
            }
        }
        if inst.kind != original.kind || inst.operands.len() != original.operands.len() {
            return Err(wrong(format!("stands where `{}` was", original.name())));
        }
        match state.step(of, original, inst) {
            Err(what) if report => return Err(wrong(what)),
            Err(_) | Ok(()) => {}
        }
    }
    match wanted.next() {
        Some(inst) => Err(format!("registers: {block}: `{}` is missing", inst.name())),
        None => Ok(state),
    }
}

/// The registers of the machine that an operand names.
fn machine(operand: &Operand) -> Vec<Machine> {
    match operand {
        Operand::Isa(Isa::S(first, n)) => {
            (0..*n).map(|i| Machine::Register(File::S, first.saturating_add(i))).collect()
        }
        Operand::Isa(Isa::V(first, n)) => {
            (0..*n).map(|i| Machine::Register(File::V, first.saturating_add(i))).collect()
        }
        Operand::Isa(Isa::A(first, n)) => {
            (0..*n).map(|i| Machine::Register(File::A, first.saturating_add(i))).collect()
        }
        Operand::Isa(_) | Operand::Part(_) | Operand::To(_) => Vec::new(),
    }
}

fn words(part: Part) -> impl Iterator<Item = Word> {
    (0..part.words).map(move |i| (part.reg, part.first + i))
}

impl State {
    fn holds(&self, machine: Machine, word: Word) -> bool {
        matches!(self.0.get(&machine), Some(Holds::Word { word: held, .. }) if *held == word)
    }

    /// Whether a register of the machine holds a word, or the constant that the word is.
    fn reads(&self, of: Wanted<'_>, machine: Machine, word: Word) -> bool {
        let same = |held: &Holds| match held {
            Holds::Constant(value) => of.constants.get(&word.0) == Some(value),
            Holds::Word { .. } | Holds::Initial | Holds::Fresh(_) | Holds::Old(_) => false,
        };
        self.holds(machine, word) || self.0.get(&machine).is_some_and(same)
    }

    /// Runs an instruction; what it writes is known afterwards even if what it reads is wrong.
    fn step(&mut self, of: Wanted<'_>, wanted: &Inst, inst: &Inst) -> Result<(), String> {
        let code = of.code;
        let mut wrong = None;
        let mut say = |what: String| {
            wrong.get_or_insert(what);
        };
        let accesses: Vec<Access> = wanted.accesses().map(|(access, _)| access).collect();
        for ((operand, own), access) in wanted.operands.iter().zip(&inst.operands).zip(&accesses) {
            let places = machine(own);
            match operand {
                Operand::Part(part) => {
                    if let Err(what) = fits(code, *part, &places) {
                        say(what);
                        continue;
                    }
                    if *access == Access::Write {
                        continue;
                    }
                    for (word, place) in words(*part).zip(&places) {
                        if !self.reads(of, *place, word) {
                            say(format!("reads {} of {} where it may not be", word.1, word.0));
                        }
                    }
                }
                Operand::Isa(_) | Operand::To(_) if operand != own => say("another operand of the machine".to_owned()),
                Operand::Isa(_) => {
                    let named = |m: &Machine| matches!(m, Machine::Register(File::S, 102..));
                    let lost = |m: &Machine| !named(m) && self.0.get(m) != Some(&Holds::Initial);
                    if *access != Access::Write && places.iter().any(lost) {
                        say("reads what the kernel started with where it may not be".to_owned());
                    }
                }
                Operand::To(_) => {}
            }
        }
        let masks =
            inst.accesses().any(|(access, o)| access != Access::Read && matches!(o, Operand::Isa(Isa::S(126, _))))
                || inst.name().contains("saveexec");
        for ((operand, own), access) in wanted.operands.iter().zip(&inst.operands).zip(&accesses) {
            if *access != Access::Read {
                self.write(code, operand, &machine(own), wanted.kind == Kind::Start);
            }
        }
        if masks {
            self.new_lanes();
        }
        wrong.map_or(Ok(()), Err)
    }

    fn write(&mut self, code: &Code, operand: &Operand, places: &[Machine], start: bool) {
        let Operand::Part(part) = operand else {
            for place in places {
                self.0.remove(place);
            }
            return;
        };
        let register = code.register(part.reg);
        for (word, place) in words(*part).zip(places) {
            if let Machine::Register(File::V, n) = place {
                self.0.retain(|other, _| !matches!(other, Machine::Lane(bank, _) if bank == n));
            }
            // A scalar register is written whole, wherever it is; of a vector register of pieces the other lanes are kept.
            let elsewhere = register.pieces && !start && register.file != File::S && !self.holds(*place, word);
            for (other, holds) in &mut self.0 {
                if matches!(holds, Holds::Word { word: held, .. } if *held == word) && other != place {
                    *holds = Holds::Old(word);
                }
            }
            if elsewhere {
                self.0.insert(*place, Holds::Fresh(word));
            } else {
                // Copies of an earlier value are worthless.
                self.0.retain(|_, holds| !matches!(holds, Holds::Old(old) | Holds::Fresh(old) if *old == word));
                self.0.insert(*place, Holds::Word { word, copied: false, recent: true });
            }
        }
    }

    /// The mask of active lanes changes.
    fn new_lanes(&mut self) {
        self.0.retain(|machine, holds| match (machine, holds) {
            // Scalar words, also those in lanes, do not depend on it.
            (Machine::Register(File::S, _) | Machine::Lane(..), _) => true,
            (Machine::Register(File::V | File::A, _), Holds::Word { copied, recent, .. }) => {
                *recent = false;
                !*copied
            }
            (Machine::Register(File::V | File::A, _), Holds::Fresh(_) | Holds::Constant(_)) => false,
            (Machine::Register(File::V | File::A, _), Holds::Initial | Holds::Old(_)) => true,
        });
    }

    /// Runs a copy that the allocation has added.
    fn copy(&mut self, inst: &Inst) -> Result<(), String> {
        if let Some((to, value)) = constant(inst) {
            return self.set(to, value);
        }
        let [to, from] = places(inst)?;
        // A vector register with scalar words in its lanes holds nothing else.
        if let Machine::Lane(bank, _) = to {
            self.0.remove(&Machine::Register(File::V, bank));
        }
        let held = self.0.get(&from).copied();
        let out = match (inst.name(), held) {
            ("v_readlane_b32" | "v_writelane_b32", Some(Holds::Word { word, .. })) => {
                Ok(Holds::Word { word, copied: false, recent: true })
            }
            ("v_accvgpr_read_b32", Some(Holds::Word { word, .. })) => {
                Ok(Holds::Word { word, copied: true, recent: false })
            }
            ("v_accvgpr_write_b32", Some(Holds::Word { word, recent: true, .. })) => {
                Ok(Holds::Word { word, copied: false, recent: true })
            }
            ("v_accvgpr_write_b32", Some(Holds::Fresh(word))) if self.0.get(&to) == Some(&Holds::Old(word)) => {
                self.0.remove(&from);
                Ok(Holds::Word { word, copied: false, recent: true })
            }
            (_, _) => Err("copies what it may not".to_owned()),
        };
        if let Machine::Register(File::V, n) = to {
            self.0.retain(|other, _| !matches!(other, Machine::Lane(bank, _) if *bank == n));
        }
        match out {
            Ok(holds) => {
                self.0.insert(to, holds);
                Ok(())
            }
            Err(what) => {
                self.0.remove(&to);
                Err(what)
            }
        }
    }
}

impl State {
    /// Sets a register of the machine to a constant.
    fn set(&mut self, to: &Operand, value: Isa) -> Result<(), String> {
        let [to] = machine(to)[..] else { return Err("sets no register".to_owned()) };
        if let Machine::Register(File::V, n) = to {
            self.0.retain(|other, _| !matches!(other, Machine::Lane(bank, _) if *bank == n));
        }
        self.0.insert(to, Holds::Constant(value));
        Ok(())
    }
}

/// Where a copy goes, and where it comes from.
fn places(inst: &Inst) -> Result<[Machine; 2], String> {
    let one = |operand: Option<&Operand>| match operand.map(machine).as_deref() {
        Some([place]) => Ok(*place),
        Some(_) | None => Err("an added instruction that is no copy of one word".to_owned()),
    };
    let lane = || match inst.operands.get(2) {
        Some(Operand::Isa(Isa::Inline(Inline::Int(lane @ 0..)))) => Ok(lane.unsigned_abs()),
        Some(_) | None => Err("a lane that is not known".to_owned()),
    };
    let in_lane = |place: Machine| match place {
        Machine::Register(File::V, n) => Ok(Machine::Lane(n, lane()?)),
        Machine::Register(File::S | File::A, _) | Machine::Lane(..) => Err("a lane of no vector register".to_owned()),
    };
    let (to, from) = (one(inst.operands.first())?, one(inst.operands.get(1))?);
    match inst.name() {
        "v_readlane_b32" => Ok([to, in_lane(from)?]),
        "v_writelane_b32" => Ok([in_lane(to)?, from]),
        _ if inst.operands.len() == 2 => Ok([to, from]),
        _ => Err("an added instruction that is no copy".to_owned()),
    }
}

/// Whether registers of the machine are ones that a part of a virtual register may have.
fn fits(code: &Code, part: Part, places: &[Machine]) -> Result<(), String> {
    let register = code.register(part.reg);
    let mut numbers = Vec::new();
    for place in places {
        let Machine::Register(file, n) = place else { return Err("an operand in a lane".to_owned()) };
        numbers.push((*file, *n));
    }
    let (Some((file, first)), true) = (numbers.first(), numbers.len() == usize::from(part.words)) else {
        return Err(format!("{} has {} words", part.reg, part.words));
    };
    let file_fits = match register.file {
        File::S => *file == File::S && numbers.iter().all(|(_, n)| (5..102).contains(n)),
        File::V => *file == File::V && numbers.iter().all(|(_, n)| *n >= 1) || *file == File::A,
        File::A => *file == File::A,
    };
    // The start of a lifetime names the place where the register is kept.
    let whole = part.first == 0 && part.words == register.words;
    let aligned = !whole || first.is_multiple_of(register.align);
    if file_fits && aligned { Ok(()) } else { Err(format!("{} is in registers that it cannot have", part.reg)) }
}
