//! The layouts that plans of real kernels are made of.

use crate::filetests::kernels;
use titan_core::ir::Elem;
use titan_core::lane::MmaAtom;
use titan_core::layout::atoms::Atom;
use titan_core::layout::{Layout, check};
use titan_core::plan::{Plan, Source, plan};
use titan_core::target::{CopyEngine, MatrixMove, Native, Place, Target};
use titan_core::verify::verify;

fn target(lanes: u32) -> Target {
    let atom = |k, a, acc| Atom::in_quads(MmaAtom { m: 16, n: 8, k, a, b: a, acc }, 16, 8);
    let atoms = vec![atom(16, Elem::F16, Elem::F32), atom(16, Elem::Bf16, Elem::F32), atom(8, Elem::Tf32, Elem::F32)];
    let to_shared = |to| MatrixMove { to, rows: 8, row_bytes: 16, most: 4 };
    Target {
        // Their fragments are those of warps of 32.
        atoms: if lanes == 32 { atoms } else { Vec::new() },
        copies: vec![CopyEngine::by_lanes()],
        matrix_moves: vec![to_shared(Place::Registers)],
        native: Native { arithmetic: vec![Elem::Bf16], conversions: vec![Elem::E4m3, Elem::E5m2] },
        ..Target::plain("test", lanes)
    }
}

fn good(what: &str, layout: &Layout) {
    check::layout(layout).unwrap_or_else(|e| panic!("{what}: {layout}: {e}"));
}

fn look(name: &str, plan: &Plan) -> usize {
    let homes: Vec<&Layout> = plan.layouts.iter().flatten().collect();
    for layout in &homes {
        good(name, layout);
        // A role's tiles lie in its own warps.
        let warp_sets: Vec<usize> = if plan.roles.is_empty() { vec![plan.warps] } else { plan.roles.clone() }
            .into_iter()
            .map(|warps| (warps * plan.target.lanes) as usize)
            .collect();
        assert!(warp_sets.contains(&layout.threads()), "{name}: {layout}");
    }
    for encoding in plan.smem_resident.iter().flatten() {
        check::encoding(encoding).unwrap_or_else(|e| panic!("{name}: {encoding:?}: {e}"));
    }
    for product in plan.mmas.values() {
        [&product.acc, &product.a, &product.b].into_iter().for_each(|l| good(name, l));
        for source in [&product.a_source, &product.b_source] {
            if let Source::Shared(encoding) = source {
                check::encoding(encoding).unwrap_or_else(|e| panic!("{name}: {encoding:?}: {e}"));
            }
        }
    }
    homes.len()
}

#[test]
fn plans_are_made_of_good_layouts() {
    let (mut plans, mut layouts) = (0, 0);
    for (_, kernel) in kernels() {
        let name = kernel.sig.full_name();
        let Ok(verified) = verify(kernel) else { continue };
        for (lanes, aligned) in [(32, true), (32, false), (64, true)] {
            let plan = plan(&verified, &target(lanes), aligned);
            plans += 1;
            layouts += look(&name, &plan);
            assert!(plan.warps.is_power_of_two() || !plan.roles.is_empty());
        }
    }
    assert!(plans > 100 && layouts > 100, "only {plans} plans with {layouts} layouts");
}
