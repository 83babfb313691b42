//! `println!` is the host's; kernels print with `tprint!`.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    println!("program {}", p);
    y.set([p], p);
}

fn main() {}
