//! What the emitter decides from constants: numbers of inverted conditions, and loops whose bounds are known.

use super::{cells, machine};
use crate::cases;
use titan_core::lane::{Func, IntBin, OpKind, Ty};

const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

fn run(func: &Func, inputs: &[Vec<u64>], results: usize) -> Vec<Vec<Vec<u64>>> {
    TARGETS.map(|target| cells(func, machine(target), inputs, results)).to_vec()
}

#[test]
fn an_inverted_condition_becomes_the_inverted_number() {
    let (mut b, from, to) = cases::begin("inverted", 1, 2);
    let is_set = cases::load(&mut b, Ty::Pred, from, 0);
    let yes = b.pred(true);
    let is_clear = b.int(IntBin::Xor, is_set, yes);
    for (cell, condition) in [is_clear, is_set].into_iter().enumerate() {
        let number = b.one(OpKind::FromPred, &[condition]);
        cases::store(&mut b, number, to, cell);
    }
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().unwrap();
    let inputs: Vec<Vec<u64>> = (0..u64::from(cases::THREADS)).map(|thread| vec![thread % 3 % 2]).collect();
    for found in run(&func, &inputs, 2) {
        for (input, found) in inputs.iter().zip(found) {
            let found: Vec<u64> = found.iter().map(|cell| cell & 0xffff_ffff).collect();
            assert_eq!(found, [1 - input[0], input[0]]);
        }
    }
}

#[test]
fn loops_with_known_bounds_have_the_iterations_between_them() {
    for (lo, hi, step, want) in [
        (0, 0, 1, 0),
        (3, 3, 1, 0),
        (5, 2, 1, 0),
        (-1, -1, 1, 0),
        (0, 1, 1, 1),
        (3, 8, 2, 3),
        (i32::MAX, i32::MAX, 1, 0),
    ] {
        let (mut b, _, to) = cases::begin("counted", 1, 1);
        let (lo, hi, step) = (b.i32(lo), b.i32(hi), b.i32(step));
        let (zero, one) = (b.i32(0), b.i32(1));
        let (open, _, carried) = b.begin_for([lo, hi, step], &[zero]);
        let count = b.add(carried[0], one);
        b.terminate(OpKind::Continue(0), &[count]);
        let count = b.end(open)[0];
        cases::store(&mut b, count, to, 0);
        b.terminate(OpKind::Return, &[]);
        let func = b.finish().unwrap();
        let inputs = vec![vec![0]; cases::THREADS as usize];
        for found in run(&func, &inputs, 1) {
            assert!(found.iter().all(|cells| cells[0] & 0xffff_ffff == want), "{func}");
        }
    }
}
