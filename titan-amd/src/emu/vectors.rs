//! Vector registers: their values, which of their bits are undefined, and which operations in flight will write them.
//!
//! The *shadow* of a value has the bits set that are undefined (the term of MemorySanitizer). Registers are undefined until they are
//! written. Undefined bits may be copied and computed with; what depends on them is undefined as well (`shadow`), and it is an error if
//! an address, a branch or the mask of active lanes does.

use super::error::ErrorCode;
use super::fail::Fail;
use super::op::File;
use super::wave::{ALL, Fill, Serial};
use titan_sim::engine::Rng;

/// The values of a register in all lanes.
pub(crate) type Lanes = [u32; 64];

/// Where undefined bits come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// A vector register that was never written.
    Vector(File, u8),
    /// A scalar register that was never written.
    Scalar(u8),
    /// The condition code, which was never set.
    Scc,
    /// Memory whose bytes were never written or are undefined, loaded by the instruction at this address.
    Loaded(u64),
}

impl Origin {
    /// The words for it, after "bits that", and the instruction that loaded them.
    pub(crate) fn told(self) -> (String, Option<u64>) {
        match self {
            Origin::Vector(file, r) => (format!("`{}{r}`, which was never written", file.name()), None),
            Origin::Scalar(code) => (format!("{}, which was never written", super::wave::scalar_name(code)), None),
            Origin::Scc => ("`scc`, which was never set".to_owned(), None),
            Origin::Loaded(pc) => ("memory that was not yet written when it was loaded".to_owned(), Some(pc)),
        }
    }
}

/// One file of vector registers.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    file: File,
    values: Vec<Lanes>,
    /// For each register, the lanes with undefined bits.
    undefined: Vec<u64>,
    /// For each register, the shadows of these lanes; those of others have no meaning.
    shadows: Vec<Lanes>,
    /// For each register, where its undefined bits come from.
    origins: Vec<Origin>,
    /// For each register, the lanes that operations in flight will write.
    busy: Vec<u64>,
    /// For each register, these operations in the order of issue, each with its lanes.
    by: Vec<Vec<(Serial, u64)>>,
}

impl Vectors {
    pub(crate) fn new(file: File, n: usize, fill: Fill) -> Vectors {
        let mut rng = Rng::new(fill.seed);
        #[expect(clippy::cast_possible_truncation, reason = "random bits")]
        let mut any = || if fill.seed == 0 { [0; 64] } else { std::array::from_fn(|_| rng.next_u64() as u32) };
        let values = (0..n).map(|_| any()).collect();
        let (undefined, shadows) =
            if fill.defined { (vec![0; n], vec![[0; 64]; n]) } else { (vec![ALL; n], vec![[u32::MAX; 64]; n]) };
        let origins = (0..n).map(|r| Origin::Vector(file, u8::try_from(r).unwrap_or(u8::MAX))).collect();
        Vectors { file, values, undefined, shadows, origins, busy: vec![0; n], by: vec![Vec::new(); n] }
    }

    /// A register for reading in these lanes; some of its bits may be undefined.
    #[inline]
    pub(crate) fn read(&self, r: usize, lanes: u64) -> Result<&Lanes, Fail> {
        let (Some(values), Some(busy)) = (self.values.get(r), self.busy.get(r)) else { return Err(self.missing(r)) };
        if busy & lanes == 0 { Ok(values) } else { Err(self.in_flight(r, lanes)) }
    }

    /// The lanes, among these, in which a register has undefined bits.
    #[inline]
    pub(crate) fn undefined(&self, r: usize, lanes: u64) -> u64 {
        self.undefined.get(r).map_or(0, |u| u & lanes)
    }

    /// The shadow of a register in a lane.
    pub(crate) fn shadow(&self, r: usize, lane: usize) -> u32 {
        let undefined = self.undefined.get(r).is_some_and(|u| u >> lane & 1 == 1);
        if undefined { self.shadows[r][lane] } else { 0 }
    }

    /// Where undefined bits of a register come from.
    pub(crate) fn origin(&self, r: usize) -> Option<Origin> {
        self.origins.get(r).copied()
    }

    /// A register for writing in these lanes, which are defined from then on.
    #[inline]
    pub(crate) fn write(&mut self, r: usize, lanes: u64) -> Result<&mut Lanes, Fail> {
        match self.busy.get(r) {
            None => return Err(self.missing(r)),
            Some(busy) if busy & lanes != 0 => return Err(self.in_flight(r, lanes)),
            Some(_) => {}
        }
        self.undefined[r] &= !lanes;
        Ok(&mut self.values[r])
    }

    /// Sets the shadows of lanes that have been written. `origin` is where new undefined bits come from.
    pub(crate) fn set_shadows(&mut self, r: usize, lanes: u64, origin: Option<Origin>, shadow: impl Fn(usize) -> u32) {
        let mut undefined = 0;
        for l in super::exec::lanes_of(lanes) {
            let bits = shadow(l);
            self.shadows[r][l] = bits;
            undefined |= u64::from(bits != 0) << l;
        }
        self.undefined[r] = self.undefined[r] & !lanes | undefined;
        if let (Some(origin), true) = (origin, undefined != 0) {
            self.origins[r] = origin;
        }
    }

    /// A register for the write of an operation that completes: its lanes become defined, and free if no other operation in flight has
    /// reserved them.
    pub(crate) fn complete(&mut self, r: usize, lanes: u64, op: Serial) -> Option<&mut Lanes> {
        self.release(r, lanes, op);
        let undefined = self.undefined.get_mut(r)?;
        *undefined &= !lanes;
        self.values.get_mut(r)
    }

    /// Releases lanes that an operation has reserved.
    pub(crate) fn release(&mut self, r: usize, lanes: u64, op: Serial) {
        let Some(by) = self.by.get_mut(r) else { return };
        if let Some((_, own)) = by.iter_mut().find(|(id, _)| *id == op) {
            *own &= !lanes;
            by.retain(|(_, own)| *own != 0);
            self.busy[r] = by.iter().fold(0, |all, (_, own)| all | own);
        }
    }

    /// Reserves lanes of a register for an operation.
    pub(crate) fn reserve(&mut self, r: usize, lanes: u64, op: Serial) -> Result<(), Fail> {
        if r >= self.values.len() {
            return Err(self.missing(r));
        }
        if lanes != 0 {
            self.busy[r] |= lanes;
            self.by[r].push((op, lanes));
        }
        Ok(())
    }

    /// The operations for which these lanes of a register are reserved, in the order of issue.
    pub(crate) fn owners(&self, r: usize, lanes: u64) -> impl DoubleEndedIterator<Item = Serial> + '_ {
        let by = self.by.get(r).map_or(&[][..], Vec::as_slice);
        by.iter().filter(move |(_, own)| own & lanes != 0).map(|(op, _)| *op)
    }

    #[cold]
    fn missing(&self, r: usize) -> Fail {
        let (file, n) = (self.file.name(), self.values.len());
        Fail::new(
            ErrorCode::Register,
            format!("`{file}{r}` is used, and the kernel was given {n} registers of its kind"),
        )
    }

    #[cold]
    fn in_flight(&self, r: usize, lanes: u64) -> Fail {
        let message = format!("`{}{r}` is used while an operation in flight is to write it", self.file.name());
        let by = self.owners(r, lanes).next_back();
        let lane = (self.busy[r] & lanes).trailing_zeros();
        Fail::new(ErrorCode::InFlight, message).lane(lane).help("wait for it by `s_waitcnt`").because(by)
    }
}
