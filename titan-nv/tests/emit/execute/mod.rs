//! Emitted text is executed by the emulator and compared with values computed here.
//!
//! The emulator shares no tables with the lowering; what is computed here shares none with either.

mod constants;
mod matrices;
mod memory;
mod numbers;
mod reference;
mod registers;
mod rings;
mod values;
mod waits;
mod whole;

use titan_core::lane::{Func, Ty};
use titan_nv::emu::{EmuError, Launch, Memory, Module, Options, Param};
use titan_nv::{EmitError, Machine, emit};

pub(super) fn machine(name: &str) -> &'static Machine {
    Machine::from_name(name).unwrap()
}

/// The low bits of a width.
pub(super) fn mask(ty: Ty) -> u64 {
    match ty {
        Ty::Pred => 1,
        Ty::B16 => 0xffff,
        Ty::B32 => 0xffff_ffff,
        Ty::B64 => u64::MAX,
    }
}

/// Emits and runs a function.
pub(super) fn launch(func: &Func, machine: &Machine, grid: [u32; 3], params: &[Param], memory: &mut Memory) {
    let ptx = emit(func, machine, Some(("kernel.rs", 1))).unwrap_or_else(|e| panic!("{e}"));
    let module = Module::parse(&ptx.text).unwrap_or_else(|e| panic!("{e}\n{}", ptx.text));
    let kernel = module.entry(&ptx.entry).unwrap();
    let launch = Launch { grid, block: [func.threads, 1, 1], dynamic_shared: func.shared_bytes, cluster: None, params };
    // What does not end is given up.
    let options = Options { max_steps: 1 << 24, ..Options::default() };
    kernel.run(&launch, memory, &options).unwrap_or_else(|e| panic!("{e}\n{}", ptx.text));
}

/// Those of some targets that have all operations of a function.
pub(super) fn targets_of<'t>(func: &Func, of: &[&'t str]) -> Vec<&'t str> {
    let has = |name: &&&str| match emit(func, machine(name), None) {
        Ok(_) => true,
        Err(EmitError::Operation { .. }) => false,
        Err(error) => panic!("{error}"),
    };
    of.iter().filter(has).copied().collect()
}

/// A function that is emitted and parsed, to be run in several ways.
pub(super) struct Ready {
    module: Module,
    entry: String,
    block: [u32; 3],
    dynamic_shared: u32,
}

impl Ready {
    pub(super) fn new(func: &Func, machine: &Machine) -> Ready {
        let ptx = emit(func, machine, Some(("kernel.rs", 1))).unwrap_or_else(|e| panic!("{e}"));
        let module = Module::parse(&ptx.text).unwrap_or_else(|e| panic!("{e}\n{}", ptx.text));
        Ready { module, entry: ptx.entry, block: [func.threads, 1, 1], dynamic_shared: func.shared_bytes }
    }

    /// Runs one program of it, and returns the emulator's error.
    pub(super) fn run(&self, params: &[Param], memory: &mut Memory, options: &Options) -> Result<(), EmuError> {
        let launch =
            Launch { grid: [1; 3], block: self.block, dynamic_shared: self.dynamic_shared, cluster: None, params };
        self.module.entry(&self.entry)?.run(&launch, memory, options).map(|_| ())
    }
}

pub(super) fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

pub(super) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// Runs a case of `cases.rs`: `inputs` has the operand cells of each thread, a whole number of programs; the result has
/// `results` cells of each thread. What a thread did not write is ones.
pub(super) fn cells(func: &Func, machine: &Machine, inputs: &[Vec<u64>], results: usize) -> Vec<Vec<u64>> {
    assert!(inputs.len().is_multiple_of(func.threads as usize));
    let mut memory = Memory::new();
    let all: Vec<u8> = inputs.iter().flatten().flat_map(|c| c.to_le_bytes()).collect();
    let from = memory.upload("operands", if all.is_empty() { &[0] } else { &all });
    let size = 8 * results * inputs.len();
    let to = memory.alloc_named("results", size.max(1));
    let grid = [inputs.len() as u32 / func.threads, 1, 1];
    launch(func, machine, grid, &[Param::Ptr(from), Param::Ptr(to)], &mut memory);
    let out = memory.read_any(to, size).unwrap();
    let cells: Vec<u64> = out.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
    cells.chunks(results.max(1)).map(<[u64]>::to_vec).collect()
}
