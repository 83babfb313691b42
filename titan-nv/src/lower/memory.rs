//! Loads, stores, atomics, asynchronous copies.

use super::error::{Fault, first, three, two};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::isa::memory::{ATOMIC, COMPARE_SWAP, COPY, COPY_PART, LOAD, STORE};
use crate::ptx::{Guard, Reg};
use titan_core::lane::{AtomicFn, Op, Space, Ty, Value};

/// The address space and offset of an access, the size and number of its elements, and whether it is masked.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) space: Space,
    pub(super) bytes: u8,
    pub(super) n: u8,
    pub(super) offset: i32,
    pub(super) masked: bool,
}

/// The registers of a vector access: a list in braces, or a single register.
fn braces(regs: Vec<Reg>) -> Arg {
    match regs.as_slice() {
        [reg] => Arg::Reg(*reg),
        _ => Arg::Regs(regs),
    }
}

impl Lower<'_> {
    pub(super) fn compare_swap(&mut self, space: Space, op: &Op) -> Done {
        let [address, old, new] = three(&op.args)?;
        let out = self.out(first(&op.results)?);
        let address = self.address(address, 0)?;
        let form = form_of(COMPARE_SWAP, &(space, out.class))?;
        self.inst(form, &[Arg::Reg(out), Arg::Address(address), Arg::Value(old), Arg::Value(new)])
    }

    /// Splits off the condition of a masked operation, its last operand.
    pub(super) fn mask<'v>(&mut self, masked: bool, args: &'v [Value]) -> Result<(Option<Guard>, &'v [Value]), Fault> {
        match args.split_last() {
            Some((mask, rest)) if masked => Ok((Some(self.guard(*mask)?), rest)),
            Some(_) | None => Ok((None, args)),
        }
    }

    /// A masked load leaves its registers unchanged where it is off, so the values for that case are moved there first.
    pub(super) fn load(&mut self, access: Access, op: &Op) -> Done {
        let (guard, args) = self.mask(access.masked, &op.args)?;
        let Some((address, other)) = args.split_first() else {
            return Err(Fault::Defect("a load has an address".to_owned()));
        };
        let outs = self.outs(op);
        for (out, other) in outs.iter().zip(other) {
            self.copy(*out, &Arg::Value(*other))?;
        }
        let address = self.address(*address, access.offset)?;
        let form = form_of(LOAD, &(access.space, access.bytes, access.n))?;
        self.guarded(guard, form, &[braces(outs), Arg::Address(address)])
    }

    pub(super) fn store(&mut self, access: Access, op: &Op) -> Done {
        let (guard, args) = self.mask(access.masked, &op.args)?;
        let Some((address, values)) = args.split_first() else {
            return Err(Fault::Defect("a store has an address".to_owned()));
        };
        let address = self.address(*address, access.offset)?;
        let values = values.iter().map(|v| self.reg(*v)).collect::<Result<Vec<_>, _>>()?;
        let form = form_of(STORE, &(access.space, access.bytes, access.n))?;
        self.guarded(guard, form, &[Arg::Address(address), braces(values)])
    }

    pub(super) fn atomic(&mut self, function: AtomicFn, space: Space, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let [address, by] = two(args)?;
        let out = self.out(first(&op.results)?);
        if masked {
            self.copy(out, &Arg::Bits(0))?;
        }
        let address = self.address(address, 0)?;
        let form = form_of(ATOMIC, &(function, space, out.class))?;
        self.guarded(guard, form, &[Arg::Reg(out), Arg::Address(address), Arg::Value(by)])
    }

    /// A masked copy that is off reads 0 bytes of the source, so that all bytes become zero.
    pub(super) fn copy_async(&mut self, bytes: u8, offset: i32, masked: bool, op: &Op) -> Done {
        let (guard, args) = self.mask(masked, &op.args)?;
        let [to, from] = two(args)?;
        let (to, from) = (self.address(to, offset)?, self.address(from, 0)?);
        let size = Arg::Bits(u64::from(bytes));
        let mut all = vec![Arg::Address(to), Arg::Address(from), size.clone()];
        let Some(Guard { reg, negated }) = guard else {
            return self.inst(form_of(COPY, &bytes)?, &all);
        };
        let read = self.fresh(Ty::B32);
        let (yes, no) = if negated { (Arg::Bits(0), size) } else { (size, Arg::Bits(0)) };
        self.choose(read, reg, yes, no)?;
        all.push(Arg::Reg(read));
        self.inst(form_of(COPY_PART, &bytes)?, &all)
    }
}
