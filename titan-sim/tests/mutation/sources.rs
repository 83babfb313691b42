//! The pipelines that are changed: those of the tree that are right, and families of rings of many shapes.

use crate::text::Text;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use titan_core::ir::Kernel;
use titan_core::pipeline::{fuse, implicit};
use titan_core::text::parse;
use titan_core::verify::verify;

/// How a pipeline is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// With rings and tokens, as kernels in Rust are.
    Rings,
    /// With barriers and groups, in the text form alone.
    Barriers,
}

/// A pipeline that is right.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) level: Level,
    pub(crate) kernel: Kernel,
    pub(crate) text: Text,
}

/// Every good pipeline.
pub(crate) fn all() -> &'static [Source] {
    static ALL: OnceLock<Vec<Source>> = OnceLock::new();
    ALL.get_or_init(read)
}

fn read() -> Vec<Source> {
    let mut found = Vec::new();
    for (name, text) in files() {
        for kernel in parse(&text).unwrap_or_default() {
            found.push((format!("{name}@{}", kernel.sig.name), kernel));
        }
    }
    found.extend(families().into_iter().map(|(name, text)| {
        let mut kernels = parse(&text).unwrap_or_else(|e| panic!("{name}: {e:?}\n{text}"));
        (name, kernels.pop().expect("a kernel"))
    }));
    found.extend(implicit());
    let good = |(name, kernel): (String, Kernel)| {
        let level = level(&kernel)?;
        verify(kernel.clone()).ok()?;
        let text = Text::of(&kernel);
        Some(Source { name, level, kernel, text })
    };
    found.into_iter().filter_map(good).collect()
}

/// The level of a pipeline; `None` is no pipeline.
fn level(kernel: &Kernel) -> Option<Level> {
    let text = titan_core::text::print(kernel);
    if text.contains("ttg.nv.tcgen05") {
        // Mutants of programs with tensor memory are those of tests/tensor.
        return None;
    }
    if text.contains("ttg.region") || text.contains("ttg.nv.") || text.contains("ttg.amd.") {
        return Some(Level::Barriers);
    }
    (!kernel.pipes.is_empty()).then_some(Level::Rings)
}

/// The filetests and the files of the command's tests: right kernels, and the repaired twins of wrong ones.
fn files() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = Vec::new();
    for folder in [
        "titan-core/filetests/verify",
        "titan-core/filetests/museum",
        "titan-core/filetests/fence",
        "titan-cli/tests/files",
    ] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        paths
            .extend(entries.map(|e| e.expect("an entry").path()).filter(|p| p.extension().is_some_and(|e| e == "tir")));
    }
    paths.sort();
    let name = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    paths.iter().map(|p| (name(p), std::fs::read_to_string(p).expect("a file"))).collect()
}

const HEAD: &str = "    %p = program_id<0> : i32\n    %zero = const 0 : i32\n    %one = const 1 : i32\n    %h = const 0.0 : f16\n    %f = const 0.0 : f32\n";

fn header(name: &str, pipes: &[(usize, &str)], roles: &[&str]) -> String {
    let mut text =
        format!("kernel @{name}(%a: in tensor<f16>[M, K], %c: mut tensor<f32>[M], %n: i32, %m: i32) grid(M)");
    for (i, (slots, tiles)) in pipes.iter().enumerate() {
        let _ = write!(text, " pipe({slots}, \"ring{i}\", {tiles})");
    }
    roles.iter().for_each(|r| {
        let _ = write!(text, " role({r}, {})", if *r == "producer" { 1 } else { 4 });
    });
    text + " {\n" + HEAD
}

/// Reading a stage: alone, in parts, by a product that is waited for, or by an accumulator.
fn reading(how: usize, i: usize) -> String {
    let take = format!(
        "%ready{i} = ttg.stage.ready<0>\n%stage{i} = ttg.stage.wait_ready %ready{i}\n%perm{i} = ttg.stage.read_perm %stage{i}\n"
    );
    let give = |perm: &str| format!("%done{i} = ttg.stage.consumed {perm}\nttg.stage.release %done{i}\n");
    let views = format!("%va{i} = ttg.stage.view<0> %perm{i} : smem<16x16xf16>\n");
    let read = format!("%tile{i} = ttg.stage.read %va{i}\n");
    match how {
        0 => take + &views + &read + &give(&format!("%perm{i}")),
        1 => {
            take + &views
                + &read
                + &format!("%pa{i}, %pb{i} = ttg.rperm.split<2> %perm{i}\n%whole{i} = ttg.rperm.join %pa{i}, %pb{i}\n")
                + &give(&format!("%whole{i}"))
        }
        _ => {
            take + &views
                + &format!(
                    "%z{i} = splat %f : tile<16x16xf32>\n%product{i} = ttg.compute.issue %va{i}, %va{i}, %z{i}\n%sum{i} = ttg.compute.wait %product{i}\n"
                )
                + &give(&format!("%perm{i}"))
        }
    }
}

const TILE: &str = "tile<16x16xf16>";
const COPY: &str = "%sa = ttg.source_tile %a[%p, %i] or %h : source<16x16xf16>\n%slot = ttg.stage.acquire<0>\nttg.stage.async_produce %slot, %sa {bytes = 512, proxy = generic}\n";
const END: &str = "ttg.pipeline.finalize\nyield\n";

/// Families of rings: slots, readers, how they read, whether roles part, how far copies run ahead.
fn families() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for slots in 1..=4 {
        for readers in 1..=2 {
            for how in 0..3 {
                let names = ["producer", "left", "right"];
                let mut text = header("roles", &[(slots, TILE)], &names[..=readers]);
                let _ = write!(
                    text,
                    "ttg.roles producer {{\nfor %i = %zero to %n step %one {{\n{COPY}continue\n}}\n{END}}}"
                );
                for r in 1..=readers {
                    let store = if r == 1 { "set %c[%p], %f\n" } else { "" };
                    let body = reading(how, r);
                    let _ = write!(
                        text,
                        " {} {{\nfor %j{r} = %zero to %n step %one {{\n{body}continue\n}}\n{store}{END}}}",
                        names[r]
                    );
                }
                all.push((format!("roles D={slots} readers={readers} reading={how}"), text + "\nreturn\n}\n"));
            }
        }
        for ahead in 0..slots {
            all.push((format!("no roles D={slots} P={ahead}"), without_roles(slots, ahead)));
        }
        all.push((format!("accumulator D={slots}"), accumulator(slots)));
        all.push((format!("tiles D={slots}"), tiles(slots)));
        all.push((format!("staging D={slots}"), staging(slots)));
        all.push((format!("exchange D={slots}"), exchange(slots)));
        all.push((format!("skipped D={slots}"), skipped(slots)));
    }
    all
}

/// All warps fill and read, so many steps ahead.
fn without_roles(slots: usize, ahead: usize) -> String {
    let body = reading(0, 0);
    header("no_roles", &[(slots, TILE)], &[])
        + &format!(
            "%ahead = const {ahead} : i32\n%end = add %n, %ahead\nfor %i = %zero to %end step %one {{\n%more = lt %i, %n\nif %more {{\n{COPY}yield\n}} else {{\nyield\n}}\n%old = ge %i, %ahead\nif %old {{\n{body}yield\n}} else {{\nyield\n}}\ncontinue\n}}\nset %c[%p], %f\nreturn\n}}\n"
        )
}

/// A consumer with MMAs in flight.
fn accumulator(slots: usize) -> String {
    let keep = (slots - 1).min(1);
    header("accumulator", &[(slots, TILE)], &["producer", "consumer"])
        + &format!(
            "ttg.roles producer {{\nfor %i = %zero to %n step %one {{\n{COPY}continue\n}}\n{END}}} consumer {{\n%z = splat %f : tile<16x16xf32>\n%acc = ttg.acc.start<{keep}> %z\n%last = for %j = %zero to %n step %one carry(%sum = %acc) {{\n%ready = ttg.stage.ready<0>\n%stage = ttg.stage.wait_ready %ready\n%perm = ttg.stage.read_perm %stage\n%va = ttg.stage.view<0> %perm : smem<16x16xf16>\n%next = ttg.acc.mma %sum, %perm, %va, %va\ncontinue %next\n}}\n%r = ttg.acc.finish %last\nset %c[%p], %f\n{END}}}\nreturn\n}}\n"
        )
}

/// Clocks that run on over tiles.
fn tiles(slots: usize) -> String {
    let body = reading(0, 0);
    header("tiles", &[(slots, TILE)], &["producer", "consumer"])
        + &format!(
            "ttg.roles producer {{\nfor %x = %zero to %m step %one {{\nfor %i = %zero to %n step %one {{\n{COPY}continue\n}}\ncontinue\n}}\n{END}}} consumer {{\nfor %y = %zero to %m step %one {{\nfor %j = %zero to %n step %one {{\n{body}continue\n}}\ncontinue\n}}\nset %c[%p], %f\n{END}}}\nreturn\n}}\n"
        )
}

/// Results that leave through a ring.
fn staging(slots: usize) -> String {
    let head = format!(
        "kernel @staging(%c: mut tensor<f32>[M, K], %n: i32, %m: i32) grid(cdiv(M, 16)) pipe({slots}, \"out\", tile<16x16xf32>) {{\n{HEAD}"
    );
    head + "%t = splat %f : tile<16x16xf32>\nfor %i = %zero to %n step %one {\n%s1 = ttg.stage.acquire<0>\n%w1 = ttg.stage.write %s1, %t\n%x1 = ttg.store.issue_tile %c[%p, %i], %w1\nttg.store.wait %x1\ncontinue\n}\nreturn\n}\n"
}

/// Two roles that feed each other.
fn exchange(slots: usize) -> String {
    let fill = |k: usize, i: &str| format!("%s{i} = ttg.stage.acquire<{k}>\nttg.stage.zero %s{i}\n");
    let read = |k: usize, i: &str| {
        format!(
            "%r{i} = ttg.stage.ready<{k}>\n%w{i} = ttg.stage.wait_ready %r{i}\n%d{i} = ttg.stage.consumed %w{i}\nttg.stage.release %d{i}\n"
        )
    };
    header("exchange", &[(slots, TILE), (slots, TILE)], &["left", "right"])
        + &format!(
            "ttg.roles left {{\nfor %i = %zero to %n step %one {{\n{}{}continue\n}}\n{END}}} right {{\nfor %j = %zero to %n step %one {{\n{}{}continue\n}}\nset %c[%p], %f\n{END}}}\nreturn\n}}\n",
            fill(0, "a"),
            read(1, "b"),
            read(0, "c"),
            fill(1, "d")
        )
}

/// Copies that are left out, and a reader that asks.
fn skipped(slots: usize) -> String {
    header("skipped", &[(slots, TILE)], &["producer", "consumer"])
        + &format!(
            "ttg.roles producer {{\nfor %i = %zero to %n step %one {{\n%slot = ttg.stage.acquire<0>\nttg.stage.poison %slot\ncontinue\n}}\n{END}}} consumer {{\nfor %j = %zero to %n step %one {{\n%ready = ttg.stage.ready<0>\n%stage = ttg.stage.wait_ready %ready\n%bad = ttg.stage.poisoned %stage\nif %bad {{\n%d0 = ttg.stage.consumed %stage\nttg.stage.release %d0\nyield\n}} else {{\n%perm = ttg.stage.read_perm %stage\n%va = ttg.stage.view<0> %perm : smem<16x16xf16>\n%tile = ttg.stage.read %va\n%done = ttg.stage.consumed %perm\nttg.stage.release %done\nyield\n}}\ncontinue\n}}\nset %c[%p], %f\n{END}}}\nreturn\n}}\n"
        )
}

const GEMM: &str = "kernel @gemm(%a: in tensor<f16>[M, K], %b: in tensor<f16>[N, K], %c: mut tensor<f32>[M, N]) grid(cdiv(M, 16), cdiv(N, 16)) {
    %m = program_id<0> : i32
    %n = program_id<1> : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %w = const 16 : i32
    %h = const 0.0 : f16
    %f = const 0.0 : f32
    %k = dim<1> %a
    %up = const 15 : i32
    %more = add %k, %up
    %steps = div %more, %w
    %z = splat %f : tile<16x16xf32>
    %sum = for %t = %zero to %steps step %one pipelined carry(%acc = %z) {
        %at = load_tile %a[%m, %t] or %h : tile<16x16xf16>
        %bt = load_tile %b[%n, %t] or %h : tile<16x16xf16>
        %bp = permute<1, 0> %bt
        %next = mma %at, %bp, %acc
        continue %next
    }
    store_tile %c[%m, %n], %sum
    return
}
";

/// Loops over `pipelined(..)` and fused roles, as the compiler makes them.
fn implicit() -> Vec<(String, Kernel)> {
    let gemm = titan_core::text::parse_one(GEMM).unwrap_or_else(|e| panic!("{e:?}"));
    let mut all = Vec::new();
    for slots in 2..=4 {
        for candidate in implicit::candidates(&gemm, &|_| true) {
            all.extend(
                implicit::pipeline(&gemm, &candidate, slots).map(|k| (format!("pipelined D={slots}"), k.canonical())),
            );
        }
    }
    for (name, text) in
        families().into_iter().filter(|(name, _)| name.starts_with("roles") && name.contains("readers=1"))
    {
        let kernel = titan_core::text::parse_one(&text).expect("a kernel");
        all.extend(fuse::fuse(&kernel, false).map(|k| (format!("fused {name}"), k)));
    }
    all
}
