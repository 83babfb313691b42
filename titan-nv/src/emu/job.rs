//! The effects of asynchronous operations at their completion.
//!
//! | operation | effect |
//! |---|---|
//! | `cp.async` | copies from global to shared memory, zeros for the rest |
//! | bulk copy to shared memory | copies pieces from global or shared memory, or fills them |
//! | bulk copy to global memory | two operations: one *takes* the source, for which `wait_group.read` waits; one *puts* it |
//! | `st.async` | stores bytes that the instruction gave |
//! | `wgmma` | computes a warp's rows, see [`super::product`] |
//! | arrivals | only their signals |
//!
//! Addresses of shared memory carry the block's rank in their upper bits, see [`super::cluster::in_block`].

use super::cluster::split;
use super::error::ErrorCode;
use super::exec::Fail;
use super::memory::Memory;
use super::op::{AtomFn, Program};
use super::product::Product;
use super::proxy::{GLOBAL, Stores, View};
use super::warp::Warp;
use std::collections::BTreeMap;
use titan_sim::engine::{Agent, Space, SpaceId};

/// An asynchronous operation.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Job {
    /// The code position of the instruction.
    pub(crate) place: u32,
    pub(crate) what: What,
    /// The bytes that the operation sees differently than threads do.
    pub(crate) view: View,
    /// The address of the tensor map that the operation uses, if it is in global memory and may change there.
    pub(crate) map: Option<u64>,
}

#[derive(Clone, Debug, Hash)]
pub(crate) enum What {
    Copy {
        to: u64,
        from: u64,
        bytes: u32,
        src_bytes: u32,
    },
    Load(Vec<Piece>),
    /// Reads pieces of shared memory for the operation that puts them.
    Take {
        ticket: u64,
        pieces: Vec<Piece>,
    },
    Put {
        ticket: u64,
        pieces: Vec<Piece>,
        reduce: Option<Reduction>,
    },
    Store {
        to: u64,
        bytes: Vec<u8>,
        written: bool,
    },
    Multiply(Box<Product>),
    Arrive,
}

/// A range of bytes that is contiguous on both sides of a copy.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Piece {
    /// The address in shared memory, with the block's rank.
    pub(crate) shared: u64,
    pub(crate) other: Other,
    pub(crate) bytes: u32,
}

/// The other side of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Other {
    Global(u64),
    Shared(u64),
    /// Outside of the tensor: a load writes this byte pattern repeatedly, four bytes at a time; a store does nothing.
    Outside([u8; 8]),
}

/// The arithmetic by which elements are combined in global memory.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Reduction {
    pub(crate) f: AtomFn,
    pub(crate) bytes: u32,
}

/// For each piece that was taken and not yet put, by ticket: its bytes, and whether they were ever written.
pub(crate) type Taken = BTreeMap<u64, Vec<(Vec<u8>, Vec<bool>)>>;

/// The state that a completing operation may change.
pub(crate) struct Ground<'a> {
    pub(crate) memory: &'a mut Memory,
    /// The stores to the cluster's shared memory.
    pub(crate) stores: &'a mut Stores,
    /// The cluster's number, in the bits above a thread's number.
    pub(crate) cluster: u64,
    pub(crate) taken: &'a mut Taken,
    pub(crate) warps: &'a mut [Warp],
    pub(crate) program: &'a Program,
    pub(crate) strict: bool,
}

fn undefined(side: &str) -> Fail {
    Fail::new(ErrorCode::Uninitialised, format!("the copy reads bytes of {side} memory that were never written"))
}

/// The number that identifies a shared memory in records of stores.
pub(crate) fn numbered(space: SpaceId) -> u32 {
    u32::try_from(space.index()).unwrap_or(GLOBAL)
}

impl Ground<'_> {
    /// Applies the effect of an operation.
    pub(crate) fn complete(&mut self, spaces: &mut [Space], agent: Agent, job: &Job) -> Result<(), Fail> {
        match &job.what {
            What::Arrive => Ok(()),
            What::Copy { to, from, bytes, src_bytes } => self.copy(spaces, agent, (*to, *from), *bytes, *src_bytes),
            What::Load(pieces) => pieces.iter().try_for_each(|p| self.load(spaces, p, &job.view)),
            What::Take { ticket, pieces } => {
                let taken = pieces.iter().map(|p| self.take(spaces, p, &job.view)).collect::<Result<_, _>>()?;
                self.taken.insert(*ticket, taken);
                Ok(())
            }
            What::Put { ticket, pieces, reduce } => {
                let taken = self.taken.remove(ticket).unwrap_or_default();
                pieces.iter().zip(taken).try_for_each(|(p, (bytes, written))| self.put(p, &bytes, &written, *reduce))
            }
            What::Store { to, bytes, written } => {
                let (space, at) = split(*to);
                let Some(space) = spaces.get_mut(space.index()) else { return Ok(()) };
                let done = if *written { space.write(at, bytes) } else { space.poison_range(at, bytes.len()) };
                done.map_err(|f| Fail::of(space, &f))
            }
            What::Multiply(product) => product.complete(self, spaces, &job.view),
        }
    }

    fn copy(
        &mut self,
        spaces: &mut [Space],
        agent: Agent,
        (to, from): (u64, u64),
        bytes: u32,
        src_bytes: u32,
    ) -> Result<(), Fail> {
        let (n, total) = (src_bytes as usize, bytes as usize);
        let mut buffer = [0; 16];
        let mut defined = true;
        if n > 0 {
            let out = &mut buffer[..n];
            let space = &self.memory.space;
            let done = if self.strict { space.read(from, out).map(|()| true) } else { space.read_any(from, out) };
            defined = done.map_err(|f| Fail::of(space, &f))?;
        }
        let (number, at) = split(to);
        let Some(shared) = spaces.get_mut(number.index()) else { return Ok(()) };
        if self.program.has_async_proxy {
            let (mut value, mut written) = ([0; 16], [false; 16]);
            let (value, written) = (&mut value[..total], &mut written[..total]);
            shared.look(at, value, written).map_err(|f| Fail::of(shared, &f))?;
            let writer = self.cluster << 32 | agent.index() as u64;
            self.stores.store(writer, numbered(number), at, (value, written));
        }
        let done = if defined { shared.write(at, &buffer[..total]) } else { shared.poison_range(at, total) };
        done.map_err(|f| Fail::of(shared, &f))
    }

    /// Bytes of shared memory as the asynchronous proxy sees them.
    pub(super) fn shared(
        spaces: &[Space],
        address: u64,
        len: usize,
        view: &View,
    ) -> Result<(Vec<u8>, Vec<bool>), Fail> {
        let (number, at) = split(address);
        let Some(space) = spaces.get(number.index()) else { return Ok((vec![0; len], vec![false; len])) };
        let (mut bytes, mut written) = space.extract(at, len).map_err(|f| Fail::of(space, &f))?;
        view.correct(numbered(number), at, &mut bytes, &mut written);
        Ok((bytes, written))
    }

    fn load(&mut self, spaces: &mut [Space], piece: &Piece, view: &View) -> Result<(), Fail> {
        let len = piece.bytes as usize;
        let (bytes, written) = match piece.other {
            Other::Outside(pattern) => (pattern.iter().copied().cycle().take(len).collect(), vec![true; len]),
            Other::Shared(from) => Ground::shared(spaces, from, len, view)?,
            Other::Global(from) => {
                let space = &self.memory.space;
                let (mut bytes, mut written) = space.extract(from, len).map_err(|f| Fail::of(space, &f))?;
                view.correct(GLOBAL, from, &mut bytes, &mut written);
                (bytes, written)
            }
        };
        if self.strict && written.contains(&false) {
            return Err(undefined(if matches!(piece.other, Other::Shared(_)) { "shared" } else { "global" }));
        }
        let (number, at) = split(piece.shared);
        let Some(space) = spaces.get_mut(number.index()) else { return Ok(()) };
        let mut seen = bytes;
        let (stores, of) = (&self.stores, numbered(number));
        let is_plain = stores.is_empty() || view.hidden.is_empty() && stores.has_none(of, at, len as u64);
        if !is_plain {
            let (current, _) = space.extract(at, len).map_err(|f| Fail::of(space, &f))?;
            for (i, (byte, current)) in (0..).zip(seen.iter_mut().zip(current)) {
                let key = (of, at + i);
                let hidden = view.hidden.contains(&key);
                self.stores.written(key, *byte, hidden);
                *byte = if hidden { current } else { *byte };
            }
        }
        space.insert(at, &seen, &written).map_err(|f| Fail::of(space, &f))
    }

    fn take(&self, spaces: &[Space], piece: &Piece, view: &View) -> Result<(Vec<u8>, Vec<bool>), Fail> {
        if matches!(piece.other, Other::Outside(_)) {
            return Ok((Vec::new(), Vec::new()));
        }
        let (bytes, written) = Ground::shared(spaces, piece.shared, piece.bytes as usize, view)?;
        if self.strict && written.contains(&false) {
            return Err(undefined("shared"));
        }
        Ok((bytes, written))
    }

    fn put(&mut self, piece: &Piece, bytes: &[u8], written: &[bool], reduce: Option<Reduction>) -> Result<(), Fail> {
        let Other::Global(to) = piece.other else { return Ok(()) };
        let space = &mut self.memory.space;
        let mut out = bytes.to_vec();
        if let Some(Reduction { f, bytes: size }) = reduce {
            let (old, there) = space.extract(to, bytes.len()).map_err(|f| Fail::of(space, &f))?;
            if there.contains(&false) {
                return Err(undefined("global"));
            }
            let n = size as usize;
            let word = |part: &[u8]| {
                let mut word = [0; 8];
                word[..n].copy_from_slice(part);
                u64::from_le_bytes(word)
            };
            for ((out, old), new) in out.chunks_exact_mut(n).zip(old.chunks_exact(n)).zip(bytes.chunks_exact(n)) {
                out.copy_from_slice(&f(word(old), word(new), 0).to_le_bytes()[..n]);
            }
        }
        space.insert(to, &out, written).map_err(|f| Fail::of(space, &f))
    }
}
