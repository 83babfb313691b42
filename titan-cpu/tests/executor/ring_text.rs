//! Kernels over one ring as text, and runs of them.

use crate::common::{Tensor, all_options, assert_close, compile_text, data, run};
use titan_core::ir::Elem;

/// Runs a kernel with every option and compares its last argument, which starts as sevens.
pub(crate) fn check(text: &str, inputs: &[&Tensor], out: (&[i32], &[f64]), grid: [u32; 3]) {
    for options in all_options() {
        let tensor = Tensor::new(Elem::F32, out.0, &vec![7.0; out.1.len()]);
        let args: Vec<_> = inputs.iter().copied().chain([&tensor]).map(Tensor::arg).collect();
        let program = compile_text(text, options);
        for _ in 0..2 {
            run(&program, &args, grid);
            assert_close(&tensor.values(), out.1, 1e-4, &format!("{options:?}\n{text}"));
        }
    }
}

pub(crate) fn f32s(extents: &[i32], seed: u64) -> (Tensor, Vec<f64>) {
    let len: i32 = extents.iter().product();
    let values = data(Elem::F32, usize::try_from(len).unwrap(), seed);
    (Tensor::new(Elem::F32, extents, &values), values)
}

/// `ready`, `wait_ready` and `read_perm` of ring 0, with tokens of these names.
pub(crate) fn take(name: &str) -> String {
    format!(
        "%r{name} = ttg.stage.ready<0>
        %s{name} = ttg.stage.wait_ready %r{name}
        %p{name} = ttg.stage.read_perm %s{name}"
    )
}

pub(crate) fn give(name: &str) -> String {
    format!("%k{name} = ttg.stage.consumed %p{name}\nttg.stage.release %k{name}")
}

pub(crate) const FILL: &str = "%slot = ttg.stage.acquire<0>
    %src = ttg.source_tile %a[%t] or %pad : source<8xf32>
    ttg.stage.async_produce %slot, %src {bytes = 32, proxy = generic}";

/// A kernel of one ring over the tiles of `a`, whose roles have these bodies.
pub(crate) fn tiles(outputs: &str, slots: u32, roles: &[(&str, String)]) -> String {
    let decl: String = roles.iter().map(|(name, _)| format!(" role({name}, 1)")).collect();
    let bodies: String =
        roles.iter().map(|(name, body)| format!(" {name} {{\n{body}\nttg.pipeline.finalize\nyield\n}}")).collect();
    format!(
        "kernel @tiles(%a: in tensor<f32>[N], {outputs}) grid(1) pipe({slots}, \"ring\", tile<8xf32>){decl} {{
        %n = dim<0> %a
        %zero = const 0 : i32
        %one = const 1 : i32
        %two = const 2 : i32
        %seven = const 7 : i32
        %eight = const 8 : i32
        %up = add %n, %seven
        %steps = div %up, %eight
        %pad = const -1.5 : f32
        ttg.roles{bodies}
        return
        }}"
    )
}

pub(crate) fn each(counter: &str, body: &str) -> String {
    format!("for {counter} = %zero to %steps step %one {{\n{body}\ncontinue\n}}")
}

/// The tiles of a vector, with padding.
pub(crate) fn padded(a: &[f64]) -> Vec<f64> {
    let mut all = a.to_vec();
    all.resize(a.len().next_multiple_of(8), -1.5);
    all
}
