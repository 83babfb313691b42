//! `wgmma`, `setmaxnreg`, and the instructions of clusters: barriers, addresses in other blocks.

use super::{Decoded, Decoder};
use crate::emu::ast::Operand;
use crate::emu::async_op::{GroupA, GroupMma};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::mma::MmaShape;
use crate::emu::op::Op;
use crate::emu::ty::{Kind, Ty};

impl Decoder<'_> {
    pub(super) fn group(&mut self) -> Decoded {
        match self.opcode() {
            "wgmma" => self.wgmma(),
            "mapa" => self.map_address(),
            _ => self.rank_of(),
        }
    }

    fn wgmma(&mut self) -> Decoded {
        let kind = self.need(&["mma_async", "fence", "commit_group", "wait_group"])?;
        self.words(&["sync", "aligned"])?;
        match kind {
            "fence" => self.plain(Op::MultiplyFence),
            "commit_group" => self.plain(Op::MultiplyCommit),
            "wait_group" => {
                self.end()?;
                self.n_operands(&[1])?;
                let at_most = u32::try_from(self.constant(0)?).ok().filter(|n| *n <= 7);
                let at_most = at_most.ok_or_else(|| self.misfit("a wait is for 0 to 7 groups"))?;
                Ok(Op::MultiplyWait { at_most })
            }
            _ => self.group_mma(),
        }
    }

    /// PTX ISA, "wgmma.mma_async": the operands after the matrices depend on the type.
    fn group_mma(&mut self) -> Decoded {
        let shape = self.peek().and_then(MmaShape::named).ok_or_else(|| self.wrong_part("a shape"))?;
        self.at += 1;
        let saturate = self.accept("satfinite");
        let (acc, a, b) = (self.ty()?, self.ty()?, self.ty()?);
        self.end()?;
        if !exists(shape, a, b, acc) || (saturate && acc != Ty::S32) {
            let message = format!("`{}` is no matrix product that is emulated", self.full());
            return Err(self.error(ErrorCode::Unknown, message));
        }
        let halves = matches!(a, Ty::F16 | Ty::Bf16);
        let in_registers = matches!(self.operand(1)?, Operand::Vector(_));
        let wanted = match (halves, in_registers, acc) {
            (_, _, Ty::S32) => 4,
            (false, ..) => 6,
            (true, true, _) => 7,
            (true, false, _) => 8,
        };
        self.n_operands(&[wanted])?;
        let sign = |d: &Self, i: usize| match d.operand(i)? {
            Operand::Int(1) => Ok(false),
            Operand::Int(-1) => Ok(true),
            _ => Err(d.misfit("a scale is 1 or -1")),
        };
        let negate = if acc == Ty::S32 { [false; 2] } else { [sign(self, 4)?, sign(self, 5)?] };
        let mn_major = match wanted {
            8 => [self.flag(6)?, self.flag(7)?],
            7 => [false, self.flag(6)?],
            _ => [false; 2],
        };
        let a_from = if in_registers {
            GroupA::Registers(self.registers(1, 4, Ty::B32)?)
        } else {
            GroupA::Descriptor(self.src(1, Ty::B64)?)
        };
        let n_acc = if acc == Ty::F16 { shape.n / 4 } else { shape.n / 2 };
        let acc_ty = if acc == Ty::F32 { Ty::F32 } else { Ty::B32 };
        Ok(Op::Multiply(Box::new(GroupMma {
            shape,
            a,
            b,
            acc,
            d_regs: self.registers(0, n_acc, acc_ty)?,
            a_from,
            b_from: self.src(2, Ty::B64)?,
            adds: self.pred(3)?,
            negate,
            mn_major,
            saturate,
        })))
    }

    fn flag(&self, i: usize) -> Result<bool, EmuError> {
        match self.constant(i)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.misfit("a transposition is 0 or 1")),
        }
    }

    /// A vector of `n` distinct registers.
    fn registers(&self, i: usize, n: usize, ty: Ty) -> Result<Vec<u32>, EmuError> {
        let all: Option<Vec<u32>> = self.dst_list(i, n, ty)?.into_iter().collect();
        let all = all.ok_or_else(|| self.misfit("every element needs a register"))?;
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() == all.len() { Ok(all) } else { Err(self.misfit("a register stands in it twice")) }
    }

    pub(super) fn cluster_barrier(&mut self) -> Decoded {
        let arrives = self.need(&["arrive", "wait"])? == "arrive";
        let order = self.one_of(&["release", "relaxed", "acquire"]);
        let fits =
            matches!((arrives, order), (true, None | Some("release" | "relaxed")) | (false, None | Some("acquire")));
        if !fits {
            return Err(self.misfit("an arrival releases or is relaxed, a wait acquires"));
        }
        let aligned = self.accept("aligned");
        let relaxed = order == Some("relaxed");
        self.plain(if arrives { Op::ClusterArrive { relaxed, aligned } } else { Op::ClusterWait { aligned } })
    }

    /// `mapa{.shared::cluster}.u32 d, a, rank`
    fn map_address(&mut self) -> Decoded {
        let generic = !self.accept("shared::cluster");
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[3])?;
        self.address_type(ty, generic)?;
        Ok(Op::MapAddress { dst: self.dst(0, ty)?, src: self.src(1, ty)?, rank: self.src(2, Ty::U32)?, generic })
    }

    /// `getctarank{.shared::cluster}.u32 d, a`
    fn rank_of(&mut self) -> Decoded {
        let generic = !self.accept("shared::cluster");
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[2])?;
        self.address_type(ty, generic)?;
        Ok(Op::RankOf { dst: self.dst(0, Ty::U32)?, src: self.src(1, ty)?, generic })
    }

    fn address_type(&self, ty: Ty, generic: bool) -> Result<(), EmuError> {
        if !matches!(ty, Ty::U32 | Ty::U64) || ty.kind() != Kind::Int {
            return Err(self.bad_type(ty));
        }
        if generic && ty == Ty::U32 {
            return Err(self.unknown("a generic address of 32 bits"));
        }
        Ok(())
    }

    pub(super) fn set_max_registers(&mut self) -> Decoded {
        let increase = self.need(&["inc", "dec"])? == "inc";
        self.words(&["sync", "aligned", "u32"])?;
        self.end()?;
        self.n_operands(&[1])?;
        let count = u32::try_from(self.constant(0)?).ok().filter(|n| (24..=256).contains(n) && n % 8 == 0);
        let count = count.ok_or_else(|| self.misfit("registers are 24 to 256, in steps of 8"))?;
        Ok(Op::SetMaxRegisters { count, increase })
    }
}

/// Whether this instruction exists. PTX ISA, "Asynchronous Warpgroup Level Matrix Shape".
fn exists(shape: MmaShape, a: Ty, b: Ty, acc: Ty) -> bool {
    let MmaShape { m, n, k } = shape;
    let fp8 = |t| matches!(t, Ty::E4m3 | Ty::E5m2);
    let byte = |t| matches!(t, Ty::S8 | Ty::U8);
    let columns = (8..=256).contains(&n) && n.is_multiple_of(8);
    let typed = match a {
        Ty::F16 => b == a && matches!(acc, Ty::F16 | Ty::F32) && k == 16,
        Ty::Bf16 => b == a && acc == Ty::F32 && k == 16,
        Ty::Tf32 => b == a && acc == Ty::F32 && k == 8,
        t if fp8(t) => fp8(b) && matches!(acc, Ty::F16 | Ty::F32) && k == 32,
        // For integers, N beyond 32 is a multiple of 16.
        t if byte(t) => byte(b) && acc == Ty::S32 && k == 32 && (n <= 32 || n.is_multiple_of(16)),
        _ => false,
    };
    m == 64 && columns && typed
}
