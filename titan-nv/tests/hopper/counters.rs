//! Slots of stages that bulk copies fill, and that readers release by counters instead of a second barrier: each reader stores the number of
//! its releases, which the role that copies loads until it is large enough. No target prefers this today, so the plan asks for it. Products
//! are exact in all orders, with bulk copies alone and beside copies by threads, and mistakes in the emitted text are found.

use super::harness::{orders, orders_of};
use super::lowered::{assembles, compiled};
use super::mixed::{Case, How, PLAIN, run_text, text_of, with_roles};
use super::multicast::verified;
use super::ptxas;
use titan_core::driver::{Stages, lower};
use titan_core::plan::{FreeBy, plan};
use titan_nv::emu::Options;
use titan_nv::{Machine, emit, target};

/// The code of a product whose slots are released by counters.
fn counted(case: &Case) -> Stages {
    let text = with_roles(case);
    let (kernel, machine) = (verified(&text), Machine::from_name("sm_90a").expect("it is known"));
    let mut plan = plan(&kernel, &target(machine), true);
    plan.free = FreeBy::Sequence;
    let func = lower(&kernel, &plan).unwrap_or_else(|e| panic!("{case:?}: {}", e.message)).func;
    let ptx = emit(&func, machine, None).unwrap_or_else(|e| panic!("{case:?}: {e}\n{func}"));
    let mut made = compiled(&text);
    for (_, entry) in made.code.config.iter_mut().filter(|(name, _)| name == "entry") {
        entry.clone_from(&ptx.entry);
    }
    made.code.payload = ptx.text.into_bytes();
    made.lanes = func;
    made
}

const BOXES: [How; 2] = [How::Box, How::Box];

#[track_caller]
fn is_counted(made: &Stages) {
    let text = text_of(made);
    assert!(text.contains("cp.async.bulk.tensor.2d.shared") && text.contains("wgmma.mma_async"), "{text}");
    assert!(text.contains("st.release.cta.shared") && text.contains("ld.acquire.cta.shared"), "{text}");
}

/// Only bulk copies arrive at barriers: threads that store to a stage do so too.
#[track_caller]
fn nobody_arrives(made: &Stages) {
    let text = text_of(made);
    assert!(!text.contains("mbarrier.arrive.shared"), "readers arrive at a barrier\n{text}");
}

#[test]
fn products_are_exact_in_all_orders() {
    let cases = [
        Case { how: BOXES, tile: [64, 64, 64], size: [130, 76, 136], ..PLAIN },
        Case { how: BOXES, slots: 4, size: [72, 64, 104], ..PLAIN },
        Case { how: BOXES, slots: 2, tile: [128, 32, 32], size: [200, 40, 328], ..PLAIN },
        Case { how: [How::Gathered, How::Box], size: [72, 64, 168], ..PLAIN },
        Case { how: [How::Box, How::Columns(3)], slots: 2, size: [72, 36, 168], ..PLAIN },
    ];
    for (number, case) in cases.iter().enumerate() {
        let made = counted(case);
        is_counted(&made);
        if case.how == BOXES {
            nobody_arrives(&made);
        }
        assembles(&made, "sm_90a", 0);
        for options in orders_of(number) {
            run_text(case, &made, &text_of(&made), &options, number as u64)
                .unwrap_or_else(|e| panic!("{case:?}, {:?}: {e}", options.completion));
        }
    }
}

/// The counters run on from tile to tile, from no step to more than three rounds.
#[test]
fn steps_fewer_and_more_than_slots() {
    let made = counted(&Case { how: BOXES, ..PLAIN });
    is_counted(&made);
    for (nth, k) in [8, 32, 40, 96, 104, 328].into_iter().enumerate() {
        let case = Case { how: BOXES, size: [200, 70, k], ..PLAIN };
        for options in orders_of(nth) {
            run_text(&case, &made, &text_of(&made), &options, k as u64)
                .unwrap_or_else(|e| panic!("{case:?}, {:?}: {e}", options.completion));
        }
    }
}

/// The text with the lines of a range replaced by others.
fn with(lines: &[&str], at: std::ops::Range<usize>, by: &[&str]) -> String {
    [&lines[..at.start], by, &lines[at.end..]].concat().join("\n")
}

/// Every mistake in the release of slots: what is wrong, and the text with it.
fn mistakes(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().copied().enumerate() {
        let mut say = |what: &str, range: std::ops::Range<usize>, by: &[&str]| {
            all.push((format!("{what}, line {}: {line}", at + 1), with(&lines, range, by)));
        };
        let here = at..at + 1;
        if line.contains("ld.acquire.cta.shared") {
            let test = at + lines[at..].iter().position(|l| l.contains("setp.ge.s32")).expect("a test");
            say("no wait for the counter", at..test + 2, &[]);
            let weak = line.replace("ld.acquire.cta.shared", "ld.relaxed.cta.shared");
            say("a wait that does not acquire", here, &[&weak]);
            let less = lines[test].replace(", 0;", ", -1;");
            assert_ne!(less, lines[test]);
            say("a wait for one release less", test..test + 1, &[&less]);
            let more = lines[test].replace(", 0;", ", 1;");
            say("a wait for one release more", test..test + 1, &[&more]);
        } else if let Some((guard, operands)) = line.split_once("st.release.cta.shared.b32 ") {
            let (place, number) =
                operands.strip_suffix(';').and_then(|l| l.split_once(", ")).expect("a place and a number");
            let changed = |change: &str| {
                format!(
                    "{{ .reg .b32 %m; add.s32 %m, {number}, {change}; {guard}st.release.cta.shared.b32 {place}, %m; }}"
                )
            };
            say("no release", here.clone(), &[]);
            say("a release that does not order", here.clone(), &[&line.replace("st.release.cta", "st.relaxed.cta")]);
            say("one release too many", here.clone(), &[&changed("1")]);
            say("one release too few", here.clone(), &[&changed("-1")]);
            let barrier = lines[..at].iter().rposition(|l| l.contains("bar.sync")).expect("a barrier of the role");
            say("a release before all warps have read", barrier..barrier + 1, &[]);
            let wait = lines[..at].iter().rposition(|l| l.contains("wgmma.wait_group")).expect("a wait for MMAs");
            say("a release of what an MMA reads", wait..wait + 1, &[]);
        } else if line.contains("st.shared.b32 [smem+") && lines[..at].last().is_some_and(|l| l.ends_with(", 0;")) {
            say("a counter that is not initialised", here.clone(), &[]);
            let (head, _) = line.rsplit_once(", ").expect("a number");
            let one = format!("{{ .reg .b32 %m; mov.b32 %m, 1; {head}, %m; }}");
            say("a counter that begins at one", here, &[&one]);
        } else if line.contains("mbarrier.arrive.expect_tx") {
            let (head, bytes) = line.strip_suffix(';').and_then(|l| l.rsplit_once(", ")).expect("bytes");
            let bytes: u32 = bytes.parse().expect("a number");
            say("no bytes are announced", here.clone(), &[]);
            say("too many bytes", here.clone(), &[&format!("{head}, {};", bytes + 16)]);
            say("too few bytes", here, &[&format!("{head}, {};", bytes - 16)]);
        } else if line.contains("mbarrier.try_wait") {
            say("no wait for the bytes", at..at + 2, &[]);
        }
    }
    all
}

#[test]
fn mistakes_are_found() {
    let case = Case { how: BOXES, tile: [64, 16, 32], slots: 2, size: [200, 16, 296], ..PLAIN };
    let made = counted(&case);
    let text = text_of(&made);
    let watched = orders().into_iter().take(3);
    let orders: Vec<Options> = watched.clone().chain(watched.map(|o| Options { sanitize: false, ..o })).collect();
    let fails = |text: &str| {
        orders.iter().find_map(|options| {
            let options = Options { max_steps: 1 << 19, ..options.clone() };
            run_text(&case, &made, text, &options, 3).err()
        })
    };
    assert_eq!(fails(&text), None);
    let all = mistakes(&text);
    assert!(all.len() >= 18, "{}", all.len());
    let kind = |(what, _): &(String, String)| what.split(", line").next().unwrap_or_default().to_owned();
    let all = test_depth::sample_each(all, 1, kind);
    let missed: Vec<&str> = all.iter().filter(|(_, text)| fails(text).is_none()).map(|(what, _)| &**what).collect();
    ptxas::say(&format!("{} mistakes with counters, {} not found", all.len(), missed.len()));
    assert!(missed.is_empty(), "of {}:\n{}", all.len(), missed.join("\n"));
}
