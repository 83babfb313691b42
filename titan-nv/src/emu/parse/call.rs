//! Calls of functions: each is replaced by the function's code.
//!
//! A call gets registers and variables in local memory of its own, and the function's `ret` is a branch behind the call. Arguments and
//! results in `.param` space are variables in local memory: those of the caller, which the function uses directly. A function is parsed when
//! it is called, so that what a module has and no kernel calls is no error.
//!
//! Absent: recursion, which would need a stack, and calls by an address. What is declared and not defined (`__assertfail`, `vprintf`) stays a
//! call, for the decoder.
//! Source: PTX ISA, "call", "Function Declarations and Definitions".

use super::Parser;
use super::body::Body;
use crate::emu::ast::{Base, Entry, Instr, Name, Operand, Var};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::ty::{Space, Ty};
use std::rc::Rc;

/// The largest number of instructions of a kernel with the functions that it calls.
const MOST: usize = 1 << 20;

/// A function with its calls replaced.
struct Function {
    /// Its registers, variables and code.
    body: Entry,
    /// Registers, and variables in `.param` space.
    results: Vec<Name>,
    params: Vec<Name>,
}

/// The functions that have been parsed, and those whose calls are being replaced, from the outermost in.
#[derive(Default)]
struct Functions {
    done: Vec<(String, Rc<Function>)>,
    open: Vec<String>,
}

fn is_call(instr: &Instr) -> bool {
    instr.parts.first().is_some_and(|opcode| opcode == "call")
}

impl Parser<'_> {
    /// Replaces the calls in all kernels.
    pub(super) fn replace_calls(&mut self) -> Result<(), EmuError> {
        let mut functions = Functions::default();
        for i in 0..self.ast.entries.len() {
            if self.ast.entries[i].code.iter().any(is_call) {
                let mut entry = self.ast.entries[i].clone();
                self.replace_in(&mut entry, &mut functions)?;
                self.ast.entries[i] = entry;
            }
        }
        Ok(())
    }

    fn replace_in(&mut self, entry: &mut Entry, functions: &mut Functions) -> Result<(), EmuError> {
        let code = std::mem::take(&mut entry.code);
        // The new position of each instruction, and the positions of those that are kept.
        let (mut at, mut kept) = (Vec::with_capacity(code.len() + 1), Vec::new());
        for instr in code {
            at.push(entry.code.len());
            match self.callee(&instr, functions)? {
                Some(function) => put(entry, &instr, &function)?,
                None => {
                    kept.push(entry.code.len());
                    entry.code.push(instr);
                }
            }
            if entry.code.len() > MOST {
                let message = format!("`{}` has more than {MOST} instructions with those of its calls", entry.name);
                return Err(EmuError::new(ErrorCode::Unknown, message));
            }
        }
        at.push(entry.code.len());
        let moved = |label: usize| at.get(label).copied().unwrap_or(usize::MAX);
        for i in kept {
            entry.code[i].operands.iter_mut().for_each(|operand| relabel(operand, &moved));
        }
        Ok(())
    }

    /// The function that an instruction calls, if it is a call of a defined one.
    fn callee(&mut self, instr: &Instr, functions: &mut Functions) -> Result<Option<Rc<Function>>, EmuError> {
        let name = instr.operands.iter().find_map(|operand| match operand {
            Operand::Function(name) => Some(name.clone()),
            _ => None,
        });
        let Some(name) = name.filter(|_| is_call(instr)) else { return Ok(None) };
        let Some(start) = self.functions.get(&name).copied().flatten() else { return Ok(None) };
        if let Some((_, function)) = functions.done.iter().find(|(done, _)| *done == name) {
            return Ok(Some(Rc::clone(function)));
        }
        if functions.open.contains(&name) {
            let message = format!("`{name}` calls itself, which is not emulated");
            return Err(EmuError::at(ErrorCode::Unknown, instr.line, message));
        }
        functions.open.push(name.clone());
        let mut function = self.function(&name, start)?;
        self.replace_in(&mut function.body, functions)?;
        functions.open.pop();
        let function = Rc::new(function);
        functions.done.push((name, Rc::clone(&function)));
        Ok(Some(function))
    }

    /// Parses a function from behind its `.func`.
    fn function(&mut self, name: &str, start: usize) -> Result<Function, EmuError> {
        self.at = start;
        let mut body = Body::new(Entry::new(name.to_owned(), Vec::new()), true);
        let results = self.formals(&mut body)?;
        self.word("the name of a function")?;
        let params = self.formals(&mut body)?;
        self.limits(&mut body.entry)?;
        self.expect('{')?;
        self.body(&mut body)?;
        body.close()?;
        Ok(Function { body: body.entry, results, params })
    }

    /// Parses the parameters or results of a function, in parentheses, if there are any.
    fn formals(&mut self, body: &mut Body) -> Result<Vec<Name>, EmuError> {
        let mut all = Vec::new();
        if !self.accept('(') {
            return Ok(all);
        }
        while !self.accept(')') {
            if !all.is_empty() {
                self.expect(',')?;
            }
            let line = self.peek().line;
            let (name, text) = if self.accept_word(".reg") {
                let ty = self.type_of_register()?;
                if matches!(ty, Ty::Pred | Ty::U16 | Ty::S16) {
                    // ptxas refuses them as well; it accepts `.b16` and `.f16`.
                    let message = format!("no arguments and results are passed in registers of type `.{}`", ty.name());
                    return Err(EmuError::at(ErrorCode::Operand, line, message));
                }
                let text = self.word("the name of a register")?.to_owned();
                body.entry.regs.push(crate::emu::ast::Reg { name: text.clone(), ty });
                (Name::Reg(body.entry.regs.len() - 1), text)
            } else if self.accept_word(".param") {
                let var = self.formal()?;
                let text = var.name.clone();
                body.entry.vars.push(var);
                (Name::Local(body.entry.vars.len() - 1), text)
            } else {
                return Err(self.expected("`.param` or `.reg`"));
            };
            body.define(text, name, line)?;
            all.push(name);
        }
        Ok(all)
    }
}

/// Appends the code of a function in place of a call.
fn put(entry: &mut Entry, call: &Instr, function: &Function) -> Result<(), EmuError> {
    let misfit = |message: String| EmuError::at(ErrorCode::Operand, call.line, message);
    let body = &function.body;
    let at = call.operands.iter().position(|o| matches!(o, Operand::Function(_))).unwrap_or(0);
    let (results, args) = (list(&call.operands[..at]), list(&call.operands[at + 1..]));
    for (actual, formal, what) in
        [(results.len(), function.results.len(), "results"), (args.len(), function.params.len(), "parameters")]
    {
        if actual != formal {
            return Err(misfit(format!("`{}` has {formal} {what}, not {actual}", body.name)));
        }
    }
    let first_reg = entry.regs.len();
    entry.regs.extend(body.regs.iter().cloned());
    // A parameter in `.param` space is the caller's variable, if that is what is passed.
    let mut vars = Vec::with_capacity(body.vars.len());
    let passed = function.results.iter().zip(&results).chain(function.params.iter().zip(&args));
    let passed: Vec<(Name, &Operand)> = passed.map(|(formal, actual)| (*formal, *actual)).collect();
    for (i, var) in body.vars.iter().enumerate() {
        let actual = passed.iter().find(|(formal, _)| *formal == Name::Local(i)).map(|(_, actual)| *actual);
        vars.push(match actual.and_then(|actual| param_variable(entry, actual)) {
            Some((_, its)) if its.size != var.size => {
                let message =
                    format!("parameter `{}` of `{}` has another size than `{}`", var.name, body.name, its.name);
                return Err(misfit(message));
            }
            Some((name, _)) => name,
            None => {
                entry.vars.push(var.clone());
                Name::Local(entry.vars.len() - 1)
            }
        });
    }
    let named = Renaming { first_reg, vars };
    let first_loc = entry.locs.len();
    let here = call.loc.and_then(|loc| entry.locs.get(loc)).copied();
    entry.locs.extend(body.locs.iter().map(|loc| {
        let mut loc = *loc;
        loc.inlined_at = loc.inlined_at.or(here.map(|here| (here.file, here.line, here.column)));
        loc
    }));
    let arguments: Vec<Instr> = (function.params.iter().zip(&args))
        .filter_map(|(formal, actual)| transfer(entry, call, named.of(*formal), actual, true))
        .collect();
    let returned: Vec<Instr> = (function.results.iter().zip(&results))
        .filter_map(|(formal, actual)| transfer(entry, call, named.of(*formal), actual, false))
        .collect();
    // The guard's branch, the arguments, the code, the results.
    let first = entry.code.len() + usize::from(call.guard.is_some()) + arguments.len();
    let end = first + body.code.len();
    let branch = |guard, to| Instr { guard, ..instr(call, &["bra"], vec![Operand::Label(to)]) };
    if let Some((reg, negated)) = call.guard {
        entry.code.push(branch(Some((reg, !negated)), end + returned.len()));
    }
    entry.code.extend(arguments);
    for own in &body.code {
        let guard = own.guard.map(|(reg, negated)| (first_reg + reg, negated));
        let mut copy = if own.parts.first().is_some_and(|opcode| opcode == "ret") {
            Instr { operands: vec![Operand::Label(body.code.len())], parts: vec!["bra".to_owned()], ..own.clone() }
        } else {
            own.clone()
        };
        copy.guard = guard;
        copy.loc = own.loc.map(|loc| first_loc + loc).or(call.loc);
        for operand in &mut copy.operands {
            named.rename(operand);
            relabel(operand, &|label| first + label);
        }
        entry.code.push(copy);
    }
    entry.code.extend(returned);
    Ok(())
}

/// The operands of a list in parentheses.
fn list(operands: &[Operand]) -> Vec<&Operand> {
    match operands {
        [Operand::Vector(all)] => all.iter().collect(),
        other => other.iter().collect(),
    }
}

/// The variable in `.param` space that an operand of a call is.
fn param_variable<'a>(entry: &'a Entry, operand: &Operand) -> Option<(Name, &'a Var)> {
    match operand {
        Operand::Address(name @ Name::Local(i), 0) => {
            entry.vars.get(*i).filter(|var| var.space == Space::Param).map(|var| (*name, var))
        }
        _ => None,
    }
}

/// The instruction that passes a value between a parameter or result of a function and an operand of the call; `None` if both are the same
/// variable, or the result is discarded.
fn transfer(entry: &Entry, call: &Instr, formal: Name, actual: &Operand, is_argument: bool) -> Option<Instr> {
    let bits = |bytes: u32| format!("b{}", 8 * bytes);
    match (formal, param_variable(entry, actual)) {
        (Name::Reg(reg), None) => {
            let ty = entry.regs.get(reg).map_or("b32", |reg| reg.ty.name());
            let formal = Operand::Reg(reg);
            let operands = if is_argument { vec![formal, actual.clone()] } else { vec![actual.clone(), formal] };
            Some(instr(call, &["mov", ty], operands)).filter(|_| *actual != Operand::Sink)
        }
        (Name::Reg(reg), Some((name, _))) => {
            let ty = bits(entry.regs.get(reg).map_or(4, |reg| reg.ty.bytes()));
            let memory = Operand::Mem(Base::Name(name), 0);
            Some(if is_argument {
                instr(call, &["ld", "param", &ty], vec![Operand::Reg(reg), memory])
            } else {
                instr(call, &["st", "param", &ty], vec![memory, Operand::Reg(reg)])
            })
        }
        (Name::Local(i), None) => {
            let ty = bits(entry.vars.get(i).and_then(|var| var.size).unwrap_or(4));
            let memory = Operand::Mem(Base::Name(formal), 0);
            let copy = if is_argument {
                instr(call, &["st", "param", &ty], vec![memory, actual.clone()])
            } else {
                instr(call, &["ld", "param", &ty], vec![actual.clone(), memory])
            };
            Some(copy).filter(|_| *actual != Operand::Sink)
        }
        (Name::Local(_), Some(_)) | (Name::Param(_) | Name::Global(_), _) => None,
    }
}

/// An instruction in place of a call.
fn instr(call: &Instr, parts: &[&str], operands: Vec<Operand>) -> Instr {
    let parts = parts.iter().map(|part| (*part).to_owned()).collect();
    Instr { guard: None, parts, operands, ..call.clone() }
}

/// Changes the positions that an operand names.
fn relabel(operand: &mut Operand, moved: &impl Fn(usize) -> usize) {
    match operand {
        Operand::Label(at) => *at = moved(*at),
        Operand::Targets(all) => all.iter_mut().for_each(|at| *at = moved(*at)),
        _ => {}
    }
}

/// What the names of a function are in its caller.
struct Renaming {
    first_reg: usize,
    vars: Vec<Name>,
}

impl Renaming {
    fn of(&self, name: Name) -> Name {
        match name {
            Name::Reg(reg) => Name::Reg(self.first_reg + reg),
            Name::Local(i) => self.vars.get(i).copied().unwrap_or(name),
            Name::Param(_) | Name::Global(_) => name,
        }
    }

    fn rename(&self, operand: &mut Operand) {
        match operand {
            Operand::Reg(reg) | Operand::Not(reg) => *reg += self.first_reg,
            Operand::Address(name, _) => *name = self.of(*name),
            Operand::Mem(Base::Reg(reg), _) => *reg += self.first_reg,
            Operand::Mem(Base::Name(name), _) => *name = self.of(*name),
            Operand::Vector(all) | Operand::MemList(all) => all.iter_mut().for_each(|operand| self.rename(operand)),
            Operand::Pair(a, b) => {
                self.rename(a);
                self.rename(b);
            }
            Operand::Mem(Base::Zero, _)
            | Operand::Special(_)
            | Operand::Int(_)
            | Operand::F32(_)
            | Operand::F64(_)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::Targets(_)
            | Operand::Function(_) => {}
        }
    }
}
