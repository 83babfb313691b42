//! Attention with keys and values in two rings, whose reader multiplies the next keys before it is done with the values.

use crate::common::{Tensor, all_options, assert_close, compile_text, data, run};
use titan_core::ir::Elem;

/// Rows of queries of a program, keys of a step, and elements of a head.
const BM: usize = 16;
const BN: usize = 8;
const D: usize = 8;

fn take(ring: u32, name: &str) -> String {
    format!(
        "%r{name} = ttg.stage.ready<{ring}>
        %there{name} = ttg.stage.wait_ready %r{name}
        %p{name} = ttg.stage.read_perm %there{name}
        %v{name} = ttg.stage.view<0> %p{name} : smem<{BN}x{D}xf16>"
    )
}

fn give(name: &str) -> String {
    format!("%g{name} = ttg.stage.consumed %p{name}\nttg.stage.release %g{name}")
}

/// Scores of queries with a stage of keys; what is beyond the last key does not count.
fn scores(name: &str, step: &str) -> String {
    let (take, give) = (take(0, name), give(name));
    format!(
        "{take}
        %t{name} = permute<1, 0> %v{name}
        %z{name} = splat %f0 : tile<{BM}x{BN}xf32>
        %q{name} = ttg.compute.issue %q, %t{name}, %z{name}
        %raw{name} = ttg.compute.wait %q{name}
        {give}
        %i{name} = iota<{BN}> : tile<{BN}xi32>
        %first{name} = mul {step}, %bn
        %b{name} = splat %first{name} : tile<{BN}xi32>
        %key{name} = add %i{name}, %b{name}
        %end{name} = splat %keys : tile<{BN}xi32>
        %in{name} = lt %key{name}, %end{name}
        %all{name} = broadcast<0, {BM}> %in{name}
        %low{name} = splat %least : tile<{BM}x{BN}xf32>
        %x{name} = select %all{name}, %raw{name}, %low{name}"
    )
}

/// One step of the sum of values, by the scores `%s` with them.
fn sum() -> String {
    let (take, give) = (take(1, "v"), give("v"));
    format!(
        "%row = reduce_max<1> %s
        %mn = max %mi, %row
        %mb = broadcast<1, {BN}> %mn
        %sh = sub %s, %mb
        %p = exp %sh
        %old = sub %mi, %mn
        %scale = exp %old
        %ps = reduce_sum<1> %p
        %ls = mul %li, %scale
        %ln = add %ls, %ps
        %wide = broadcast<1, {D}> %scale
        %as = mul %acc, %wide
        %ph = cast %p : tile<{BM}x{BN}xf16>
        {take}
        %product = ttg.compute.issue %ph, %vv, %as
        %an = ttg.compute.wait %product
        {give}"
    )
}

fn text(slots: [u32; 2]) -> String {
    format!(
        "kernel @attention(%q_: in tensor<f16>[M, {D}], %k_: in tensor<f16>[N, {D}], %v_: in tensor<f16>[N, {D}],
            %o: mut tensor<f32>[M, {D}]) grid(cdiv(M, {BM})) require(N > 0)
            pipe({}, \"keys\", tile<{BN}x{D}xf16>) pipe({}, \"values\", tile<{BN}x{D}xf16>) role(copies, 1) role(computes, 4) {{
            %m = program_id<0>
            %keys = dim<0> %k_
            %zero = const 0 : i32
            %one = const 1 : i32
            %bn = const {BN} : i32
            %less = sub %bn, %one
            %up = add %keys, %less
            %steps = div %up, %bn
            %pad = const 0.0 : f16
            ttg.roles copies {{
                for %t = %zero to %steps step %one {{
                    %sk = ttg.source_tile %k_[%t, %zero] or %pad : source<{BN}x{D}xf16>
                    %fk = ttg.stage.acquire<0>
                    ttg.stage.async_produce %fk, %sk {{bytes = {bytes}, proxy = generic}}
                    %sv = ttg.source_tile %v_[%t, %zero] or %pad : source<{BN}x{D}xf16>
                    %fv = ttg.stage.acquire<1>
                    ttg.stage.async_produce %fv, %sv {{bytes = {bytes}, proxy = generic}}
                    continue
                }}
                ttg.pipeline.finalize
                yield
            }} computes {{
                %f0 = const 0.0 : f32
                %least = const -1.0e30 : f32
                %q = load_tile %q_[%m, %zero] or %pad : tile<{BM}x{D}xf16>
                {first}
                %m0 = splat %least : tile<{BM}xf32>
                %l0 = splat %f0 : tile<{BM}xf32>
                %a0 = splat %f0 : tile<{BM}x{D}xf32>
                %max, %sum, %out, %last = for %u = %zero to %steps step %one carry(%mi = %m0, %li = %l0, %acc = %a0, %s = %xa) {{
                    %next = add %u, %one
                    %more = lt %next, %steps
                    %ahead = if %more : tile<{BM}x{BN}xf32> {{
                        {ahead}
                        yield %xb
                    }} else {{
                        yield %s
                    }}
                    {sum}
                    continue %mn, %ln, %an, %ahead
                }}
                %lb = broadcast<1, {D}> %sum
                %y = div %out, %lb
                store_tile %o[%m, %zero], %y
                ttg.pipeline.finalize
                yield
            }}
            return
        }}",
        slots[0],
        slots[1],
        bytes = BN * D * 2,
        first = scores("a", "%zero"),
        ahead = scores("b", "%next"),
        sum = sum(),
    )
}

fn reference(q: &[f64], k: &[f64], v: &[f64], [m, n]: [usize; 2]) -> Vec<f64> {
    let mut out = vec![0.0; m * D];
    for i in 0..m {
        let score = |j: usize| -> f64 { (0..D).map(|d| q[i * D + d] * k[j * D + d]).sum() };
        let most = (0..n).map(score).fold(f64::MIN, f64::max);
        let weights: Vec<f64> = (0..n).map(|j| (score(j) - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for d in 0..D {
            out[i * D + d] = (0..n).map(|j| weights[j] * v[j * D + d]).sum::<f64>() / sum;
        }
    }
    out
}

#[test]
fn keys_one_step_ahead_of_values() {
    for [m, n] in [[16, 8], [16, 64], [33, 50], [1, 1], [7, 9], [20, 2300]] {
        let inputs = [(m, 3), (n, 5), (n, 7)].map(|(rows, seed)| data(Elem::F16, rows * D, seed));
        let extents = |rows: usize| [i32::try_from(rows).unwrap(), D as i32];
        let tensors: Vec<Tensor> =
            inputs.iter().zip([m, n, n]).map(|(values, rows)| Tensor::new(Elem::F16, &extents(rows), values)).collect();
        let want = reference(&inputs[0], &inputs[1], &inputs[2], [m, n]);
        for slots in [[2, 2], [1, 2], [1, 1]] {
            for options in all_options() {
                let out = Tensor::zeros(Elem::F32, &extents(m));
                let args: Vec<_> = tensors.iter().chain([&out]).map(Tensor::arg).collect();
                run(&compile_text(&text(slots), options), &args, [m.div_ceil(BM) as u32, 1, 1]);
                // Weights are rounded to f16.
                assert_close(&out.values(), &want, 4e-3, &format!("{m} queries, {n} keys, {slots:?}, {options:?}"));
            }
        }
    }
}
