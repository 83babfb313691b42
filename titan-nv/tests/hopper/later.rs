//! Kernels for the targets after sm_90a, in the emulator: bulk copies fill stages, if these fit in shared memory, and store results as on
//! sm_90a, and warps multiply fragments that they load from these stages.

use super::harness::orders;
use super::lowered::{Gemm, assembles, compiled_for, kernel, run, run_on};
use super::multicast::{self, PLAIN, along};
use titan_core::driver::Stages;
use titan_core::ir::Elem;
use titan_nv::emu::Options;

const TARGETS: [&str; 3] = ["sm_100a", "sm_103a", "sm_120a"];

fn text(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// Products whose operands have boxes: all elements, orders in memory, and widths of rows, hence all swizzles.
fn products() -> Vec<Gemm> {
    let mut cases = Vec::new();
    for elem in [Elem::F16, Elem::Bf16] {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            let elems = (elem, elem, Elem::F32);
            cases.push(Gemm { elems, stored: Elem::F32, transposed, tile: [128, 64, 64], size: [150, 72, 200] });
            cases.push(Gemm { elems, stored: elem, transposed, tile: [64, 128, 32], size: [100, 136, 72] });
            cases.push(Gemm { elems, stored: elem, transposed, tile: [32, 16, 16], size: [40, 24, 72] });
        }
    }
    let bytes =
        [(Elem::I8, Elem::I8, Elem::I32), (Elem::E4m3, Elem::E4m3, Elem::F32), (Elem::E5m2, Elem::E4m3, Elem::F32)];
    for tile in [[64, 96, 128], [64, 64, 64], [32, 32, 32]] {
        cases.extend(bytes.map(|elems| Gemm {
            elems,
            stored: elems.2,
            transposed: [false; 2],
            tile,
            size: [64, 100, 300],
        }));
    }
    let tf32 = (Elem::Tf32, Elem::Tf32, Elem::F32);
    cases.push(Gemm { elems: tf32, stored: Elem::F32, transposed: [false; 2], tile: [64, 48, 32], size: [70, 48, 65] });
    cases
}

#[test]
fn products_of_all_elements_and_orders_are_exact() {
    let traits = |(number, gemm): &(usize, Gemm)| {
        let orders = format!("{:?} {:?}", gemm.transposed, gemm.elems.0);
        vec![format!("{:?} {:?}", gemm.elems, gemm.stored), orders, format!("{:?} {}", gemm.tile, number % 3)]
    };
    for (number, gemm) in &test_depth::covering(products().into_iter().enumerate(), traits) {
        let number = *number;
        let of_quick = |i: usize| test_depth::is_full() || i == number % TARGETS.len();
        for (i, target) in TARGETS.into_iter().enumerate().filter(|(i, _)| of_quick(*i)) {
            let made = compiled_for(&kernel(gemm), target);
            let code = text(&made);
            assert!(!made.lanes.maps.is_empty(), "{gemm:?} has no tensor maps for {target}");
            assert!(code.contains("mma.sync") && !code.contains("wgmma"), "{gemm:?}\n{code}");
            assert!(code.contains("mbarrier::complete_tx::bytes"), "{gemm:?}: threads copy for {target}\n{code}");
            // Tensor cores of 10.x multiply FP8 from tensor memory only: the assembler replaces `mma.sync` by conversions and MMAs of f16,
            // which take more registers.
            let replaced = target != "sm_120a" && matches!(gemm.elems.0, Elem::E4m3 | Elem::E5m2);
            assembles(&made, target, if replaced { 64 } else { 0 });
            // The code differs in its target only where tiles fit into the least memory: each order of completion once.
            let (all, most) = (orders(), test_depth::cases(2, 1));
            for options in all.iter().skip(i).step_by(TARGETS.len()).take(most) {
                run(gemm, &made, options, number as u64)
                    .unwrap_or_else(|e| panic!("{gemm:?} for {target}, {:?}: {e}", options.completion));
            }
        }
    }
}

/// Kernels of which sm_90a has clusters: sm_100a and sm_103a have them too, and sm_120a, where copies to several programs are slow, has none,
/// and the notes say so. No schedule is given up.
#[test]
fn kernels_with_clusters_on_sm_90a() {
    for source in [include_str!("kernels/gemm.tir"), include_str!("kernels/gemm_ws.tir")] {
        let parsed = titan_core::text::parse_one(source).expect("a kernel");
        let parsed = titan_core::verify::verify(parsed).expect("a right kernel");
        for target in TARGETS {
            let machine = titan_nv::Machine::from_name(target).expect("it is known");
            let variants = titan_core::driver::compile(&parsed, machine, None).expect("it compiles");
            let best = &variants[0];
            let code = String::from_utf8(best.payload.clone()).expect("PTX is text");
            let clustered = target != "sm_120a";
            assert_eq!(best.cluster, if clustered { 2 } else { 0 }, "{target}\n{code}");
            // Warps read the stages to which the other program copies.
            for what in
                ["reqnctapercluster", "barrier.cluster", "multicast::cluster", "fence.proxy.async.shared::cluster"]
            {
                assert_eq!(code.contains(what), clustered, "{target}: {what}\n{code}");
            }
            // Bulk copies store the results, and fill the stages; where a program has 99 KiB of shared memory, two stages of 48 KiB do not fit
            // beside the buffers of the stores, and threads copy.
            let fills = code.contains("mbarrier::complete_tx::bytes");
            assert!(fills == clustered && code.contains("bulk_group"), "{target}\n{code}");
            let given_up = |note: &String| note.starts_with(titan_core::driver::FALLBACK);
            let clusters = |note: &String| note.starts_with("clusters of");
            let none = |note: &String| *note == "no cluster: the target has no fast copies to several programs";
            for variant in &variants {
                let notes = &variant.notes;
                assert!(!notes.iter().any(given_up), "{target}: {notes:#?}");
                assert_eq!(notes.iter().any(clusters), variant.cluster > 1, "{target}: {notes:#?}");
                assert_eq!(notes.iter().any(none), !clustered, "{target}: {notes:#?}");
            }
        }
    }
}

/// Products in clusters, whose warps read the tiles to which the other programs copy: exact on all orders of completion, with tiles that do not
/// exist. Without the fence of a reader, or with one for its own program only, the sanitizer finds that a copy may overtake a read.
#[test]
fn clusters_whose_stages_are_read_by_warps() {
    let orders = orders();
    let bytes = (Elem::I8, Elem::I8, Elem::I32);
    let cases = [
        Gemm { size: [190, 200, 136], ..PLAIN },
        Gemm { size: [136, 136, 200], transposed: [true, false], ..PLAIN },
        Gemm { size: [72, 264, 72], transposed: [false, true], ..PLAIN },
        Gemm { elems: bytes, stored: Elem::I32, tile: [64, 96, 64], size: [130, 200, 144], ..PLAIN },
        Gemm { size: [1, 8, 8], ..PLAIN },
    ];
    let clusters = [along(0, 2), along(1, 2), along(0, 4)];
    let cases = cases.iter().enumerate().flat_map(|case| clusters.into_iter().enumerate().map(move |c| (case, c)));
    let traits = |((number, _), (i, _)): &((usize, _), (usize, _))| vec![(0, *number), (1, *i), (2, (number + i) % 2)];
    for ((number, gemm), (i, cluster)) in test_depth::covering(cases, traits) {
        let target = TARGETS[(number + i) % 2];
        let made = multicast::compiled_for(target, &multicast::kernel(gemm, 3, number % 2 == 1), Some(cluster));
        let code = text(&made);
        assert!(code.contains("multicast::cluster") && code.contains("mma.sync"), "{gemm:?}, {cluster:?}\n{code}");
        assembles(&made, target, 0);
        for (turn, options) in orders.iter().enumerate().skip(i).step_by(2).take(test_depth::cases(2, 1)) {
            let grid = [[cluster.size, 8, 12][(number + turn) % 3], 1, 1];
            run_on(gemm, &made, options, number as u64, grid)
                .unwrap_or_else(|e| panic!("{gemm:?}, {cluster:?} for {target}, {:?}: {e}", options.completion));
        }
    }
    let gemm = Gemm { size: [136, 72, 264], ..PLAIN };
    let made = multicast::compiled_for("sm_100a", &multicast::kernel(&gemm, 3, false), Some(along(0, 2)));
    let code = text(&made);
    let fails = |code: &str| {
        let mut changed = made.clone();
        changed.code.payload = code.as_bytes().to_vec();
        orders.iter().find_map(|options| {
            let options = Options { sanitize: true, ..options.clone() };
            run_on(&gemm, &changed, &options, 7, [4, 1, 1]).err().map(|error| error.to_string())
        })
    };
    assert_eq!(fails(&code), None);
    let fence = "fence.proxy.async.shared::cluster;";
    let behind = multicast::line(&multicast::without(&code, 0, fence), 0, RELEASE, |l| format!("{l}\n{fence}"));
    let last = |to: &'static str| multicast::line(&code, 0, "mapa", multicast::last(to));
    for (name, changed, found) in [
        ("no fence", multicast::without(&code, 0, fence), "fence"),
        ("a fence for its own program", code.replace(fence, "fence.proxy.async.shared::cta;"), "narrow-fence"),
        ("a fence of global memory", code.replace(fence, "fence.proxy.async.global;"), "fence"),
        ("a fence behind the release", behind, "fence"),
        ("lanes that nothing orders before the release", code.replacen("bar.warp.sync -1;\n", "", 1), ""),
        ("releases in the first program alone", last("0"), ""),
        ("no release", multicast::without(&code, 0, RELEASE), ""),
    ] {
        assert_ne!(changed, code, "{name}");
        let error = fails(&changed).unwrap_or_else(|| panic!("{name} is not found\n{changed}"));
        assert!(error.contains(found), "{name}: {error}");
    }
}

const RELEASE: &str = "mbarrier.arrive.shared::cluster";
