//! Decodes instructions from their words: the only place where the spelling of an opcode is known.
//!
//! Modifiers are taken in the manual's order, each once. A word that is left over, a type that an instruction does not
//! have and an operand that does not fit are errors at the line. The lowering has its own tables: none is shared.
//!
//! | module | instructions |
//! |---|---|
//! | [`arith`] | integer and floating-point arithmetic |
//! | [`compare`] | comparisons, selection, predicates |
//! | [`moves`] | `mov`, `cvt`, `cvta` |
//! | [`memory`] | `ld`, `st`, `atom`, `red`, `cp.async` |
//! | [`sync`] | control flow, barriers, fences, exchange within a warp |
//! | [`bulk`] | `cp.async.bulk`, `cp.reduce.async.bulk`, `st.async` |
//! | [`matrix`] | `ldmatrix`, `stmatrix`, `mma` |
//! | [`tensormap`] | `tensormap.replace`, `tensormap.cp_fenceproxy`, fences for tensor maps |
//! | [`warpgroup`] | `wgmma`, `setmaxnreg`, `mapa`, `getctarank`, barriers of clusters |
//! | [`needs`] | the version and target that each instruction requires |
//! | [`layout`] | addresses of variables |
//! | [`meet`] | reconvergence points of threads that diverged |

mod arith;
mod bulk;
mod compare;
mod layout;
mod matrix;
mod meet;
mod memory;
mod moves;
mod needs;
mod operand;
mod sync;
mod tensormap;
mod warpgroup;

use super::ast::{Ast, Base, Entry, Instr, Operand};
use super::error::{EmuError, ErrorCode};
use super::op::{Inst, Op, Program, Special};
use super::ty::{Kind, Space, Ty};
use layout::Layout;

pub(crate) use layout::SHARED_BASE;
pub(crate) use memory::atom_fn;

/// Decodes a kernel.
pub(crate) fn program(ast: &Ast, entry: &Entry) -> Result<Program, EmuError> {
    needs::check_clusters(ast, entry)?;
    let layout = Layout::new(ast, entry)?;
    let (mut slots, mut n_regs, mut n_preds) = (Vec::new(), 0, 0);
    let (mut reg_names, mut pred_names) = (Vec::new(), Vec::new());
    for reg in &entry.regs {
        if reg.ty.kind() == Kind::Pred {
            slots.push(n_preds);
            pred_names.push(reg.name.clone());
            n_preds += 1;
        } else {
            slots.push(n_regs);
            reg_names.push(reg.name.clone());
            n_regs += 1;
        }
    }
    let mut code = Vec::with_capacity(entry.code.len() + 1);
    for instr in &entry.code {
        let mut d = Decoder { ast, entry, layout: &layout, slots: &slots, instr, at: 1 };
        let (op, guard) = d
            .instruction()
            .and_then(|op| d.check_needs().and_then(|()| Ok((op, d.guard()?))))
            .map_err(|e| e.with_site(ast.site(entry, instr)))?;
        code.push(Inst { guard, op, meet: None });
    }
    let has_wgmma = code.iter().any(|inst| matches!(inst.op, Op::Multiply(_)));
    let has_async_proxy = has_wgmma || code.iter().any(|inst| matches!(inst.op, Op::Bulk(_)));
    let has_map_fences = code.iter().any(|inst| matches!(inst.op, Op::MapAcquire { .. }));
    let has_cluster_barrier = code.iter().any(|inst| matches!(inst.op, Op::ClusterArrive { .. }));
    // Reaching the end of the code is a return.
    code.push(Inst { guard: None, op: Op::Exit, meet: None });
    meet::annotate(&mut code);
    Ok(Program {
        code,
        n_regs: n_regs as usize,
        n_preds: n_preds as usize,
        reg_names,
        pred_names,
        shared: layout.shared,
        shared_end: layout.shared_end,
        local: layout.local,
        symbols: layout.symbols,
        has_async_proxy,
        has_map_fences,
        has_cluster_barrier,
        has_wgmma,
    })
}

/// The decoder of one instruction.
struct Decoder<'a> {
    ast: &'a Ast,
    entry: &'a Entry,
    layout: &'a Layout,
    slots: &'a [u32],
    instr: &'a Instr,
    /// The index of the next part of the opcode.
    at: usize,
}

type Decoded = Result<Op, EmuError>;

impl<'a> Decoder<'a> {
    fn error(&self, code: ErrorCode, message: impl Into<String>) -> EmuError {
        EmuError::at(code, self.instr.line, message)
    }

    fn unknown(&self, what: &str) -> EmuError {
        self.error(ErrorCode::Unknown, format!("{what} is not emulated"))
    }

    fn opcode(&self) -> &'a str {
        self.instr.parts.first().map_or("", String::as_str)
    }

    /// The complete opcode, for messages.
    fn full(&self) -> String {
        self.instr.parts.join(".")
    }

    fn peek(&self) -> Option<&'a str> {
        self.instr.parts.get(self.at).map(String::as_str)
    }

    /// Takes the next part if it is this one.
    fn accept(&mut self, part: &str) -> bool {
        let is = self.peek() == Some(part);
        self.at += usize::from(is);
        is
    }

    /// Takes the next part, if it is one of these.
    fn one_of(&mut self, parts: &[&'static str]) -> Option<&'static str> {
        let found = parts.iter().find(|p| self.peek() == Some(**p)).copied();
        self.at += usize::from(found.is_some());
        found
    }

    fn need(&mut self, parts: &[&'static str]) -> Result<&'static str, EmuError> {
        self.one_of(parts).ok_or_else(|| self.wrong_part(&format!("one of `.{}`", parts.join("`, `."))))
    }

    /// Takes parts that must follow in this order.
    fn words(&mut self, parts: &[&'static str]) -> Result<(), EmuError> {
        parts.iter().try_for_each(
            |part| {
                if self.accept(part) { Ok(()) } else { Err(self.wrong_part(&format!("`.{part}`"))) }
            },
        )
    }

    /// Decodes an operation that has neither further parts nor operands.
    fn plain(&self, op: Op) -> Decoded {
        self.end()?;
        self.n_operands(&[0])?;
        Ok(op)
    }

    fn wrong_part(&self, wanted: &str) -> EmuError {
        let found = self.peek().map_or("nothing".to_owned(), |p| format!("`.{p}`"));
        self.error(ErrorCode::Unknown, format!("`{}`: expected {wanted}, found {found}", self.full()))
    }

    /// Takes the next part, which must be a type.
    fn ty(&mut self) -> Result<Ty, EmuError> {
        let ty = self.peek().and_then(Ty::named).ok_or_else(|| self.wrong_part("a type"))?;
        self.at += 1;
        Ok(ty)
    }

    /// Checks that no part is left.
    fn end(&self) -> Result<(), EmuError> {
        match self.peek() {
            None => Ok(()),
            Some(part) => {
                Err(self.error(ErrorCode::Unknown, format!("`{}`: `.{part}` is not known there", self.full())))
            }
        }
    }

    fn bad_type(&self, ty: Ty) -> EmuError {
        self.error(ErrorCode::Unknown, format!("`{}`: there is no such instruction on `.{}`", self.full(), ty.name()))
    }

    /// A call that is left of those that [`super::parse`] replaces.
    fn external(&mut self) -> Decoded {
        self.accept("uni");
        self.end()?;
        let mut operands = self.instr.operands.iter().skip_while(|o| !matches!(o, Operand::Function(_)));
        let Some(Operand::Function(name)) = operands.next() else {
            return Err(self.unknown("a call by an address").with_help("call the function by its name"));
        };
        let args = operands.flat_map(|o| match o {
            Operand::Vector(all) => all.as_slice(),
            one => std::slice::from_ref(one),
        });
        let args = args.map(|arg| match arg {
            Operand::Address(name, 0) => self.address_at(Base::Name(*name), 0, Space::Param),
            _ => Err(self.misfit("arguments of a function that is defined elsewhere are in `.param` space")),
        });
        Ok(Op::External { name: name.clone(), args: args.collect::<Result<_, _>>()? })
    }

    fn instruction(&mut self) -> Decoded {
        match self.opcode() {
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" | "sad" | "addc"
            | "subc" | "madc" | "mul24" | "mad24" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2"
            | "tanh" | "copysign" | "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "prmt" | "bfe"
            | "bfi" | "popc" | "clz" | "brev" | "bfind" | "lop3" | "dp4a" => self.arithmetic(),
            "setp" | "set" | "selp" | "slct" | "testp" => self.comparison(),
            "mov" | "cvt" | "cvta" | "isspacep" => self.movement(),
            "ld" | "ldu" | "st" | "atom" | "red" | "cp" | "prefetch" | "prefetchu" | "createpolicy" | "discard"
            | "applypriority" => self.memory(),
            "bra" | "brx" | "ret" | "exit" | "trap" | "bar" | "barrier" | "membar" | "fence" | "shfl" | "vote"
            | "match" | "redux" | "activemask" | "elect" | "mbarrier" | "nanosleep" | "griddepcontrol"
            | "setmaxnreg" | "pmevent" => self.synchronisation(),
            "ldmatrix" | "stmatrix" | "movmatrix" | "mma" => self.matrix(),
            "wgmma" | "mapa" | "getctarank" => self.group(),
            "call" => self.external(),
            "tensormap" => self.tensormap(),
            "tcgen05" | "multimem" => Err(self.unknown(&format!("`{}`", self.full()))),
            other => Err(self.error(ErrorCode::Unknown, format!("`{other}` is no instruction that is known"))),
        }
    }
}

/// The special register with this name.
pub(crate) fn special(name: &str) -> Option<Special> {
    let axis = |rest: &str| ["x", "y", "z"].iter().position(|a| *a == rest).and_then(|i| u8::try_from(i).ok());
    let (base, rest) = name.split_once('.').map_or((name, None), |(b, r)| (b, Some(r)));
    if let Some(rest) = rest {
        let axis = axis(rest)?;
        return Some(match base {
            "%tid" => Special::Tid(axis),
            "%ntid" => Special::Ntid(axis),
            "%ctaid" => Special::Ctaid(axis),
            "%nctaid" => Special::Nctaid(axis),
            "%clusterid" => Special::ClusterId(axis),
            "%nclusterid" => Special::NClusterId(axis),
            "%cluster_ctaid" => Special::ClusterCtaId(axis),
            "%cluster_nctaid" => Special::ClusterNCtaId(axis),
            _ => return None,
        });
    }
    Some(match base {
        "%laneid" => Special::LaneId,
        "%warpid" => Special::WarpId,
        "%nwarpid" => Special::NWarpId,
        "%smid" => Special::SmId,
        "%nsmid" => Special::NSmId,
        "%gridid" => Special::GridId,
        "%cluster_ctarank" => Special::ClusterCtaRank,
        "%cluster_nctarank" => Special::ClusterNCtaRank,
        "%is_explicit_cluster" => Special::IsExplicitCluster,
        "%lanemask_eq" => Special::LaneMask(0),
        "%lanemask_lt" => Special::LaneMask(1),
        "%lanemask_le" => Special::LaneMask(2),
        "%lanemask_gt" => Special::LaneMask(3),
        "%lanemask_ge" => Special::LaneMask(4),
        "%clock" | "%globaltimer_lo" => Special::Clock,
        "%clock64" | "%globaltimer" => Special::Clock64,
        "%clock_hi" | "%globaltimer_hi" => Special::ClockHi,
        "%dynamic_smem_size" => Special::DynamicShared,
        "%total_smem_size" => Special::TotalShared,
        _ => return None,
    })
}
