//! What findings say, that schedules replay, and what a trace holds.

use crate::args::make;
use crate::explore::ring;
use titan_core::verify::{WellFormed, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Arg, Kind, Limits, Options, Schedule, Verdict, explore, replay, run};

/// A ring whose consumer gives its stage back before it reads it.
fn early() -> WellFormed {
    let text = r#"kernel @early(%a: in tensor<f16>[M, K], %n: i32) pipe(2, "ring", tile<16x16xf16>) role(producer, 1) role(consumer, 4) {
    %zero = const 0 : i32
    %one = const 1 : i32
    %h = const 0.0 : f16
    %words = ttg.region {offset = 1024, bytes = 32}
    %ring = ttg.region {offset = 0, bytes = 1024, parts = 2}
    %full = ttg.nv.mbarrier.alloc %words {at = 0, n = 2}
    %empty = ttg.nv.mbarrier.alloc %words {at = 16, n = 2}
    ttg.nv.mbarrier.init %full {count = 1}
    ttg.nv.mbarrier.init %empty {count = 1}
    ttg.nv.fence.mbarrier_init
    %two = const 2 : i32
    ttg.roles producer {
        for %i = %zero to %n step %one {
            %s = rem %i, %two
            %e = div %i, %two
            %q = sub %one, %e
            %slot = ttg.region.at %ring, %s
            %f = ttg.nv.mbarrier.at %full, %s
            %free = ttg.nv.mbarrier.at %empty, %s
            ttg.nv.mbarrier.wait_parity %free, %q
            %st = ttg.nv.mbarrier.arrive_expect_tx %f {bytes = 512}
            ttg.nv.cp_async_bulk_tensor.load %a[%i, %i], %slot, %f {bytes = 512}
            continue
        }
        ttg.pipeline.finalize
        yield
    } consumer {
        for %j = %zero to %n step %one {
            %sj = rem %j, %two
            %ej = div %j, %two
            %stage = ttg.region.at %ring, %sj
            %ready = ttg.nv.mbarrier.at %full, %sj
            %release = ttg.nv.mbarrier.at %empty, %sj
            ttg.nv.mbarrier.wait_parity %ready, %ej
            %sr = ttg.nv.mbarrier.arrive %release {arrivals = 1}
            ttg.region.read %stage
            continue
        }
        ttg.pipeline.finalize
        yield
    }
    return
}
"#;
    well_formed(titan_core::text::parse_located(text).unwrap().remove(0).kernel).unwrap()
}

/// Stores in flight to one place of a tensor are in no order, also those of one role.
#[test]
fn two_stores_to_one_place_are_a_race() {
    let staged = |second: &str| {
        format!(
            "kernel @staged(%c: mut tensor<f32>[M, K]) grid(cdiv(M, 16)) pipe(2, \"out\", tile<16x16xf32>) {{\n%p = program_id<0> : i32\n\
             %zero = const 0 : i32\n%one = const 1 : i32\n%f = const 0.0 : f32\n%t = splat %f : tile<16x16xf32>\n\
             %s = ttg.stage.acquire<0>\n%w = ttg.stage.write %s, %t\n%x = ttg.store.issue_tile %c[%p, %zero], %w\nttg.store.wait %x\n\
             %s2 = ttg.stage.acquire<0>\n%w2 = ttg.stage.write %s2, %t\n%x2 = ttg.store.issue_tile %c[%p, {second}], %w2\n\
             ttg.store.wait %x2\nreturn\n}}\n"
        )
    };
    let raw = |read: bool, second: &str| {
        format!(
            "kernel @raw(%c: mut tensor<f16>[M, K]) grid(1) {{\n%zero = const 0 : i32\n%far = const 256 : i32\n\
             %buf = ttg.region {{offset = 0, bytes = 256}}\n%open = shared %c\nttg.region.write %buf\n\
             ttg.fence.proxy {{from = generic, to = async, scope = cta, space = shared}}\n\
             ttg.nv.cp_async_bulk_tensor.store %open[%zero, %zero], %buf {{bytes = 256}}\n\
             %g = ttg.nv.bulk_group.commit : vtok<bulk_store, 0>\nttg.nv.bulk_group.wait {{n = 0, read = {read}}}\n\
             ttg.nv.cp_async_bulk_tensor.store %open[%zero, {second}], %buf {{bytes = 256}}\n\
             %g2 = ttg.nv.bulk_group.commit : vtok<bulk_store, 1>\nttg.nv.bulk_group.wait {{n = 0, read = true}}\nreturn\n}}\n"
        )
    };
    // Contiguous bytes, of more elements than a box has along one axis.
    let line = |read: bool, second: &str| {
        let text = raw(read, second).replace("cp_async_bulk_tensor.store", "cp_async_bulk.store");
        text.replace("%open[%zero, ", "%open[").replace("<f16>[M, K]", "<f16>[M]").replace("bytes = 256", "bytes = 640")
    };
    for (text, races) in [
        (line(true, "%far"), true),
        (line(false, "%far"), false),
        (line(true, "%far").replace("const 256", "const 320"), false),
        (staged("%zero"), true),
        (staged("%one"), false),
        (raw(true, "%zero"), true),
        (raw(false, "%zero"), false),
        (raw(true, "%far"), false),
    ] {
        let kernel = well_formed(titan_core::text::parse_located(&text).unwrap().remove(0).kernel).unwrap();
        assert_eq!(titan_core::verify::verify(Clone::clone(&*kernel)).is_err(), races, "{text}");
        let args = make(&kernel.sig, 512, 1);
        let wanted = races.then_some(Kind::Race);
        for completion in [Completion::Late, Completion::Early] {
            let options = Options { sanitize: true, completion, ..Options::default() };
            let report = run(&kernel, &mut args.clone(), None, &options).unwrap();
            // What completes at once overlaps nothing, but the sanitizer is told where raw stores certainly go.
            assert_eq!(report.findings.first().map(|f| f.kind), wanted, "{completion:?} {text}");
        }
        let verdict = explore(&kernel, &args, None, &Limits::default()).unwrap();
        let found = if let Verdict::Finding(finding, _) = verdict { Some(finding.kind) } else { None };
        assert_eq!(found, wanted, "{text}");
    }
}

/// A copy by threads reads the tile of an output that another role stores, and nothing orders the two.
#[test]
fn a_copy_by_threads_races_with_a_store_of_its_source() {
    let text = include_str!("../../../titan-core/filetests/program/memory_of_roles.tir");
    let right = text.split("\n; mistake").next().unwrap_or_default();
    let early = "%early = splat %zero : tile<16x16xf16, 0>\nstore_tile %c[%p, %j], %early\nttg.claim.next<0>";
    let wrong = right
        .replace("%tile = ttg.source_tile %a", "%tile = ttg.source_tile %c")
        .replace("store_tile %c[%p, %j], %sum", "")
        .replace("ttg.claim.next<0>", early);
    for (text, wanted) in [(right, None), (wrong.as_str(), Some(Kind::Race))] {
        let program = titan_core::text::parse_one(text).unwrap();
        assert_eq!(titan_core::verify::barrier_program(&program).is_err(), wanted.is_some(), "{text}");
        let program = well_formed(program).unwrap();
        for completion in [Completion::Late, Completion::Early] {
            let options = Options { sanitize: true, completion, ..Options::default() };
            let report = run(&program, &mut make(&program.sig, 48, 3), Some([3, 1, 1]), &options).unwrap();
            assert_eq!(report.findings.first().map(|f| f.kind), wanted, "{completion:?} {:?}", report.findings);
        }
    }
}

#[test]
fn both_sides_of_a_race_are_named_and_it_is_seen_again() {
    let kernel = early();
    let args = || make(&kernel.sig, 64, 4);
    for seed in 0..8 {
        let options = Options { seed: Some(seed), completion: Completion::Seeded(seed), ..Options::default() };
        let report = run(&kernel, &mut args(), None, &options).unwrap();
        let found = &report.findings[0];
        let roles: Vec<&str> = found.sides.iter().map(|s| s.role.as_str()).collect();
        assert!(roles.contains(&"`producer`") && roles.contains(&"`consumer`"), "{found}");
        assert!(found.sides.iter().any(|s| s.what == "ring" && s.stage.is_some() && s.loc.line > 0), "{found}");
        let text = found.schedule.to_string();
        assert_eq!(Schedule::parse(&text).as_ref(), Some(&found.schedule));
        let again = replay(&kernel, &mut args(), None, &Options::default(), &found.schedule).unwrap();
        assert_eq!(again.findings[0].message, found.message);
        assert_eq!(again.findings[0].schedule, found.schedule);
    }
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let text = r#"kernel @stuck(%n: i32) pipe(1, "ring", tile<16xf32>) role(producer, 1) role(consumer, 4) {
    ttg.roles producer {
        %s = ttg.stage.acquire<0>
        ttg.stage.zero %s
        %t = ttg.stage.acquire<0>
        ttg.stage.zero %t
        ttg.pipeline.finalize
        yield
    } consumer {
        %r = ttg.stage.ready<0>
        %w = ttg.stage.wait_ready %r
        %d = ttg.stage.consumed %w
        %r2 = ttg.stage.ready<0>
        %w2 = ttg.stage.wait_ready %r2
        ttg.stage.release %d
        %d2 = ttg.stage.consumed %w2
        ttg.stage.release %d2
        ttg.pipeline.finalize
        yield
    }
    return
}
"#;
    let kernel = well_formed(titan_core::text::parse_one(text).unwrap()).unwrap();
    let report =
        run(&kernel, &mut make(&kernel.sig, 1, 1), None, &Options { trace: true, ..Options::default() }).unwrap();
    let found = &report.findings[0];
    assert_eq!(found.kind, Kind::Deadlock);
    assert!(found.message.contains("`producer` waits for time 1 of `ring` at `ring.free[0]`"), "{found}");
    assert!(found.message.contains("`consumer` waits for time 1 of `ring` at `ring.ready[0]`"), "{found}");
    assert_eq!(found.sides.len(), 2);
    let waits = report.trace.iter().filter(|i| !i.waits_for.is_empty());
    assert!(waits.clone().any(|i| i.role == "`producer`" && i.waits_for == ["`consumer`"]), "{:?}", report.trace);
    assert!(waits.clone().any(|i| i.role == "`consumer`" && i.waits_for == ["`producer`"]), "{:?}", report.trace);
}

#[test]
fn a_trace_shows_copies_beside_roles() {
    let kernel = ring(2, 1, "async");
    let options = Options { trace: true, ..Options::default() };
    let report = run(&kernel, &mut make(&kernel.sig, 64, 5), None, &options).unwrap();
    assert!(report.findings.is_empty());
    let copies: Vec<_> = report.trace.iter().filter(|i| i.helper == Some("copy")).collect();
    assert_eq!(copies.len(), 5);
    for (t, copy) in copies.iter().enumerate() {
        assert_eq!((copy.time, copy.slot, copy.what.as_str()), (Some(t as u64), Some(t as u64 % 2), "ring"));
        assert!(copy.begin < copy.end, "{copy:?}");
    }
    assert!(report.trace.iter().all(|i| i.begin <= i.end));
    assert!(report.trace.iter().any(|i| i.op == "ttg.stage.read" && i.time == Some(4) && i.role == "`consumer0`"));
}

#[test]
fn what_is_not_computed_is_a_finding_where_it_decides() {
    let text = r#"kernel @decides(%a: in tensor<f32>[M], %c: mut tensor<f32>[M]) {
    %zero = const 0 : i32
    %f = const 0.5 : f32
    %t = load_tile %a[%zero] or %f : tile<16xf32>
    %s = reduce_sum<0> %t
    %b = lt %s, %f
    if %b {
        set %c[%zero], %s
        yield
    } else {
        yield
    }
    return
}
"#;
    let kernel = well_formed(titan_core::text::parse_one(text).unwrap()).unwrap();
    let report =
        run(&kernel, &mut make(&kernel.sig, 16, 1), None, &Options { data: false, ..Options::default() }).unwrap();
    assert_eq!(report.findings[0].kind, Kind::NotModelled);
    assert!(report.findings[0].message.starts_with("not modelled: "));
    let mut args = make(&kernel.sig, 16, 1);
    assert!(run(&kernel, &mut args, None, &Options::default()).unwrap().findings.is_empty());
    assert!(matches!(args[1], Arg::Tensor { .. }));
}

/// Registers come from a pool: a role waits until others have released as many as it asks for.
#[test]
fn a_request_for_registers_waits_until_they_are_released() {
    let text = include_str!("../../../titan-core/filetests/verify/barrier_registers_pool.tir");
    let mut seen = Vec::new();
    for located in titan_core::text::parse_located(text).unwrap() {
        let kernel = well_formed(located.kernel).unwrap();
        let args = make(&kernel.sig, 16, 3);
        let found = match explore(&kernel, &args, None, &Limits::default()).unwrap() {
            Verdict::Safe(_) => None,
            Verdict::Finding(found, _) => Some((found.kind, found.to_string())),
            Verdict::Bound(what, _) => panic!("{what}"),
        };
        let name = kernel.sig.name.clone();
        let ran = run(&kernel, &mut make(&kernel.sig, 16, 3), None, &Options::default()).unwrap();
        assert_eq!(ran.findings.is_empty(), found.is_none(), "{name}");
        if matches!(name.as_str(), "fails" | "fails_alone" | "fails_late" | "fails_rounded") {
            let (kind, said) = found.unwrap();
            assert_eq!(kind, Kind::Deadlock, "{name}: {said}");
            assert!(said.contains("`worker` waits for") || said.contains("`copier` waits for"), "{name}: {said}");
            assert!(said.contains(" registers, of which "), "{name}: {said}");
            seen.push(name);
        } else if name.starts_with("passes") {
            assert_eq!(found, None, "{name}");
            seen.push(name);
        }
    }
    assert_eq!(seen.len(), 10, "{seen:?}");
}
