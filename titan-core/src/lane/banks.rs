//! Bank conflicts of shared-memory accesses, computed from the addresses in each lane.
//!
//! An access of a warp is served in phases, in each of which every bank gives or takes one word. With 32 banks of 4 bytes ([`Banks`]), all 32
//! lanes are served at once if each accesses 4 bytes, 16 lanes for 8 bytes, 8 lanes for 16 bytes; a matrix load has a phase for the 8 rows
//! of each matrix. In a phase, different words in the same bank are accessed one after the other: the maximum number of different words
//! in one bank is the *degree*, which is 1 without conflicts.
//!
//! Addresses are evaluated for the lanes of warp 0, and all values that are uniform in a warp are taken as 0: an offset common to all lanes
//! permutes the banks and changes no degree, even if the sum wraps, as where a role of other warps numbers its threads from 0. Addresses
//! that depend on data are unknown and are not reported.

use super::family::{Copying, Family};
use super::func::{Func, Op, OpId, Value};
use super::nv::NvOp;
use super::op::{IntBin, OpKind, Space, Ty};
use super::uniform::{Level, Uniformity, analyze};
use crate::collections::SortedMap;

/// The banks of a machine's shared memory; back ends state their sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banks {
    /// The number of banks.
    pub count: u32,
    /// The bytes of a word, which a bank serves in a phase.
    pub width: u32,
    /// The order in which lanes are served, by the bytes that each accesses: so many as a phase has room for come first. Lanes are served in
    /// their own order in accesses of other sizes.
    pub orders: Vec<(u32, Vec<u8>)>,
}

impl Default for Banks {
    /// 32 banks of 4 bytes, which serve lanes in their order.
    fn default() -> Self {
        Banks { count: 32, width: 4, orders: Vec::new() }
    }
}

impl Banks {
    /// The bytes that all banks together serve in a phase.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        self.count * self.width
    }

    /// The degree of an access of so many bytes at the address of each lane: how many times longer than without conflicts its longest phase
    /// takes. Lanes that access the same word share it.
    #[must_use]
    pub fn degree(&self, addresses: &[u32], bytes: u32) -> u32 {
        let phase = (self.bytes() / bytes.max(self.width)).max(1) as usize;
        let longest = |lanes: &[u32]| self.longest(lanes, bytes);
        match self.orders.iter().find(|(width, _)| *width == bytes) {
            None => addresses.chunks(phase).map(longest).max().unwrap_or(1),
            Some((_, order)) => {
                let served: Vec<u32> =
                    order.iter().filter_map(|lane| addresses.get(usize::from(*lane)).copied()).collect();
                served.chunks(phase).map(longest).max().unwrap_or(1)
            }
        }
    }

    /// The maximum number of different words in one bank.
    fn longest(&self, addresses: &[u32], bytes: u32) -> u32 {
        let Some(last) = bytes.checked_sub(1) else { return 1 };
        // The first byte in every word's length, and the last one of an access that does not begin at a word, are in all its words.
        let step = self.width as usize;
        let bytes = || (0..bytes).step_by(step).chain([last]);
        let mut words: Vec<u32> = addresses
            .iter()
            .flat_map(|address| bytes().map(move |byte| address.wrapping_add(byte) / self.width))
            .collect();
        words.sort_unstable();
        words.dedup();
        let mut banks = vec![0; self.count as usize];
        for word in words {
            banks[(word % self.count) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(1).max(1)
    }
}

/// An access with bank conflicts, which takes more phases than necessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The operation that makes the access.
    pub op: OpId,
    /// The degree of the conflict: how many times longer the access takes.
    pub degree: u32,
}

/// The accesses with conflicts, in program order.
#[must_use]
pub fn conflicts(func: &Func, banks: &Banks) -> Vec<Conflict> {
    let uniform = analyze(func);
    let mut run = Run { func, banks, uniform: &uniform, known: SortedMap::new() };
    let mut out = Vec::new();
    func.walk(&mut |id, op| {
        if let Some(degree) = run.degree(op)
            && degree > 1
        {
            out.push(Conflict { op: id, degree });
        }
    });
    out
}

struct Run<'a> {
    func: &'a Func,
    banks: &'a Banks,
    uniform: &'a Uniformity,
    /// The value in each lane; `None` where it depends on data.
    known: SortedMap<Value, Option<Vec<u32>>>,
}

impl Run<'_> {
    fn degree(&mut self, op: &Op) -> Option<u32> {
        let (width, offset) = match op.kind.family() {
            Family::Access { space: Space::Shared, .. } | Family::Matrix { .. } | Family::Copy(Copying::Fill) => {
                accessed(&op.kind)?
            }
            // These access no shared memory, or a few words of it for synchronization, or they are bulk copies and MMAs, which have no
            // addresses in lanes.
            Family::Pure
            | Family::Warp
            | Family::Mark { .. }
            | Family::Access { space: Space::Global, .. }
            | Family::Copy(
                Copying::Drain
                | Copying::CommitFills
                | Copying::CommitDrains
                | Copying::AwaitFills(_)
                | Copying::AwaitDrains(_),
            )
            | Family::Protocol
            | Family::Order
            | Family::Group(_)
            | Family::Barrier(_)
            | Family::Flow(_) => return None,
        };
        let mut addresses = self.lanes(*op.args.first()?)?;
        if let OpKind::Nv(NvOp::LoadMatrix { n, .. } | NvOp::StoreMatrix { n, .. }) = op.kind {
            addresses.truncate(8 * usize::from(n));
        }
        // The offset matters for elements narrower than a word: it determines which of them share a word.
        addresses.iter_mut().for_each(|address| *address = address.wrapping_add_signed(offset));
        Some(self.banks.degree(&addresses, width))
    }

    /// The value in each lane of warp 0.
    fn lanes(&mut self, value: Value) -> Option<Vec<u32>> {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        let out = self.compute(value);
        self.known.insert(value, out.clone());
        out
    }

    fn compute(&mut self, value: Value) -> Option<Vec<u32>> {
        let all = self.func.lanes;
        let op = self.func.def_op(value);
        if let Some(OpKind::Const(_, bits)) = op.map(|o| &o.kind) {
            return Some(vec![low(*bits); all as usize]);
        }
        if self.uniform.level(value) < Level::Lane {
            return Some(vec![0; all as usize]);
        }
        let op = op?;
        match (&op.kind, op.args.as_slice()) {
            (OpKind::LaneId | OpKind::ThreadId, _) => Some((0..all).collect()),
            (OpKind::Int(f), [a, b]) if self.func.ty(value) == Ty::B32 => {
                let (a, b) = (self.lanes(*a)?, self.lanes(*b)?);
                a.into_iter().zip(b).map(|(a, b)| apply(*f, a, b)).collect()
            }
            _ => None,
        }
    }
}

/// The bytes that each lane accesses at its address, and the offset from that; `None` for bulk copies and atomic updates.
fn accessed(kind: &OpKind) -> Option<(u32, i32)> {
    if let OpKind::Load { bytes, n, offset, .. } | OpKind::Store { bytes, n, offset, .. } = *kind {
        return Some((u32::from(bytes) * u32::from(n), offset));
    }
    if let OpKind::Nv(NvOp::LoadMatrix { offset, .. } | NvOp::StoreMatrix { offset, .. }) = *kind {
        return Some((16, offset));
    }
    if let OpKind::Nv(NvOp::CopyAsync { bytes, offset, .. }) = *kind { Some((u32::from(bytes), offset)) } else { None }
}

fn low(bits: u64) -> u32 {
    u32::try_from(bits & 0xffff_ffff).unwrap_or(0)
}

const fn apply(f: IntBin, a: u32, b: u32) -> Option<u32> {
    Some(match f {
        IntBin::Add => a.wrapping_add(b),
        IntBin::Sub => a.wrapping_sub(b),
        IntBin::Mul => a.wrapping_mul(b),
        IntBin::And => a & b,
        IntBin::Or => a | b,
        IntBin::Xor => a ^ b,
        IntBin::Shl => a.wrapping_shl(b),
        IntBin::ShrU => a.wrapping_shr(b),
        IntBin::DivU | IntBin::RemU if b == 0 => return None,
        IntBin::DivU => a / b,
        IntBin::RemU => a % b,
        IntBin::MulHi
        | IntBin::DivS
        | IntBin::RemS
        | IntBin::ShrS
        | IntBin::MinS
        | IntBin::MinU
        | IntBin::MaxS
        | IntBin::MaxU => return None,
    })
}
