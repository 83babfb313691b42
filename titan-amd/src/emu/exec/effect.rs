//! The effects of memory operations: what they do to memory when they are performed, and to registers and the local data share when they
//! complete.

use super::transfer::{Action, At, AtomicData, Data, Narrow, Piece, Transfer};
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::l1::L1;
use crate::emu::memory::{Memory, code_of};
use crate::emu::op::File;
use crate::emu::shaded::{self, Parts};
use crate::emu::shadow::ones;
use crate::emu::vectors::Origin;
use crate::emu::wave::{Serial, Wave};
use titan_sim::engine::{Fault, Space};

/// All that operations have effects on.
pub(crate) struct Effects<'a> {
    /// The spaces of the engine, of which the first is the local data share.
    pub(crate) spaces: &'a mut [Space],
    pub(crate) lds_parts: &'a mut Parts,
    pub(crate) waves: &'a mut [Wave],
    pub(crate) memory: &'a mut Memory,
    pub(crate) l1: &'a mut L1,
}

/// Whether stores are for everyone, or for the workgroup only until they complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible {
    Everywhere,
    InWorkgroup,
}

impl Transfer {
    /// Performs the operation on memory without completing it: the workgroup's later operations come after it.
    pub(crate) fn perform_early(&self, effects: &mut Effects<'_>) -> Result<(), Fail> {
        let read = self.perform(effects, Visible::InWorkgroup)?;
        effects.l1.perform(self.serial, read);
        Ok(())
    }

    /// Completes the operation.
    pub(crate) fn complete(&self, effects: &mut Effects<'_>) -> Result<(), Fail> {
        let data = match effects.l1.take(self.serial) {
            Some(data) => {
                self.publish(effects)?;
                data
            }
            None => self.perform(effects, Visible::Everywhere)?,
        };
        self.finish(effects, &data)
    }

    /// Reads from memory what the operation reads there, and writes what it writes there. Loads into the local data share do not write to
    /// it before they complete.
    fn perform(&self, effects: &mut Effects<'_>, visible: Visible) -> Result<Data, Fail> {
        let mut read = Data::default();
        match &self.action {
            Action::Load { .. } | Action::ToLds { .. } => {
                for piece in &self.pieces {
                    let (mut bytes, mut shadows) = ([0; 16], [0; 16]);
                    let n = usize::from(piece.bytes);
                    self.read(effects, piece, &mut bytes[..n], &mut shadows[..n])?;
                    read.push(&bytes[..n], &shadows[..n]);
                }
            }
            Action::Store { data, origin } => {
                let mut start = 0;
                for piece in &self.pieces {
                    let part = data.part(start, piece.bytes.into());
                    start += usize::from(piece.bytes);
                    self.write(effects, piece, part, visible)?;
                }
                if let (Some(origin), false) = (origin, data.shadows.is_empty()) {
                    self.note(effects, data, *origin);
                }
            }
            Action::Atomic { data, .. } => {
                for (piece, data) in self.pieces.iter().zip(data) {
                    self.exchange(effects, piece, data, &mut read)?;
                }
            }
            Action::Scalar { words, address, inside, .. } => {
                for i in 0..u64::from(*words) {
                    let (mut bytes, mut shadows) = ([0; 4], [0; 4]);
                    if i < u64::from(*inside) {
                        let at = address + 4 * i;
                        let done = effects.memory.load_bytes(at, &mut bytes, &mut shadows);
                        done.map_err(|f| self.fail(effects.memory.space(), &f, 0))?;
                    }
                    read.push(&bytes, &shadows);
                }
            }
            Action::Values { .. } | Action::Clock { .. } => {}
        }
        Ok(read)
    }

    /// An atomic operation on one piece.
    fn exchange(
        &self,
        effects: &mut Effects<'_>,
        piece: &Piece,
        data: &AtomicData,
        read: &mut Data,
    ) -> Result<(), Fail> {
        let Action::Atomic { f, swaps, mode, .. } = &self.action else { return Ok(()) };
        let n = usize::from(piece.bytes);
        if let At::Global(address) = piece.at {
            let settled = effects.l1.settle(effects.memory, address, n);
            settled.map_err(|fault| self.fail(effects.memory.space(), &fault, piece.lane))?;
        }
        let (mut bytes, mut shadows) = ([0; 8], [0; 8]);
        self.read(effects, piece, &mut bytes[..n], &mut shadows[..n])?;
        let (old, undefined) = (u64::from_le_bytes(bytes), u64::from_le_bytes(shadows));
        let new = f(*mode, old, data.values[0], data.values[1]).to_le_bytes();
        let shadow = match (swaps, undefined | data.shadows[0] | data.shadows[1]) {
            (true, _) => data.shadows[0],
            (false, 0) => 0,
            (false, _) => ones(8 * u32::from(piece.bytes)),
        };
        self.write(effects, piece, (&new[..n], &shadow.to_le_bytes()[..n]), Visible::Everywhere)?;
        read.push(&bytes[..n], &shadows[..n]);
        Ok(())
    }

    /// Makes stores that were visible in the workgroup visible everywhere.
    fn publish(&self, effects: &mut Effects<'_>) -> Result<(), Fail> {
        let Action::Store { data, .. } = &self.action else { return Ok(()) };
        let mut start = 0;
        for piece in &self.pieces {
            let part = data.part(start, piece.bytes.into());
            start += usize::from(piece.bytes);
            if let At::Global(address) = piece.at {
                let done = effects.l1.complete(effects.memory, self.serial, address, part);
                done.map_err(|f| self.fail(effects.memory.space(), &f, piece.lane))?;
            }
        }
        Ok(())
    }

    /// Writes to registers and to the local data share what was read.
    fn finish(&self, effects: &mut Effects<'_>, read: &Data) -> Result<(), Fail> {
        let id = self.serial;
        match &self.action {
            Action::Load { file, first, narrow } => self.fill(effects, (*file, *first), read, *narrow),
            Action::Atomic { result: Some(to), .. } => self.fill(effects, *to, read, Narrow::No),
            Action::ToLds { targets } => {
                let mut start = 0;
                for (piece, target) in self.pieces.iter().zip(targets) {
                    let part = read.part(start, piece.bytes.into());
                    start += usize::from(piece.bytes);
                    self.write(effects, &Piece { at: At::Lds(*target), ..*piece }, part, Visible::Everywhere)?;
                }
            }
            Action::Values { file, first, lanes, values, shadows } => {
                let Some(wave) = effects.waves.get_mut(self.wave) else { return Ok(()) };
                let file = wave.file_mut(*file);
                if let Some(register) = file.complete((*first).into(), *lanes, id) {
                    super::lanes_of(*lanes).for_each(|l| register[l] = values[l]);
                }
                if let Some((shadows, origin)) = shadows {
                    file.set_shadows((*first).into(), *lanes, Some(*origin), |l| shadows[l]);
                }
            }
            Action::Scalar { first, words, .. } => {
                let word = |part: &[u8]| part.iter().rev().fold(0_u32, |all, b| all << 8 | u32::from(*b));
                let pair = |i: usize| {
                    let (bytes, shadows) = read.part(4 * i, 4);
                    (word(bytes), word(shadows))
                };
                let all: Vec<(u32, u32)> = (0..usize::from(*words)).map(pair).collect();
                if let Some(wave) = effects.waves.get_mut(self.wave) {
                    wave.complete_scalar(*first, &all, self.pc);
                }
            }
            #[expect(clippy::cast_possible_truncation, reason = "the words of a clock")]
            Action::Clock { first, value } => {
                if let Some(wave) = effects.waves.get_mut(self.wave) {
                    wave.complete_scalar(*first, &[(*value as u32, 0), ((*value >> 32) as u32, 0)], self.pc);
                }
            }
            Action::Store { .. } | Action::Atomic { result: None, .. } => {}
        }
        // Registers of lanes without a piece are released too, as for atomics that are out of range.
        if let (Some((file, first, count, lanes)), Some(wave)) = (self.reserved, effects.waves.get_mut(self.wave)) {
            for r in first..=first + (count - 1) {
                wave.file_mut(file).release(r.into(), lanes, id);
            }
        }
        Ok(())
    }

    /// Fills the registers of each piece's lane.
    fn fill(&self, effects: &mut Effects<'_>, to: (File, u8), read: &Data, narrow: Narrow) {
        let Some(wave) = effects.waves.get_mut(self.wave) else { return };
        let mut start = 0;
        for piece in &self.pieces {
            let (bytes, shadows) = read.part(start, piece.bytes.into());
            start += usize::from(piece.bytes);
            let first = usize::from(to.1) + usize::from(piece.register);
            for (r, (bytes, shadows)) in (first..).zip(bytes.chunks(4).zip(shadows.chunks(4))) {
                let (value, shadow) = (extended(bytes, narrow), extended(shadows, narrow));
                fill_one(wave.file_mut(to.0), r, piece.lane, (value, shadow), self.serial, self.pc);
            }
        }
    }

    fn fail(&self, space: &Space, fault: &Fault, lane: u8) -> Fail {
        let fail = Fail::new(code_of(fault), space.explain(fault)).lane(lane.into());
        fail.or_at(self.pc, self.wave)
    }

    fn read(&self, effects: &mut Effects<'_>, piece: &Piece, bytes: &mut [u8], shadows: &mut [u8]) -> Result<(), Fail> {
        match piece.at {
            At::Outside => {
                bytes.fill(0);
                shadows.fill(0);
                Ok(())
            }
            At::Private(offset) => {
                let len = bytes.len();
                let lane = effects.waves.get_mut(self.wave).and_then(|w| w.private.get_mut(usize::from(piece.lane)));
                let size = lane.as_ref().map_or(0, |p| p.size());
                lane.and_then(|p| p.read(offset, bytes, shadows)).ok_or_else(|| self.outside(piece, offset, len, size))
            }
            At::Global(address) => {
                let done = effects.l1.load(effects.memory, address, bytes, shadows);
                done.map_err(|f| self.fail(effects.memory.space(), &f, piece.lane))
            }
            At::Lds(address) => {
                let Some(space) = effects.spaces.first() else { return Ok(()) };
                let done = shaded::read(space, effects.lds_parts, address, bytes, shadows);
                done.map(drop).map_err(|f| self.fail(space, &f, piece.lane))
            }
        }
    }

    fn write(
        &self,
        effects: &mut Effects<'_>,
        piece: &Piece,
        (bytes, shadows): (&[u8], &[u8]),
        visible: Visible,
    ) -> Result<(), Fail> {
        match piece.at {
            At::Outside => Ok(()),
            At::Private(offset) => {
                let lane = effects.waves.get_mut(self.wave).and_then(|w| w.private.get_mut(usize::from(piece.lane)));
                let size = lane.as_ref().map_or(0, |p| p.size());
                let done = lane.and_then(|p| p.write(offset, bytes, shadows));
                done.ok_or_else(|| self.outside(piece, offset, bytes.len(), size))
            }
            At::Global(address) => {
                let Effects { l1, memory, .. } = effects;
                let done = match visible {
                    Visible::Everywhere => l1.store(memory, address, (bytes, shadows)),
                    Visible::InWorkgroup => l1.store_ahead(memory, self.serial, address, (bytes, shadows)),
                };
                done.map_err(|f| self.fail(memory.space(), &f, piece.lane))
            }
            At::Lds(address) => {
                let Some(space) = effects.spaces.first_mut() else { return Ok(()) };
                let done = shaded::write(space, effects.lds_parts, address, bytes, shadows);
                done.map_err(|f| self.fail(space, &f, piece.lane))
            }
        }
    }

    /// The error for an access outside of a lane's private memory.
    #[cold]
    fn outside(&self, piece: &Piece, offset: u64, len: usize, size: usize) -> Fail {
        let message =
            format!("{len} bytes at {offset:#x} of private memory, of which the work item was given {size} bytes");
        let help = "a kernel with recursion, calls through pointers or arrays of variable size gets `Options::stack_bytes`: HIP's \
                    `hipLimitStackSize`";
        Fail::new(ErrorCode::OutOfBounds, message).lane(piece.lane.into()).help(help).or_at(self.pc, self.wave)
    }

    /// Records which global bytes were stored with undefined bits, for the error when they are read.
    #[cold]
    fn note(&self, effects: &mut Effects<'_>, data: &Data, origin: Origin) {
        let mut start = 0;
        for piece in &self.pieces {
            let (_, shadows) = data.part(start, piece.bytes.into());
            start += usize::from(piece.bytes);
            if let At::Global(address) = piece.at {
                let undefined = (address..).zip(shadows).filter(|(_, s)| **s != 0);
                undefined.for_each(|(at, _)| effects.memory.note(at, self.pc, origin));
            }
        }
    }
}

/// Up to four bytes as a word: of a value, or of its shadow, in which a sign that is undefined spreads as well.
fn extended(bytes: &[u8], narrow: Narrow) -> u32 {
    let word = bytes.iter().rev().fold(0_u32, |all, b| all << 8 | u32::from(*b));
    let free = 32 - 8 * u32::try_from(bytes.len()).unwrap_or(4);
    match narrow {
        Narrow::No | Narrow::Zero => word,
        Narrow::Sign => ((word << free).cast_signed() >> free).cast_unsigned(),
        Narrow::High => word << 16,
    }
}

/// Fills one register of a lane.
fn fill_one(
    file: &mut crate::emu::vectors::Vectors,
    r: usize,
    lane: u8,
    (value, shadow): (u32, u32),
    id: Serial,
    pc: u64,
) {
    if let Some(register) = file.complete(r, 1 << lane, id) {
        register[usize::from(lane)] = value;
        if shadow != 0 {
            file.set_shadows(r, 1 << lane, Some(Origin::Loaded(pc)), |_| shadow);
        }
    }
}
