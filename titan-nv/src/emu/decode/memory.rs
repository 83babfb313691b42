//! `ld`, `st`, `atom`, `red`, `cp.async`, and hints about caches.

use super::operand::Width;
use super::{Decoded, Decoder};
use crate::emu::ast::Operand;
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::lane::{Mode, float, half, int};
use crate::emu::op::{AtomFn, Element, Op, Order, PredSrc, Src};
use crate::emu::ty::{Kind, Space, Ty};

const SCOPES: [&str; 4] = ["cta", "cluster", "gpu", "sys"];
const CACHES: [&str; 7] = ["ca", "cg", "cs", "lu", "cv", "wb", "wt"];

impl Decoder<'_> {
    pub(super) fn memory(&mut self) -> Decoded {
        match self.opcode() {
            "ld" | "ldu" => self.load(),
            "st" => self.store(),
            "atom" => self.atomic(true),
            "red" => self.atomic(false),
            "cp" => self.copy(),
            "createpolicy" => {
                // A cache policy is only a hint; its value is not used.
                let dst = self.dst(0, Ty::B64)?;
                Ok(Op::Lane { f: |_, _, _, _| 0, mode: Mode::default(), all: None, dst, src: [Src::Imm(0); 3] })
            }
            "prefetch" => self.prefetch(),
            _ => Ok(Op::Nop),
        }
    }

    /// Decodes a prefetch: it has no effect, but its operands are checked.
    fn prefetch(&mut self) -> Decoded {
        if self.peek() == Some("tensormap") {
            self.at += 1;
            self.end()?;
            self.n_operands(&[1])?;
            self.address(0, Space::Generic)?;
            return Ok(Op::Nop);
        }
        let space = self.peek().and_then(Space::named);
        self.at += usize::from(space.is_some());
        self.need(&["L1", "L2", "L2::evict_last", "L2::evict_normal"])?;
        self.end()?;
        self.address(0, space.unwrap_or(Space::Generic))?;
        Ok(Op::Nop)
    }

    /// Takes what stands between the opcode and the type of a load or store: order and scope, state space, cache hints. Compilers write
    /// them in any sequence, and assemblers accept it.
    fn qualifiers(&mut self, store: bool) -> Result<Qualifiers, EmuError> {
        let orders: &[&'static str] = if store {
            &["weak", "volatile", "relaxed", "release"]
        } else {
            &["weak", "volatile", "relaxed", "acquire"]
        };
        let (mut order, mut scope, mut space, mut policy, mut lanes) = (None, None, None, false, None);
        while let Some(part) = self.peek() {
            if order.is_none() && orders.contains(&part) {
                order = Some(part);
            } else if scope.is_none() && SCOPES.contains(&part) {
                scope = Some(part);
            } else if let Some(its) = Space::named(part).filter(|_| space.is_none()) {
                space = Some(its);
            } else if let Some(n) = vector_length(part).filter(|_| lanes.is_none()) {
                lanes = Some(n);
            } else if CACHES.contains(&part) || part == "nc" || part.starts_with("L1::") || part.starts_with("L2::") {
                policy |= part == "L2::cache_hint";
            } else {
                break;
            }
            self.at += 1;
        }
        if scope.is_some() != matches!(order, Some("relaxed" | "acquire" | "release")) {
            let wanted = format!("one of `.{}`", SCOPES.join("`, `."));
            return Err(if scope.is_some() { self.misfit("a scope needs an order") } else { self.wrong_part(&wanted) });
        }
        let order = match order {
            None | Some("weak") => Order::default(),
            Some("acquire") => Order { strong: true, acquire: true, release: false },
            Some("release") => Order { strong: true, acquire: false, release: true },
            Some(_) => Order { strong: true, acquire: false, release: false },
        };
        Ok(Qualifiers { order, space: space.unwrap_or(Space::Generic), policy, lanes: lanes.unwrap_or(1) })
    }

    fn lanes(&mut self) -> usize {
        let n = self.peek().and_then(vector_length);
        self.at += usize::from(n.is_some());
        n.unwrap_or(1)
    }

    /// Takes the element type of an access of `n` elements.
    fn access_ty(&mut self, n: usize) -> Result<Ty, EmuError> {
        let ty = self.ty()?;
        self.end()?;
        let plain = matches!(ty.kind(), Kind::Bits | Kind::Int) || matches!(ty, Ty::F32 | Ty::F64);
        let whole = ty.bits() >= 8 && !matches!(ty, Ty::U16x2 | Ty::S16x2);
        if !plain || !whole || ty.bits() > 64 {
            return Err(self.bad_type(ty));
        }
        if n * ty.bytes() as usize > 16 {
            return Err(self.unknown("an access of more than 16 bytes"));
        }
        Ok(ty)
    }

    fn load(&mut self) -> Decoded {
        let Qualifiers { order, space, policy, lanes: n } = self.qualifiers(false)?;
        let ty = self.access_ty(n)?;
        self.n_operands(&[2 + usize::from(policy)])?;
        let elements = self.elements(0)?;
        if elements.len() != n {
            return Err(self.misfit(&format!("{} registers for {n} elements", elements.len())));
        }
        let dsts = elements.iter().map(|o| self.dst_of(o, ty, Width::Wider)).collect::<Result<_, _>>()?;
        let widths: Vec<u32> = elements.iter().filter_map(|o| self.declared(o)).map(Ty::bits).collect();
        if widths.windows(2).any(|w| w[0] != w[1]) {
            return Err(self.misfit("the registers have different widths"));
        }
        let width = widths.first().copied().unwrap_or(0);
        let sign_to = (ty.is_signed() && width > ty.bits()).then_some(width);
        let addr = self.address(1, space)?;
        Ok(Op::Load { dsts, addr, element: Element { bytes: ty.bytes(), sign_to }, order })
    }

    fn store(&mut self) -> Decoded {
        if self.accept("async") {
            return self.store_async();
        }
        let Qualifiers { order, space, policy, lanes: n } = self.qualifiers(true)?;
        let ty = self.access_ty(n)?;
        self.n_operands(&[2 + usize::from(policy)])?;
        let addr = self.address(0, space)?;
        if matches!(addr.space, Space::Const | Space::Param) {
            return Err(self.misfit("that memory cannot be written"));
        }
        let elements = self.elements(1)?;
        if elements.len() != n {
            return Err(self.misfit(&format!("{} registers for {n} elements", elements.len())));
        }
        let srcs = elements.iter().map(|o| self.src_of(o, ty, Width::Wider)).collect::<Result<_, _>>()?;
        Ok(Op::Store { srcs, addr, element: Element { bytes: ty.bytes(), sign_to: None }, order })
    }

    fn atomic(&mut self, returns: bool) -> Decoded {
        let (mut order, mut space, mut op, mut noftz, mut policy) = (None, None, None, false, false);
        // Compilers write order, scope and space in any sequence, and assemblers accept it.
        loop {
            if let Some(word) = self.one_of(&["relaxed", "acquire", "release", "acq_rel"]) {
                order = Some(word);
            } else if self.one_of(&SCOPES).is_some() {
            } else if let Some(s) = self.peek().and_then(Space::named).filter(|_| space.is_none()) {
                self.at += 1;
                space = Some(s);
            } else if let Some(word) =
                self.one_of(&["and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"])
            {
                op = Some(word);
            } else if self.accept("noftz") {
                noftz = true;
            } else if self.accept("L2::cache_hint") {
                policy = true;
            } else {
                break;
            }
        }
        let n = self.lanes();
        let ty = self.ty()?;
        self.end()?;
        let op = op.ok_or_else(|| self.misfit("it needs an operation"))?;
        let halves = matches!(ty, Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2);
        if halves && op == "add" && !noftz {
            return Err(self.error(ErrorCode::Unknown, format!("`{}`: `.noftz` is needed", self.full())));
        }
        let f =
            atom_fn(op, ty).filter(|_| returns || !matches!(op, "cas" | "exch")).ok_or_else(|| self.bad_type(ty))?;
        if !matches!(space, None | Some(Space::Global | Space::Shared | Space::Cluster)) {
            return Err(self.misfit("atomics are on global and shared memory"));
        }
        let first = usize::from(returns);
        let extra = usize::from(op == "cas") + usize::from(policy);
        self.n_operands(&[first + 2 + extra])?;
        let addr = self.address(first, space.unwrap_or(Space::Generic))?;
        if addr.space == Space::Local {
            return Err(self.misfit("atomics are on global and shared memory"));
        }
        let srcs = self.src_list(first + 1, n, ty)?;
        let second = if op == "cas" { Some(self.src(first + 2, ty)?) } else { None };
        let dsts = if returns { self.dst_list(0, n, ty)? } else { vec![] };
        let order = Order {
            strong: true,
            acquire: matches!(order, Some("acquire" | "acq_rel")),
            release: matches!(order, Some("release" | "acq_rel")),
        };
        Ok(Op::Atomic { f, dsts, addr, srcs, second, bytes: ty.bytes(), order })
    }

    fn copy(&mut self) -> Decoded {
        if self.accept("reduce") {
            self.words(&["async", "bulk"])?;
            return self.bulk_reduction();
        }
        if !self.accept("async") {
            return Err(self.unknown(&format!("`{}`", self.full())));
        }
        match self.peek() {
            Some("bulk") => {
                self.at += 1;
                self.bulk()
            }
            Some("commit_group") => {
                self.at += 1;
                self.end()?;
                Ok(Op::CopyCommit)
            }
            Some("wait_group") => {
                self.at += 1;
                self.end()?;
                let n = u32::try_from(self.constant(0)?).map_err(|_| self.misfit("the count is too large"))?;
                Ok(Op::CopyWait { at_most: n, uncommitted: false })
            }
            Some("wait_all") => {
                self.at += 1;
                self.end()?;
                Ok(Op::CopyWait { at_most: 0, uncommitted: true })
            }
            Some("mbarrier") => {
                self.at += 1;
                if !self.accept("arrive") {
                    return Err(self.wrong_part("`.arrive`"));
                }
                let counted = !self.accept("noinc");
                let space = self.one_of(&["shared", "shared::cta"]).map_or(Space::Generic, |_| Space::Shared);
                self.b64_end()?;
                Ok(Op::CopyArrive { addr: self.address(0, space)?, counted })
            }
            Some("ca" | "cg") => self.copy_bytes(),
            _ => Err(self.unknown(&format!("`{}`", self.full()))),
        }
    }

    /// Takes `.b64`, which must be the last part.
    pub(super) fn b64_end(&mut self) -> Result<(), EmuError> {
        let ty = self.ty()?;
        self.end()?;
        if ty == Ty::B64 { Ok(()) } else { Err(self.bad_type(ty)) }
    }

    fn copy_bytes(&mut self) -> Decoded {
        let around = self.need(&["ca", "cg"])? == "cg";
        self.need(&["shared", "shared::cta"])?;
        self.need(&["global"])?;
        let mut policy = false;
        while let Some(part) = self.one_of(&["L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"]) {
            policy |= part == "L2::cache_hint";
        }
        self.end()?;
        let n = self.instr.operands.len();
        let least = 3 + usize::from(policy);
        self.n_operands(&[least, least + 1])?;
        let bytes = u32::try_from(self.constant(2)?).unwrap_or(0);
        if !(bytes == 16 || (!around && matches!(bytes, 4 | 8))) {
            return Err(self.misfit(&format!("it cannot copy {bytes} bytes: `.cg` copies 16, `.ca` 4, 8 or 16")));
        }
        let (mut src_bytes, mut ignore) = (None, None);
        if n > least {
            let is_pred = match self.operand(3)? {
                Operand::Not(_) => true,
                other => self.declared(other) == Some(Ty::Pred),
            };
            if is_pred {
                ignore = Some(self.pred(3)?);
            } else {
                src_bytes = Some(self.src(3, Ty::U32)?);
            }
        }
        let (dst, src) = (self.address(0, Space::Shared)?, self.address(1, Space::Global)?);
        let ignore: Option<PredSrc> = ignore;
        Ok(Op::CopyAsync { dst, src, bytes, src_bytes, ignore })
    }
}

/// What stands between the opcode and the type of a load or store.
struct Qualifiers {
    order: Order,
    space: Space,
    /// Whether there is an operand with a cache policy.
    policy: bool,
    /// The number of elements.
    lanes: usize,
}

/// The number of elements of a vector, by its word.
fn vector_length(part: &str) -> Option<usize> {
    match part {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    }
}

/// The arithmetic of an atomic operation on a type.
pub(crate) fn atom_fn(op: &str, ty: Ty) -> Option<AtomFn> {
    const NEAR: Mode = Mode {
        rnd: crate::emu::lane::Rnd::Near,
        ftz: false,
        sat: false,
        relu: false,
        nan: false,
        xorsign: false,
        aux: 0,
    };
    macro_rules! of {
        ($f:expr) => {{
            // A function pointer cannot capture variables, so each type repeats its function.
            |old, b, _| match $f {
                Some(f) => f(NEAR, old, b, 0),
                None => old,
            }
        }};
    }
    Some(match (op, ty) {
        ("and", Ty::B32 | Ty::B64) => |old, b, _| old & b,
        ("or", Ty::B32 | Ty::B64) => |old, b, _| old | b,
        ("xor", Ty::B32 | Ty::B64) => |old, b, _| old ^ b,
        ("exch", Ty::B32 | Ty::B64) => |_, b, _| b,
        ("cas", Ty::B16 | Ty::B32 | Ty::B64) => |old, compare, new| if old == compare { new } else { old },
        ("add", Ty::U32 | Ty::S32) => |old, b, _| (old + b) & 0xFFFF_FFFF,
        ("add", Ty::U64) => |old, b, _| old.wrapping_add(b),
        ("add", Ty::F32) => of!(float::arithmetic("add", Ty::F32)),
        ("add", Ty::F64) => of!(float::arithmetic("add", Ty::F64)),
        ("add", Ty::F16) => of!(half::arithmetic("add", Ty::F16)),
        ("add", Ty::F16x2) => of!(half::arithmetic("add", Ty::F16x2)),
        ("add", Ty::Bf16) => of!(half::arithmetic("add", Ty::Bf16)),
        ("add", Ty::Bf16x2) => of!(half::arithmetic("add", Ty::Bf16x2)),
        ("inc", Ty::U32) => |old, b, _| if old >= b { 0 } else { old + 1 },
        ("dec", Ty::U32) => |old, b, _| if old == 0 || old > b { b } else { old - 1 },
        ("min", Ty::U32) => of!(int::arithmetic("min", Ty::U32)),
        ("min", Ty::S32) => of!(int::arithmetic("min", Ty::S32)),
        ("min", Ty::U64) => of!(int::arithmetic("min", Ty::U64)),
        ("min", Ty::S64) => of!(int::arithmetic("min", Ty::S64)),
        ("max", Ty::U32) => of!(int::arithmetic("max", Ty::U32)),
        ("max", Ty::S32) => of!(int::arithmetic("max", Ty::S32)),
        ("max", Ty::U64) => of!(int::arithmetic("max", Ty::U64)),
        ("max", Ty::S64) => of!(int::arithmetic("max", Ty::S64)),
        _ => return None,
    })
}
