//! Programs of a cluster: copies to all of them, and the barrier at which they meet.

use crate::args::make;
use titan_core::verify::{WellFormed, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Kind, Limits, Options, Verdict, explore, run};

/// Program 0 of the cluster copies to both; `meets`: there is a cluster barrier before the copy, so that both mbarriers exist, and one at
/// the end, so that neither program has ended.
fn multicast(meets: bool, mask: u32) -> WellFormed {
    let meet = if meets { "ttg.nv.cluster.arrive\n    ttg.nv.cluster.wait" } else { "" };
    let text = format!(
        r#"kernel @multicast(%a: in tensor<f16>[M, K]) grid(2) {{
    %zero = const 0 : i32
    %p = program_id<0>
    %words = ttg.region {{offset = 4096, bytes = 8}}
    %tile = ttg.region {{offset = 0, bytes = 4096}}
    %full = ttg.nv.mbarrier.alloc %words {{at = 0, n = 1}}
    ttg.nv.mbarrier.init %full {{count = 1}}
    ttg.nv.fence.mbarrier_init
    %st = ttg.nv.mbarrier.arrive_expect_tx %full {{bytes = 4096}}
    {meet}
    %first = eq %p, %zero
    if %first {{
        ttg.nv.cp_async_bulk_tensor.load %a[%zero, %zero], %tile, %full {{bytes = 4096, multicast = {mask}}}
        yield
    }} else {{
        yield
    }}
    ttg.nv.mbarrier.wait_parity %full, %zero
    ttg.region.read %tile
    {meet}
    return
}}
"#
    );
    let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    well_formed(kernel).unwrap()
}

fn found(kernel: &WellFormed, cluster: u32, completion: Completion, seed: Option<u64>) -> Option<(Kind, String)> {
    let options = Options { cluster: Some(cluster), completion, seed, ..Options::default() };
    let report = run(kernel, &mut make(&kernel.sig, 64, 1), None, &options).unwrap();
    report.findings.into_iter().next().map(|f| (f.kind, f.to_string()))
}

#[test]
fn a_copy_comes_to_every_program_of_the_cluster() {
    let kernel = multicast(true, 3);
    for seed in 0..20 {
        assert_eq!(found(&kernel, 2, Completion::Seeded(seed), Some(seed)), None);
    }
    let verdict =
        explore(&kernel, &make(&kernel.sig, 64, 1), None, &Limits { cluster: 2, ..Limits::default() }).unwrap();
    assert!(matches!(verdict, Verdict::Safe(_)), "{verdict:?}");
}

#[test]
fn a_copy_to_some_leaves_the_others_waiting() {
    let found = found(&multicast(true, 1), 2, Completion::Late, None).unwrap();
    assert_eq!(found.0, Kind::Deadlock, "{}", found.1);
    assert!(found.1.contains("program 1 of the cluster waits at `full`"), "{}", found.1);
    let lonely = self::found(&multicast(true, 3), 1, Completion::Late, None).unwrap();
    assert_eq!(lonely.0, Kind::Bounds, "{}", lonely.1);
}

#[test]
fn a_barrier_that_is_not_there_yet_is_found_in_some_order() {
    let kernel = multicast(false, 3);
    let verdict =
        explore(&kernel, &make(&kernel.sig, 64, 1), None, &Limits { cluster: 2, ..Limits::default() }).unwrap();
    let finding = verdict.finding().unwrap_or_else(|| panic!("{verdict:?}"));
    // The barrier of the other program is not initialised, or that program is over.
    assert!(matches!(finding.kind, Kind::Barrier | Kind::Fence | Kind::InFlight), "{finding}");
}

/// A cluster barrier before the roles, at which the threads of all roles arrive, and one at the end of each role.
#[test]
fn roles_meet_before_they_start_and_when_they_end() {
    let meets = "ttg.nv.cluster.arrive\n    ttg.nv.cluster.wait";
    let text = |meet: &str| {
        format!(
            r#"kernel @roles(%a: in tensor<f16>[M, K]) grid(2) role(copier, 1) role(reader, 1) {{
    %zero = const 0 : i32
    %p = program_id<0>
    %words = ttg.region {{offset = 4096, bytes = 8}}
    %tile = ttg.region {{offset = 0, bytes = 4096}}
    %full = ttg.nv.mbarrier.alloc %words {{at = 0, n = 1}}
    ttg.nv.mbarrier.init %full {{count = 1}}
    ttg.nv.fence.mbarrier_init
    {meet}
    ttg.roles copier {{
        %st = ttg.nv.mbarrier.arrive_expect_tx %full {{bytes = 4096}}
        %first = eq %p, %zero
        if %first {{
            ttg.nv.cp_async_bulk_tensor.load %a[%zero, %zero], %tile, %full {{bytes = 4096, multicast = 3}}
            yield
        }} else {{
            yield
        }}
        {meets}
        ttg.pipeline.finalize
        yield
    }} reader {{
        ttg.nv.mbarrier.wait_parity %full, %zero
        ttg.region.read %tile
        {meets}
        ttg.pipeline.finalize
        yield
    }}
    return
}}
"#
        )
    };
    let explored = |meet: &str| {
        let text = text(meet);
        let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let kernel = well_formed(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        explore(&kernel, &make(&kernel.sig, 64, 1), None, &Limits { cluster: 2, ..Limits::default() }).unwrap()
    };
    let verdict = explored(meets);
    assert!(matches!(verdict, Verdict::Safe(_)), "{verdict:?}");
    // Without the first one, the copy may come to a barrier that is not initialised.
    let verdict = explored("");
    let finding = verdict.finding().unwrap_or_else(|| panic!("{verdict:?}"));
    assert!(matches!(finding.kind, Kind::Barrier | Kind::Fence | Kind::InFlight), "{finding}");
}
