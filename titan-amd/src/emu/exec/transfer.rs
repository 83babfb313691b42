//! A memory operation in flight: addresses and data are captured when it is issued; [`super::effect`] has what it does.

use crate::emu::atomic::AtomicFn;
use crate::emu::lane::Mode;
use crate::emu::op::File;
use crate::emu::vectors::{Lanes, Origin};
use crate::emu::wave::Serial;

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

/// The bytes of all pieces, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    pub(crate) bytes: Vec<u8>,
    /// The shadow of each byte; empty if all bits are defined.
    pub(crate) shadows: Vec<u8>,
}

impl Data {
    /// Adds bytes with their shadows.
    pub(crate) fn push(&mut self, bytes: &[u8], shadows: &[u8]) {
        if !self.shadows.is_empty() || shadows.iter().any(|s| *s != 0) {
            self.shadows.resize(self.bytes.len(), 0);
            self.shadows.extend_from_slice(shadows);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// A range of bytes and their shadows.
    pub(crate) fn part(&self, start: usize, len: usize) -> (&[u8], &[u8]) {
        const DEFINED: [u8; 16] = [0; 16];
        let shadows = self.shadows.get(start..start + len).unwrap_or(&DEFINED[..len.min(16)]);
        (self.bytes.get(start..start + len).unwrap_or_default(), shadows)
    }
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

/// The operands of an atomic operation for one piece: values and shadows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AtomicData {
    pub(crate) values: [u64; 2],
    pub(crate) shadows: [u64; 2],
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Load {
        file: File,
        first: u8,
        narrow: Narrow,
    },
    Store {
        data: Data,
        /// Where undefined bits of the data come from.
        origin: Option<Origin>,
    },
    /// The operands of each piece, and the destination of the old value.
    Atomic {
        f: AtomicFn,
        /// Whether the old value does not matter.
        swaps: bool,
        /// Whether it compares, and stores only if nothing has changed.
        compares: bool,
        mode: Mode,
        data: Vec<AtomicData>,
        result: Option<(File, u8)>,
    },
    /// The address in the local data share of each piece.
    ToLds {
        targets: Vec<u64>,
    },
    /// Values that are not read from memory, and their shadows if some bits are undefined.
    Values {
        file: File,
        first: u8,
        lanes: u64,
        values: Box<Lanes>,
        shadows: Option<(Box<Lanes>, Origin)>,
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
    pub(crate) fn writes_lds(&self) -> bool {
        match &self.action {
            Action::Store { .. } | Action::Atomic { .. } => self.pieces.iter().any(|p| p.at.lds().is_some()),
            Action::ToLds { .. } => true,
            Action::Load { .. } | Action::Values { .. } | Action::Scalar { .. } | Action::Clock { .. } => false,
        }
    }

    /// The contents of bytes of the local data share after its completion, and which of them are known.
    pub(crate) fn foresee(&self, address: u64, bytes: &mut [u8], known: &mut [bool]) {
        let mut put = |at: u64, n: u64, data: Option<(&[u8], &[u8])>| {
            for (i, place) in (0..n).filter_map(|i| Some((i, (at + i).checked_sub(address)?))) {
                let Some(place) = usize::try_from(place).ok().filter(|p| *p < bytes.len()) else { continue };
                let index = usize::try_from(i).ok();
                let value = data.zip(index).and_then(|((d, s), i)| Some((*d.get(i)?, *s.get(i)?)));
                let value = value.filter(|(_, shadow)| *shadow == 0);
                bytes[place] = value.map_or(0, |(byte, _)| byte);
                known[place] = value.is_some();
            }
        };
        match &self.action {
            Action::Store { data, .. } => {
                let mut start = 0;
                for piece in &self.pieces {
                    let part = data.part(start, piece.bytes.into());
                    start += usize::from(piece.bytes);
                    piece.at.lds().into_iter().for_each(|at| put(at, piece.bytes.into(), Some(part)));
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
}
