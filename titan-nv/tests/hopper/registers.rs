//! Accumulators that do not fit in registers, and roles of too many warps, are refused where the user wrote them; what is just below the
//! limit is compiled, and the assembler agrees with both.

use super::kernels::{self, Mask};
use super::ptxas;
use titan_core::diag::Code;
use titan_core::driver::{compile, follow, stages, why_not_bulk};
use titan_core::plan::LowerError;
use titan_core::text;
use titan_core::verify::{Verified, verify};
use titan_nv::Machine;

/// `gemm_ws` with other tiles, and warps of the consumer.
fn with_roles([m, n]: [u32; 2], warps: u32) -> String {
    include_str!("kernels/gemm_ws.tir")
        .replace("64x256xf16", &format!("64x{n}xf16"))
        .replace("256x64xf16", &format!("{n}x64xf16"))
        .replace("tile<128x64xf16>", &format!("tile<{m}x64xf16>"))
        .replace("smem<128x64xf16>", &format!("smem<{m}x64xf16>"))
        .replace("source<128x64xf16>", &format!("source<{m}x64xf16>"))
        .replace("128x256x", &format!("{m}x{n}x"))
        .replace("%14 = const 128", &format!("%14 = const {m}"))
        .replace("%140 = const 256", &format!("%140 = const {n}"))
        .replace("bytes = 49152", &format!("bytes = {}", (m + n) * 128))
        .replace("role(consumer, 8)", &format!("role(consumer, {warps})"))
        .replace("pipe(4,", "pipe(2,")
}

fn verified(text: &str) -> Verified {
    let located = text::parse_located(text).expect("it is tile IR").remove(0);
    verify(located.kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn hopper() -> &'static Machine {
    Machine::from_name("sm_90a").expect("it is known")
}

fn refused(text: &str) -> LowerError {
    let error = compile(&verified(text), hopper(), None).expect_err("its accumulators do not fit");
    assert_eq!(error.code(), Code::Backend);
    let line = text.lines().nth(error.loc.line.saturating_sub(1) as usize).unwrap_or_default();
    assert!(line.contains("mma") || error.loc.line == 0, "line {}: {line}", error.loc.line);
    error
}

#[test]
fn accumulators_of_a_role_fit_or_are_refused() {
    for (tile, warps, help) in [
        ([128, 256], 4, "give the role `consumer` 8 warps, or use smaller tiles"),
        ([128, 224], 4, "give the role `consumer` 8 warps, or use smaller tiles"),
        ([192, 160], 4, "give the role `consumer` 8 warps, or use smaller tiles"),
        ([256, 256], 4, "use smaller tiles: 4 warps hold at most 27520 elements of 32 bits"),
        ([256, 256], 8, "use smaller tiles: 8 warps hold at most 49152 elements of 32 bits"),
    ] {
        let error = refused(&with_roles(tile, warps));
        let held = tile[0] * tile[1] / (warps * 32);
        for part in [
            "`acc` has".to_owned(),
            format!("of the role `consumer`, which has {warps} warps, would hold {held} registers"),
        ] {
            assert!(error.message.contains(&part), "no `{part}` in {}", error.message);
        }
        assert_eq!(error.help.as_deref(), Some(help));
    }
    // The help works: twice the warps; and tiles of as many elements as there may be.
    for (tile, warps) in [([128, 256], 8), ([128, 208], 4), ([64, 256], 4), ([128, 192], 4)] {
        compile(&verified(&with_roles(tile, warps)), hopper(), None).unwrap_or_else(|e| panic!("{tile:?}: {e}"));
    }
}

#[test]
fn what_is_compiled_has_no_spills() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    for (tile, warps) in [([128, 208], 4), ([128, 256], 8), ([64, 256], 4)] {
        let made = stages(&verified(&with_roles(tile, warps)), hopper(), true, None).expect("it fits");
        let text = String::from_utf8(made.code.payload).expect("PTX is text");
        let usages = ptxas::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{tile:?}: {e}"));
        assert!(usages.iter().all(|usage| usage.spilled == 0), "{tile:?}: {usages:?}");
    }
}

/// Tiles of attention (queries, head, keys), the beginnings of the notes about registers, and whether the assembler spills more than a few.
const TILES: [([u32; 3], &[&str], bool); 13] = [
    ([128, 128, 128], &[], false),
    ([128, 64, 176], &[], false),
    ([128, 256, 64], &[], false),
    ([128, 96, 64], &[], false),
    ([128, 32, 128], &[], false),
    ([64, 256, 64], &[], false),
    ([256, 64, 64], &[], false),
    ([256, 64, 128], &["a thread has 255 registers, and tiles take 208"], true),
    ([256, 128, 64], &["a thread has 255 registers, and tiles take 208"], true),
    ([384, 64, 64], &["a thread has 255 registers, and tiles take 216"], true),
    ([320, 64, 64], &["2 warpgroups share rows", "a thread has 232 registers, and tiles take 200"], true),
    ([192, 64, 128], &["2 warpgroups share rows"], true),
    ([192, 128, 64], &["2 warpgroups share rows"], true),
];

/// Of these tiles, a note says that those are too large which the assembler moves to local memory, and no other. It is an estimate: there are
/// tiles that the assembler moves without a note.
#[test]
fn notes_of_tiles_that_take_too_many_registers() {
    let ptxas = ptxas::unless_absent();
    for (sizes, expected, spills) in TILES {
        let kernel = verified(&kernels::text(sizes, Mask::Causal));
        let variants = compile(&kernel, hopper(), None).unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
        let best = &variants[0];
        let about = |note: &&String| note.contains(" registers, and tiles take") || note.contains("share rows");
        let mut found: Vec<&String> = best.notes.iter().filter(about).collect();
        found.sort();
        let alike = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
        assert!(alike, "{sizes:?}: {found:#?}");
        let Some(ptxas) = &ptxas else { continue };
        let text = String::from_utf8(best.payload.clone()).expect("PTX is text");
        let usages = ptxas::assemble(ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
        assert_eq!(usages.iter().any(|usage| usage.spilled > 100), spills, "{sizes:?}: {usages:?}");
    }
}

#[test]
fn accumulators_of_a_kernel_without_roles() {
    let text = include_str!("kernels/gemm.tir").replace("128x", "256x").replace("cdiv(M, 128)", "cdiv(M, 256)");
    let error = refused(&text);
    assert!(error.message.contains("a thread of the program, which has 8 warps, would hold 256 registers"), "{error}");
    assert_eq!(error.help.as_deref(), Some("use smaller tiles: 8 warps hold at most 55040 elements of 32 bits"));
    // `require(tma)` reports it.
    assert!(why_not_bulk(&verified(&text), hopper()).is_err_and(|e| e.message == error.message));
}

#[test]
fn a_schedule_of_too_few_warps_is_refused() {
    let kernel = verified(include_str!("kernels/gemm_ws.tir"));
    let of = |name: &str| Machine::from_name(name).expect("it is known");
    let made = stages(&kernel, of("sm_80"), true, None).expect("it is compiled");
    let fewer = titan_core::driver::Schedule { warps: Some(4), ..made.schedule };
    let error = follow(&kernel, of("sm_80"), &fewer).map(|made| made.schedule).expect_err("256 of 255 registers");
    assert!(error.message.contains("which has 4 warps, would hold 256 registers of accumulators"), "{error}");
}

#[test]
fn roles_of_too_many_warps() {
    let idle = |name: &str| format!(" {name} {{\n        ttg.pipeline.finalize\n        yield\n    }}");
    let with = |roles: &[(&str, u32)]| {
        let text = with_roles([128, 64], 8);
        let declared: String = roles.iter().map(|(name, warps)| format!(" role({name}, {warps})")).collect();
        let text = text.replace("role(consumer, 8)", &format!("role(consumer, 8){declared}"));
        let end = text.rfind("    }\n    return").expect("it ends so") + "    }".len();
        let bodies: String = roles.iter().map(|(name, _)| idle(name)).collect();
        format!("{}{bodies}{}", &text[..end], &text[end..])
    };
    let error = refused(&with(&[("a", 16), ("b", 1), ("c", 1)]));
    assert_eq!(
        error.message,
        "the roles have 36 warps on sm_90a, with those of each role rounded up to a multiple of 4; a program has at most 32"
    );
    // 24 warps have 80 registers each, and the consumer needs 32 for its accumulators.
    compile(&verified(&with(&[("a", 8), ("b", 1)])), hopper(), None).expect("24 warps fit");
}
