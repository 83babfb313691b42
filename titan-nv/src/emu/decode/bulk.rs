//! `cp.async.bulk`, `cp.reduce.async.bulk`, their groups, and `st.async`.

use super::{Decoded, Decoder};
use crate::emu::ast::{Base, Name, Operand};
use crate::emu::async_op::{BulkEnd, BulkOp, BulkPlace, BulkReduce};
use crate::emu::error::EmuError;
use crate::emu::op::{Addr, Op, Src};
use crate::emu::ty::{Space, Ty};

/// The completion mechanism of copies to shared memory.
const BYTES: &str = "mbarrier::complete_tx::bytes";
/// The arithmetic operations of reductions.
const ARITHMETIC: [&str; 8] = ["add", "min", "max", "inc", "dec", "and", "or", "xor"];

impl Decoder<'_> {
    /// Decodes the words after `cp.async.bulk`.
    pub(super) fn bulk(&mut self) -> Decoded {
        match self.one_of(&["commit_group", "wait_group", "prefetch", "tensor"]) {
            Some("commit_group") => self.plain(Op::BulkCommit),
            Some("wait_group") => {
                let reads = self.accept("read");
                self.end()?;
                self.n_operands(&[1])?;
                let n = u32::try_from(self.constant(0)?).map_err(|_| self.misfit("the count is too large"))?;
                Ok(Op::BulkWait { at_most: n, reads })
            }
            Some("prefetch") => self.bulk_prefetch(),
            Some(_) => self.bulk_box(false),
            None => self.bulk_range(false),
        }
    }

    /// Decodes the words after `cp.reduce.async.bulk`.
    pub(super) fn bulk_reduction(&mut self) -> Decoded {
        if self.accept("tensor") {
            return self.bulk_box(true);
        }
        self.bulk_range(true)
    }

    /// Decodes a prefetch into the L2 cache: it has no effect, but its operands are checked.
    fn bulk_prefetch(&mut self) -> Decoded {
        if self.accept("tensor") {
            let dims = self.dims()?;
            self.words(&["L2", "global"])?;
            self.accept("tile");
            let policy = usize::from(self.accept("L2::cache_hint"));
            self.end()?;
            self.n_operands(&[1 + policy])?;
            self.map_and_coords(0, dims)?;
            return Ok(Op::Nop);
        }
        self.need(&["L2"])?;
        self.need(&["global"])?;
        let policy = usize::from(self.accept("L2::cache_hint"));
        self.end()?;
        self.n_operands(&[2 + policy])?;
        self.address(0, Space::Global)?;
        self.src(1, Ty::U32)?;
        Ok(Op::Nop)
    }

    fn dims(&mut self) -> Result<usize, EmuError> {
        Ok(match self.need(&["1d", "2d", "3d", "4d", "5d"])? {
            "1d" => 1,
            "2d" => 2,
            "3d" => 3,
            "4d" => 4,
            _ => 5,
        })
    }

    /// `[map, {coordinates}]`
    fn map_and_coords(&self, i: usize, dims: usize) -> Result<BulkPlace, EmuError> {
        let Operand::MemList(parts) = self.operand(i)? else {
            return Err(self.misfit("a tensor map and coordinates in brackets are needed"));
        };
        let [map, Operand::Vector(coords)] = &parts[..] else {
            return Err(self.misfit("a tensor map and a vector of coordinates are needed"));
        };
        if coords.len() != dims {
            return Err(self.misfit(&format!("{} coordinates for {dims} dimensions", coords.len())));
        }
        let map = self.address_from(map, Space::Generic)?;
        let coords = coords.iter().map(|c| self.src_of(c, Ty::S32, super::operand::Width::Same));
        Ok(BulkPlace::Box { map, coords: coords.collect::<Result<_, _>>()? })
    }

    /// Skips a cache policy; returns the number of its operands.
    fn policy(&mut self) -> usize {
        usize::from(self.accept("L2::cache_hint"))
    }

    fn bulk_box(&mut self, reduction: bool) -> Decoded {
        let dims = self.dims()?;
        let to = self.need(&["shared::cluster", "shared::cta", "global"])?;
        let from = self.need(&["global", "shared::cta"])?;
        if (to == "global") == (from == "global") {
            return Err(self.misfit("a tensor is in global memory, and its box in shared memory"));
        }
        let reduce = if reduction { Some(BulkReduce { name: self.need(&ARITHMETIC)?, ty: None }) } else { None };
        if self.peek().is_some_and(|p| p.starts_with("im2col")) {
            return Err(self.unknown("an `im2col` copy"));
        }
        self.accept("tile");
        if to == "global" {
            self.need(&["bulk_group"])?;
            let policy = self.policy();
            self.end()?;
            self.n_operands(&[2 + policy])?;
            let (to, from) = (self.map_and_coords(0, dims)?, BulkPlace::Range(self.address(1, Space::Shared)?));
            return Ok(bulk(BulkOp { to, from, bytes: None, end: BulkEnd::Group, mask: None, reduce }));
        }
        if reduce.is_some() {
            return Err(self.misfit("a reduction is into global memory"));
        }
        self.need(&[BYTES])?;
        let multicast = self.accept("multicast::cluster");
        let policy = self.policy();
        self.end()?;
        self.n_operands(&[3 + usize::from(multicast) + policy])?;
        let space = if to == "shared::cta" { Space::Shared } else { Space::Cluster };
        let (to, from) = (BulkPlace::Range(self.address(0, space)?), self.map_and_coords(1, dims)?);
        let end = BulkEnd::Barrier(self.address(2, space)?);
        let mask = if multicast { Some(self.src(3, Ty::U16)?) } else { None };
        Ok(bulk(BulkOp { to, from, bytes: None, end, mask, reduce }))
    }

    fn bulk_range(&mut self, reduction: bool) -> Decoded {
        let to = self.need(&["shared::cluster", "shared::cta", "global"])?;
        let from = self.need(&["global", "shared::cta"])?;
        let space = |name: &str| match name {
            "shared::cluster" => Space::Cluster,
            "shared::cta" => Space::Shared,
            _ => Space::Global,
        };
        let group = to == "global";
        if group && from == "global" {
            return Err(self.misfit("one side is in shared memory"));
        }
        self.need(if group { &["bulk_group"] } else { &[BYTES] })?;
        let multicast = !group && from == "global" && self.accept("multicast::cluster");
        let policy = self.policy();
        let reduce = match reduction {
            false => None,
            true => {
                let name = self.need(&ARITHMETIC)?;
                let noftz = self.accept("noftz");
                let ty = self.ty()?;
                if noftz != (matches!(ty, Ty::F16 | Ty::Bf16) && name == "add") {
                    return Err(self.misfit("`.noftz` belongs to additions of halves"));
                }
                Some(BulkReduce { name, ty: Some(ty) })
            }
        };
        if reduce.is_some() && !group {
            return Err(self.unknown("a reduction into shared memory"));
        }
        self.end()?;
        self.n_operands(&[3 + usize::from(!group) + usize::from(multicast) + policy])?;
        let (to, from) = (self.address(0, space(to))?, self.address(1, space(from))?);
        let bytes = Some(self.src(2, Ty::U32)?);
        let end = if group { BulkEnd::Group } else { BulkEnd::Barrier(self.address(3, to.space)?) };
        let mask = if multicast { Some(self.src(4, Ty::U16)?) } else { None };
        let (to, from) = (BulkPlace::Range(to), BulkPlace::Range(from));
        Ok(bulk(BulkOp { to, from, bytes, end, mask, reduce }))
    }

    /// `st.async{.weak}.shared::cluster.mbarrier::complete_tx::bytes{.v}.type [a], b, [barrier]`
    pub(super) fn store_async(&mut self) -> Decoded {
        self.accept("weak");
        self.need(&["shared::cluster"])?;
        self.need(&[BYTES])?;
        let n = match self.one_of(&["v2", "v4"]) {
            None => 1,
            Some("v2") => 2,
            Some(_) => 4,
        };
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[3])?;
        if !matches!(ty, Ty::B32 | Ty::B64 | Ty::U32 | Ty::U64 | Ty::S32 | Ty::S64 | Ty::F32 | Ty::F64) {
            return Err(self.bad_type(ty));
        }
        let srcs: Vec<Src> = self.src_list(1, n, ty)?;
        let (addr, barrier) = (self.address(0, Space::Cluster)?, self.address(2, Space::Cluster)?);
        Ok(Op::StoreAsync { srcs, addr, barrier, bytes: ty.bytes() })
    }

    /// An address that is one of several operands in the same brackets.
    fn address_from(&self, operand: &Operand, space: Space) -> Result<Addr, EmuError> {
        match operand {
            Operand::Mem(base, offset) => self.address_at(*base, *offset, space),
            Operand::Reg(r) => self.address_at(Base::Reg(*r), 0, space),
            Operand::Address(name @ (Name::Param(_) | Name::Global(_) | Name::Local(_)), offset) => {
                self.address_at(Base::Name(*name), *offset, space)
            }
            _ => Err(self.misfit("an address is needed")),
        }
    }
}

fn bulk(op: BulkOp) -> Op {
    Op::Bulk(Box::new(op))
}
