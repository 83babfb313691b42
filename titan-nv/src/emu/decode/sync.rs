//! Control flow, barriers, fences, and exchange within a warp.

use super::tensormap::PROXIES;
use super::{Decoded, Decoder};
use crate::emu::ast::Operand;
use crate::emu::async_op::Reach;
use crate::emu::error::EmuError;
use crate::emu::lane::{LaneFn, int};
use crate::emu::op::{Op, Reduce, Shuffle, Src, Vote};
use crate::emu::ty::{Space, Ty};

impl Decoder<'_> {
    pub(super) fn synchronisation(&mut self) -> Decoded {
        match self.opcode() {
            "bra" => {
                self.accept("uni");
                self.end()?;
                Ok(Op::Branch { target: self.label(0)? })
            }
            "brx" => self.indexed_branch(),
            "ret" => {
                self.accept("uni");
                self.plain(Op::Exit)
            }
            "exit" => self.plain(Op::Exit),
            "trap" => self.plain(Op::Trap),
            "bar" | "barrier" => self.barrier(),
            "membar" => {
                self.need(&["cta", "gl", "sys"])?;
                self.plain(Op::Fence { acquire: true, release: true })
            }
            "fence" => self.fence(),
            "shfl" => self.shuffle(),
            "vote" => self.vote(),
            "match" => self.match_any(),
            "redux" => self.redux(),
            "activemask" => {
                self.need(&["b32"])?;
                self.end()?;
                Ok(Op::Active { dst: self.dst(0, Ty::B32)? })
            }
            "elect" => {
                self.need(&["sync"])?;
                self.end()?;
                let (dst, ok) = self.pair(0, Ty::B32, Ty::Pred)?;
                Ok(Op::Elect { dst, ok, mask: self.src(1, Ty::B32)? })
            }
            "mbarrier" => self.mbarrier(),
            "griddepcontrol" => {
                // Kernels run one after the other, so all grids that this one depends on have completed.
                self.need(&["launch_dependents", "wait"])?;
                self.plain(Op::Nop)
            }
            "setmaxnreg" => self.set_max_registers(),
            "nanosleep" => {
                self.need(&["u32"])?;
                self.end()?;
                self.src(0, Ty::U32)?;
                Ok(Op::Nop)
            }
            _ => Ok(Op::Nop),
        }
    }

    fn label(&self, i: usize) -> Result<u32, EmuError> {
        match self.operand(i)? {
            Operand::Label(at) => u32::try_from(*at).map_err(|_| self.misfit("the label is not declared")),
            _ => Err(self.misfit("a label is needed")),
        }
    }

    fn indexed_branch(&mut self) -> Decoded {
        self.need(&["idx"])?;
        self.accept("uni");
        self.end()?;
        self.n_operands(&[2])?;
        match self.operand(1)? {
            Operand::Targets(all) if !all.is_empty() => {
                let targets = all.iter().filter_map(|t| u32::try_from(*t).ok()).collect();
                Ok(Op::BranchIndexed { index: self.src(0, Ty::U32)?, targets })
            }
            _ => Err(self.misfit("a list of branch targets is needed")),
        }
    }

    fn barrier(&mut self) -> Decoded {
        let always_aligned = self.opcode() == "bar";
        if always_aligned && self.accept("warp") {
            self.need(&["sync"])?;
            self.end()?;
            return Ok(Op::WarpBarrier { mask: self.src(0, Ty::B32)? });
        }
        if self.accept("cluster") {
            return self.cluster_barrier();
        }
        self.accept("cta");
        let kind = self.need(&["sync", "arrive", "red"])?;
        let reduction = if kind == "red" { Some(self.need(&["popc", "and", "or"])?) } else { None };
        let aligned = always_aligned || self.accept("aligned");
        let Some(reduction) = reduction else {
            self.end()?;
            let n = self.n_operands(if kind == "arrive" { &[2] } else { &[1, 2] })?;
            let count = if n == 2 { Some(self.src(1, Ty::U32)?) } else { None };
            return Ok(Op::Barrier { id: self.src(0, Ty::U32)?, count, waits: kind == "sync", aligned, reduce: None });
        };
        self.need(if reduction == "popc" { &["u32"] } else { &["pred"] })?;
        self.end()?;
        let n = self.n_operands(&[3, 4])?;
        let count = if n == 4 { Some(self.src(2, Ty::U32)?) } else { None };
        let (op, ty) = match reduction {
            "popc" => (Reduce::Popc, Ty::U32),
            "and" => (Reduce::And, Ty::Pred),
            _ => (Reduce::Or, Ty::Pred),
        };
        let reduce = Some((op, self.dst(0, ty)?, self.pred(n - 1)?));
        Ok(Op::Barrier { id: self.src(1, Ty::U32)?, count, waits: true, aligned, reduce })
    }

    fn fence(&mut self) -> Decoded {
        if self.accept("proxy") {
            match self.need(&["alias", "async", PROXIES])? {
                // Every byte has only one address here, so aliases need no fence.
                "alias" => return self.plain(Op::Nop),
                PROXIES => return self.map_fence(),
                _ => {}
            }
            let to = match self.one_of(&["global", "shared::cta", "shared::cluster"]) {
                None => Reach::All,
                Some("global") => Reach::Global,
                Some("shared::cta") => Reach::Block,
                Some(_) => Reach::Cluster,
            };
            return self.plain(Op::ProxyFence { to });
        }
        if self.accept("mbarrier_init") {
            self.need(&["release"])?;
            self.need(&["cluster"])?;
            return self.plain(Op::InitFence);
        }
        let kind = self.one_of(&["sc", "acq_rel", "acquire", "release"]).unwrap_or("acq_rel");
        self.need(&["cta", "cluster", "gpu", "sys"])?;
        self.plain(Op::Fence { acquire: kind != "release", release: kind != "acquire" })
    }

    fn shuffle(&mut self) -> Decoded {
        self.need(&["sync"])?;
        let mode = match self.need(&["up", "down", "bfly", "idx"])? {
            "up" => Shuffle::Up,
            "down" => Shuffle::Down,
            "bfly" => Shuffle::Bfly,
            _ => Shuffle::Idx,
        };
        self.need(&["b32"])?;
        self.end()?;
        self.n_operands(&[5])?;
        let (dst, ok) = self.pair(0, Ty::B32, Ty::Pred)?;
        let [src, by, clamp] = self.srcs(1, 3, Ty::B32)?;
        Ok(Op::Shuffle { mode, dst, ok, src, by, clamp, mask: self.src(4, Ty::B32)? })
    }

    fn vote(&mut self) -> Decoded {
        self.need(&["sync"])?;
        let kind = match self.need(&["all", "any", "uni", "ballot"])? {
            "all" => Vote::All,
            "any" => Vote::Any,
            "uni" => Vote::Uni,
            _ => Vote::Ballot,
        };
        let ty = if kind == Vote::Ballot { Ty::B32 } else { Ty::Pred };
        self.need(if kind == Vote::Ballot { &["b32"] } else { &["pred"] })?;
        self.end()?;
        self.n_operands(&[3])?;
        Ok(Op::Vote { kind, dst: self.dst(0, ty)?, src: self.pred(1)?, mask: self.src(2, Ty::B32)? })
    }

    fn match_any(&mut self) -> Decoded {
        let all = self.need(&["any", "all"])? == "all";
        self.need(&["sync"])?;
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[3])?;
        if !matches!(ty, Ty::B32 | Ty::B64) {
            return Err(self.bad_type(ty));
        }
        let (dst, ok) = self.pair(0, Ty::B32, Ty::Pred)?;
        Ok(Op::Match { all, dst, ok, src: self.src(1, ty)?, mask: self.src(2, Ty::B32)? })
    }

    fn redux(&mut self) -> Decoded {
        self.need(&["sync"])?;
        let op = self.need(&["add", "min", "max", "and", "or", "xor"])?;
        let ty = self.ty()?;
        self.end()?;
        self.n_operands(&[3])?;
        let f: Option<LaneFn> = match (op, ty) {
            ("and" | "or" | "xor", Ty::B32) => int::logic(op, ty),
            ("add" | "min" | "max", Ty::U32 | Ty::S32) => int::arithmetic(op, ty),
            _ => None,
        };
        let f = f.ok_or_else(|| self.bad_type(ty))?;
        Ok(Op::Redux { f, dst: self.dst(0, ty)?, src: self.src(1, ty)?, mask: self.src(2, Ty::B32)? })
    }

    /// Takes `.sem.scope` if present, then the space of a barrier; returns also whether the order is relaxed.
    fn barrier_space(&mut self) -> Result<(Space, bool), EmuError> {
        let order = self.one_of(&["relaxed", "acquire", "release"]);
        if order.is_some() {
            self.need(&["cta", "cluster"])?;
        }
        let space = match self.one_of(&["shared", "shared::cta", "shared::cluster"]) {
            None => Space::Generic,
            Some("shared::cluster") => Space::Cluster,
            Some(_) => Space::Shared,
        };
        Ok((space, order == Some("relaxed")))
    }

    fn mbarrier(&mut self) -> Decoded {
        let op = self.need(&[
            "init",
            "inval",
            "arrive",
            "arrive_drop",
            "expect_tx",
            "test_wait",
            "try_wait",
            "pending_count",
        ])?;
        if op == "pending_count" {
            self.b64_end()?;
            self.n_operands(&[2])?;
            return Ok(Op::BarrierPending { dst: self.dst(0, Ty::U32)?, state: self.src(1, Ty::B64)? });
        }
        let waits = matches!(op, "test_wait" | "try_wait");
        let parity = waits && self.accept("parity");
        let arrives = matches!(op, "arrive" | "arrive_drop");
        let expects = op == "expect_tx" || (arrives && self.accept("expect_tx"));
        if arrives {
            // The emulator checks the pending count anyway, so the assertion that the phase does not complete is not used.
            self.accept("noComplete");
        }
        let (space, relaxed) = self.barrier_space()?;
        self.b64_end()?;
        let remote = matches!(op, "arrive" | "arrive_drop" | "expect_tx");
        if space == Space::Cluster && !remote {
            return Err(self.misfit("only arrivals are at barriers of other blocks"));
        }
        match op {
            "init" => {
                self.n_operands(&[2])?;
                Ok(Op::BarrierInit { addr: self.address(0, space)?, count: self.src(1, Ty::U32)? })
            }
            "inval" => {
                self.n_operands(&[1])?;
                Ok(Op::BarrierInval { addr: self.address(0, space)? })
            }
            "expect_tx" => {
                self.n_operands(&[2])?;
                let (addr, bytes) = (self.address(0, space)?, Some(self.src(1, Ty::U32)?));
                Ok(Op::BarrierArrive {
                    addr,
                    dst: None,
                    count: Src::Imm(0),
                    bytes,
                    arrives: false,
                    drops: false,
                    relaxed,
                })
            }
            "test_wait" | "try_wait" => {
                self.n_operands(if op == "try_wait" { &[3, 4] } else { &[3] })?;
                let state = self.src(2, if parity { Ty::U32 } else { Ty::B64 })?;
                let (dst, addr) = (self.dst(0, Ty::Pred)?, self.address(1, space)?);
                Ok(Op::BarrierTest { addr, dst, state, parity, blocks: op == "try_wait", relaxed })
            }
            _ => {
                let n = self.n_operands(if expects { &[3] } else { &[2, 3] })?;
                let (dst, addr, drops) = (self.dst(0, Ty::B64)?, self.address(1, space)?, op == "arrive_drop");
                let last = if n == 3 { self.src(2, Ty::U32)? } else { Src::Imm(1) };
                let (count, bytes) = if expects { (Src::Imm(1), Some(last)) } else { (last, None) };
                if space == Space::Cluster && dst.is_some() {
                    return Err(self.misfit("an arrival at another block's barrier returns no state"));
                }
                Ok(Op::BarrierArrive { addr, dst, count, bytes, arrives: true, drops, relaxed })
            }
        }
    }
}
