//! Kernels with rings: what stages hold, who reads them, how they are given back. The results are those of plain loops.

use crate::common::{Tensor, all_options, assert_close, compile_text, data, run};
use titan_core::ir::Elem;

/// Runs a kernel with every option and compares its last argument, which starts as sevens.
fn check(text: &str, inputs: &[&Tensor], out: (&[i32], &[f64]), grid: [u32; 3]) {
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

fn f32s(extents: &[i32], seed: u64) -> (Tensor, Vec<f64>) {
    let len: i32 = extents.iter().product();
    let values = data(Elem::F32, usize::try_from(len).unwrap(), seed);
    (Tensor::new(Elem::F32, extents, &values), values)
}

/// `ready`, `wait_ready` and `read_perm` of ring 0, with tokens of these names.
fn take(name: &str) -> String {
    format!(
        "%r{name} = ttg.stage.ready<0>
        %s{name} = ttg.stage.wait_ready %r{name}
        %p{name} = ttg.stage.read_perm %s{name}"
    )
}

fn give(name: &str) -> String {
    format!("%k{name} = ttg.stage.consumed %p{name}\nttg.stage.release %k{name}")
}

const FILL: &str = "%slot = ttg.stage.acquire<0>
    %src = ttg.source_tile %a[%t] or %pad : source<8xf32>
    ttg.stage.async_produce %slot, %src {bytes = 32, proxy = generic}";

/// A kernel of one ring over the tiles of `a`, whose roles have these bodies.
fn tiles(outputs: &str, slots: u32, roles: &[(&str, String)]) -> String {
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

fn each(counter: &str, body: &str) -> String {
    format!("for {counter} = %zero to %steps step %one {{\n{body}\ncontinue\n}}")
}

/// The tiles of a vector, with padding.
fn padded(a: &[f64]) -> Vec<f64> {
    let mut all = a.to_vec();
    all.resize(a.len().next_multiple_of(8), -1.5);
    all
}

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
    let readers = [("one", read("1", "2.0")), ("two", read("2", "3.0"))];
    let mut roles = vec![("fill", each("%t", FILL))];
    for first in [false, true] {
        roles.extend(readers.iter().map(|(name, body)| (*name, body.clone())));
        if first {
            roles.rotate_left(1);
        }
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
        roles.truncate(1);
        roles[0] = ("fill", each("%t", FILL));
    }
}

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
            let want: Vec<f64> = all.iter().enumerate().map(|(i, v)| if i / 8 % 2 == 0 { *v } else { instead }).collect();
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
    check(&tiles("%c: mut tensor<f32>[P]", 2, &[("fill", each("%t", FILL)), ("read", read)]), &[&a], (&[80], &want), [1, 1, 1]);
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
    let text = "kernel @staging(%a: in tensor<f32>[N], %c: mut tensor<f32>[N]) grid(1) pipe(2, \"out\", tile<8xf32>) {
        %n = dim<0> %a
        %zero = const 0 : i32
        %one = const 1 : i32
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
        %less = sub %n, %one
        %tile = div %less, %eight
        %q2 = ttg.store.issue_tile %c[%tile], %last
        ttg.store.wait %q2
        return
        }";
    for n in [1, 8, 9, 50, 4000] {
        let (a, values) = f32s(&[n], 3);
        let want: Vec<f64> = values.iter().map(|v| 2.0 * v).collect();
        check(text, &[&a], (&[n], &want), [1, 1, 1]);
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

/// Rows that are named by an index each, of a tensor of rank 3, and a scalar one.
#[test]
fn copied_rows() {
    let text = "kernel @rows(%kv: in tensor<f32>[P, S, D], %at: in tensor<i32>[N], %c: mut tensor<f32>[Q, E]) grid(cdiv(E, 8))
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
