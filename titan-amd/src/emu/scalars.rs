//! Scalar registers: their values, which of their bits are undefined, and which of them scalar loads in flight will write.

use super::absent::{Absent, refuse};
use super::error::ErrorCode;
use super::fail::Fail;
use super::vectors::Origin;
use super::wave::{Fill, Serial, scalar_name};
use crate::isa::operand::{EXEC, FLAT_SCRATCH, M0, SGPRS, ScalarName, TTMP, VCC, XNACK_MASK};
use titan_sim::engine::Rng;

/// The scalar registers of a wave.
#[derive(Clone, Debug)]
pub(crate) struct Scalars {
    values: [u32; 128],
    /// The registers with undefined bits.
    undefined: u128,
    /// The undefined bits of these; those of others have no meaning.
    shadows: [u32; 128],
    origins: [Origin; 128],
    busy: u128,
    by: Option<Serial>,
    /// The number of general registers that the kernel was allocated.
    count: u8,
}

/// A value and its shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) bits: u64,
    pub(crate) shadow: u64,
}

impl Value {
    pub(crate) const fn defined(bits: u64) -> Value {
        Value { bits, shadow: 0 }
    }
}

impl Scalars {
    pub(crate) fn new(count: u32, fill: Fill) -> Scalars {
        let named = 1_u128 << EXEC | 1 << (EXEC + 1);
        let mut rng = Rng::new(fill.seed ^ 0x5C);
        #[expect(clippy::cast_possible_truncation, reason = "random bits")]
        let values = std::array::from_fn(|_| if fill.seed == 0 { 0 } else { rng.next_u64() as u32 });
        Scalars {
            values,
            undefined: if fill.defined { 0 } else { !named },
            shadows: [u32::MAX; 128],
            #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
            origins: std::array::from_fn(|r| Origin::Scalar(r as u8)),
            busy: 0,
            by: None,
            count: u8::try_from(count.min(SGPRS.into())).unwrap_or(SGPRS),
        }
    }

    /// The mask of active lanes, which is always defined.
    #[inline]
    pub(crate) const fn exec(&self) -> u64 {
        self.values[EXEC as usize] as u64 | (self.values[EXEC as usize + 1] as u64) << 32
    }

    fn index(&self, code: u8) -> Result<usize, Fail> {
        let named = matches!(code, VCC..TTMP | M0 | EXEC..128);
        if code < self.count || named {
            return Ok(code.into());
        }
        let name = ScalarName(code, 1);
        match code {
            FLAT_SCRATCH..XNACK_MASK => return Err(refuse(Absent::PrivateBase, format_args!("`{name}`"))),
            XNACK_MASK..VCC | TTMP..M0 => return Err(refuse(Absent::TrapHandler, format_args!("`{name}`"))),
            _ => {}
        }
        let message = format!("`s{code}` is used, and the kernel was given {} scalar registers", self.count);
        Err(Fail::new(ErrorCode::Register, message))
    }

    /// One register; some of its bits may be undefined.
    #[inline]
    fn word(&self, code: u8) -> Result<(u32, u32), Fail> {
        let i = self.index(code)?;
        if self.busy >> i & 1 == 1 {
            return Err(self.in_flight(code));
        }
        Ok((self.values[i], if self.undefined >> i & 1 == 1 { self.shadows[i] } else { 0 }))
    }

    /// The value of one or two registers; some of its bits may be undefined.
    #[inline]
    pub(crate) fn get(&self, code: u8, n: u8) -> Result<Value, Fail> {
        let (low, low_shadow) = self.word(code)?;
        if n < 2 {
            return Ok(Value { bits: low.into(), shadow: low_shadow.into() });
        }
        let (high, high_shadow) = self.word(code + 1)?;
        let both = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Ok(Value { bits: both(low, high), shadow: both(low_shadow, high_shadow) })
    }

    /// Where undefined bits of one or two registers come from.
    pub(crate) fn origin(&self, code: u8, n: u8) -> Option<Origin> {
        let is_undefined = |r: &u8| self.undefined >> (r & 127) & 1 == 1;
        (code..code.saturating_add(n)).find(is_undefined).map(|r| self.origins[usize::from(r & 127)])
    }

    /// Sets one or two registers. `origin` is where the undefined bits come from.
    pub(crate) fn set(&mut self, code: u8, n: u8, value: Value, origin: Option<Origin>) -> Result<(), Fail> {
        #[expect(clippy::cast_possible_truncation, reason = "the words of a pair")]
        let words = |v: u64| [v as u32, (v >> 32) as u32];
        let parts = words(value.bits).into_iter().zip(words(value.shadow));
        for (at, (word, shadow)) in (code..).zip(parts).take(n.into()) {
            let i = self.index(at)?;
            if self.busy >> i & 1 == 1 {
                return Err(self.in_flight(at));
            }
            self.put(i, word, shadow, origin);
        }
        Ok(())
    }

    fn put(&mut self, i: usize, word: u32, shadow: u32, origin: Option<Origin>) {
        self.values[i] = word;
        if shadow == 0 {
            self.undefined &= !(1 << i);
        } else {
            self.undefined |= 1 << i;
            self.shadows[i] = shadow;
            if let Some(origin) = origin {
                self.origins[i] = origin;
            }
        }
    }

    /// Reserves registers for a scalar load.
    pub(crate) fn reserve(&mut self, code: u8, n: u8, op: Serial) -> Result<(), Fail> {
        for at in code..code + n {
            let i = self.index(at)?;
            if self.busy >> i & 1 == 1 {
                return Err(self.in_flight(at));
            }
            self.busy |= 1 << i;
        }
        self.by = Some(op);
        Ok(())
    }

    /// Fills registers that a load has reserved, with words and their shadows.
    pub(crate) fn complete(&mut self, code: u8, words: &[(u32, u32)], pc: u64) {
        for (at, (word, shadow)) in (code..).zip(words) {
            let i = usize::from(at) & 127;
            self.busy &= !(1 << i);
            self.put(i, *word, *shadow, Some(Origin::Loaded(pc)));
        }
    }

    #[cold]
    fn in_flight(&self, code: u8) -> Fail {
        let message = format!("{} is used while a scalar load in flight is to write it", scalar_name(code));
        Fail::new(ErrorCode::InFlight, message).help("wait for it by `s_waitcnt lgkmcnt(0)`").because(self.by)
    }
}

/// Whether registers contain the mask of active lanes, or `vcc`.
pub(crate) const fn is_exec(code: u8, n: u8) -> bool {
    code >= EXEC || code as u32 + n as u32 > EXEC as u32
}

/// The registers of `vcc`.
pub(crate) const VCC_PAIR: (u8, u8) = (VCC, 2);
