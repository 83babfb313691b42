//! Persistent products on clusters of programs, whose copies of shared tiles are for all of them: exact on all completion orders,
//! with tiles that do not exist, and with more or fewer clusters than tiles. Changes of the emitted text are found.

use super::harness::{order_of, orders};
use super::lowered::{Gemm, run_on};
use super::ptxas;
use std::fmt::Write as _;
use titan_core::artifact::Variant;
use titan_core::driver::{Cluster, Stages, Walk, compile, follow, stages};
use titan_core::ir::Elem;
use titan_core::text;
use titan_core::verify::{Verified, verify};
use titan_nv::Machine;
use titan_nv::emu::{Completion, Options};

/// A persistent product with a ring of so many slots.
pub(super) fn kernel(gemm: &Gemm, slots: u32, grouped: bool) -> String {
    let [bm, bn, bk] = gemm.tile;
    let (a, b, c) = gemm.elems;
    let (stored, [ta, tb]) = (gemm.stored, gemm.transposed);
    let (sa, sb) = (if ta { "K, M" } else { "M, K" }, if tb { "K, N" } else { "N, K" });
    let (tile_a, tile_b) = (if ta { [bk, bm] } else { [bm, bk] }, if tb { [bk, bn] } else { [bn, bk] });
    let by = |[rows, columns]: [u32; 2]| format!("{rows}x{columns}");
    let (tile_a, tile_b) = (by(tile_a), by(tile_b));
    let bytes = bm * bk * a.bits() / 8 + bn * bk * b.bits() / 8;
    let zero = |elem: Elem| if elem.is_float() { "0.0" } else { "0" };
    let unflatten = if grouped { "unflatten_grouped<2>" } else { "unflatten" };
    let mut s = format!(
        "kernel @gemm(%a: in tensor<{a}>[{sa}], %b: in tensor<{b}>[{sb}], %c: mut tensor<{stored}>[M, N]) grid persistent \
         pipe({slots}, \"ring\", tile<{tile_a}x{a}>, tile<{tile_b}x{b}>) role(producer, 1) role(consumer, 4) {{\n\
         %K = dim<{}> %a : i32\n%zero = const 0 : i32\n%one = const 1 : i32\n%bk = const {bk} : i32\n%q = div %K, %bk : i32\n\
         %r = rem %K, %bk : i32\n%some = gt %r, %zero : bool\n%rest = cast %some : i32\n%steps = add %q, %rest : i32\n",
        usize::from(!ta),
    );
    for (name, axis, tile) in [("m", 0, bm), ("n", 1, bn)] {
        let _ = write!(
            s,
            "%d{name} = dim<{axis}> %c : i32\n%t{name} = const {tile} : i32\n%q{name} = div %d{name}, %t{name} : i32\n\
             %r{name} = rem %d{name}, %t{name} : i32\n%s{name} = ne %r{name}, %zero : bool\n%x{name} = cast %s{name} : i32\n\
             %e{name} = add %q{name}, %x{name} : i32\n"
        );
    }
    let turned = |name: &str, of: &str, turn: bool, [rows, columns]: [u32; 2], elem: Elem| {
        if turn { format!("%{name} = permute<1, 0> %{of} : smem<{rows}x{columns}x{elem}>\n") } else { String::new() }
    };
    let (at, bt) = (if ta { "%k, %m" } else { "%m, %k" }, if tb { "%k, %n" } else { "%n, %k" });
    let _ = write!(
        s,
        "%all = mul %em, %en : i32\nttg.roles producer {{\nfor %i = %zero to %all step %one distributed {{\n\
         %m, %n = {unflatten} %i, %em, %en : i32, i32\nfor %k = %zero to %steps step %one {{\n\
         %slot = ttg.stage.acquire<0> : slot<0>\n%pa = const {} : {a}\n%pb = const {} : {b}\n\
         %from = ttg.source_tile %a[{at}] or %pa : source<{tile_a}x{a}>\n\
         %and = ttg.source_tile %b[{bt}] or %pb : source<{tile_b}x{b}>\n\
         ttg.stage.async_produce %slot, %from, %and {{bytes = {bytes}, proxy = generic}}\ncontinue\n}}\ncontinue\n}}\n\
         ttg.pipeline.finalize\nyield\n}} consumer {{\nfor %j = %zero to %all step %one distributed {{\n\
         %mm, %nn = {unflatten} %j, %em, %en : i32, i32\n%z = const {} : {c}\n%s = splat %z : tile<{bm}x{bn}x{c}>\n\
         %acc = ttg.acc.start<1> %s : acc<1, {bm}x{bn}x{c}>\n\
         %out = for %l = %zero to %steps step %one carry(%x = %acc) : acc<1, {bm}x{bn}x{c}> {{\n\
         %ready = ttg.stage.ready<0> : ready<0>\n%st = ttg.stage.wait_ready %ready : stage<0>\n\
         %p = ttg.stage.read_perm %st : rperm<0>\n%va = ttg.stage.view<0> %p : smem<{tile_a}x{a}>\n\
         %vb = ttg.stage.view<1> %p : smem<{tile_b}x{b}>\n{}{}%y = ttg.acc.mma %x, %p, %{}, %{} : acc<1, {bm}x{bn}x{c}>\n\
         continue %y\n}}\n%f = ttg.acc.finish %out : tile<{bm}x{bn}x{c}>\n%g = cast %f : tile<{bm}x{bn}x{stored}>\n\
         store_tile %c[%mm, %nn], %g\ncontinue\n}}\nttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n",
        zero(a),
        zero(b),
        zero(c),
        turned("ua", "va", ta, [bm, bk], a),
        turned("ub", "vb", !tb, [bk, bn], b),
        if ta { "ua" } else { "va" },
        if tb { "vb" } else { "ub" },
    );
    s
}

pub(super) fn verified(text: &str) -> Verified {
    let kernel = text::parse(text).unwrap_or_else(|e| panic!("{e:?}\n{text}")).remove(0);
    verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// The kernel with clusters; `None` leaves the choice to the compiler.
pub(super) fn compiled(text: &str, cluster: Option<Cluster>) -> Stages {
    compiled_for("sm_90a", text, cluster)
}

pub(super) fn compiled_for(target: &str, text: &str, cluster: Option<Cluster>) -> Stages {
    let (kernel, machine) = (verified(text), Machine::from_name(target).expect("it is known"));
    let chosen = stages(&kernel, machine, true, None).unwrap_or_else(|e| panic!("{}\n{text}", e.message));
    let Some(cluster) = cluster else { return chosen };
    let walk = Walk { cluster: Some(cluster), ..chosen.schedule.walk };
    let schedule = titan_core::driver::Schedule { walk, bodies: Vec::new(), ..chosen.schedule };
    follow(&kernel, machine, &schedule).unwrap_or_else(|e| panic!("{}\n{text}", e.message))
}

pub(super) const PLAIN: Gemm = Gemm {
    elems: (Elem::F16, Elem::F16, Elem::F32),
    stored: Elem::F16,
    transposed: [false; 2],
    tile: [64, 64, 64],
    size: [64, 64, 64],
};

pub(super) const fn along(axis: usize, size: u32) -> Cluster {
    Cluster { size, axis }
}

fn receives(made: &Stages) -> usize {
    String::from_utf8_lossy(&made.code.payload).matches("multicast::cluster").count()
}

#[test]
fn the_larger_tile_is_shared() {
    let of = |tile: [u32; 3]| compiled(&kernel(&Gemm { tile, ..PLAIN }, 2, false), None).schedule.walk.cluster;
    assert_eq!(of([64, 128, 64]), Some(along(0, 2)), "programs along M share B");
    assert_eq!(of([128, 64, 64]), Some(along(1, 2)), "programs along N share A");
    assert_eq!(of([64, 64, 64]), Some(along(0, 2)));
}

/// Launches with one tile along the axis of clusters take the variant behind, which is the same without clusters.
#[test]
fn a_variant_without_clusters_is_behind() {
    let machine = Machine::from_name("sm_90a").expect("it is known");
    for (tile, condition) in [([64, 128, 64], "`M > 64`"), ([128, 64, 64], "`N > 64`")] {
        let kernel = verified(&kernel(&Gemm { tile, ..PLAIN }, 2, false));
        let variants = compile(&kernel, machine, None).expect("it compiles");
        let [with, without, any_output] = &variants[..] else { panic!("{} variants", variants.len()) };
        let assumed = |variant: &Variant| -> Vec<String> {
            variant.assumptions.iter().map(|assumption| assumption.sentence(&kernel.sig)).collect()
        };
        assert_eq!((with.cluster, without.cluster), (2, 0));
        let (mut all, fewer) = (assumed(with), assumed(without));
        let at = all.iter().position(|sentence| sentence == condition).expect("the condition");
        all.remove(at);
        // Boxes of shared tiles are halves of them.
        let but_for_maps =
            |all: &[String]| all.iter().filter(|s| !s.contains("tensor map")).cloned().collect::<Vec<_>>();
        assert_eq!(but_for_maps(&all), but_for_maps(&fewer));
        // The last one serves outputs with rows of any alignment, and has no clusters.
        assert_eq!(any_output.cluster, 0);
        let of_output: Vec<String> = assumed(any_output).into_iter().filter(|s| s.contains("`c`")).collect();
        assert_eq!(of_output, Vec::<String>::new());
    }
}

#[test]
fn every_element_and_order_of_copies_for_all() {
    let mut cases = Vec::new();
    for transposed in [[false, false], [true, false], [false, true], [true, true]] {
        cases.push(Gemm { transposed, size: [190, 200, 136], ..PLAIN });
    }
    let bytes = [(Elem::I8, Elem::I8, Elem::I32), (Elem::E4m3, Elem::E5m2, Elem::F32)];
    cases.extend(bytes.map(|elems| Gemm {
        elems,
        stored: elems.2,
        tile: [64, 96, 64],
        size: [130, 200, 144],
        ..PLAIN
    }));
    let tf32 = (Elem::Tf32, Elem::Tf32, Elem::F32);
    cases.push(Gemm { elems: tf32, stored: Elem::F32, tile: [64, 32, 32], size: [70, 76, 68], ..PLAIN });
    for (number, gemm) in cases.iter().enumerate() {
        let clusters = [along(0, 2), along(1, 2), along(0, 4)].into_iter().enumerate();
        let of_quick = |i: usize| test_depth::is_full() || i == number % 3;
        for (i, cluster) in clusters.filter(|(i, _)| of_quick(*i)) {
            let made = compiled(&kernel(gemm, 3, number % 2 == 1), Some(cluster));
            assert!(receives(&made) > 0, "{gemm:?}, {cluster:?}");
            let options = &order_of(number + i);
            run_on(gemm, &made, options, number as u64, [[cluster.size, 8, 12][(number + i) % 3], 1, 1])
                .unwrap_or_else(|e| panic!("{gemm:?}, {cluster:?}, {:?}: {e}", options.completion));
        }
    }
}

#[test]
fn tiles_that_do_not_exist_and_steps_fewer_than_slots() {
    let text = kernel(&PLAIN, 3, false);
    for (turn, cluster) in [along(0, 2), along(1, 2), along(0, 4), along(1, 4)].into_iter().enumerate() {
        let made = compiled(&text, Some(cluster));
        // One tile, fewer tiles than programs of a cluster, and one more than a multiple.
        let sizes = [[1, 8, 8], [64, 64, 64], [64, 264, 72], [328, 64, 128], [136, 136, 200]];
        // In the quick depth they take turns.
        let of_quick = |i: usize| test_depth::is_full() || i % 4 == turn;
        for (i, size) in sizes.into_iter().enumerate().filter(|(i, _)| of_quick(*i)) {
            let gemm = Gemm { size, ..PLAIN };
            let completion = if i % 2 == 0 { Completion::Late } else { Completion::Early };
            let options = Options { completion, sanitize: true, ..Options::default() };
            run_on(&gemm, &made, &options, 3, [cluster.size * 2, 1, 1])
                .unwrap_or_else(|e| panic!("{gemm:?}, {cluster:?}, {completion:?}: {e}"));
        }
    }
}

/// The lines of a text with the `nth` one that contains something changed; from the end if it is negative.
pub(super) fn line(text: &str, nth: isize, has: &str, change: impl Fn(&str) -> String) -> String {
    let all: Vec<usize> = text.lines().enumerate().filter(|(_, l)| l.contains(has)).map(|(i, _)| i).collect();
    let at = if nth < 0 { all.len().wrapping_add_signed(nth) } else { nth.unsigned_abs() };
    let at = *all.get(at).unwrap_or_else(|| panic!("no line {nth} with `{has}`\n{text}"));
    text.lines().enumerate().map(|(i, l)| if i == at { change(l) } else { l.to_owned() } + "\n").collect()
}

pub(super) fn without(text: &str, nth: isize, has: &str) -> String {
    line(text, nth, has, |_| String::new())
}

/// The last operand of an instruction becomes another one.
pub(super) fn last(to: &'static str) -> impl Fn(&str) -> String {
    move |l| format!("{}, {to};", l.rsplit_once(", ").expect("it has operands").0)
}

const MULTICAST: &str = ".multicast::cluster";
const ARRIVE: &str = "mbarrier.arrive.shared::cluster";

/// Changes of the emitted text that break the protocol of clusters.
fn mutants(text: &str) -> Vec<(&'static str, String)> {
    let (arrive, wait) = ("barrier.cluster.arrive;", "barrier.cluster.wait;");
    let all_inits = |to: &'static str| {
        // The barriers of free slots are initialised behind those of filled ones, three each.
        (3..6).fold(text.to_owned(), |text, i| line(&text, i, "mbarrier.init", last(to)))
    };
    let releases = text.matches(ARRIVE).count() as isize;
    vec![
        ("no rendezvous before the roles", without(&without(text, 0, arrive), 0, wait)),
        ("no wait before the roles", without(text, 0, wait)),
        ("no rendezvous at the end", without(&without(text, -1, arrive), -1, wait)),
        ("no wait at the end", without(text, -1, wait)),
        ("a copy to the first program alone", line(text, 0, MULTICAST, last("1"))),
        ("a copy to the second program alone", line(text, 0, MULTICAST, last("2"))),
        ("a copy to a program that does not exist", line(text, 0, MULTICAST, last("5"))),
        (
            "parts that are not for all",
            line(text, 0, MULTICAST, |l| {
                l.replace(MULTICAST, "").rsplit_once(", ").expect("a mask").0.to_owned() + ";"
            }),
        ),
        ("bytes of the own parts are expected", line(text, 0, "expect_tx", last("12288"))),
        ("more bytes than come are expected", line(text, 0, "expect_tx", last("20480"))),
        ("the readers of one program are counted", all_inits("4")),
        ("more readers than there are", all_inits("12")),
        ("initialisation without a fence", without(text, 0, "fence.mbarrier_init")),
        ("arrivals at the first program alone", line(text, 0, "mapa", last("0"))),
        ("arrivals at the second program alone", line(text, 0, "mapa", last("1"))),
        ("arrivals at a program that does not exist", line(text, 0, "mapa", last("2"))),
        (
            "arrivals at the own program alone",
            line(text, 0, "mapa", |l| {
                format!("{{ .reg .b32 %own; mov.u32 %own, %cluster_ctarank; {} }}", last("%own")(l.trim()))
            }),
        ),
        (
            "arrivals at the address of the own barriers",
            line(text, 0, "mapa", |l| {
                let (place, _) = l.rsplit_once(", ").expect("a rank");
                format!("{};", place.replace("mapa.shared::cluster.u32", "mov.b32"))
            }),
        ),
        ("two arrivals of each reader", line(text, 0, ARRIVE, |l| format!("{l}\n{l}"))),
        ("arrivals by the other lanes", line(text, -1, ARRIVE, |l| l.replace("@%", "@!%"))),
        ("no arrival for the last stage", without(text, releases - 1, ARRIVE)),
        ("no arrivals in the loop", without(text, 0, ARRIVE)),
        ("the part is put elsewhere", line(text, 0, MULTICAST, |l| l.replace("+8192]", "+10240]"))),
        (
            "the part of another tile",
            line(text, 0, MULTICAST, |l| {
                let (head, rest) = l.split_once('{').expect("coordinates");
                let (coords, rest) = rest.split_once('}').expect("coordinates");
                let (x, _) = coords.split_once(", ").expect("two of them");
                format!("{head}{{{x}, {x}}}{rest}")
            }),
        ),
        ("clusters of four programs", line(text, 0, ".reqnctapercluster", |_| ".reqnctapercluster 4, 1, 1".to_owned())),
        ("no clusters", without(text, 0, ".reqnctapercluster")),
    ]
}

#[test]
fn changes_of_the_protocol_are_found() {
    let gemm = Gemm { size: [136, 72, 264], ..PLAIN };
    let made = compiled(&kernel(&gemm, 3, false), Some(along(0, 2)));
    let text = String::from_utf8(made.code.payload.clone()).expect("PTX is text");
    let fails = |text: &str| {
        let mut changed = made.clone();
        changed.code.payload = text.as_bytes().to_vec();
        orders().into_iter().find_map(|options| {
            let options = Options { sanitize: true, ..options };
            run_on(&gemm, &changed, &options, 7, [4, 1, 1]).err()
        })
    };
    assert_eq!(fails(&text), None);
    for (name, changed) in mutants(&text) {
        assert_ne!(changed.trim_end(), text.trim_end(), "{name}");
        assert!(fails(&changed).is_some(), "{name} is not found\n{changed}");
    }
}

#[test]
fn the_assembler_takes_code_with_clusters() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    for cluster in [along(0, 2), along(1, 2), along(0, 4)] {
        let made = compiled(&kernel(&PLAIN, 3, false), Some(cluster));
        let text = String::from_utf8_lossy(&made.code.payload);
        let usages = ptxas::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(usages.iter().all(|usage| usage.spilled == 0), "{usages:?}");
    }
}

#[test]
fn a_kernel_that_cannot_have_clusters_refuses_a_schedule_with_one() {
    let text = include_str!("kernels/gemm.tir");
    let (kernel, machine) = (verified(text), Machine::from_name("sm_90a").expect("it is known"));
    let chosen = stages(&kernel, machine, true, None).expect("it compiles").schedule;
    let walk = Walk { cluster: Some(along(0, 2)), ..Walk::default() };
    let schedule = titan_core::driver::Schedule { walk, bodies: Vec::new(), ..chosen };
    let error = follow(&kernel, machine, &schedule).expect_err("its programs are not persistent");
    assert!(error.message.contains("cluster"), "{}", error.message);
}
