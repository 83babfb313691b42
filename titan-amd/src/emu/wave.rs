//! A wave: its registers, and which of them are defined.

use super::error::ErrorCode;
use super::fail::Fail;
use super::hazard::Hazards;
use super::lane::Mode;
use super::op::File;
use crate::isa::operand::{EXEC, M0, SGPRS, TTMP, VCC};
use titan_sim::engine::{OpId, Rng};

/// The number of an operation in its workgroup, by issue.
pub(crate) type Serial = u64;

/// The values of a register in all lanes.
pub(crate) type Lanes = [u32; 64];

/// The mask of all lanes.
pub(crate) const ALL: u64 = u64::MAX;

/// One file of vector registers.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    file: File,
    values: Vec<Lanes>,
    /// For each register, the lanes that were never written.
    undefined: Vec<u64>,
    /// For each register, the lanes that operations in flight will write.
    busy: Vec<u64>,
    /// For each register, these operations in the order of issue, each with its lanes.
    by: Vec<Vec<(Serial, u64)>>,
}

impl Vectors {
    fn new(file: File, n: usize, garbage: Option<u64>) -> Vectors {
        let mut rng = Rng::new(garbage.unwrap_or(0));
        #[expect(clippy::cast_possible_truncation, reason = "random bits")]
        let fill = |rng: &mut Rng| std::array::from_fn(|_| if garbage.is_some() { rng.next_u64() as u32 } else { 0 });
        let values = (0..n).map(|_| fill(&mut rng)).collect();
        let undefined = vec![if garbage.is_some() { 0 } else { ALL }; n];
        Vectors { file, values, undefined, busy: vec![0; n], by: vec![Vec::new(); n] }
    }

    /// A register for reading in these lanes.
    #[inline]
    pub(crate) fn read(&self, r: usize, lanes: u64) -> Result<&Lanes, Fail> {
        let (Some(values), Some(undefined), Some(busy)) = (self.values.get(r), self.undefined.get(r), self.busy.get(r))
        else {
            return Err(self.missing(r));
        };
        if (undefined | busy) & lanes == 0 { Ok(values) } else { Err(self.bad(r, lanes)) }
    }

    /// A register for writing in these lanes, which are defined from then on.
    #[inline]
    pub(crate) fn write(&mut self, r: usize, lanes: u64) -> Result<&mut Lanes, Fail> {
        if self.busy.get(r).is_some_and(|b| b & lanes != 0) {
            return Err(self.bad(r, lanes));
        }
        self.check(r)?;
        self.undefined[r] &= !lanes;
        Ok(&mut self.values[r])
    }

    /// A register for the write of an operation that completes: its lanes become defined, and free if no other operation in flight has
    /// reserved them.
    pub(crate) fn complete(&mut self, r: usize, lanes: u64, op: Serial) -> Option<&mut Lanes> {
        let by = self.by.get_mut(r)?;
        if let Some((_, own)) = by.iter_mut().find(|(id, _)| *id == op) {
            *own &= !lanes;
            by.retain(|(_, own)| *own != 0);
            self.busy[r] = by.iter().fold(0, |all, (_, own)| all | own);
        }
        let undefined = self.undefined.get_mut(r)?;
        *undefined &= !lanes;
        self.values.get_mut(r)
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

    pub(crate) fn check(&self, r: usize) -> Result<(), Fail> {
        if r < self.values.len() { Ok(()) } else { Err(self.missing(r)) }
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
    fn bad(&self, r: usize, lanes: u64) -> Fail {
        let name = format!("`{}{r}`", self.file.name());
        let busy = self.busy[r] & lanes;
        if busy != 0 {
            let message = format!("{name} is used while an operation in flight is to write it");
            let help = "wait for it by `s_waitcnt`";
            let by = self.owners(r, lanes).next_back();
            return Fail::new(ErrorCode::InFlight, message).lane(busy.trailing_zeros()).help(help).because(by);
        }
        let lane = (self.undefined[r] & lanes).trailing_zeros();
        Fail::new(ErrorCode::Uninitialised, format!("{name} is read and was never written")).lane(lane)
    }
}

/// A wave.
#[derive(Clone, Debug)]
pub(crate) struct Wave {
    pub(crate) pc: u64,
    pub(crate) scc: bool,
    pub(crate) mode: Mode,
    pub(crate) v: Vectors,
    pub(crate) a: Vectors,
    scalars: [u32; 128],
    s_undefined: u128,
    s_busy: u128,
    s_by: Option<Serial>,
    /// The number of general scalar registers that the kernel was allocated.
    sgprs: u8,
    pub(crate) hazards: Hazards,
    /// For each counter that completes in order, the last operation.
    pub(crate) last: [Option<OpId>; 2],
    /// The operations on flat addresses, which complete in any order, with the counters that were waited for.
    pub(crate) flat: Vec<(OpId, bool, bool)>,
    pub(crate) done: bool,
    /// The private memory of each lane.
    pub(crate) scratch: Vec<Scratch>,
}

/// The private memory of a lane: its bytes, and which were written.
pub(crate) type Scratch = (Vec<u8>, Vec<bool>);

impl Wave {
    /// Creates a wave whose registers are undefined, or random bits from a seed.
    pub(crate) fn new(pc: u64, mode: Mode, registers: [u32; 3], garbage: Option<u64>) -> Wave {
        let [arch, acc, sgprs] = registers;
        let named = 1_u128 << EXEC | 1 << (EXEC + 1);
        let mut rng = Rng::new(garbage.unwrap_or(0) ^ 0x5C);
        #[expect(clippy::cast_possible_truncation, reason = "random bits")]
        let scalars = std::array::from_fn(|_| if garbage.is_some() { rng.next_u64() as u32 } else { 0 });
        Wave {
            pc,
            scc: false,
            mode,
            v: Vectors::new(File::V, arch as usize, garbage.map(|g| g ^ 1)),
            a: Vectors::new(File::A, acc as usize, garbage.map(|g| g ^ 2)),
            scalars,
            s_undefined: if garbage.is_some() { 0 } else { !named },
            s_busy: 0,
            s_by: None,
            sgprs: u8::try_from(sgprs.min(SGPRS.into())).unwrap_or(SGPRS),
            hazards: Hazards::default(),
            last: [None; 2],
            flat: Vec::new(),
            done: false,
            scratch: Vec::new(),
        }
    }

    pub(crate) const fn file(&self, file: File) -> &Vectors {
        match file {
            File::V => &self.v,
            File::A => &self.a,
        }
    }

    pub(crate) const fn file_mut(&mut self, file: File) -> &mut Vectors {
        match file {
            File::V => &mut self.v,
            File::A => &mut self.a,
        }
    }

    /// The mask of active lanes.
    #[inline]
    pub(crate) const fn exec(&self) -> u64 {
        self.scalars[EXEC as usize] as u64 | (self.scalars[EXEC as usize + 1] as u64) << 32
    }

    fn scalar_index(&self, code: u8) -> Result<usize, Fail> {
        let named = (SGPRS..TTMP).contains(&code) || (TTMP..=M0).contains(&code) || code >= EXEC;
        if code < self.sgprs || named {
            return Ok(code.into());
        }
        let message = format!("`s{code}` is used, and the kernel was given {} scalar registers", self.sgprs);
        Err(Fail::new(ErrorCode::Register, message))
    }

    /// The value of one or two scalar registers.
    #[inline]
    pub(crate) fn scalar(&self, code: u8, n: u8) -> Result<u64, Fail> {
        let low = self.scalar_word(code)?;
        if n < 2 { Ok(low.into()) } else { Ok(u64::from(low) | u64::from(self.scalar_word(code + 1)?) << 32) }
    }

    /// The value of one scalar register.
    #[inline]
    pub(crate) fn scalar_word(&self, code: u8) -> Result<u32, Fail> {
        let i = self.scalar_index(code)?;
        if (self.s_undefined | self.s_busy) >> i & 1 == 0 { Ok(self.scalars[i]) } else { Err(self.bad_scalar(code)) }
    }

    pub(crate) fn set_scalar(&mut self, code: u8, n: u8, value: u64) -> Result<(), Fail> {
        #[expect(clippy::cast_possible_truncation, reason = "the words of a pair")]
        let words = [value as u32, (value >> 32) as u32];
        for (at, word) in (code..).zip(words).take(n.into()) {
            let i = self.scalar_index(at)?;
            if self.s_busy >> i & 1 == 1 {
                return Err(self.bad_scalar(at));
            }
            self.scalars[i] = word;
            self.s_undefined &= !(1 << i);
        }
        Ok(())
    }

    /// Reserves registers for a scalar load.
    pub(crate) fn reserve_scalar(&mut self, code: u8, n: u8, op: Serial) -> Result<(), Fail> {
        for at in code..code + n {
            let i = self.scalar_index(at)?;
            if self.s_busy >> i & 1 == 1 {
                return Err(self.bad_scalar(at));
            }
            self.s_busy |= 1 << i;
        }
        self.s_by = Some(op);
        Ok(())
    }

    pub(crate) fn complete_scalar(&mut self, code: u8, words: &[u32]) {
        for (at, word) in (code..).zip(words) {
            let i = usize::from(at) & 127;
            self.s_busy &= !(1 << i);
            self.s_undefined &= !(1 << i);
            self.scalars[i] = *word;
        }
    }

    #[cold]
    fn bad_scalar(&self, code: u8) -> Fail {
        let name = match code {
            VCC => "`vcc_lo`".to_owned(),
            M0 => "`m0`".to_owned(),
            _ if code == VCC + 1 => "`vcc_hi`".to_owned(),
            _ => format!("`s{code}`"),
        };
        if self.s_busy >> code & 1 == 1 {
            let message = format!("{name} is used while a scalar load in flight is to write it");
            return Fail::new(ErrorCode::InFlight, message)
                .help("wait for it by `s_waitcnt lgkmcnt(0)`")
                .because(self.s_by);
        }
        Fail::new(ErrorCode::Uninitialised, format!("{name} is read and was never written"))
    }

    /// The `MODE` register: ISA §3.5.
    pub(crate) fn mode_bits(&self) -> u32 {
        let m = self.mode;
        let flag = |on: bool, at: u32| u32::from(on) << at;
        u32::from(m.round_32)
            | u32::from(m.round_16_64) << 2
            | u32::from(m.denorm_32) << 4
            | u32::from(m.denorm_16_64) << 6
            | flag(m.dx10_clamp, 8)
            | flag(m.ieee, 9)
            | flag(m.fp16_overflow, 23)
    }

    /// Sets the `MODE` register; `None` if a bit is set that the emulator does not support.
    #[must_use]
    pub(crate) fn set_mode_bits(&mut self, bits: u32) -> Option<()> {
        if bits & !0x0080_03FF != 0 {
            return None;
        }
        let two = |at: u32| (bits >> at & 3) as u8;
        let flag = |at: u32| bits >> at & 1 == 1;
        self.mode = Mode {
            round_32: two(0),
            round_16_64: two(2),
            denorm_32: two(4),
            denorm_16_64: two(6),
            dx10_clamp: flag(8),
            ieee: flag(9),
            fp16_overflow: flag(23),
        };
        Some(())
    }

    /// The value of `vcc`, for branches; it must not be pending.
    pub(crate) fn vcc(&self) -> Result<u64, Fail> {
        self.scalar(VCC, 2)
    }
}
