//! Mistakes in the code of a product whose operands lie along K and along N, for programs in clusters of two: one line or one property of a
//! tensor map each, of every kind that such code can have wrong. The emulator finds all of them in some order of completion, with another
//! result, a fault, or a wait that does not end.
//!
//! `multicast` and `instances` have mistakes in the rendezvous of clusters and in turns, `counters` in slots that are released by counters,
//! `attention` and `mixed_mutants` in other loops.

use super::harness::orders;
use super::lowered::{Gemm, run_with_maps};
use super::multicast::{along, compiled, kernel};
use super::ptxas;
use std::collections::BTreeMap;
use titan_core::driver::Stages;
use titan_core::ir::Elem;
use titan_nv::emu::Options;
use titan_nv::tma::{Fill, Swizzle, TensorMap};

/// What a mistake is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Fence,
    Wait,
    Parity,
    Bytes,
    Count,
    Release,
    Descriptor,
    Multiply,
    Box,
    Mask,
    Map,
}

/// A changed text or tensor map.
struct Mistake {
    kind: Kind,
    what: String,
    text: String,
    map: Option<fn(usize, &mut TensorMap)>,
}

/// The line at which a search finds something, forwards from a line.
fn behind(lines: &[&str], at: usize, has: &str) -> Option<usize> {
    lines[at..].iter().position(|l| l.contains(has)).map(|n| at + n)
}

/// The line with its last operand changed.
fn last(line: &str, to: impl Fn(&str) -> String) -> String {
    let (head, operand) = line.strip_suffix(';').and_then(|l| l.rsplit_once(", ")).expect("operands");
    format!("{head}, {};", to(operand))
}

/// A number as the text has it.
fn number(text: &str) -> i64 {
    text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| i64::from_str_radix(hex, 16)).expect("a number")
}

/// What lines of a kind become: the kind of the mistake, what it is, and the lines in place of one.
fn changes(lines: &[&str], at: usize) -> Vec<(Kind, &'static str, Vec<String>)> {
    let line = lines[at];
    let next = lines.get(at + 1).copied().unwrap_or_default();
    let add = |n: i64| last(line, |number_| (number(number_) + n).to_string());
    let mut found = Vec::new();
    let mut say = |kind, what, by: Vec<String>| found.push((kind, what, by));
    if line.contains("mbarrier.init") {
        say(Kind::Count, "one arrival more is counted", vec![add(1)]);
        if !line.ends_with(", 1;") {
            say(Kind::Count, "one arrival less is counted", vec![add(-1)]);
        }
    } else if line.contains("mbarrier.try_wait") && next.contains("bra") {
        say(Kind::Wait, "no wait: a test without the branch back", vec![]);
        say(
            Kind::Parity,
            "the other parity",
            vec![
                "{ .reg .b32 %other;".to_owned(),
                format!("  xor.b32 %other, {}, 1;", line.trim_end_matches(';').rsplit_once(", ").expect("a parity").1),
                last(line, |_| "%other".to_owned()) + " }",
            ],
        );
        say(Kind::Parity, "always parity 0", vec![last(line, |_| "0".to_owned())]);
        say(Kind::Parity, "always parity 1", vec![last(line, |_| "1".to_owned())]);
    } else if line.contains("mbarrier.arrive.expect_tx") {
        say(Kind::Bytes, "no bytes are announced", vec![]);
        say(Kind::Bytes, "too many bytes", vec![add(16)]);
        say(Kind::Bytes, "too few bytes", vec![add(-16)]);
        say(Kind::Bytes, "the bytes of the program's own parts", vec![last(line, |n| (number(n) / 2).to_string())]);
    } else if line.contains("mbarrier.arrive.shared::cluster") {
        say(Kind::Release, "no release", vec![]);
        say(Kind::Release, "two releases", vec![line.to_owned(), line.to_owned()]);
        say(
            Kind::Release,
            "a release of the filled slot",
            vec![line.replace("+32]", "]").replace("+24]", "]").replace("+16]", "]")],
        );
    } else if line.contains("wgmma.wait_group") {
        say(Kind::Wait, "no wait for MMAs", vec![]);
        let left = line.trim_end_matches(';').rsplit_once(' ').expect("a number");
        say(Kind::Wait, "one more MMA stays in flight", vec![format!("{} {};", left.0, number(left.1) + 1)]);
    } else if line.contains("wgmma.fence") {
        // Behind MMAs in flight, another one that adds to the same sums needs no fence.
        let before = lines[..at].iter().rev().find(|l| l.contains("wgmma.")).copied().unwrap_or_default();
        if !before.contains("commit_group") {
            say(Kind::Fence, "no fence of registers", vec![]);
        }
    } else if line.contains("fence.proxy.async") {
        say(Kind::Fence, "no fence between proxies", vec![]);
    } else if line.contains("cp.async.bulk.wait_group") {
        say(Kind::Wait, "no wait for stores", vec![]);
    } else {
        return [descriptors(lines, at), boxes(line)].concat();
    }
    found
}

/// Mistakes in descriptors of shared memory, and in the MMAs that read them.
fn descriptors(lines: &[&str], at: usize) -> Vec<(Kind, &'static str, Vec<String>)> {
    let line = lines[at];
    let next = lines.get(at + 1).copied().unwrap_or_default();
    let with = |to: i64| vec![last(line, |_| format!("{to:#x}"))];
    let mut found = Vec::new();
    if line.contains("mov.b32") && next.contains("mov.b64 %rd") {
        let high = number(line.trim_end_matches(';').rsplit_once(", ").expect("a number").1);
        for (what, to) in [
            ("groups of 8 lines half as far apart", (high & 0xc000_0000) | ((high & 0x3fff) / 2)),
            ("groups of 8 lines twice as far apart", (high & 0xc000_0000) | ((high & 0x3fff) * 2)),
            ("lines without a swizzle", high & 0x3fff),
            ("a swizzle of 128 bytes", (high & 0x3fff) | 1 << 30),
            ("a swizzle of 64 bytes", (high & 0x3fff) | 2 << 30),
            ("a swizzle of 32 bytes", (high & 0x3fff) | 3 << 30),
            ("an offset of the swizzle's base", high & 0xffff_ffff | 1 << 17),
        ] {
            if to != high & 0xffff_ffff {
                found.push((Kind::Descriptor, what, with(to)));
            }
        }
    } else if line.contains("add.s32") && line.ends_with("0000;") && next.contains("mov.b32") {
        // The distance of panels along N stands in the upper half of the lower word.
        let low = number(line.trim_end_matches(';').rsplit_once(", ").expect("a number").1);
        found.push((Kind::Descriptor, "panels half as far apart", with(low / 2)));
        found.push((Kind::Descriptor, "panels twice as far apart", with(low * 2)));
        found.push((Kind::Descriptor, "panels at one place", with(0)));
    } else if line.contains("mul.wide.u32 %rd") && behind(lines, at, "wgmma.mma_async").is_some_and(|mma| mma <= at + 4)
    {
        // The number of the slot times its bytes.
        let bytes = number(line.trim_end_matches(';').rsplit_once(", ").expect("a number").1);
        found.push((Kind::Descriptor, "slots half as far apart", with(bytes / 2)));
        found.push((Kind::Descriptor, "slots twice as far apart", with(bytes * 2)));
        found.push((Kind::Descriptor, "slots at one place", with(0)));
    } else if line.contains("add.s64 %rd")
        && line.rsplit_once(", ").is_some_and(|(_, more)| !more.starts_with('%'))
        && behind(lines, at, "wgmma.mma_async").is_some_and(|mma| mma <= at + 3)
    {
        let step = number(line.trim_end_matches(';').rsplit_once(", ").expect("a number").1);
        found.push((Kind::Descriptor, "half a step of K further", with(step / 2)));
        found.push((Kind::Descriptor, "two steps of K further", with(step * 2)));
        found.push((Kind::Descriptor, "the same step of K again", with(0)));
    } else if line.contains("wgmma.mma_async") {
        let (head, tail) = line.split_once("}, ").expect("an accumulator");
        let [a, b, rest] = tail.splitn(3, ", ").collect::<Vec<_>>()[..] else { panic!("operands of {line}") };
        found.push((Kind::Multiply, "no MMA", vec![]));
        found.push((Kind::Multiply, "operands exchanged", vec![format!("{head}}}, {b}, {a}, {rest}")]));
        for (what, from, to) in [
            ("B lies along K", "1, 1, 0, 1;", "1, 1, 0, 0;"),
            ("A lies along M", "1, 1, 0, 1;", "1, 1, 1, 1;"),
            ("A is negated", "1, 1, 0, 1;", "-1, 1, 0, 1;"),
            ("B is negated", "1, 1, 0, 1;", "1, -1, 0, 1;"),
        ] {
            found.push((Kind::Multiply, what, vec![line.replace(from, to)]));
        }
    } else if line.contains("mov.pred") {
        let other = if line.ends_with(", 0;") { "1" } else { "0" };
        found.push((
            Kind::Multiply,
            "the sum is kept where it begins, or begins anew",
            vec![last(line, |_| other.to_owned())],
        ));
    }
    found
}

/// Mistakes in copies of boxes: what is copied, where to, and for which programs.
fn boxes(line: &str) -> Vec<(Kind, &'static str, Vec<String>)> {
    let mut found = Vec::new();
    if !line.contains("cp.async.bulk.tensor") {
        return found;
    }
    let (head, rest) = line.split_once('{').expect("coordinates");
    let (coords, tail) = rest.split_once('}').expect("coordinates");
    let (x, y) = coords.split_once(", ").expect("two of them");
    let coords = |x: &str, y: &str| vec![format!("{head}{{{x}, {y}}}{tail}")];
    let moved = |of: &str| {
        let changed = if of == x { coords("%moved", y) } else { coords(x, "%moved") };
        vec![format!("{{ .reg .b32 %moved; add.s32 %moved, {of}, 8; {} }}", changed[0].trim())]
    };
    found.push((Kind::Box, "no copy", vec![]));
    found.push((Kind::Box, "coordinates exchanged", coords(y, x)));
    found.push((Kind::Box, "a box further along the rows", moved(x)));
    found.push((Kind::Box, "a box further down", moved(y)));
    if line.contains("complete_tx") {
        found.push((Kind::Box, "copied twice", vec![line.to_owned(), line.to_owned()]));
        let at = line.find('[').expect("a destination") + 1;
        let to = &line[at..at + line[at..].find(']').expect("a destination")];
        let further =
            to.split_once('+').map_or_else(|| format!("{to}+1024"), |(to, n)| format!("{to}+{}", number(n) + 1024));
        found.push((Kind::Box, "put elsewhere", vec![line.replacen(to, &further, 1)]));
        let barrier = line.rsplit_once('[').expect("a barrier").1.split_once(']').expect("a barrier").0;
        found.push((
            Kind::Box,
            "counted at another barrier",
            vec![line.replace(&format!("[{barrier}]"), &format!("[{barrier}+8]"))],
        ));
    }
    if line.contains(".multicast::cluster") {
        for (what, mask) in [
            ("for the first program alone", "1"),
            ("for the second program alone", "2"),
            ("for no program", "0"),
            ("for a third program, which does not exist", "7"),
        ] {
            found.push((Kind::Mask, what, vec![last(line, |_| mask.to_owned())]));
        }
        let alone = line.replace(".multicast::cluster", "");
        found.push((Kind::Mask, "without a mask", vec![alone.rsplit_once(", ").expect("a mask").0.to_owned() + ";"]));
    } else if line.contains("complete_tx") {
        let all = line.replace("complete_tx::bytes", "complete_tx::bytes.multicast::cluster");
        found.push((
            Kind::Mask,
            "the program's own tile for both",
            vec![last(&all, |barrier| format!("{barrier}, 3"))],
        ));
    }
    found
}

/// A change of a tensor map, given the number of its operand.
type ChangeMap = fn(usize, &mut TensorMap);

/// Tensor maps of A and B that are not those of the code's boxes.
const MAPS: [(&str, ChangeMap); 9] = [
    ("boxes with fewer rows", |i, map| map.box_extents[1] /= if i < 2 { 2 } else { 1 }),
    ("boxes of B with fewer rows", |i, map| map.box_extents[1] /= if i == 1 { 2 } else { 1 }),
    ("boxes with more rows", |i, map| map.box_extents[1] *= if i < 2 { 2 } else { 1 }),
    ("no swizzle of A", |i, map| map.swizzle = if i == 0 { Swizzle::None } else { map.swizzle }),
    ("no swizzle of B", |i, map| map.swizzle = if i == 1 { Swizzle::None } else { map.swizzle }),
    ("every second row of A", |i, map| map.element_strides[1] = if i == 0 { 2 } else { 1 }),
    ("one row of A less", |i, map| map.extents[1] -= u64::from(i == 0)),
    ("K longer than it is", |i, map| map.extents[usize::from(i == 1)] += if i < 2 { 3 } else { 0 }),
    ("NaN outside of the tensor", |i, map| map.fill = if i == 0 { Fill::Nan } else { map.fill }),
];

/// Every mistake.
fn mistakes(text: &str) -> Vec<Mistake> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for (kind, what, by) in changes(&lines, at) {
            let by: Vec<&str> = by.iter().map(String::as_str).collect();
            let gone = if what.starts_with("no wait: ") { 2 } else { 1 };
            let by = if gone == 2 { &[][..] } else { &by[..] };
            let text = [&lines[..at], by, &lines[at + gone..]].concat().join("\n");
            all.push(Mistake { kind, what: format!("{what}, line {}: {line}", at + 1), text, map: None });
        }
    }
    let maps = MAPS.map(|(what, change)| Mistake {
        kind: Kind::Map,
        what: what.to_owned(),
        text: text.to_owned(),
        map: Some(change),
    });
    all.into_iter().chain(maps).collect()
}

/// How much of the product is computed: its extents, and programs. In the quick depth, each cluster still has two tiles.
fn extent() -> ([usize; 3], u32) {
    test_depth::cases((GEMM.size, 4), ([120, 200, 211], 2))
}

/// A product of two panels of B, with more steps than twice the slots, ragged along all axes.
const GEMM: Gemm = Gemm {
    elems: (Elem::F16, Elem::F16, Elem::F32),
    stored: Elem::F16,
    transposed: [false, true],
    tile: [64, 128, 32],
    size: [180, 200, 307],
};

/// Whether some order finds a mistake.
fn is_found(made: &Stages, orders: &[Options], mistake: &Mistake) -> bool {
    let mut changed = made.clone();
    changed.code.payload = mistake.text.clone().into_bytes();
    let (size, programs) = extent();
    let gemm = Gemm { size, ..GEMM };
    orders.iter().any(|options| {
        let options = Options { max_steps: 1 << 19, ..options.clone() };
        let change = |i: usize, map: &mut TensorMap| mistake.map.iter().for_each(|change| change(i, map));
        run_with_maps(&gemm, &changed, &options, 7, [programs, 1, 1], change).is_err()
    })
}

#[test]
fn mistakes_of_every_kind_are_found() {
    let made = compiled(&kernel(&GEMM, 3, false), Some(along(0, 2)));
    let text = String::from_utf8(made.code.payload.clone()).expect("PTX is text");
    // The sanitizer finds most of what can be found.
    let watched = orders().into_iter().take(3);
    let orders: Vec<Options> = watched.clone().chain(watched.map(|o| Options { sanitize: false, ..o })).collect();
    let right = Mistake { kind: Kind::Map, what: String::new(), text: text.clone(), map: None };
    assert!(!is_found(&made, &orders, &right), "the code itself fails");
    let all = mistakes(&text);
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    all.iter().for_each(|mistake| *kinds.entry(mistake.kind).or_default() += 1);
    // In the quick depth, each mistake on one of the lines where it can be made.
    let all =
        test_depth::sample_each(all, 1, |mistake| mistake.what.split(", line").next().unwrap_or_default().to_owned());
    let missed: Vec<String> = all
        .iter()
        .filter(|mistake| !is_found(&made, &orders, mistake))
        .map(|mistake| format!("{:?}: {}", mistake.kind, mistake.what))
        .collect();
    ptxas::say(&format!("{} mistakes in a product, {} not found: {kinds:?}", all.len(), missed.len()));
    assert_eq!(kinds.len(), 11, "{kinds:?}");
    assert!(missed.is_empty(), "of {}:\n{}", all.len(), missed.join("\n"));
}
