//! Kernels with rings: who fills, who reads, and how stages are released. The results are those of plain loops.

use crate::common::{Tensor, all_options, assert_close, compile_text, run};
use crate::ring_text::{FILL, check, each, f32s, give, padded, take, tiles};
use titan_core::ir::Elem;

#[test]
fn two_readers_see_every_stage() {
    let read = |suffix: &str, factor: &str| {
        let body = format!(
            "{}\n%v{suffix} = ttg.stage.view<0> %p{suffix} : smem<8xf32>
            %x{suffix} = ttg.stage.read %v{suffix}
            %f{suffix} = const {factor} : f32
            %b{suffix} = splat %f{suffix} : tile<8xf32>
            %y{suffix} = mul %x{suffix}, %b{suffix}
            store_tile %o{suffix}[%t{suffix}], %y{suffix}\n{}",
            take(suffix),
            give(suffix)
        );
        each(&format!("%t{suffix}"), &body)
    };
    let [fill, one, two] = [("fill", each("%t", FILL)), ("one", read("1", "2.0")), ("two", read("2", "3.0"))];
    for roles in [[fill.clone(), one.clone(), two.clone()], [one, two, fill]] {
        for n in [0, 1, 8, 21, 3000] {
            let (a, values) = f32s(&[n], 3);
            let want: Vec<f64> = padded(&values);
            let text = tiles("%o1: mut tensor<f32>[P], %o2: mut tensor<f32>[Q]", 2, &roles);
            for options in all_options() {
                let len = i32::try_from(want.len()).unwrap();
                let outs = [Tensor::zeros(Elem::F32, &[len]), Tensor::zeros(Elem::F32, &[len])];
                run(&compile_text(&text, options), &[a.arg(), outs[0].arg(), outs[1].arg()], [1, 1, 1]);
                for (out, factor) in outs.iter().zip([2.0, 3.0]) {
                    let want: Vec<f64> = want.iter().map(|v| v * factor).collect();
                    assert_close(&out.values(), &want, 1e-6, "two readers");
                }
            }
        }
    }
}

#[test]
fn split_and_joined() {
    let read = each(
        "%u",
        &format!(
            "{}
            %q0, %q1 = ttg.rperm.split<2> %p
            %v0 = ttg.stage.view<0> %q0 : smem<8xf32>
            %x0 = ttg.stage.read %v0
            %v1 = ttg.stage.view<0> %q1 : smem<8xf32>
            %x1 = ttg.stage.read %v1
            %whole = ttg.rperm.join %q1, %q0
            %k = ttg.stage.consumed %whole
            ttg.stage.release %k
            %y = add %x0, %x1
            store_tile %c[%u], %y",
            take("")
        ),
    );
    let (a, values) = f32s(&[77], 9);
    let want: Vec<f64> = padded(&values).iter().map(|v| 2.0 * v).collect();
    check(
        &tiles("%c: mut tensor<f32>[P]", 2, &[("fill", each("%t", FILL)), ("read", read)]),
        &[&a],
        (&[80], &want),
        [1, 1, 1],
    );
}

/// Roles that feed each other: no order of the roles would do.
#[test]
fn roles_that_feed_each_other() {
    let text = "kernel @circle(%a: in tensor<f32>[N], %c: mut tensor<f32>[P]) grid(1)
        pipe(1, \"there\", tile<8xf32>) pipe(1, \"back\", tile<8xf32>) role(one, 1) role(two, 1) {
        %n = dim<0> %a
        %zero = const 0 : i32
        %one = const 1 : i32
        %eight = const 8 : i32
        %steps = div %n, %eight
        %pad = const 0.0 : f32
        ttg.roles one {
            for %t = %zero to %steps step %one {
                %src = ttg.source_tile %a[%t] or %pad : source<8xf32>
                %f = ttg.stage.acquire<0>
                ttg.stage.async_produce %f, %src {bytes = 32, proxy = generic}
                %r = ttg.stage.ready<1>
                %s = ttg.stage.wait_ready %r
                %p = ttg.stage.read_perm %s
                %v = ttg.stage.view<0> %p : smem<8xf32>
                %x = ttg.stage.read %v
                store_tile %c[%t], %x
                %k = ttg.stage.consumed %p
                ttg.stage.release %k
                continue
            }
            ttg.pipeline.finalize
            yield
        } two {
            for %u = %zero to %steps step %one {
                %r2 = ttg.stage.ready<0>
                %s2 = ttg.stage.wait_ready %r2
                %k2 = ttg.stage.consumed %s2
                ttg.stage.release %k2
                %last = sub %steps, %one
                %at = sub %last, %u
                %src2 = ttg.source_tile %a[%at] or %pad : source<8xf32>
                %f2 = ttg.stage.acquire<1>
                ttg.stage.async_produce %f2, %src2 {bytes = 32, proxy = generic}
                continue
            }
            ttg.pipeline.finalize
            yield
        }
        return
        }";
    for n in [0, 8, 80] {
        let (a, values) = f32s(&[n], 3);
        let want: Vec<f64> = values.chunks(8).rev().flatten().copied().collect();
        check(text, &[&a], (&[n], &want), [1, 1, 1]);
    }
}

/// What goes to a slot from registers is stored from there, after the next one has been written.
#[test]
fn staged_stores() {
    let text = "kernel @staging(%a: in tensor<f32>[N], %c: mut tensor<f32>[N], %d: mut tensor<f32>[P]) grid(1) pipe(2, \"out\", tile<8xf32>) {
        %n = dim<0> %a
        %zero = const 0 : i32
        %eight = const 8 : i32
        %pad = const 0.0 : f32
        %f = const 2.0 : f32
        %two = splat %f : tile<8xf32>
        %first = ttg.stage.acquire<0>
        %x0 = load_at %a[%zero] or %pad : tile<8xf32>
        %y0 = mul %x0, %two
        %w0 = ttg.stage.write %first, %y0
        %last = for %i = %eight to %n step %eight carry(%w = %w0) {
            %slot = ttg.stage.acquire<0>
            %x = load_at %a[%i] or %pad : tile<8xf32>
            %y = mul %x, %two
            %w2 = ttg.stage.write %slot, %y
            %before = sub %i, %eight
            %q = ttg.store.issue_at %c[%before], %w
            ttg.store.wait %q
            continue %w2
        }
        %q2 = ttg.store.issue_tile %d[%zero], %last
        ttg.store.wait %q2
        return
        }";
    for n in [1, 8, 9, 50, 4000] {
        let (a, values) = f32s(&[n], 3);
        let last = (values.len() - 1) / 8 * 8;
        let tile = |i: usize| values.get(i).map_or(0.0, |v| 2.0 * v);
        let wants: [Vec<f64>; 2] = [
            (0..values.len()).map(|i| if i < last { tile(i) } else { 0.0 }).collect(),
            (last..last + 8).map(tile).collect(),
        ];
        for options in all_options() {
            let outs = [Tensor::zeros(Elem::F32, &[n]), Tensor::zeros(Elem::F32, &[8])];
            run(&compile_text(text, options), &[a.arg(), outs[0].arg(), outs[1].arg()], [1, 1, 1]);
            for (out, want) in outs.iter().zip(&wants) {
                assert_close(&out.values(), want, 1e-6, "staging");
            }
        }
    }
}

/// One thread that fills ahead of what it reads.
#[test]
fn without_roles() {
    for ahead in [0, 1, 3] {
        let text = format!(
            "kernel @ahead(%a: in tensor<f32>[N], %c: mut tensor<f32>[P]) grid(1) pipe(4, \"ring\", tile<8xf32>) {{
            %n = dim<0> %a
            %zero = const 0 : i32
            %one = const 1 : i32
            %seven = const 7 : i32
            %eight = const 8 : i32
            %ahead = const {ahead} : i32
            %up = add %n, %seven
            %steps = div %up, %eight
            %more = add %steps, %ahead
            %pad = const -1.5 : f32
            for %t = %zero to %more step %one {{
                %fills = lt %t, %steps
                if %fills {{
                    {FILL}
                    yield
                }} else {{
                    yield
                }}
                %reads = ge %t, %ahead
                if %reads {{
                    {}
                    %v = ttg.stage.view<0> %p : smem<8xf32>
                    %x = ttg.stage.read %v
                    %u = sub %t, %ahead
                    store_tile %c[%u], %x
                    {}
                    yield
                }} else {{
                    yield
                }}
                continue
            }}
            return
            }}",
            take(""),
            give("")
        );
        for n in [0, 3, 8, 40, 2500] {
            let (a, values) = f32s(&[n], 3);
            let want = padded(&values);
            check(&text, &[&a], (&[i32::try_from(want.len()).unwrap()], &want), [1, 1, 1]);
        }
    }
}
