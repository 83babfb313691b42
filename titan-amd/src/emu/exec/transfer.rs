//! The effect of a memory operation at its completion: addresses and data were captured when it was issued.

use crate::emu::atomic::AtomicFn;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::lane::Mode;
use crate::emu::memory::{Memory, code_of};
use crate::emu::op::File;
use crate::emu::wave::{Lanes, Serial, Wave};
use titan_sim::engine::Space;

/// The location of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    Global(u64),
    Lds(u64),
    /// An address in the lane's private memory.
    Private(u64),
    /// Outside of a buffer's range: reads return zero, writes are dropped.
    Outside,
}

impl At {
    /// The address in the local data share, if it is there.
    pub(crate) const fn lds(self) -> Option<u64> {
        match self {
            At::Lds(address) => Some(address),
            At::Global(_) | At::Private(_) | At::Outside => None,
        }
    }
}

/// Contiguous bytes of one lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) lane: u8,
    /// The first register, relative to that of the tuple.
    pub(crate) register: u8,
    pub(crate) bytes: u8,
    pub(crate) at: At,
}

/// The way in which fewer than 32 bits fill a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Narrow {
    No,
    Zero,
    Sign,
    /// The upper half; the lower becomes zero, as on all machines with error correction (ISA §9.1.6).
    High,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Load {
        file: File,
        first: u8,
        narrow: Narrow,
    },
    /// The bytes of each piece, one after the other.
    Store {
        data: Vec<u8>,
    },
    /// The data of each piece, and the destination of the old value.
    Atomic {
        f: AtomicFn,
        mode: Mode,
        data: Vec<[u64; 2]>,
        result: Option<(File, u8)>,
    },
    /// The address in the local data share of each piece.
    ToLds {
        targets: Vec<u64>,
    },
    /// Values that are not read from memory.
    Values {
        file: File,
        first: u8,
        lanes: u64,
        values: Box<Lanes>,
    },
    /// Loads scalar registers from memory; words outside of a buffer are zero.
    Scalar {
        first: u8,
        words: u8,
        address: u64,
        inside: u8,
    },
    /// Reads a clock.
    Clock {
        first: u8,
        value: u64,
    },
}

/// An operation in flight.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    /// The number of the operation, once it is issued.
    pub(crate) serial: Serial,
    pub(crate) wave: usize,
    pub(crate) pc: u64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) action: Action,
    /// The registers that its completion releases: file, first, number, lanes.
    pub(crate) reserved: Option<(File, u8, u8, u64)>,
}

impl Transfer {
    /// Whether it writes to the local data share.
    pub(crate) fn touches_lds(&self) -> bool {
        match &self.action {
            Action::Store { .. } | Action::Atomic { .. } => self.pieces.iter().any(|p| p.at.lds().is_some()),
            Action::ToLds { .. } => true,
            Action::Load { .. } | Action::Values { .. } | Action::Scalar { .. } | Action::Clock { .. } => false,
        }
    }

    /// The contents of bytes of the local data share after its completion, and which of them are known.
    pub(crate) fn foresee(&self, address: u64, bytes: &mut [u8], known: &mut [bool]) {
        let mut put = |at: u64, n: u64, data: Option<&[u8]>| {
            for (i, place) in (0..n).filter_map(|i| Some((i, (at + i).checked_sub(address)?))) {
                let Some(byte) = usize::try_from(place).ok().and_then(|p| bytes.get_mut(p)) else { continue };
                let value = data.and_then(|d| d.get(usize::try_from(i).ok()?));
                *byte = value.copied().unwrap_or(0);
                known[usize::try_from(place).unwrap_or(0)] = value.is_some();
            }
        };
        match &self.action {
            Action::Store { data } => {
                let mut rest = &data[..];
                for piece in &self.pieces {
                    let (bytes, tail) = rest.split_at(piece.bytes.into());
                    rest = tail;
                    piece.at.lds().into_iter().for_each(|at| put(at, piece.bytes.into(), Some(bytes)));
                }
            }
            Action::Atomic { .. } => {
                let pieces = self.pieces.iter().filter_map(|p| Some((p.at.lds()?, p.bytes)));
                pieces.for_each(|(at, n)| put(at, n.into(), None));
            }
            Action::ToLds { targets } => targets.iter().for_each(|at| put(*at, 4, None)),
            Action::Load { .. } | Action::Values { .. } | Action::Scalar { .. } | Action::Clock { .. } => {}
        }
    }

    /// Applies the effect of the operation.
    pub(crate) fn apply(&self, spaces: &mut [Space], waves: &mut [Wave], memory: &mut Memory) -> Result<(), Fail> {
        let id = self.serial;
        let mut places = Places { spaces, memory, pc: self.pc, wave: self.wave };
        let Some(wave) = waves.get_mut(self.wave) else { return Ok(()) };
        match &self.action {
            Action::Load { file, first, narrow } => {
                for piece in &self.pieces {
                    let mut bytes = [0; 16];
                    let bytes = &mut bytes[..piece.bytes.into()];
                    places.read(wave, piece, bytes)?;
                    fill(wave, (*file, *first), piece, bytes, *narrow, id);
                }
            }
            Action::Store { data } => {
                let mut rest = &data[..];
                for piece in &self.pieces {
                    let (bytes, tail) = rest.split_at(piece.bytes.into());
                    places.write(wave, piece, bytes)?;
                    rest = tail;
                }
            }
            Action::Atomic { f, mode, data, result } => {
                for (piece, data) in self.pieces.iter().zip(data) {
                    let mut bytes = [0; 8];
                    let n = usize::from(piece.bytes);
                    places.read(wave, piece, &mut bytes[..n])?;
                    let old = u64::from_le_bytes(bytes);
                    let new = f(*mode, old, data[0], data[1]).to_le_bytes();
                    places.write(wave, piece, &new[..n])?;
                    if let Some(to) = result {
                        fill(wave, *to, piece, &bytes[..n], Narrow::No, id);
                    }
                }
            }
            Action::ToLds { targets } => {
                for (piece, target) in self.pieces.iter().zip(targets) {
                    let mut bytes = [0; 4];
                    places.read(wave, piece, &mut bytes)?;
                    places.write(wave, &Piece { at: At::Lds(*target), ..*piece }, &bytes)?;
                }
            }
            Action::Values { file, first, lanes, values } => {
                if let Some(register) = wave.file_mut(*file).complete((*first).into(), *lanes, id) {
                    super::vector::lanes_of(*lanes).for_each(|l| register[l] = values[l]);
                }
            }
            Action::Scalar { first, words, address, inside } => {
                let mut all = [0; 16];
                for (i, word) in (0..).zip(all.iter_mut()).take((*inside).into()) {
                    let mut bytes = [0; 4];
                    let at = At::Global(address + 4 * i);
                    places.read(wave, &Piece { lane: 0, register: 0, bytes: 4, at }, &mut bytes)?;
                    *word = u32::from_le_bytes(bytes);
                }
                wave.complete_scalar(*first, &all[..(*words).into()]);
            }
            #[expect(clippy::cast_possible_truncation, reason = "the words of a clock")]
            Action::Clock { first, value } => wave.complete_scalar(*first, &[*value as u32, (*value >> 32) as u32]),
        }
        // Registers of lanes without a piece are released too, as for atomics that are out of range.
        if let Some((file, first, count, lanes)) = self.reserved {
            for r in first..=first + (count - 1) {
                wave.file_mut(file).complete(r.into(), lanes, id);
            }
        }
        Ok(())
    }
}

/// Fills registers of a lane with bytes.
fn fill(wave: &mut Wave, to: (File, u8), piece: &Piece, bytes: &[u8], narrow: Narrow, id: Serial) {
    let lane = usize::from(piece.lane);
    let first = usize::from(to.1) + usize::from(piece.register);
    for (r, chunk) in (first..).zip(bytes.chunks(4)) {
        let value = chunk.iter().rev().fold(0_u32, |all, b| all << 8 | u32::from(*b));
        let bits = 8 * u32::try_from(chunk.len()).unwrap_or(4);
        let value = match narrow {
            Narrow::No | Narrow::Zero => value,
            Narrow::Sign => ((value << (32 - bits)).cast_signed() >> (32 - bits)).cast_unsigned(),
            Narrow::High => value << 16,
        };
        if let Some(register) = wave.file_mut(to.0).complete(r, 1 << lane, id) {
            register[lane] = value;
        }
    }
}

struct Places<'a> {
    spaces: &'a mut [Space],
    memory: &'a mut Memory,
    pc: u64,
    wave: usize,
}

impl Places<'_> {
    fn fail(&self, space: &Space, fault: &titan_sim::engine::space::Fault, lane: u8) -> Fail {
        let fail = Fail::new(code_of(fault), space.explain(fault)).lane(lane.into());
        fail.or_at(self.pc, self.wave)
    }

    fn read(&self, wave: &Wave, piece: &Piece, out: &mut [u8]) -> Result<(), Fail> {
        let (space, address) = match piece.at {
            At::Outside => {
                out.fill(0);
                return Ok(());
            }
            At::Private(offset) => return self.private(wave, piece, offset, out),
            At::Global(address) => (Some(&self.memory.space), address),
            At::Lds(address) => (self.spaces.first(), address),
        };
        let Some(space) = space else { return Ok(()) };
        space.read(address, out).map_err(|f| self.fail(space, &f, piece.lane))
    }

    fn private(&self, wave: &Wave, piece: &Piece, offset: u64, out: &mut [u8]) -> Result<(), Fail> {
        let (bytes, written) = wave.scratch.get(usize::from(piece.lane)).ok_or_else(|| self.no_private())?;
        let range = range(offset, out.len(), bytes.len()).ok_or_else(|| self.no_private())?;
        if written[range.clone()].contains(&false) {
            let message = format!("byte {offset} of private memory is read and was never written");
            return Err(Fail::new(ErrorCode::Uninitialised, message).lane(piece.lane.into()).or_at(self.pc, self.wave));
        }
        out.copy_from_slice(&bytes[range]);
        Ok(())
    }

    fn no_private(&self) -> Fail {
        let message = "an access to private memory beyond what the kernel was given";
        Fail::new(ErrorCode::OutOfBounds, message).or_at(self.pc, self.wave)
    }

    fn write(&mut self, wave: &mut Wave, piece: &Piece, bytes: &[u8]) -> Result<(), Fail> {
        match piece.at {
            At::Outside => Ok(()),
            At::Private(offset) => {
                let error = self.no_private();
                let (all, written) = wave.scratch.get_mut(usize::from(piece.lane)).ok_or_else(|| error.clone())?;
                let range = range(offset, bytes.len(), all.len()).ok_or(error)?;
                all[range.clone()].copy_from_slice(bytes);
                written[range].fill(true);
                Ok(())
            }
            At::Global(address) => {
                let done = self.memory.space.write(address, bytes);
                done.map_err(|f| self.fail(&self.memory.space, &f, piece.lane))
            }
            At::Lds(address) => {
                let Some(space) = self.spaces.first_mut() else { return Ok(()) };
                let done = space.write(address, bytes);
                done.map_err(|f| self.fail(&self.spaces[0], &f, piece.lane))
            }
        }
    }
}

fn range(offset: u64, len: usize, all: usize) -> Option<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(len).filter(|e| *e <= all)?;
    Some(start..end)
}
