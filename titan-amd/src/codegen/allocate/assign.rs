//! Assignment of registers: each virtual register gets consecutive registers of its file, which no other one has during its lifetime.
//!
//! Registers are assigned in the order of the start of their lifetimes, each to the lowest place that is free during all of its ranges; so
//! the holes of lifetimes are used. Tuples begin at a multiple of their alignment.
//!
//! **Example.** `%0` lives in 1..=4 and 9..=12, `%1` in 3..=6, `%2` in 5..=8: `%0` gets v1, `%1` v2, and `%2` v1 in the hole of `%0`.
//!
//! A copy costs nothing if its two registers are one: so a register is placed where the other one of a copy is, if that is free.
//!
//! Nothing is evicted: where no place is free, the caller learns the point, and spills registers that live there or gives up.

use super::live::{Lives, Range};
use crate::codegen::machine_ir::{Code, File, Operand, Part, Reg};

/// The registers of a file that may be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    pub(crate) first: u16,
    pub(crate) end: u16,
}

/// The assignment of some code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assignment {
    /// The first register of each virtual register, by number; of those without a lifetime, nothing.
    pub(crate) places: Vec<Option<u8>>,
    /// The number of registers that are used, by file.
    pub(crate) used: [u16; 3],
}

/// No place is free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full {
    pub(crate) file: File,
    /// The register without a place.
    pub(crate) reg: Reg,
}

/// The number of a file.
pub(crate) const fn index(file: File) -> usize {
    match file {
        File::S => 0,
        File::V => 1,
        File::A => 2,
    }
}

/// The ranges in which a register of the machine is taken, in ascending order.
#[derive(Clone, Debug, Default)]
struct Taken(Vec<Range>);

impl Taken {
    fn overlaps(&self, range: Range) -> bool {
        let after = self.0.partition_point(|taken| taken.to < range.from);
        self.0.get(after).is_some_and(|taken| taken.from <= range.to)
    }

    fn add(&mut self, range: Range) {
        let at = self.0.partition_point(|taken| taken.from < range.from);
        self.0.insert(at, range);
    }
}

/// The copies of each register: the part of it, and the part of the other register.
fn copies(code: &Code) -> Vec<Vec<(Part, Part)>> {
    let mut all = vec![Vec::new(); code.registers.len()];
    for block in &code.order {
        for inst in code.insts(*block) {
            let moves = matches!(inst.name(), "v_mov_b32" | "v_mov_b64" | "s_mov_b32" | "s_mov_b64");
            if let (true, [Operand::Part(a), Operand::Part(b)]) = (moves, inst.operands.as_slice())
                && code.register(a.reg).file == code.register(b.reg).file
            {
                all[a.reg.index()].push((*a, *b));
                all[b.reg.index()].push((*b, *a));
            }
        }
    }
    all
}

/// Assigns registers of the files that are available.
pub(crate) fn assign(code: &Code, lives: &Lives, available: [Available; 3]) -> Result<Assignment, Full> {
    let mut order: Vec<usize> = (0..code.registers.len()).filter(|r| !lives.ranges[*r].is_empty()).collect();
    order.sort_by_key(|r| (lives.ranges[*r].first().map_or(0, |range| range.from), *r));
    let mut taken: [Vec<Taken>; 3] = available.map(|file| vec![Taken::default(); usize::from(file.end)]);
    let copies = copies(code);
    let mut out = Assignment { places: vec![None; code.registers.len()], used: [0; 3] };
    for r in order {
        let register = code.registers[r];
        let file = index(register.file);
        let Available { first, end } = available[file];
        let align = u16::from(register.align.max(1));
        let words = u16::from(register.words);
        let fits = |place: u16| {
            (place..place + words)
                .all(|word| !lives.ranges[r].iter().any(|range| taken[file][usize::from(word)].overlaps(*range)))
        };
        let last = (end + 1).saturating_sub(words);
        let beside = copies[r].iter().filter_map(|(own, other)| {
            let place = u16::from(out.places[other.reg.index()]?) + u16::from(other.first);
            let place = place.checked_sub(own.first.into())?;
            (place >= first && place < last && place.is_multiple_of(align)).then_some(place)
        });
        let lowest = (first.next_multiple_of(align)..last).step_by(align.into());
        let place = beside.chain(lowest).find(|place| fits(*place));
        let place = place.and_then(|place| Some((place, u8::try_from(place).ok()?)));
        let Some((place, number)) = place else { return Err(Full { file: register.file, reg: Reg::new(r) }) };
        for word in place..place + words {
            for range in &lives.ranges[r] {
                taken[file][usize::from(word)].add(*range);
            }
        }
        out.places[r] = Some(number);
        out.used[file] = out.used[file].max(place + words);
    }
    Ok(out)
}
