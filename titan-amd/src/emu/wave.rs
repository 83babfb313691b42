//! A wave: its registers, its mode, and its operations in flight.

use super::error::ErrorCode;
use super::fail::Fail;
use super::hazard::Hazards;
use super::lane::Mode;
use super::op::File;
use super::private::Private;
use super::scalars::{Scalars, VCC_PAIR, Value, is_exec};
use super::vectors::{Origin, Vectors};
use crate::isa::operand::{M0, SGPRS, VCC};
use std::collections::VecDeque;
use titan_sim::engine::OpId;

/// The number of an operation in its workgroup, by issue.
pub(crate) type Serial = u64;

/// The mask of all lanes.
pub(crate) const ALL: u64 = u64::MAX;

/// The contents of registers and memory before they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fill {
    /// The seed of random bits; 0 stands for zeros.
    pub(crate) seed: u64,
    /// Whether these bits are defined.
    pub(crate) defined: bool,
}

impl Fill {
    /// The contents of another part.
    pub(crate) const fn of(self, part: u64) -> Fill {
        let seed = if self.seed == 0 { 0 } else { self.seed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 };
        Fill { seed, ..self }
    }
}

/// The two counters of operations that complete in order, each with its operations in flight in the order of issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// `vmcnt`.
    Vm,
    /// `lgkmcnt`, for the local data share.
    Lds,
}

/// The operations of a counter that are in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct InOrder {
    /// All of them, oldest first.
    all: VecDeque<(Serial, OpId)>,
    /// Those of generic addresses: while one is in flight, the order of completion is not known.
    generic: Vec<Serial>,
}

impl InOrder {
    pub(crate) fn issue(&mut self, serial: Serial, op: OpId, generic: bool) {
        self.all.push_back((serial, op));
        self.generic.extend(generic.then_some(serial));
    }

    pub(crate) fn complete(&mut self, serial: Serial) {
        if let Some(at) = self.all.iter().position(|(s, _)| *s == serial) {
            self.all.remove(at);
        }
        self.generic.retain(|s| *s != serial);
    }

    /// The operations, oldest first.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = (Serial, OpId)> + ExactSizeIterator + '_ {
        self.all.iter().copied()
    }

    /// Whether an operation of generic addresses is in flight.
    pub(crate) fn has_generic(&self) -> bool {
        !self.generic.is_empty()
    }
}

/// A wave.
#[derive(Clone, Debug)]
pub(crate) struct Wave {
    pub(crate) pc: u64,
    scc: bool,
    /// Where the condition code comes from, if it is undefined.
    scc_origin: Option<Origin>,
    pub(crate) mode: Mode,
    /// Whether vector registers are indexed by `m0`: `GPR_IDX_EN` of the mode.
    pub(crate) indexed: bool,
    pub(crate) v: Vectors,
    pub(crate) a: Vectors,
    scalars: Scalars,
    pub(crate) hazards: Hazards,
    in_order: [InOrder; 2],
    pub(crate) done: bool,
    /// The private memory of each lane.
    pub(crate) private: Vec<Private>,
}

impl Wave {
    /// Creates a wave whose registers are undefined, or random bits.
    pub(crate) fn new(pc: u64, mode: Mode, registers: [u32; 3], fill: Fill) -> Wave {
        let [arch, acc, sgprs] = registers;
        let scc_origin = if fill.defined { None } else { Some(Origin::Scc) };
        Wave {
            pc,
            scc: false,
            scc_origin,
            mode,
            indexed: false,
            v: Vectors::new(File::V, arch as usize, fill.of(1)),
            a: Vectors::new(File::A, acc as usize, fill.of(2)),
            scalars: Scalars::new(sgprs, fill.of(3)),
            hazards: Hazards::default(),
            in_order: [InOrder::default(), InOrder::default()],
            done: false,
            private: Vec::new(),
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

    pub(crate) const fn in_order(&self, counter: Counter) -> &InOrder {
        &self.in_order[counter as usize]
    }

    pub(crate) const fn in_order_mut(&mut self, counter: Counter) -> &mut InOrder {
        &mut self.in_order[counter as usize]
    }

    /// The mask of active lanes.
    #[inline]
    pub(crate) const fn exec(&self) -> u64 {
        self.scalars.exec()
    }

    /// The value of one or two scalar registers, some bits of which may be undefined.
    #[inline]
    pub(crate) fn scalar(&self, code: u8, n: u8) -> Result<Value, Fail> {
        self.scalars.get(code, n)
    }

    /// The value of one or two scalar registers that must be defined, because `what` depends on it.
    #[inline]
    pub(crate) fn defined(&self, code: u8, n: u8, what: &str) -> Result<u64, Fail> {
        let value = self.scalars.get(code, n)?;
        if value.shadow == 0 { Ok(value.bits) } else { Err(undefined(what, self.scalars.origin(code, n))) }
    }

    /// The same for one register.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "one register")]
    pub(crate) fn defined_word(&self, code: u8, what: &str) -> Result<u32, Fail> {
        self.defined(code, 1, what).map(|v| v as u32)
    }

    /// Where undefined bits of scalar registers come from.
    pub(crate) fn scalar_origin(&self, code: u8, n: u8) -> Option<Origin> {
        self.scalars.origin(code, n)
    }

    /// Sets one or two scalar registers. Which lanes are active may not depend on undefined bits.
    pub(crate) fn set_scalar(&mut self, code: u8, n: u8, value: Value, origin: Option<Origin>) -> Result<(), Fail> {
        if value.shadow != 0 && is_exec(code, n) {
            return Err(undefined("the mask of active lanes", origin));
        }
        self.scalars.set(code, n, value, origin)
    }

    /// Sets one or two scalar registers to a defined value.
    pub(crate) fn set_defined(&mut self, code: u8, n: u8, bits: u64) -> Result<(), Fail> {
        self.scalars.set(code, n, Value::defined(bits), None)
    }

    /// Reserves registers for a scalar load.
    pub(crate) fn reserve_scalar(&mut self, code: u8, n: u8, op: Serial) -> Result<(), Fail> {
        self.scalars.reserve(code, n, op)
    }

    pub(crate) fn complete_scalar(&mut self, code: u8, words: &[(u32, u32)], pc: u64) {
        self.scalars.complete(code, words, pc);
    }

    /// The condition code, as 0 or 1.
    pub(crate) fn scc(&self) -> Value {
        Value { bits: self.scc.into(), shadow: self.scc_origin.is_some().into() }
    }

    /// The condition code, on which a branch depends.
    pub(crate) fn defined_scc(&self) -> Result<bool, Fail> {
        self.scc_origin.map_or(Ok(self.scc), |o| Err(undefined("a branch", Some(o))))
    }

    /// Where the condition code comes from, if it is undefined.
    pub(crate) const fn scc_origin(&self) -> Option<Origin> {
        self.scc_origin
    }

    /// Sets the condition code; `undefined` is where it comes from, if it is undefined.
    pub(crate) const fn set_scc(&mut self, scc: bool, undefined: Option<Origin>) {
        (self.scc, self.scc_origin) = (scc, undefined);
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
            | flag(self.indexed, 27)
    }

    /// Sets the `MODE` register; `None` if a bit is set that the emulator does not support.
    #[must_use]
    pub(crate) fn set_mode_bits(&mut self, bits: u32) -> Option<()> {
        if bits & !0x0880_03FF != 0 {
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
        self.indexed = flag(27);
        Some(())
    }

    /// Whether `vcc` is zero, as 0 or 1: one lane that is defined decides if it is set.
    pub(crate) fn vccz(&self) -> Result<Value, Fail> {
        let (code, n) = VCC_PAIR;
        let vcc = self.scalars.get(code, n)?;
        let undecided = vcc.shadow != 0 && vcc.bits & !vcc.shadow == 0;
        Ok(Value { bits: u64::from(vcc.bits == 0), shadow: undecided.into() })
    }

    /// Whether a branch finds that `vcc` is not zero.
    pub(crate) fn any_vcc(&self) -> Result<bool, Fail> {
        let (code, n) = VCC_PAIR;
        let zero = self.vccz()?;
        if zero.shadow == 0 { Ok(zero.bits == 0) } else { Err(undefined("a branch", self.scalars.origin(code, n))) }
    }
}

/// The error for a use of undefined bits.
#[cold]
pub(crate) fn undefined(what: &str, origin: Option<Origin>) -> Fail {
    let Some((source, pc)) = origin.map(Origin::told) else {
        return Fail::new(ErrorCode::Uninitialised, format!("{what} depends on undefined bits"));
    };
    let fail = Fail::new(ErrorCode::Uninitialised, format!("{what} depends on {source}"));
    match pc {
        Some(pc) => fail.against(pc, "the load"),
        None => fail,
    }
}

/// The name of a scalar register in messages.
pub(crate) fn scalar_name(code: u8) -> String {
    match code {
        VCC => "`vcc_lo`".to_owned(),
        M0 => "`m0`".to_owned(),
        _ if code == VCC + 1 => "`vcc_hi`".to_owned(),
        _ if code < SGPRS => format!("`s{code}`"),
        _ => format!("the scalar register {code}"),
    }
}
