//! Groups: chains of elementwise operations, reductions and stores that run as one step, against the same kernels step by step.

use crate::common::{K, Tensor, all_options, data, run};
use titan_core::ir::{BinOp, Elem, OpKind};

#[test]
fn what_is_the_same_in_every_program_is_stored_by_every_program() {
    for options in all_options() {
        let mut k = K::new("same");
        let (x, y) = (k.input("x", Elem::F32, 1), k.output("y", Elem::F32, 2));
        let (p, zero) = (k.pid(0), k.i32(0));
        let t = k.load(x, &[zero], &[8]);
        let t = k.op(OpKind::Binary(BinOp::Mul), &[t, t]);
        let t = k.op(OpKind::Reshape(crate::common::shape_of(&[1, 8])), &[t]);
        let t = k.op(OpKind::Binary(BinOp::Add), &[t, t]);
        k.store(y, &[p, zero], t);
        let values = data(Elem::F32, 8, 3);
        let (x, y) = (Tensor::new(Elem::F32, &[8], &values), Tensor::zeros(Elem::F32, &[5, 8]));
        run(&k.compile(options), &[x.arg(), y.arg()], [5, 1, 1]);
        let row: Vec<f64> = values.iter().map(|v| f64::from(*v as f32 * *v as f32 * 2.0)).collect();
        assert_eq!(y.values(), row.repeat(5), "{options:?}");
    }
}
