//! Kernels as text: the same matrix product with a pipeline by the compiler, and with explicit ones.

/// What all of them begin with: C[m, n] = Σ_k A[m, k] · B[n, k], tiles of 32 by 16, sixteen of k at a time.
const HEAD: &str = "    %m = program_id<0>\n    %n = program_id<1>\n    %k = dim<1> %a\n    %c15 = const 15 : i32\n    %c16 = const 16 : i32\n\
    %up = add %k, %c15\n    %steps = div %up, %c16\n    %zero = const 0 : i32\n    %one = const 1 : i32\n    %pad = const 0.0 : f16\n    %f0 = const 0.0 : f32\n";

fn gemm(grid: &str, more: &str, head: &str, body: &str) -> String {
    format!(
        "kernel @gemm(%a: in tensor<f16>[M, K], %b: in tensor<f16>[N, K], %c: mut tensor<f32>[M, N]) {grid} {more}{{\n{head}{body}}}\n"
    )
}

const TILES: &str = "grid(cdiv(M, 32), cdiv(N, 16))";

fn ring(slots: usize) -> String {
    format!("pipe({slots}, \"ring\", tile<32x16xf16>, tile<16x16xf16>) ")
}

/// `for k in pipelined(..)`
pub(crate) fn implicit() -> String {
    gemm(
        TILES,
        "",
        HEAD,
        "    %z = splat %f0 : tile<32x16xf32>
    %done = for %t = %zero to %steps step %one pipelined carry(%acc = %z) {
        %at = load_tile %a[%m, %t] or %pad : tile<32x16xf16>
        %bt = load_tile %b[%n, %t] or %pad : tile<16x16xf16>
        %btt = permute<1, 0> %bt
        %next = mma %at, %btt, %acc
        continue %next
    }
    store_tile %c[%m, %n], %done
    return
",
    )
}

/// Copies of step `t` of tile (m, n).
fn copy(t: &str) -> String {
    format!(
        "            %slot = ttg.stage.acquire<0>
            %sa = ttg.source_tile %a[%m, {t}] or %pad : source<32x16xf16>
            %sb = ttg.source_tile %b[%n, {t}] or %pad : source<16x16xf16>
            ttg.stage.async_produce %slot, %sa, %sb {{bytes = 1536, proxy = generic}}
"
    )
}

const TAKE: &str = "            %ready = ttg.stage.ready<0>
            %stage = ttg.stage.wait_ready %ready
            %perm = ttg.stage.read_perm %stage
            %va = ttg.stage.view<0> %perm : smem<32x16xf16>
            %vb = ttg.stage.view<1> %perm : smem<16x16xf16>
            %vbt = permute<1, 0> %vb
";
const GIVE: &str = "            %over = ttg.stage.consumed %perm
            ttg.stage.release %over
";

/// How a consumer multiplies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Multiply {
    /// `mma` on the stage, then release.
    AtOnce,
    /// `mma_async(..).wait()`, then release.
    Token,
    /// An accumulator with this many MMAs in flight.
    Acc(u32),
    /// The stage is loaded to registers and released before the MMA.
    Registers,
}

fn consume(how: Multiply) -> String {
    let looped = |carry: &str, body: &str, next: &str| {
        format!(
            "        %end = for %u = %zero to %steps step %one carry({carry}) {{\n{TAKE}{body}            continue {next}\n        }}\n"
        )
    };
    let z = "        %z = splat %f0 : tile<32x16xf32>\n";
    match how {
        Multiply::AtOnce => {
            format!("{z}{}", looped("%acc = %z", &format!("            %next = mma %va, %vbt, %acc\n{GIVE}"), "%next"))
        }
        Multiply::Token => {
            let body = format!(
                "            %token = ttg.compute.issue %va, %vbt, %acc\n            %next = ttg.compute.wait %token\n{GIVE}"
            );
            format!("{z}{}", looped("%acc = %z", &body, "%next"))
        }
        Multiply::Acc(keep) => {
            let body = "            %next = ttg.acc.mma %acc, %perm, %va, %vbt\n";
            let all = looped("%acc = %start", body, "%next").replace("%end =", "%chain =");
            format!("{z}        %start = ttg.acc.start<{keep}> %z\n{all}        %end = ttg.acc.finish %chain\n")
        }
        Multiply::Registers => {
            let body = format!(
                "            %ra = ttg.stage.read %va\n            %rb = ttg.stage.read %vbt\n{GIVE}            %next = mma %ra, %rb, %acc\n"
            );
            format!("{z}{}", looped("%acc = %z", &body, "%next"))
        }
    }
}

const END: &str = "        ttg.pipeline.finalize\n        yield\n";

/// One tile of the output a program, a role that copies and a role that multiplies.
pub(crate) fn roles(slots: usize, warps: [u32; 2], how: Multiply) -> String {
    let more = format!("{}role(producer, {}) role(consumer, {}) ", ring(slots), warps[0], warps[1]);
    let body = format!(
        "    ttg.roles producer {{\n        for %t = %zero to %steps step %one {{\n{}            continue\n        }}\n{END}    }} consumer {{\n{}        store_tile %c[%m, %n], %end\n{END}    }}\n    return\n",
        copy("%t"),
        consume(how),
    );
    gemm(TILES, &more, HEAD, &body)
}

/// As [`roles`], with steps in the order of a table; if `may_be_none` is set, stages of steps that are below 0 are zeros.
pub(crate) fn paged(slots: usize, may_be_none: bool) -> String {
    let page = "            %number = get %tab[%t]\n            %page = cast %number : i32\n";
    let produce = "            ttg.stage.async_produce %slot, %sa, %sb {bytes = 1536, proxy = generic}\n";
    let branch = format!(
        "            %some = ge %page, %zero : bool\n            if %some {{\n    {produce}                yield\n            }} else {{\n\
         \x20               ttg.stage.zero %slot\n                yield\n            }}\n"
    );
    let copies = page.to_owned() + &copy("%page");
    let copies = if may_be_none { copies.replace(produce, &branch) } else { copies };
    roles(slots, [1, 4], Multiply::AtOnce)
        .replace(&copy("%t"), &copies)
        .replace("%c: mut tensor<f32>[M, N]", "%c: mut tensor<f32>[M, N], %tab: in tensor<f32>[T]")
}

/// As [`roles`], persistent: both roles walk the tiles of the output, and the clocks run on.
pub(crate) fn persistent(slots: usize) -> String {
    let more = format!("{}role(producer, 1) role(consumer, 4) ", ring(slots));
    let head = HEAD.replace("    %m = program_id<0>\n    %n = program_id<1>\n", "");
    let work = "        %rows = dim<0> %c\n        %columns = dim<1> %c\n        %c31 = const 31 : i32\n        %c32 = const 32 : i32\n        %rup = add %rows, %c31\n        %gm = div %rup, %c32\n        %cup = add %columns, %c15\n        %gn = div %cup, %c16\n        %tiles = mul %gm, %gn\n";
    let looped = |i: &str, body: &str| {
        format!(
            "        for {i} = %zero to %tiles step %one distributed {{\n        %m, %n = unflatten {i}, %gm, %gn\n{body}        continue\n        }}\n"
        )
    };
    let producer = looped(
        "%w",
        &format!("        for %t = %zero to %steps step %one {{\n{}            continue\n        }}\n", copy("%t")),
    );
    let consumer = looped("%x", &format!("{}        store_tile %c[%m, %n], %end\n", consume(Multiply::Acc(1))))
        .replace("%m", "%m.2")
        .replace("%n,", "%n.2,")
        .replace("%n]", "%n.2]")
        .replace("%n =", "%n.2 =");
    gemm(
        "grid persistent",
        &more,
        &format!("{head}{work}"),
        &format!("    ttg.roles producer {{\n{producer}{END}    }} consumer {{\n{consumer}{END}    }}\n    return\n"),
    )
}

/// Without roles: all warps copy `ahead` steps before they multiply.
pub(crate) fn one_thread(slots: usize, ahead: usize) -> String {
    let body = format!(
        "    %far = const {ahead} : i32\n    %last = add %steps, %far\n    %z = splat %f0 : tile<32x16xf32>
    %end = for %t = %zero to %last step %one carry(%acc = %z) {{
        %more = lt %t, %steps
        if %more {{
{}            yield
        }} else {{
            yield
        }}
        %old = ge %t, %far
        %next = if %old {{
{TAKE}            %sum = mma %va, %vbt, %acc
{GIVE}            yield %sum
        }} else {{
            yield %acc
        }}
        continue %next
    }}
    ttg.pipeline.finalize
    store_tile %c[%m, %n], %end
    return
",
        copy("%t")
    );
    gemm(TILES, &ring(slots), HEAD, &body)
}

/// Two roles read every stage: one multiplies the upper rows of A, one the lower.
pub(crate) fn two_readers(slots: usize) -> String {
    let more = format!("{}role(producer, 2) role(left, 4) role(right, 2) ", ring(slots));
    let right = consume(Multiply::Registers)
        .replace("%z =", "%z.3 =")
        .replace("%z)", "%z.3)")
        .replace("%end", "%end.3")
        .replace("%acc", "%acc.3")
        .replace("%next", "%next.3")
        .replace("%u ", "%u.3 ")
        .replace("%ready", "%ready.3")
        .replace("%stage ", "%stage.3 ")
        .replace("read_perm %stage\n", "read_perm %stage.3\n")
        .replace("%perm", "%perm.3")
        .replace("%va", "%va.3")
        .replace("%vb ", "%vb.3 ")
        .replace("> %vb\n", "> %vb.3\n")
        .replace("%vbt", "%vbt.3")
        .replace("%ra", "%ra.3")
        .replace("%rb", "%rb.3")
        .replace("%over", "%over.3");
    let body = format!(
        "    ttg.roles producer {{\n        for %t = %zero to %steps step %one {{\n{}            continue\n        }}\n{END}    }} left {{\n{}        store_tile %c[%m, %n], %end\n{END}    }} right {{\n{right}        store_tile %d[%m, %n], %end.3\n{END}    }}\n    return\n",
        copy("%t"),
        consume(Multiply::AtOnce),
    );
    gemm(TILES, &more, HEAD, &body)
        .replace("%c: mut tensor<f32>[M, N]", "%d: mut tensor<f32>[M, N], %c: mut tensor<f32>[M, N]")
}

/// Steps of which `%keep` is false are skipped: as zeros, or as poison that the reader passes over.
pub(crate) fn skipping(slots: usize, poison: bool) -> String {
    let fill = if poison { "poison" } else { "zero" };
    let copy = copy("%t").replace("%sb {", "%sb, %keep {").replace("generic}", &format!("generic, skipped = {fill}}}"));
    let copy = format!(
        "            %two = const 2 : i32\n            %odd = rem %t, %two\n            %keep = eq %odd, %one\n{copy}"
    );
    let sum = "            %sum = mma %va, %vbt, %acc\n";
    let read = if poison {
        let (wait, rest) = TAKE.split_once("            %perm").unwrap();
        format!(
            "{wait}            %bad = ttg.stage.poisoned %stage\n            %next = if %bad {{\n            %none = ttg.stage.consumed %stage\n            ttg.stage.release %none\n            yield %acc\n            }} else {{\n            %perm{rest}{sum}{GIVE}            yield %sum\n            }}\n"
        )
    } else {
        format!("{TAKE}{}{GIVE}", sum.replace("%sum", "%next"))
    };
    let more = format!("{}role(producer, 1) role(consumer, 2) ", ring(slots));
    let body = format!(
        "    ttg.roles producer {{\n        for %t = %zero to %steps step %one {{\n{copy}            continue\n        }}\n{END}    }} consumer {{\n        %z = splat %f0 : tile<32x16xf32>\n        %end = for %u = %zero to %steps step %one carry(%acc = %z) {{\n{read}            continue %next\n        }}\n        store_tile %c[%m, %n], %end\n{END}    }}\n    return\n"
    );
    gemm(TILES, &more, HEAD, &body)
}

/// The result leaves through a staging ring.
pub(crate) fn staged(slots: usize) -> String {
    let text = roles(slots, [1, 4], Multiply::AtOnce)
        .replace("role(producer", "pipe(1, \"out\", tile<32x16xf32>) role(producer");
    text.replace("        store_tile %c[%m, %n], %end\n", "        %free = ttg.stage.acquire<1>\n        %written = ttg.stage.write %free, %end\n        %store = ttg.store.issue_tile %c[%m, %n], %written\n        ttg.store.wait %store\n")
}
