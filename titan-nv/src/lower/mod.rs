//! Lane IR to PTX: one instruction form for each operation, looked up in the tables of [`crate::ptx::isa`], or a short
//! sequence where the machine has none.
//!
//! ```text
//! verify ─▶ what is needed (uses) ─▶ blocks (control, loops) ─▶ operations (words, int, float, convert, memory, sync, warp, group) ─▶ check ─▶ text
//! ```
//!
//! * A value is a virtual register; ptxas allocates the physical ones. Constants are immediates, or are moved to a register where a form
//!   accepts none.
//! * Carried values are registers that every branch to the head of the loop sets, in parallel copies.
//! * `a + c` in an address is the offset of the access; it is not computed unless it has other uses.
//! * Branches that all lanes of a warp take alike are marked `.uni`; others reconverge at the end of the structured statement.
//!
//! Deliberately absent: scheduling and allocation (ptxas), optimization of the lane IR itself (shared by all targets).

mod control;
mod convert;
pub mod copies;
mod error;
mod float;
mod group;
mod int;
mod loops;
mod memory;
mod select;
mod sync;
mod uses;
mod warp;
mod words;

pub use error::EmitError;

use crate::machine::Machine;
use crate::ptx::isa::control::{MOVE_BITS, MOVE_SPECIAL};
use crate::ptx::isa::{Slot, find};
use crate::ptx::{Address, Base, Entry, Form, Guard, Inst, Label, Line, Module, Operand, Param, Reg, Special, check};
use control::Frame;
use error::Fault;
use titan_core::collections::SortedMap;
use titan_core::lane::op::OpKind;
use titan_core::lane::{self, Func, IntBin, Op, Ty, Value, uniform};
use titan_core::launch::abi::{MapParam, PartMap, Slot as Word};
use uses::Uses;

/// A kernel as PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    /// The text of the module.
    pub text: String,
    /// The symbol of the kernel in the text.
    pub entry: String,
    /// The symbol of the kernel that makes its tables of tensor maps, if it has any.
    pub maker: Option<String>,
    /// The lowest PTX version that has every instruction of the module, times ten.
    pub version: u32,
    /// The target.
    pub target: &'static str,
}

/// Emits a function as PTX for a machine.
///
/// `source` is the user's file and the line on which the kernel begins there; if it is given, the text has the source locations of
/// instructions.
///
/// # Errors
/// [`EmitError`]: the function breaks a rule of the lane IR, or needs an operation that the machine lacks.
pub fn emit(func: &Func, machine: &Machine, source: Option<(&str, u32)>) -> Result<Ptx, EmitError> {
    let module = lower(func, machine, source)?;
    let maker = module.maker.as_ref().map(|maker| maker.name.clone());
    Ok(Ptx {
        text: module.to_string(),
        entry: module.entry.name,
        maker,
        version: module.version,
        target: module.target,
    })
}

/// Lowers a function to a PTX module as data.
///
/// # Errors
/// As [`emit`].
pub fn lower(func: &Func, machine: &Machine, source: Option<(&str, u32)>) -> Result<Module, EmitError> {
    error::limits(func, machine, source.map(|(file, _)| file))?;
    lane::verify(func).map_err(EmitError::Lane)?;
    let (entry, mut version, shared) = entry(func, machine, source.map(|(_, line)| line))?;
    let mut maker = None;
    if let Some(func) = func.maker.as_deref() {
        // It has no locations of the user's: none of the kernel's operations is in it.
        let (made, needs, _) = self::entry(func, machine, None)?;
        version = version.max(needs);
        maker = Some(made);
    }
    let module = Module {
        version,
        target: machine.name,
        comment: func.name.replace(char::is_control, " "),
        file: source.map(|(file, _)| file.to_owned()),
        shared,
        entry,
        maker,
    };
    check::check(&module, machine).map_err(|message| EmitError::Defect { kernel: func.name.clone(), message })?;
    Ok(module)
}

/// The kernel of a function, the version of PTX that it needs, and whether it uses dynamic shared memory. `first_line` is the line of the
/// user's file on which the kernel begins, if the text is to have source locations.
fn entry(func: &Func, machine: &Machine, first_line: Option<u32>) -> Result<(Entry, u32, bool), EmitError> {
    let mut lower = Lower {
        func,
        machine,
        uses: Uses::of(func),
        uniform: uniform::analyze(func),
        first_line,
        at: (0, 0),
        values: vec![None; func.values.len()],
        pairs: SortedMap::new(),
        warp_id: None,
        homes: lane::homes(func),
        registers: [0; 4],
        labels: Vec::new(),
        body: Vec::new(),
        frames: Vec::new(),
        version: machine.ptx,
        shared: func.shared_bytes > 0,
    };
    lower.prologue().and_then(|()| lower.block(func.body)).map_err(|fault| fault.outside(func))?;
    let tables = func.maps.iter().filter(|map| matches!(map.part, PartMap::Ending { .. })).map(table);
    let entry = Entry {
        name: symbol(&func.name),
        params: func.slots.iter().map(param).chain(func.maps.iter().map(map)).chain(tables).collect(),
        threads: func.threads,
        cluster: func.cluster,
        registers: lower.registers,
        body: lower.body,
    };
    Ok((entry, lower.version, lower.shared))
}

/// A name that is legal in PTX: each run of characters that are neither letters nor digits becomes one `_`.
fn symbol(name: &str) -> String {
    let mut symbol = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => symbol.push(c),
            _ if symbol.ends_with('_') => {}
            _ => symbol.push('_'),
        }
    }
    let symbol = symbol.trim_matches('_');
    if symbol.starts_with(|c: char| c.is_ascii_alphabetic()) { symbol.to_owned() } else { format!("k_{symbol}") }
}

fn param(slot: &Word) -> Param {
    let comment = match slot {
        Word::Address(p) => format!("parameter {p}: address"),
        Word::Extent(p, axis) => format!("parameter {p}: extent of axis {axis}"),
        Word::Stride(p, axis) => format!("parameter {p}: stride of axis {axis}, in elements"),
        Word::Scalar { param, .. } => format!("parameter {param}"),
        Word::Report => "address of the report".to_owned(),
    };
    Param { bytes: slot.bytes(), comment }
}

/// The parameter for a tensor map, which is passed behind the word parameters.
fn map(map: &MapParam) -> Param {
    let bytes = MapParam::BYTES as usize;
    Param { bytes, comment: format!("tensor map of parameter {}, boxes of {}", map.param, ascii(map)) }
}

/// The parameter for the address of a table of tensor maps, which is passed behind the maps.
fn table(map: &MapParam) -> Param {
    Param { bytes: 8, comment: format!("table of maps of parameter {}, boxes of {}", map.param, ascii(map)) }
}

fn ascii(map: &MapParam) -> String {
    map.boxes().replace(" × ", "x")
}

/// An argument of an instruction, before the slot of the form determines how it is written.
#[derive(Clone, Debug)]
enum Arg {
    Value(Value),
    Values(Vec<Value>),
    Reg(Reg),
    Regs(Vec<Reg>),
    Bits(u64),
    Address(Address),
    Special(Special),
    SharedBase,
    Param(u32),
    Box(Reg, Vec<Value>),
    Label(Label),
}

struct Lower<'a> {
    func: &'a Func,
    machine: &'a Machine,
    uses: Uses,
    uniform: uniform::Uniformity,
    /// The line of the user's file on which the kernel begins.
    first_line: Option<u32>,
    /// The line and column of the last `.loc`.
    at: (u32, u32),
    values: Vec<Option<Reg>>,
    /// The registers with pairs of 8-bit floats, by the register to which the first float was extracted.
    pairs: SortedMap<Reg, Reg>,
    warp_id: Option<Reg>,
    /// The values that MMAs of warpgroups in flight compute, each with the first one in the same register.
    homes: SortedMap<Value, Value>,
    registers: [u32; 4],
    /// The number of branches to each label.
    labels: Vec<u32>,
    body: Vec<Line>,
    frames: Vec<Frame>,
    version: u32,
    shared: bool,
}

type Done = Result<(), Fault>;

impl Lower<'_> {
    /// Emits an instruction.
    fn inst(&mut self, form: &'static Form, args: &[Arg]) -> Done {
        self.guarded(None, form, args)
    }

    fn guarded(&mut self, guard: Option<Guard>, form: &'static Form, args: &[Arg]) -> Done {
        if !self.has(form) {
            return Err(Fault::Missing(form));
        }
        let mut operands = Vec::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            operands.push(self.operand(arg, form.slots.get(i).copied())?);
        }
        self.version = self.version.max(form.ptx);
        self.body.push(Line::Inst(Inst { guard, form, operands }));
        Ok(())
    }

    /// Whether the machine has an instruction.
    fn has(&self, form: &Form) -> bool {
        form.is_of(self.machine)
    }

    fn operand(&mut self, arg: &Arg, slot: Option<Slot>) -> Result<Operand, Fault> {
        Ok(match arg {
            Arg::Value(value) => match (self.func.constant(*value), slot) {
                (Some(bits), Some(Slot::Int(_) | Slot::Float(_) | Slot::Const)) => Operand::Const(bits),
                (None | Some(_), _) => Operand::Reg(self.reg(*value)?),
            },
            Arg::Values(values) => Operand::Regs(values.iter().map(|v| self.reg(*v)).collect::<Result<Vec<_>, _>>()?),
            Arg::Bits(bits) => match slot {
                Some(Slot::In(ty)) => Operand::Reg(self.constant(ty, *bits)?),
                Some(_) | None => Operand::Const(*bits),
            },
            Arg::Reg(reg) => Operand::Reg(*reg),
            Arg::Regs(regs) => Operand::Regs(regs.clone()),
            Arg::Address(address) => Operand::Address(*address),
            Arg::Special(special) => Operand::Special(*special),
            Arg::SharedBase => Operand::SharedBase,
            Arg::Param(n) => Operand::Param(*n),
            Arg::Box(map, coords) => {
                Operand::Box(*map, coords.iter().map(|v| self.reg(*v)).collect::<Result<Vec<_>, _>>()?)
            }
            Arg::Label(label) => Operand::Label(*label),
        })
    }

    /// A new register of this class.
    fn fresh(&mut self, class: Ty) -> Reg {
        let mut number = 0;
        for (ty, count) in Ty::ALL.iter().zip(&mut self.registers) {
            if *ty == class {
                number = *count;
                *count += 1;
            }
        }
        Reg { class, number }
    }

    /// A new register that holds a constant.
    fn constant(&mut self, class: Ty, bits: u64) -> Result<Reg, Fault> {
        let reg = self.fresh(class);
        self.inst(form_of(MOVE_BITS, &class)?, &[Arg::Reg(reg), Arg::Bits(bits)])?;
        Ok(reg)
    }

    /// The register of a value that an operation reads.
    fn reg(&mut self, value: Value) -> Result<Reg, Fault> {
        if let Some(bits) = self.func.constant(value) {
            return self.constant(self.func.ty(value), bits);
        }
        self.values[value.index()].ok_or_else(|| Fault::Defect(format!("{value} is read before it is there")))
    }

    /// The register of a result of an operation, or of a parameter of a block.
    fn out(&mut self, value: Value) -> Reg {
        let home = self.homes.get(&value).copied().unwrap_or(value);
        let known = self.values[value.index()].or(self.values[home.index()]);
        let reg = known.unwrap_or_else(|| self.fresh(self.func.ty(value)));
        self.values[home.index()] = Some(reg);
        self.values[value.index()] = Some(reg);
        reg
    }

    /// The registers of all results.
    fn outs(&mut self, op: &Op) -> Vec<Reg> {
        op.results.iter().map(|v| self.out(*v)).collect()
    }

    /// The guard for a condition of an access or a branch.
    fn guard(&mut self, cond: Value) -> Result<Guard, Fault> {
        let (cond, negated) = uses::positive(self.func, cond);
        Ok(Guard { reg: self.reg(cond)?, negated })
    }

    fn address(&mut self, value: Value, offset: i32) -> Result<Address, Fault> {
        let (base, offset) = uses::base(self.func, value, offset);
        if self.func.def_op(base).is_some_and(|op| op.kind == OpKind::SharedBase) {
            self.shared = true;
            return Ok(Address { base: Base::Shared, offset });
        }
        Ok(Address { base: Base::Reg(self.reg(base)?), offset })
    }

    /// Writes a `.loc` for the code that follows.
    fn locate(&mut self, op: &Op) {
        let Some(first) = self.first_line else { return };
        let at = (op.loc.line, op.loc.column);
        if op.loc.line == 0 || at == self.at {
            return;
        }
        self.at = at;
        let line = op.loc.line_of_file(first);
        self.body.push(Line::Loc { line, column: op.loc.column.max(1) });
    }

    /// Emits the code before everything else: the warp's index, read from one lane so that ptxas knows that it is uniform, at a point
    /// where all lanes are converged.
    fn prologue(&mut self) -> Done {
        let mut wanted = false;
        self.func.walk(&mut |_, op| wanted |= matches!(op.kind, OpKind::WarpId | OpKind::Roles(_)));
        if !wanted {
            return Ok(());
        }
        let (thread, own, warp) = (self.fresh(Ty::B32), self.fresh(Ty::B32), self.fresh(Ty::B32));
        self.inst(&MOVE_SPECIAL, &[Arg::Reg(thread), Arg::Special(Special::ThreadId)])?;
        self.int(IntBin::ShrU, own, &[Arg::Reg(thread), Arg::Bits(5)])?;
        self.first_lane(warp, own)?;
        self.warp_id = Some(warp);
        Ok(())
    }
}

/// The row of a key, or an error that names the key.
fn form_of<K: PartialEq + std::fmt::Debug>(table: &'static [(K, Form)], key: &K) -> Result<&'static Form, Fault> {
    find(table, key).ok_or_else(|| Fault::Refused(format!("PTX has no instruction for {key:?}")))
}
