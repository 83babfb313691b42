//! What stages hold: tiles from anywhere, rows, zeros, nothing. The results are those of plain loops.

use crate::common::{Tensor, all_options, assert_close, compile_text, data, run};
use crate::ring_text::{check, each, f32s, give, padded, take, tiles};
use titan_core::ir::Elem;

#[test]
fn copies_that_are_skipped() {
    let fill = |skipped: &str| {
        each(
            "%t",
            &format!(
                "%rest = rem %t, %two
                %even = eq %rest, %zero
                %slot = ttg.stage.acquire<0>
                %src = ttg.source_tile %a[%t] or %pad : source<8xf32>
                ttg.stage.async_produce %slot, %src, %even {{bytes = 32, proxy = generic, skipped = {skipped}}}"
            ),
        )
    };
    let store = "%v = ttg.stage.view<0> %p : smem<8xf32>\n%x = ttg.stage.read %v\nstore_tile %c[%u], %x\n";
    let zero = each("%u", &format!("{}\n{store}{}", take(""), give("")));
    let poison = each(
        "%u",
        &format!(
            "%r = ttg.stage.ready<0>
            %s = ttg.stage.wait_ready %r
            %bad = ttg.stage.poisoned %s
            if %bad {{
                %lost = ttg.stage.consumed %s
                ttg.stage.release %lost
                yield
            }} else {{
                %p = ttg.stage.read_perm %s
                {store}
                {}
                yield
            }}",
            give("")
        ),
    );
    for n in [0, 5, 8, 30, 4200] {
        let (a, values) = f32s(&[n], 5);
        let all = padded(&values);
        for (skipped, read, instead) in [("zero", &zero, 0.0), ("poison", &poison, 7.0)] {
            let text = tiles("%c: mut tensor<f32>[P]", 3, &[("fill", fill(skipped)), ("read", read.clone())]);
            let want: Vec<f64> =
                all.iter().enumerate().map(|(i, v)| if i / 8 % 2 == 0 { *v } else { instead }).collect();
            check(&text, &[&a], (&[i32::try_from(all.len()).unwrap()], &want), [1, 1, 1]);
        }
    }
}

/// Stages that are filled without a copy, slots that are filled in another order than they were taken, and a fence.
#[test]
fn stages_filled_out_of_order() {
    let fill = each(
        "%t",
        "%first = ttg.stage.acquire<0>
        %second = ttg.stage.acquire<0>
        %third = ttg.stage.acquire<0>
        %src = ttg.source_tile %a[%t] or %pad : source<8xf32>
        ttg.stage.async_produce %third, %src {bytes = 32, proxy = generic}
        ttg.stage.zero %second
        ttg.fence.proxy {from = generic, to = async, scope = cta, space = shared}
        ttg.stage.zero %first",
    );
    let read = each(
        "%u",
        &format!(
            "{}
            %v1 = ttg.stage.view<0> %p1 : smem<8xf32>
            %x1 = ttg.stage.read %v1
            %r2 = ttg.stage.ready<0>
            %s2 = ttg.stage.wait_ready %r2
            %c2 = ttg.stage.consumed %s2
            ttg.stage.release %c2
            {}
            %v3 = ttg.stage.view<0> %p3 : smem<8xf32>
            %x3 = ttg.stage.read %v3
            {}{}
            %sum = add %x1, %x3
            store_tile %c[%u], %sum",
            take("1"),
            take("3"),
            give("3") + "\n",
            give("1"),
        ),
    );
    let (a, values) = f32s(&[100], 7);
    let want = padded(&values);
    for slots in [3, 5] {
        let roles = [("read", read.clone()), ("fill", fill.clone())];
        check(&tiles("%c: mut tensor<f32>[P]", slots, &roles), &[&a], (&[104], &want), [1, 1, 1]);
    }
}

/// Rows that are named by an index each, of a tensor of rank 3, and a scalar one.
#[test]
fn copied_rows() {
    let text =
        "kernel @rows(%kv: in tensor<f32>[P, S, D], %at: in tensor<i32>[N], %c: mut tensor<f32>[Q, E]) grid(cdiv(E, 8))
        pipe(2, \"rows\", tile<4x8xf32>) role(fill, 1) role(read, 4) {
        %col = program_id<0>
        %n = dim<0> %at
        %zero = const 0 : i32
        %one = const 1 : i32
        %four = const 4 : i32
        %eight = const 8 : i32
        %steps = div %n, %four
        %none = const -1 : i32
        %pad = const 9.0 : f32
        ttg.roles fill {
            for %t = %zero to %steps step %one {
                %pages = load_tile %at[%t] or %none : tile<4xi32>
                %from = mul %col, %eight
                %src = ttg.source_rows %kv[%pages, %t, %from] or %pad : source<4x8xf32>
                %f = ttg.stage.acquire<0>
                ttg.stage.async_produce %f, %src {bytes = 128, proxy = generic}
                continue
            }
            ttg.pipeline.finalize
            yield
        } read {
            for %u = %zero to %steps step %one {
                %r = ttg.stage.ready<0>
                %s = ttg.stage.wait_ready %r
                %p = ttg.stage.read_perm %s
                %v = ttg.stage.view<0> %p : smem<4x8xf32>
                %x = ttg.stage.read %v
                store_tile %c[%u, %col], %x
                %k = ttg.stage.consumed %p
                ttg.stage.release %k
                continue
            }
            ttg.pipeline.finalize
            yield
        }
        return
        }";
    let (pages, rows, width) = (5, 3, 13);
    let (kv, values) = f32s(&[pages, rows, width], 3);
    let named: [i64; 16] = [0, 4, 2, 2, -1, 3, 1, 5, 4, 4, 0, 1, 2, 3, 4, 0];
    let at = Tensor::ints(Elem::I32, &[16], &named);
    let (pages, rows, width) = (5, 3, 13usize);
    let element = |e: usize| {
        let (row, col) = (e / 16, e % 16);
        let (page, of) = (usize::try_from(named[row]).ok().filter(|p| *p < pages), row / 4);
        page.filter(|_| of < rows && col < width).map_or(9.0, |page| values[(page * rows + of) * width + col])
    };
    let want: Vec<f64> = (0..16 * 16).map(element).collect();
    check(text, &[&kv, &at], (&[16, 16], &want), [2, 1, 1]);
}

/// Parts of a sum that do not follow each other: every second step, offsets in elements, tiles that overlap, and factors that
/// start at different places. A loop over such stages is no single product.
#[test]
fn stages_in_any_order() {
    let text = |at: [&str; 2]| {
        format!(
            "kernel @steps(%a: in tensor<f32>[M, K], %b: in tensor<f32>[N, K], %c: mut tensor<f32>[M, N])
            grid(cdiv(M, 4), cdiv(N, 4)) pipe(2, tile<4x4xf32>, tile<4x4xf32>) role(f, 1) role(r, 4) {{
                %m = program_id<0>
                %n = program_id<1>
                %zero = const 0 : i32
                %one = const 1 : i32
                %two = const 2 : i32
                %three = const 3 : i32
                %four = const 4 : i32
                %steps = const 7 : i32
                %pad = const 0.0 : f32
                %m4 = mul %m, %four
                %n4 = mul %n, %four
                ttg.roles f {{
                    for %t = %zero to %steps step %one {{
                        %t2 = mul %t, %two
                        %t3 = mul %t, %three
                        %t4 = mul %t, %four
                        %late = add %t4, %two
                        %back = sub %steps, %t
                        %fixed = add %zero, %three
                        %sa = ttg.source_at %a[%m4, {}] or %pad : source<4x4xf32>
                        %sb = ttg.source_at %b[%n4, {}] or %pad : source<4x4xf32>
                        %slot = ttg.stage.acquire<0>
                        ttg.stage.async_produce %slot, %sa, %sb {{bytes = 128, proxy = generic}}
                        continue
                    }}
                    ttg.pipeline.finalize
                    yield
                }} r {{
                    %f0 = const 0.0 : f32
                    %z = splat %f0 : tile<4x4xf32>
                    %acc0 = ttg.acc.start<1> %z
                    %done = for %t5 = %zero to %steps step %one carry(%acc = %acc0) {{
                        %r = ttg.stage.ready<0>
                        %s = ttg.stage.wait_ready %r
                        %p = ttg.stage.read_perm %s
                        %va = ttg.stage.view<0> %p : smem<4x4xf32>
                        %vb = ttg.stage.view<1> %p : smem<4x4xf32>
                        %vbt = permute<1, 0> %vb
                        %acc2 = ttg.acc.mma %acc, %p, %va, %vbt
                        continue %acc2
                    }}
                    %sum = ttg.acc.finish %done
                    store_tile %c[%m, %n], %sum
                    ttg.pipeline.finalize
                    yield
                }}
                return
            }}",
            at[0], at[1]
        )
    };
    let place = |name: &str, t: i64| match name {
        "%t2" => 2 * t,
        "%t3" => 3 * t,
        "%t4" => 4 * t,
        "%late" => 4 * t + 2,
        "%back" => 7 - t,
        _ => 3,
    };
    let (a, b) = (data(Elem::F32, 6 * 21, 3), data(Elem::F32, 9 * 21, 5));
    let (ta, tb) = (Tensor::new(Elem::F32, &[6, 21], &a), Tensor::new(Elem::F32, &[9, 21], &b));
    let at = |x: &[f64], i: usize, l: i64| usize::try_from(l).ok().filter(|l| *l < 21).map_or(0.0, |l| x[i * 21 + l]);
    for names in [
        ["%t4", "%t4"],
        ["%t2", "%t2"],
        ["%late", "%late"],
        ["%t4", "%late"],
        ["%back", "%t3"],
        ["%fixed", "%t4"],
        ["%fixed", "%fixed"],
    ] {
        let element = |e: usize| -> f64 {
            let steps = (0..7).flat_map(|t| (0..4).map(move |l| (t, l)));
            steps.map(|(t, l)| at(&a, e / 9, place(names[0], t) + l) * at(&b, e % 9, place(names[1], t) + l)).sum()
        };
        let want: Vec<f64> = (0..54).map(element).collect();
        for options in all_options() {
            let tc = Tensor::zeros(Elem::F32, &[6, 9]);
            run(&compile_text(&text(names), options), &[ta.arg(), tb.arg(), tc.arg()], [2, 3, 1]);
            assert_close(&tc.values(), &want, 1e-4, &format!("{names:?} {options:?}"));
        }
    }
}
