//! Every operation on registers and every access to memory, with corners and random operands.
//!
//! The expected results are those of the tests of PTX: they follow from the contracts of the lane IR, and share nothing with either back end.

mod approximations;
#[path = "../../../../titan-nv/tests/emit/execute/numbers.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod numbers;
#[path = "../../../../titan-nv/tests/emit/execute/reference.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod reference;
mod registers;
#[path = "../../../../titan-nv/tests/emit/execute/values.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod values;

use crate::launch::{Ready, orders};
use titan_amd::emu::Memory;
use titan_core::lane::{Func, Ty};

/// The low bits of a width.
fn mask(ty: Ty) -> u64 {
    match ty {
        Ty::Pred => 1,
        Ty::B16 => 0xffff,
        Ty::B32 => 0xffff_ffff,
        Ty::B64 => u64::MAX,
    }
}

/// Runs a case: `inputs` has the operand cells of each thread, a whole number of programs; the result has `results` cells of each thread.
/// What a thread did not write is ones.
fn cells(func: &Func, ready: &Ready, inputs: &[Vec<u64>], results: usize, order: usize) -> Vec<Vec<u64>> {
    assert!(inputs.len().is_multiple_of(func.threads as usize));
    let mut memory = Memory::new();
    let all: Vec<u8> = inputs.iter().flatten().flat_map(|c| c.to_le_bytes()).collect();
    let from = memory.upload("operands", if all.is_empty() { &[0] } else { &all }).expect("there is room");
    let size = 8 * results * inputs.len();
    let to = memory.upload("results", &vec![0xff; size.max(1)]).expect("there is room");
    let grid = [inputs.len() as u32 / func.threads, 1, 1];
    let args = [from.address().to_le_bytes(), to.address().to_le_bytes()].concat();
    let options = &orders()[order % 3];
    ready
        .run(grid, &args, &mut memory, options)
        .unwrap_or_else(|e| panic!("{}: {e}\n{}", func.name, ready.emitted.code));
    let out = memory.read(to, size).unwrap_or_else(|e| panic!("{}: {e}", func.name));
    let cells: Vec<u64> = out.chunks(8).map(|c| u64::from_le_bytes(c.try_into().expect("eight bytes"))).collect();
    cells.chunks(results.max(1)).map(<[u64]>::to_vec).collect()
}
