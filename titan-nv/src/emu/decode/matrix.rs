//! `ldmatrix`, `stmatrix`, `movmatrix`, `mma.sync`.

use super::{Decoded, Decoder};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::mma::{self, MmaShape};
use crate::emu::op::{MmaOp, Op};
use crate::emu::ty::{Space, Ty};

impl Decoder<'_> {
    pub(super) fn matrix(&mut self) -> Decoded {
        match self.opcode() {
            "mma" => self.mma(),
            "movmatrix" => {
                self.words(&["sync", "aligned", "m8n8", "trans", "b16"])?;
                self.end()?;
                self.n_operands(&[2])?;
                Ok(Op::Movmatrix { dst: self.dst(0, Ty::B32)?, src: self.src(1, Ty::B32)? })
            }
            _ => self.move_matrix(),
        }
    }

    fn move_matrix(&mut self) -> Decoded {
        let loads = self.opcode() == "ldmatrix";
        self.words(&["sync", "aligned", "m8n8"])?;
        let n = match self.need(&["x1", "x2", "x4"])? {
            "x1" => 1,
            "x2" => 2,
            _ => 4,
        };
        let transposed = self.accept("trans");
        let space = self.one_of(&["shared", "shared::cta"]).map_or(Space::Generic, |_| Space::Shared);
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[2])?;
        if ty != Ty::B16 {
            return Err(self.bad_type(ty));
        }
        if loads {
            return Ok(Op::Ldmatrix { dsts: self.dst_list(0, n, Ty::B32)?, addr: self.address(1, space)?, transposed });
        }
        Ok(Op::Stmatrix { srcs: self.src_list(1, n, Ty::B32)?, addr: self.address(0, space)?, transposed })
    }

    fn shape(&mut self) -> Result<MmaShape, EmuError> {
        let shape = self.peek().and_then(MmaShape::named).ok_or_else(|| self.wrong_part("a shape"))?;
        self.at += 1;
        Ok(shape)
    }

    fn mma(&mut self) -> Decoded {
        self.words(&["sync", "aligned"])?;
        let shape = self.shape()?;
        self.words(&["row", "col"])?;
        let saturate = self.accept("satfinite");
        let (out, a, b, acc) = (self.ty()?, self.ty()?, self.ty()?, self.ty()?);
        self.end()?;
        self.n_operands(&[4])?;
        if !mma::exists(shape, a, b, acc, out) || (saturate && !matches!(acc, Ty::S32)) {
            let message = format!("`{}` is no matrix product that is emulated", self.full());
            return Err(self.error(ErrorCode::Unknown, message));
        }
        let [na, nb, nc] = shape.registers(a, acc);
        // Operands are 32-bit registers, whatever they pack; f64 has its own.
        let wide = a == Ty::F64;
        let packed = if wide { Ty::F64 } else { Ty::B32 };
        let acc_ty = match acc {
            Ty::F64 => Ty::F64,
            Ty::F32 => Ty::F32,
            _ => Ty::B32,
        };
        Ok(Op::Mma(Box::new(MmaOp {
            shape,
            a,
            b,
            acc,
            out,
            saturate,
            d_regs: self.dst_list(0, nc, acc_ty)?,
            a_regs: self.src_list(1, na, packed)?,
            b_regs: self.src_list(2, nb, packed)?,
            c_regs: self.src_list(3, nc, acc_ty)?,
        })))
    }
}
