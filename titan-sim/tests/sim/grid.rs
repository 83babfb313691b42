//! Programs of a grid: what they share, and what they do not.

use crate::args::make;
use titan_core::text::parse_one;
use titan_core::verify::{WellFormed, well_formed};
use titan_sim::sim::{Finding, Kind, Limits, Options, Verdict, explore, run};

fn kernel(text: &str) -> WellFormed {
    let kernel = parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    well_formed(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// What a run finds, and what the model checker does.
fn found(kernel: &WellFormed, cluster: u32) -> [Option<Finding>; 2] {
    let args = make(&kernel.sig, 4, 1);
    let options = Options { cluster: Some(cluster), ..Options::default() };
    let report = run(kernel, &mut args.clone(), None, &options).unwrap();
    let verdict = explore(kernel, &args, None, &Limits { cluster, ..Limits::default() }).unwrap();
    assert!(!matches!(verdict, Verdict::Bound(..)), "{verdict:?}");
    [report.findings.into_iter().next(), verdict.finding().cloned()]
}

/// Every program writes or reads an element of `y`, which it computes from its number.
fn elements(does: &str) -> WellFormed {
    kernel(&format!(
        "kernel @k(%x: in tensor<f32>[N], %y: mut tensor<f32>[M]) grid(N) {{
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %two = const 2 : i32
    %v = get %x[%p]
    {does}
    return
}}
"
    ))
}

#[test]
fn programs_that_write_the_same_element_race() {
    let k = elements("set %y[%zero], %v");
    for found in found(&k, 1) {
        let found = found.expect("a race");
        assert_eq!(found.kind, Kind::Race);
        let text = found.to_string();
        assert!(text.contains("`y` is written by program [1, 0, 0]"), "{text}");
        assert!(text.contains("of program [0, 0, 0], by which it is written"), "{text}");
    }
    // Of one cluster, they are seen by name.
    assert!(found(&k, 4).iter().all(|f| f.as_ref().is_some_and(|f| f.kind == Kind::Race)));
}

#[test]
fn programs_that_read_what_another_one_writes_race() {
    let next = elements(
        "set %y[%p], %v\n    %n = add %p, %one\n    %m = rem %n, %two\n    %w = get %y[%m]\n    set %y[%p], %w",
    );
    assert!(found(&next, 1).iter().all(|f| f.as_ref().is_some_and(|f| f.kind == Kind::Race)));
    let reads = elements("%w = get %y[%zero]");
    assert_eq!(found(&reads, 1), [None, None]);
}

#[test]
fn programs_with_elements_of_their_own_do_not_race() {
    assert_eq!(found(&elements("set %y[%p], %v\n    %w = get %y[%p]\n    set %y[%p], %w"), 1), [None, None]);
}

#[test]
fn shared_memory_is_a_program_s_own() {
    // Each program writes a region that the others have too, and reads it again.
    let own = kernel(
        "kernel @own(%x: in tensor<f32>[N]) grid(N) {
    %tile = ttg.region {offset = 0, bytes = 256}
    ttg.region.write %tile
    ttg.region.read %tile
    return
}
",
    );
    for cluster in [1, 2, 4] {
        assert_eq!(found(&own, cluster), [None, None]);
    }
    // What one has written, another one has not.
    let first = kernel(
        "kernel @first(%x: in tensor<f32>[N]) grid(N) {
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %tile = ttg.region {offset = 0, bytes = 256}
    %is = eq %p, %zero
    if %is {
        ttg.region.write %tile
        yield
    } else {
        yield
    }
    ttg.region.read %tile
    return
}
",
    );
    for cluster in [1, 2, 4] {
        assert!(found(&first, cluster).iter().all(|f| f.as_ref().is_some_and(|f| f.kind == Kind::Undefined)));
    }
}

#[test]
fn what_is_not_modelled_is_told() {
    let raw = |what: &str| {
        kernel(&format!(
            "kernel @raw(%c: mut tensor<f16>[M, K]) role(left, 4) role(right, 4) {{
    %zero = const 0 : i32
    %h = const 1.0 : f16
    %open = shared %c : tensor<f16, 2>
    %tile = ttg.region {{offset = 0, bytes = 256}}
    ttg.roles left {{
        ttg.region.write %tile
        ttg.fence.proxy {{from = generic, to = async, scope = cta, space = shared}}
        {what}
        ttg.pipeline.finalize
        yield
    }} right {{
        set %open[%zero, %zero], %h
        ttg.pipeline.finalize
        yield
    }}
    return
}}
"
        ))
    };
    let load = "ttg.nv.cp_async %open[%zero, %zero], %tile {bytes = 256}\n        %g = ttg.nv.cp_async.commit_group : vtok<cp_async, 0>\n        ttg.nv.cp_async.wait_group {n = 0}";
    let store = "ttg.nv.cp_async_bulk_tensor.store %open[%zero, %zero], %tile {bytes = 256}\n        %g = ttg.nv.bulk_group.commit : vtok<bulk_store, 0>\n        ttg.nv.bulk_group.wait {n = 0, read = false}";
    for what in [load, store] {
        for found in found(&raw(what), 1) {
            let found = found.expect("it is told");
            // In some orders the element is written while the store is in flight.
            assert!(found.kind == Kind::NotModelled || what == store && found.kind == Kind::Race, "{found}");
            assert!(found.to_string().contains("`c`"), "{found}");
        }
    }
    // More threads of control than the sanitizer keeps apart.
    let roles: String = (0..8).map(|i| format!(" role(r{i}, 1)")).collect();
    let arms: Vec<String> = (0..8).map(|i| format!("r{i} {{\n    ttg.pipeline.finalize\n    yield\n}}")).collect();
    let many = kernel(&format!(
        "kernel @many(%x: in tensor<f32>[N]) grid(N){roles} {{\n    ttg.roles {}\n    return\n}}\n",
        arms.join(" ")
    ));
    let args = make(&many.sig, 8, 1);
    for (cluster, wanted) in [(4, None), (8, Some(Kind::NotModelled))] {
        let options = Options { cluster: Some(cluster), ..Options::default() };
        let report = run(&many, &mut args.clone(), None, &options).unwrap();
        assert_eq!(report.findings.first().map(|f| f.kind), wanted);
    }
}

/// Every program stores 4 KiB in bulk, this many elements along each axis after the program before it.
fn stored_in_bulk(store: &str, [rows, columns]: [i64; 2]) -> WellFormed {
    kernel(&format!(
        "kernel @bulk(%c: mut tensor<f16>[M, K]) grid(4) {{
    %p = program_id<0> : i32
    %rows = const {rows} : i32
    %columns = const {columns} : i32
    %row = mul %p, %rows : i32
    %column = mul %p, %columns : i32
    %open = shared %c : tensor<f16, 2>
    %tile = ttg.region {{offset = 0, bytes = 4096}}
    ttg.region.write %tile
    ttg.fence.proxy {{from = generic, to = async, scope = cta, space = shared}}
    {store} %open[%row, %column], %tile {{bytes = 4096}}
    %g = ttg.nv.bulk_group.commit : vtok<bulk_store, 0>
    ttg.nv.bulk_group.wait {{n = 0, read = false}}
    return
}}
"
    ))
}

/// Whether a run finds that programs write the same elements of an output with 1024 rows of 1040 elements.
fn races(kernel: &WellFormed) -> bool {
    let args = make(&kernel.sig, 1024, 1);
    let report = run(kernel, &mut args.clone(), None, &Options::default()).unwrap();
    let found = report.findings.into_iter().next();
    let race = found.as_ref().is_some_and(|f| f.kind == Kind::Race && f.to_string().contains("is written by program"));
    assert!(race || found.is_none(), "{found:?}");
    race
}

#[test]
fn programs_that_store_the_same_elements_in_bulk_race() {
    let boxes = |apart| races(&stored_in_bulk("ttg.nv.cp_async_bulk_tensor.store", apart));
    // Boxes of 2048 elements are 8 by 256 to 256 by 8: all of them have 8 by 8.
    assert!(boxes([0, 0]) && boxes([7, 0]) && boxes([0, 7]) && boxes([7, 7]));
    assert!(!boxes([8, 0]) && !boxes([0, 8]) && !boxes([256, 0]) && !boxes([0, 256]) && !boxes([7, 8]));
    let lines = |apart| races(&stored_in_bulk("ttg.nv.cp_async_bulk.store", apart));
    // Contiguous bytes are a row of 1040 elements, and the next row up to its element 1007.
    assert!(lines([0, 0]) && lines([0, 512]) && lines([1, 0]) && lines([1, 1007]));
    assert!(!lines([1, 1008]) && !lines([2, 0]));
}

#[test]
fn loops_whose_step_is_not_positive_trap() {
    for (step, found) in [("%zero", true), ("%less", true), ("%p", true), ("%one", false), ("%p.2", false)] {
        let k = kernel(&format!(
            "kernel @k(%y: mut tensor<f32>[M]) grid(2) {{
    %p = program_id<0> : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %less = const -1 : i32
    %p.2 = add %p, %one
    for %i = %zero to %one step {step} {{
        continue
    }}
    return
}}
"
        ));
        let args = make(&k.sig, 4, 1);
        let report = run(&k, &mut args.clone(), None, &Options::default()).unwrap();
        let trap =
            report.findings.first().is_some_and(|f| f.kind == Kind::Trap && f.message.contains("must be positive"));
        assert_eq!(trap, found, "{step}: {:?}", report.findings);
    }
}
