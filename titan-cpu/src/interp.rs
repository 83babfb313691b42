//! Runs one program of a scalar kernel of `f32` and integers.

use crate::{Arg, RunError, Scalar};
use titan_core::ir::{BinOp, Block, Const, Elem, Kernel, Op, OpKind, Pred, Ty, Value};

struct Frame<'a> {
    kernel: &'a Kernel,
    args: &'a [Arg],
    values: Vec<f64>,
    ids: [u32; 3],
    grid: [u32; 3],
}

pub(crate) fn run(kernel: &Kernel, args: &[Arg], ids: [u32; 3], grid: [u32; 3]) -> Result<(), RunError> {
    let mut values = vec![0.0; kernel.values.len()];
    for (slot, arg) in values.iter_mut().zip(args) {
        match arg {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            Arg::Scalar(Scalar::Int(v)) => *slot = *v as f64,
            Arg::Scalar(Scalar::Float(v)) => *slot = *v,
            Arg::Tensor { .. } | Arg::Absent => {}
        }
    }
    Frame { kernel, args, values, ids, grid }.block(kernel.body).map(|_| ())
}

impl Frame<'_> {
    fn get(&self, v: Value) -> f64 {
        self.values[v.index()]
    }

    fn block(&mut self, block: Block) -> Result<Vec<f64>, RunError> {
        for id in &self.kernel.block(block).ops {
            let op = self.kernel.op(*id);
            if op.kind.is_terminator() {
                return Ok(op.args.iter().map(|v| self.get(*v)).collect());
            }
            let result = self.op(op)?;
            if let Some(v) = op.results.first() {
                self.values[v.index()] = result;
            }
        }
        Ok(Vec::new())
    }

    fn trap(&self, op: &Op, message: &str) -> RunError {
        RunError::Trap { message: message.to_owned(), loc: op.loc, program: self.ids }
    }

    fn op(&mut self, op: &Op) -> Result<f64, RunError> {
        let arg = |i: usize| self.get(op.args[i]);
        #[expect(
            clippy::cast_precision_loss,
            clippy::wildcard_enum_match_arm,
            reason = "a subset, small numbers"
        )]
        Ok(match &op.kind {
            OpKind::Const(Const::Int(_, v)) => *v as f64,
            OpKind::Const(Const::Float(_, v)) => *v,
            OpKind::ProgramId(axis) => self.ids[usize::from(*axis)].into(),
            OpKind::NumPrograms(axis) => self.grid[usize::from(*axis)].into(),
            OpKind::Present => f64::from(u8::from(!matches!(self.args[op.args[0].index()], Arg::Absent))),
            OpKind::Binary(BinOp::Add) => arg(0) + arg(1),
            OpKind::Binary(BinOp::Mul) => arg(0) * arg(1),
            OpKind::Cast(_) => arg(0),
            OpKind::Cmp(Pred::Lt) => f64::from(u8::from(arg(0) < arg(1))),
            OpKind::Assert(message) if arg(0) == 0.0 => return Err(self.trap(op, message)),
            OpKind::Assert(_) => 0.0,
            OpKind::Get => self.access(op, None)?,
            OpKind::Set => self.access(op, Some(arg(op.args.len() - 1)))?,
            OpKind::For(_) => self.counted(op)?,
            other => return Err(RunError::BadArguments(format!("{other:?} does not run here"))),
        })
    }

    fn counted(&mut self, op: &Op) -> Result<f64, RunError> {
        let (mut i, hi, step) = (self.get(op.args[0]), self.get(op.args[1]), self.get(op.args[2]));
        let body = op.regions[0];
        let slots = self.kernel.block(body).args.clone();
        let mut carried: Vec<f64> = op.args[3..].iter().map(|v| self.get(*v)).collect();
        while i < hi {
            self.values[slots[0].index()] = i;
            for (slot, v) in slots[1..].iter().zip(&carried) {
                self.values[slot.index()] = *v;
            }
            carried = self.block(body)?;
            i += step;
        }
        Ok(carried.first().copied().unwrap_or(0.0))
    }

    #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
    fn access(&self, op: &Op, store: Option<f64>) -> Result<f64, RunError> {
        let tensor = op.args[0];
        let Arg::Tensor { memory, offset, extents, strides } = &self.args[tensor.index()] else {
            return Err(RunError::BadArguments("a tensor is absent".to_owned()));
        };
        let Ty::Tensor(elem, _) = self.kernel.ty(tensor) else {
            unreachable!("`get` and `set` take tensors")
        };
        let mut at = 0;
        for (axis, (extent, stride)) in extents.iter().zip(strides).enumerate() {
            let i = self.get(op.args[1 + axis]) as i64;
            if !(0..i64::from(*extent)).contains(&i) {
                return Err(
                    self.trap(op, &format!("index {i} is outside of axis {axis}, whose extent is {extent}"))
                );
            }
            at += i * stride;
        }
        let at = offset + usize::try_from(at).unwrap_or(0) * 4;
        let outside = |_| RunError::BadArguments("a tensor reaches beyond its memory".to_owned());
        let mut bytes = [0; 4];
        match (store, elem) {
            (Some(v), Elem::F32) => memory.write(at, &(v as f32).to_ne_bytes()).map_err(outside)?,
            (Some(v), _) => memory.write(at, &(v as i32).to_ne_bytes()).map_err(outside)?,
            (None, _) => memory.read(at, &mut bytes).map_err(outside)?,
        }
        Ok(if elem == Elem::F32 {
            f32::from_ne_bytes(bytes).into()
        } else {
            i32::from_ne_bytes(bytes).into()
        })
    }
}
