//! Evaluates one thread of a function without memory, by the contracts of `titan_core::lane::op`; for tests of the lowering.
//!
//! Operations whose contract allows an error are evaluated exactly or with the maximum error in either direction ([`Margin`]). A bound that
//! holds for all three holds on every machine that satisfies the contract.
//!
//! Deliberately absent: memory, other lanes, and speed. Operations that need memory or other lanes are errors.

mod arith;
mod float;
mod tests;

use titan_core::lane::family::{self, Family};
use titan_core::lane::{Block, Builder, Func, Op, OpKind, Ty, Value, mnemonic};
use titan_core::launch::abi::Slot;

/// The error that approximate operations are evaluated with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Margin {
    /// The exact result, rounded; subnormals are kept.
    None,
    /// The maximum error upward that the contract allows; subnormals become zero.
    High,
    /// The maximum error downward; subnormals become zero.
    Low,
}

/// The reason why a function cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvalError {
    /// An operation needs memory or other lanes.
    #[error("`{0}` cannot be evaluated for one thread alone")]
    Unsupported(String),
    /// The contract excludes the operands: a divisor of 0, a shift by the width or more.
    #[error("`{0}` was given operands that its contract forbids: {1:x?}")]
    Contract(String, Vec<u64>),
    /// The list of parameter words is too short.
    #[error("there is no parameter word {0}")]
    NoSlot(u32),
    /// A loop does not end within the limit.
    #[error("a loop ran {0} times without an end")]
    Endless(u32),
}

/// The maximum number of iterations of one loop.
const LOOP_LIMIT: u32 = 1 << 20;

/// The continuation after a block.
enum Flow {
    Yield(Vec<u64>),
    Break(u32, Vec<u64>),
    Continue(u32, Vec<u64>),
    Return,
}

/// Evaluates a function, any number of times.
#[derive(Debug)]
pub(crate) struct Evaluator<'f> {
    func: &'f Func,
    margin: Margin,
    values: Vec<u64>,
}

/// A function whose only parameters are words of these widths, 32 or 64 bits, and the values of the parameters.
///
/// It is for functions that are built only to be evaluated.
pub(crate) fn builder(wide: &[bool]) -> (Builder, Vec<Value>) {
    let slots = (0u32..).zip(wide).map(|(param, wide)| Slot::Scalar { param, wide: *wide }).collect();
    let mut b = Builder::new("eval", slots, 32, 32);
    let values = (0u32..).zip(wide).map(|(slot, _)| b.one(OpKind::Slot(slot), &[])).collect();
    (b, values)
}

impl<'f> Evaluator<'f> {
    /// An evaluator of a verified function.
    pub(crate) fn new(func: &'f Func, margin: Margin) -> Self {
        Evaluator { func, margin, values: vec![0; func.values.len()] }
    }

    /// Executes the thread with these parameter words.
    ///
    /// # Errors
    /// Returns an error if an operation needs more than one thread, or if its contract excludes the operands.
    pub(crate) fn run(&mut self, slots: &[u64]) -> Result<(), EvalError> {
        self.block(self.func.body, slots)?;
        Ok(())
    }

    /// The bits of a value after [`Evaluator::run`].
    pub(crate) fn get(&self, value: Value) -> u64 {
        self.values.get(value.index()).copied().unwrap_or(0)
    }

    fn set(&mut self, targets: &[Value], bits: &[u64]) {
        for (target, bits) in targets.iter().zip(bits) {
            self.values[target.index()] = truncate(self.func.ty(*target), *bits);
        }
    }

    fn block(&mut self, block: Block, slots: &[u64]) -> Result<Flow, EvalError> {
        let func = self.func;
        for id in &func.block(block).ops {
            let op = func.op(*id);
            if let OpKind::Slot(slot) = op.kind {
                let word = slots.get(slot as usize).copied().ok_or(EvalError::NoSlot(slot))?;
                self.set(&op.results, &[word]);
                continue;
            }
            let flow = match op.kind.family() {
                Family::Pure => None,
                Family::Flow(flow) => Some(flow),
                Family::Warp
                | Family::Mark { .. }
                | Family::Access { .. }
                | Family::Matrix { .. }
                | Family::Copy(_)
                | Family::Protocol
                | Family::Order
                | Family::Group(_)
                | Family::Barrier(_) => return Err(unsupported(op)),
            };
            let Some(flow) = flow else {
                let mut args = [0; 4];
                for (arg, value) in args.iter_mut().zip(&op.args) {
                    *arg = self.get(*value);
                }
                let (results, n) = self.pure(op, args.get(..op.args.len()).unwrap_or(&args))?;
                self.set(&op.results, &results[..n]);
                continue;
            };
            let args: Vec<u64> = op.args.iter().map(|v| self.get(*v)).collect();
            match flow {
                family::Flow::Break(n) => return Ok(Flow::Break(n, args)),
                family::Flow::Continue(n) => return Ok(Flow::Continue(n, args)),
                family::Flow::Yield => return Ok(Flow::Yield(args)),
                family::Flow::Return => return Ok(Flow::Return),
                family::Flow::Roles(_) => return Err(unsupported(op)),
                family::Flow::If => {
                    let arm = op.regions[usize::from(args[0] == 0)];
                    match self.block(arm, slots)? {
                        Flow::Yield(values) => self.set(&op.results, &values),
                        other @ (Flow::Break(..) | Flow::Continue(..) | Flow::Return) => return Ok(other),
                    }
                }
                family::Flow::For | family::Flow::Loop => {
                    if let Some(out) = self.repeat(op, &args, slots)? {
                        return Ok(out);
                    }
                }
            }
        }
        Ok(Flow::Return)
    }

    /// Executes a loop; returns the jump that leaves it for an outer loop, if any.
    fn repeat(&mut self, op: &Op, args: &[u64], slots: &[u64]) -> Result<Option<Flow>, EvalError> {
        let counted = op.kind == OpKind::For;
        let (bounds, init) = args.split_at(if counted { 3 } else { 0 });
        let bounds: Vec<i64> = bounds.iter().map(|b| i64::from(low32(*b).cast_signed())).collect();
        let mut index = bounds.first().copied().unwrap_or(0);
        let mut carried = init.to_vec();
        for _ in 0..LOOP_LIMIT {
            if counted && index >= bounds[1] {
                self.set(&op.results, &carried);
                return Ok(None);
            }
            let inner = self.func.block(op.regions[0]).args.clone();
            if counted {
                self.set(&inner[..1], &[index.cast_unsigned()]);
            }
            self.set(&inner[usize::from(counted)..], &carried);
            match self.block(op.regions[0], slots)? {
                Flow::Break(0, values) => {
                    self.set(&op.results, &values);
                    return Ok(None);
                }
                Flow::Break(n, values) => return Ok(Some(Flow::Break(n - 1, values))),
                Flow::Continue(0, values) | Flow::Yield(values) => carried = values,
                Flow::Continue(n, values) => return Ok(Some(Flow::Continue(n - 1, values))),
                Flow::Return => return Ok(Some(Flow::Return)),
            }
            index += bounds.get(2).copied().unwrap_or(0);
        }
        Err(EvalError::Endless(LOOP_LIMIT))
    }

    /// The results of an operation that depends only on its operands, and the number of results.
    fn pure(&self, op: &Op, args: &[u64]) -> Result<([u64; 4], usize), EvalError> {
        let one = |bits: u64| Ok(([bits, 0, 0, 0], 1));
        let ty = op.args.first().map_or(Ty::B32, |v| self.func.ty(*v));
        match (&op.kind, args) {
            (OpKind::Const(_, bits), []) => one(*bits),
            (OpKind::Int(int), [x, y]) => {
                let broken = || EvalError::Contract(int.to_string(), args.to_vec());
                one(arith::int(*int, ty, *x, *y).ok_or_else(broken)?)
            }
            (OpKind::IntUn(un), [x]) => one(arith::int_function(*un, *x)),
            (OpKind::MulWide { signed }, [x, y]) => one(arith::mul_wide(*signed, *x, *y)),
            (OpKind::IntCmp { pred, signed }, [x, y]) => one(arith::compare(*pred, *signed, ty, *x, *y).into()),
            (OpKind::Extend { from, signed, .. }, [x]) => one(arith::extend(*x, u32::from(*from), *signed)),
            (OpKind::Truncate(_) | OpKind::FromPred, [x]) => one(*x),
            (OpKind::Select, [p, x, y]) => one(if *p != 0 { *x } else { *y }),
            (OpKind::Pack, parts) => one(arith::pack(ty, parts)),
            (OpKind::Unpack, [x]) if ty == Ty::B32 => Ok(([*x & 0xffff, *x >> 16, 0, 0], 2)),
            (OpKind::Unpack, [x]) => Ok(([*x & 0xffff_ffff, *x >> 32, 0, 0], 2)),
            (OpKind::UnpackBytes { signed }, [x]) => {
                Ok(([0, 8, 16, 24].map(|shift| arith::extend(*x >> shift, 8, *signed)), 4))
            }
            (OpKind::Float(bin, float), [x, y]) => one(float::binary(*bin, *float, *x, *y)),
            (OpKind::FloatUn(un, float), [x]) => one(float::unary(*un, *float, *x, self.margin)),
            (OpKind::Fma(float), [x, y, z]) => one(float::fma(*float, *x, *y, *z)),
            (OpKind::FloatCmp(pred, float), [x, y]) => one(float::compare(*pred, *float, *x, *y).into()),
            (OpKind::Convert { from, to }, [x]) => one(float::convert(*from, *to, *x)),
            (OpKind::Convert { from, to }, [x, y]) => {
                Ok(([float::convert(*from, *to, *x), float::convert(*from, *to, *y), 0, 0], 2))
            }
            _ => Err(unsupported(op)),
        }
    }
}

fn unsupported(op: &Op) -> EvalError {
    EvalError::Unsupported(mnemonic(&op.kind))
}

/// The low bits, as many as the type has.
const fn truncate(ty: Ty, bits: u64) -> u64 {
    match ty {
        Ty::Pred => bits & 1,
        Ty::B16 => bits & 0xffff,
        Ty::B32 => bits & 0xffff_ffff,
        Ty::B64 => bits,
    }
}

/// The low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is meant")]
const fn low32(bits: u64) -> u32 {
    bits as u32
}
