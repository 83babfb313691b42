//! The model checker on rings, all small ones.

use crate::args::make;
use std::time::Instant;
use titan_core::text::parse_one;
use titan_core::verify::{WellFormed, verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Kind, Limits, Options, Verdict, explore, replay, run};

/// A ring of `slots`, which a producer fills `n` times and each of some consumers reads.
pub(crate) fn ring(slots: u32, consumers: u32, proxy: &str) -> WellFormed {
    let roles: String = (0..consumers).map(|i| format!(" role(consumer{i}, 4)")).collect();
    let consume = |i: u32| {
        format!(
            r#" consumer{i} {{
        for %j{i} = %zero to %n step %one {{
            %r{i} = ttg.stage.ready<0>
            %s{i} = ttg.stage.wait_ready %r{i}
            %p{i} = ttg.stage.read_perm %s{i}
            %v{i} = ttg.stage.view<0> %p{i} : smem<16x16xf16>
            %t{i} = ttg.stage.read %v{i}
            %d{i} = ttg.stage.consumed %p{i}
            ttg.stage.release %d{i}
            continue
        }}
        ttg.pipeline.finalize
        yield
    }}"#
        )
    };
    let consumers: String = (0..consumers).map(consume).collect();
    let text = format!(
        r#"kernel @ring(%a: in tensor<f16>[M, K], %n: i32) pipe({slots}, "ring", tile<16x16xf16>) role(producer, 1){roles} {{
    %zero = const 0 : i32
    %one = const 1 : i32
    %h = const 0.0 : f16
    ttg.roles producer {{
        for %i = %zero to %n step %one {{
            %slot = ttg.stage.acquire<0>
            %sa = ttg.source_tile %a[%zero, %i] or %h : source<16x16xf16>
            ttg.stage.async_produce %slot, %sa {{bytes = 512, proxy = {proxy}}}
            continue
        }}
        ttg.pipeline.finalize
        yield
    }}{consumers}
    return
}}
"#
    );
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}")).into()
}

#[test]
fn every_small_ring_is_safe_and_never_holds_more_than_it_has() {
    let begin = Instant::now();
    let (mut states, mut transitions, mut deepest) = (0, 0, 0);
    let rings = ["async", "generic"].into_iter().flat_map(|proxy| (1..=2).map(move |consumers| (proxy, consumers)));
    let rings = rings.flat_map(|of| (1..=4).flat_map(move |slots| (0..=10).map(move |n| (of, slots, n))));
    let traits = |((proxy, consumers), slots, n): &((&str, u32), u32, i64)| {
        [format!("{proxy} {consumers}"), format!("{consumers} {slots}"), format!("{n} times")].into()
    };
    let rings = test_depth::covering(rings, traits);
    for ((proxy, consumers), slots, n) in &rings {
        let kernel = ring(*slots, *consumers, proxy);
        let verdict = explore(&kernel, &make(&kernel.sig, 16, *n), None, &Limits::default()).unwrap();
        let Verdict::Safe(e) = &verdict else { panic!("{proxy} {consumers} {slots} {n}: {verdict:?}") };
        assert!(e.occupied <= u64::from(*slots), "{e:?}");
        assert_eq!(e.occupied, u64::from(*slots).min(*n as u64), "some order fills the ring");
        assert_eq!(e.ends, 1, "all orders end alike");
        (states, transitions) = (states + e.states, transitions + e.transitions);
        deepest = deepest.max(e.depth);
    }
    println!(
        "{} rings: {states} states, {transitions} transitions, depth {deepest}, {:.2} s",
        rings.len(),
        begin.elapsed().as_secs_f64()
    );
}

#[test]
fn a_ring_of_three_with_two_consumers_is_explored_to_its_end() {
    let kernel = ring(3, 2, "async");
    let begin = Instant::now();
    let verdict = explore(&kernel, &make(&kernel.sig, 16, 7), None, &Limits::default()).unwrap();
    let took = begin.elapsed();
    println!("D = 3, N = 7, two consumers: {:?} in {:.3} s", verdict.explored(), took.as_secs_f64());
    assert!(matches!(verdict, Verdict::Safe(_)));
}

#[test]
fn sampled_schedules_are_clean() {
    let kernel = ring(2, 1, "async");
    let (begin, mut steps) = (Instant::now(), 0);
    let n = test_depth::cases(2000, 200);
    for seed in 0..n {
        let options = Options { seed: Some(seed), completion: Completion::Seeded(seed), ..Options::default() };
        let report = run(&kernel, &mut make(&kernel.sig, 16, 1), None, &options).unwrap();
        assert!(report.findings.is_empty(), "{}", report.findings[0]);
        steps += report.statistics.steps;
    }
    let rate = n as f64 / begin.elapsed().as_secs_f64();
    println!("{rate:.0} schedules a second, of {} operations each, sanitized and with data", steps / n);
}

#[test]
fn local_steps_without_choice_change_no_verdict() {
    for consumers in 1..=2 {
        for slots in 1..=2 {
            for n in 0..=3 {
                let kernel = ring(slots, consumers, "async");
                let args = make(&kernel.sig, 16, n);
                let with = explore(&kernel, &args, None, &Limits::default()).unwrap();
                let without = explore(&kernel, &args, None, &Limits { reduce: false, ..Limits::default() }).unwrap();
                let (a, b) = (with.explored(), without.explored());
                assert!(matches!((&with, &without), (Verdict::Safe(_), Verdict::Safe(_))), "{with:?} {without:?}");
                assert_eq!((a.occupied, a.ends), (b.occupied, b.ends));
                assert!(a.states <= b.states);
                println!(
                    "{consumers} consumers, {slots} slots, {n} times: {} states, without reduction {}",
                    a.states, b.states
                );
            }
        }
    }
}

/// One role asks once; if the other one has not arrived by then, it polls two barriers in turn at which no role arrives.
const POLLS: &str = "kernel @polls(%n: i32) role(one, 1) role(two, 1) {
    %zero = const 0 : i32
    %words = ttg.region {offset = 65536, bytes = 24}
    %bars = ttg.nv.mbarrier.alloc %words {at = 0, n = 3}
    ttg.nv.mbarrier.init %bars {count = 1}
    ttg.nv.fence.mbarrier_init
    ttg.roles one {
        %x = ttg.nv.mbarrier.at %bars, %zero
        %s = ttg.nv.mbarrier.arrive %x {arrivals = 1}
        ttg.pipeline.finalize
        yield
    } two {
        %one = const 1 : i32
        %two = const 2 : i32
        %y = ttg.nv.mbarrier.at %bars, %zero
        %asked = ttg.nv.mbarrier.test_wait %y, %zero
        if %asked {
            yield
        } else {
            loop {
                %first = ttg.nv.mbarrier.at %bars, %one
                %p = ttg.nv.mbarrier.test_wait %first, %zero
                if %p {
                    break
                } else {
                    yield
                }
                %second = ttg.nv.mbarrier.at %bars, %two
                %q = ttg.nv.mbarrier.test_wait %second, %zero
                if %q {
                    break
                } else {
                    yield
                }
                continue
            }
            yield
        }
        ttg.pipeline.finalize
        yield
    }
    return
}
";

#[test]
fn who_asks_forever_is_found() {
    let kernel = well_formed(parse_one(POLLS).unwrap()).unwrap();
    let args = make(&kernel.sig, 16, 0);
    let verdict = explore(&kernel, &args, None, &Limits::default()).unwrap();
    let found = verdict.finding().expect("an order without an end");
    assert_eq!(found.kind, Kind::Deadlock);
    assert!(found.message.contains("`two` can no longer terminate"), "{found}");
    assert_eq!(found.sides[0].role, "`two`", "{found}");
    assert!(verdict.explored().ends > 0, "there are orders that end");
    // The schedule leads there: nothing ends after it.
    let options = Options { max_steps: 10_000, ..Options::default() };
    let report = replay(&kernel, &mut args.clone(), None, &options, &found.schedule).unwrap();
    assert_eq!(report.findings.first().map(|f| f.kind), Some(Kind::Steps));
    // In turn, it ends.
    let report = run(&kernel, &mut args.clone(), None, &options).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
