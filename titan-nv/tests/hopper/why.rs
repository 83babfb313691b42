//! Why a kernel has no bulk copies on sm_90a: every kernel here differs from one that has by a word, and the reason names what differs.

use super::lowered::{Gemm, kernel};
use titan_core::diag::Code;
use titan_core::driver::{FALLBACK, compile, why_not_bulk};
use titan_core::ir::Elem;
use titan_core::text;
use titan_core::verify::{barrier_program, verify};
use titan_nv::Machine;

const GOOD: Gemm = Gemm {
    elems: (Elem::F16, Elem::F16, Elem::F32),
    stored: Elem::F16,
    transposed: [false, false],
    tile: [64, 64, 64],
    size: [64, 64, 64],
};

/// The reasons, and how many variants there are; each is compiled under the schedule that was chosen for it.
fn reasons(text: &str) -> (Vec<String>, usize) {
    let kernel = verify(text::parse_one(text).expect("it is tile IR")).expect("it is right");
    let machine = Machine::from_name("sm_90a").expect("it is known");
    let why = why_not_bulk(&kernel, machine).expect("it is compiled");
    let variants = compile(&kernel, machine, None).expect("it is compiled");
    let mut notes = variants.iter().flat_map(|v| &v.notes);
    assert_eq!(notes.find(|note| note.starts_with(FALLBACK)), None, "{text}");
    (why, variants.len())
}

#[track_caller]
fn told(text: &str, expected: &[&str]) {
    let (found, _) = reasons(text);
    for reason in expected {
        assert!(found.iter().any(|f| f.contains(reason)), "no `{reason}` in {found:#?}\n{text}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn a_kernel_with_bulk_copies_has_no_reason() {
    let (why, variants) = reasons(&kernel(&GOOD));
    assert_eq!(why, Vec::<String>::new());
    assert!(variants > 0);
}

#[test]
fn mmas_that_warpgroups_do_not_have() {
    let of = |change: &dyn Fn(&mut Gemm)| {
        let mut gemm = GOOD;
        change(&mut gemm);
        kernel(&gemm)
    };
    let fp8 = |gemm: &mut Gemm| gemm.elems = (Elem::E4m3, Elem::E5m2, Elem::F32);
    let int = |gemm: &mut Gemm| (gemm.elems, gemm.stored) = ((Elem::I8, Elem::I8, Elem::I32), Elem::I32);
    told(&of(&|g| g.tile[0] = 32), &["its M is 32: warpgroups multiply 64 rows or a multiple"]);
    told(
        &of(&|g| g.tile[1] = 36),
        &["its N is 36: warpgroups multiply 8 columns or a multiple", "more than its 36 × 64"],
    );
    told(
        &of(&|g| g.tile[2] = 8),
        &["its K is 8: an instruction multiplies 16", "`ap` and `bt` are not copied in bulk: matrix"],
    );
    told(
        &of(&|g| (g.elems, g.stored) = ((Elem::F32, Elem::F32, Elem::F32), Elem::F32)),
        &["cast the operands to `tf32`"],
    );
    told(&of(&|g| (fp8(g), g.transposed = [true, false]).1), &["K is not the last axis of A in memory"]);
    told(&of(&|g| (fp8(g), g.transposed = [false, true]).1), &["K is not the last axis of B in memory"]);
    told(&of(&|g| (int(g), g.transposed = [false, true]).1), &["K is not the last axis of B in memory"]);
    told(&of(&|g| (int(g), g.tile[1] = 40).1), &["its N is 40: of integers, warpgroups multiply 8, 24"]);
}

#[test]
fn tiles_that_are_no_boxes() {
    let good = kernel(&GOOD);
    told(&good.replace("%pa = const 0.0", "%pa = const 1.0"), &["`ap` is not copied in bulk: elements outside"]);
    // Tiles without names are those of their tensors.
    let unnamed = good.replace("%ap", "%100").replace("%bt", "%101").replace("%pa = const 0.0", "%pa = const 1.0");
    told(&unnamed, &["the tile of `a` is not copied in bulk: elements outside"]);
    let wide = kernel(&Gemm { tile: [512, 64, 64], ..GOOD });
    told(&wide, &["its extent 512 along axis 0 exceeds 256"]);
}

/// The reason of a part that needs a map of its own, and ends at a value that is computed in another way.
fn ended(value: &str) -> String {
    format!(
        "its view is a part of the tensor for which the device would make a tensor map ahead of the kernel, but its end depends on `{value}`, \
         which is no `i32` argument and no element of an array of them"
    )
}

/// Only the tile that is no box has a reason: the others of its stages are copied in bulk.
#[test]
fn one_tile_of_a_stage_is_no_box() {
    use super::mixed::{Case, How, PLAIN, plain, with_roles};
    let of = |how: [How; 2]| Case { how, ..PLAIN };
    told(&with_roles(&of([How::Gathered, How::Box])), &["`ta` is not copied in bulk: its rows are gathered by index"]);
    told(&with_roles(&of([How::Box, How::Columns(2)])), &[&format!("`tb` is not copied in bulk: {}", ended("lb"))]);
    told(&with_roles(&of([How::Ones, How::Box])), &["`ta` is not copied in bulk: elements outside"]);
    told(
        &plain(&of([How::Columns(4), How::Box])),
        &[&format!("the tile of `va` in `ta, tb` is not copied in bulk: {}", ended("la"))],
    );
    let gathered = plain(&of([How::Gathered, How::Box]));
    told(&gathered, &["the tile of `a` in `ta, tb` is not copied in bulk: its rows are gathered by index"]);
}

/// Tiles of parts of tensors are boxes, unless the tile is at a coordinate in elements, or the device makes maps and the end of the part is not known
/// ahead.
#[test]
fn tiles_of_parts_that_are_no_boxes() {
    use super::mixed::{Case, How, PLAIN, plain};
    let good = plain(&Case { how: [How::Rows(2), How::Box], ..PLAIN });
    let (none, variants) = reasons(&good);
    assert!(none.is_empty() && variants > 0, "{none:?}");
    let changed = |changes: &[(&str, &str)]| {
        changes.iter().fold(good.clone(), |text, (from, to)| {
            assert!(text.contains(from), "{from}\n{text}");
            text.replace(from, to)
        })
    };
    let view = "%va = slice<0> %a, %fa, %la : tensor<f16, 2>";
    let twice = "%vv = slice<0> %a, %fa, %la : tensor<f16, 2>\n%ea = div %dm, %one : i32\n%va = slice<0> %vv, %zero, %ea : tensor<f16, 2>";
    let name = "the tile of `va` in `ta, tb` is not copied in bulk:";
    told(&changed(&[(view, twice)]), &[&format!("{name} {}", ended("ea"))]);
    let at = [
        ("load_tile %va[%m, %t]", "load_at %va[%m, %ta0]"),
        ("%pa = const 0.0", "%ta0 = mul %t, %bk : i32\n%pa = const 0.0"),
    ];
    told(&changed(&at), &[&format!("{name} its view is a part of the tensor, and a tile at any element")]);
    let four = "%ea = div %la, %one : i32\n%w2 = slice<0> %a, %fa, %ea : tensor<f16, 4>\n%w1 = index<1> %w2, %zero : tensor<f16, 3>\n\
        %va = index<1> %w1, %zero : tensor<f16, 2>";
    let axes = [(view, four), ("%a: in tensor<f16>[T, KA]", "%a: in tensor<f16>[T, 1, 1, KA]")];
    told(&changed(&axes), &[&format!("{name} {}", ended("ea"))]);
}

/// Rows are copied ahead if their indices stay the same in a loop; otherwise a note has their name and their line, on every machine.
#[test]
fn rows_whose_indices_change_are_not_copied_ahead() {
    use super::mixed::{Case, How, PLAIN, plain};
    let good = plain(&Case { how: [How::Gathered, How::Box], ..PLAIN });
    let gather = "%ta = gather_rows %a[%ga, ";
    let changing = good.replace(
        gather,
        "%here = splat %t : tile<64xi32> @6:9\n%moved = add %ga, %here : tile<64xi32> @6:9\n%ta = gather_rows %a[%moved, ",
    );
    let changing = changing.replace(" or %pa : tile<64x32xf16>\n", " or %pa : tile<64x32xf16> @7:13\n");
    let notes = |text: &str, target: &str| {
        let kernel = verify(text::parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).expect("it is right");
        let machine = Machine::from_name(target).expect("it is known");
        compile(&kernel, machine, None).expect("it is compiled").remove(0).notes
    };
    let told = "`ta` is not copied ahead: the indices of its rows change in the loop (line 7 of the kernel)";
    for target in ["sm_80", "sm_90a"] {
        let found = notes(&changing, target);
        assert!(found.iter().any(|note| note == told), "{target}: {found:#?}");
        let found = notes(&good, target);
        assert!(found.iter().any(|note| note.contains("pipelined: `ta`, `tb` in")), "{target}: {found:#?}");
        assert!(!found.iter().any(|note| note.contains("not copied ahead")), "{target}: {found:#?}");
    }
}

#[test]
fn loops_that_are_not_split() {
    let good = kernel(&GOOD);
    told(&good.replace(" pipelined ", " "), &["it has no loop over `pipelined(..)`"]);
    let elementwise = "kernel @k(%x: in tensor<f32>[N], %y: mut tensor<f32>[N]) grid(cdiv(N, 64)) {\n\
        %p = program_id<0> : i32\n%z = const 0.0 : f32\n%v = load_tile %x[%p] or %z : tile<64xf32>\n\
        store_tile %y[%p], %v\nreturn\n}\n";
    told(elementwise, &["it has no MMA", "it has no loop over `pipelined(..)`"]);
    let single = "kernel @k(%x: in tensor<f32>[N], %y: mut tensor<f32>[N]) grid(N) {\n\
        %p = program_id<0> : i32\n%z = const 0.0 : f32\n%v = load_at %x[%p] or %z : tile<1xf32>\n\
        store_at %y[%p], %v\nreturn\n}\n";
    let (found, variants) = reasons(single);
    assert!(variants == 0 && !found.is_empty(), "{found:?}");
}

/// A product whose roles come after an MMA that the warps of no role execute.
pub(super) fn roles_after_an_mma() -> String {
    const GEMM_WS: &str = include_str!("kernels/gemm_ws.tir");
    let mma = "%p = program_id<0> : i32\n%hz = const 0.0 : f16\n%fz = const 0.0 : f32\n%ha = load_tile %a[%p, %7] or %hz : tile<16x16xf16>\n\
        %start = splat %fz : tile<16x16xf32>\n%hb = load_tile %b[%p, %7] or %hz : tile<16x16xf16>\n\
        %first = mma %ha, %hb, %start : tile<16x16xf32>\nstore_tile %d[%p, %7], %first\nttg.roles producer";
    let text = GEMM_WS.replacen("ttg.roles producer", mma, 1);
    text.replacen("%c: mut tensor<f16>[M, N],", "%c: mut tensor<f16>[M, N], %d: mut tensor<f32>[P, Q],", 1)
}

/// Its roles become one, which copies ahead and multiplies.
#[test]
fn roles_that_become_one() {
    let text = roles_after_an_mma();
    told(&text, &["the same warps execute both roles: an MMA outside of the roles is not supported"]);
    let kernel = verify(text::parse_one(&text).expect("it is tile IR")).expect("it is right");
    let machine = Machine::from_name("sm_90a").expect("it is known");
    let notes = compile(&kernel, machine, None).expect("it is compiled").remove(0).notes;
    assert!(
        notes.iter().any(|note| note == "roles fused: all warps copy 3 iterations ahead and compute"),
        "{notes:#?}"
    );
    assert!(!notes.iter().any(|note| note.starts_with(FALLBACK)), "{notes:#?}");
}

/// The errors of a barrier program.
fn errors(text: &str) -> Vec<(Code, String)> {
    let program = text::parse_one(text).expect("it is tile IR");
    let found = barrier_program(&program).err().unwrap_or_default();
    found.into_iter().map(|e| (e.code, e.title)).collect()
}

/// A barrier program that was changed by hand is rejected where the machine has no such copy, MMA or number.
#[test]
fn changes_by_hand_that_the_machine_does_not_have() {
    let bytes = Gemm { elems: (Elem::I8, Elem::I8, Elem::I32), stored: Elem::I32, ..GOOD };
    // Two instructions of 136 columns, which are whole panels of 8 elements, but not of 16.
    let wide = super::widths::wide(272);
    let floats = Gemm { elems: (Elem::E4m3, Elem::E5m2, Elem::F32), ..GOOD };
    let [good, of_bytes, of_floats, wide] = [kernel(&GOOD), kernel(&bytes), kernel(&floats), wide]
        .map(|kernel| text::print(&super::lowered::compiled(&kernel).barriers));
    for good in [&good, &of_bytes, &of_floats, &wide] {
        assert_eq!(errors(good), []);
    }
    for (text, from, to, code, reason) in [
        (
            &good,
            "const 0.0 : f16",
            "const 1.0 : f16",
            Code::NoTensorMap,
            "elements outside of the tensor are not to be +0",
        ),
        (
            &good,
            "aligned(0, 1, 2)",
            "aligned(1, 2)",
            Code::NoTensorMap,
            "the rows of `a` need not be aligned to 16 bytes",
        ),
        (
            &good,
            "producer {\n",
            "producer {\nttg.nv.setmaxnreg {registers = 41}\n",
            Code::Participants,
            "41 registers per thread",
        ),
        (
            &good,
            "encoding(64x64, 16, order(0, 1), row(64, 128), b128)",
            "encoding(64x64, 16, order(0, 1), row(64, 128), none)",
            Code::GroupMma,
            "operand A of an MMA of warpgroups has neither a swizzle",
        ),
        (
            &good,
            "encoding(64x64, 16, order(0, 1), row(64, 128), b128)",
            "encoding(64x64, 16, order(0, 1), row(64, 144), none)",
            Code::NoTensorMap,
            "its rows are padded in shared memory",
        ),
        (
            &good,
            "encoding(64x64, 16, order(0, 1), row(64, 128), b128)",
            "encoding(64x64, 16, order(1, 0), row(64, 128), b128)",
            Code::NoTensorMap,
            "its axes have another order in shared memory than in the tensor",
        ),
        (
            &of_bytes,
            "encoding(64x64, 8, order(0, 1), row(64, 64), b64)",
            "encoding(64x64, 8, order(0, 1), row(128, 128), b128)",
            Code::NoTensorMap,
            "its rows of 64 elements are not whole rows of 128, the span of the swizzle",
        ),
        (
            &of_bytes,
            "encoding(64x64, 8, order(0, 1), row(64, 64), b64)",
            "encoding(64x64, 8, order(1, 0), row(64, 64), b64)",
            Code::GroupMma,
            "K is not the last axis of operand A in shared memory, as it must be for elements `i8`",
        ),
        (
            &of_floats,
            "encoding(64x64, 8, order(0, 1), row(64, 64), b64)",
            "encoding(64x64, 8, order(1, 0), row(64, 64), b64)",
            Code::GroupMma,
            "K is not the last axis of operand A in shared memory, as it must be for elements `e4m3`",
        ),
        (
            &wide,
            "encoding(64x272, 16, order(0, 1), row(8, 16), none)",
            "encoding(64x272, 16, order(0, 1), row(16, 32), b32)",
            Code::GroupMma,
            "the 136 columns of an MMA of warpgroups are neither whole panels of 16 elements nor within one",
        ),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(&changed, text, "{from}");
        let found = errors(&changed);
        assert!(found.iter().any(|(c, title)| *c == code && title.contains(reason)), "{reason}: {found:#?}\n{changed}");
    }
}

/// Instructions of integers lack the widths of half of those of floats.
#[test]
fn products_of_integers_of_40_columns() {
    let gemm = super::widths::product(super::widths::INTEGERS, 48, [false; 2]);
    let good = text::print(&super::lowered::compiled(&kernel(&gemm)).barriers);
    assert_eq!(errors(&good), []);
    let changed = good.replace("x48", "x40").replace("48x", "40x");
    let title = "an MMA of warpgroups of integers has 8, 24, or a multiple of 16 columns, not 40";
    let found = errors(&changed);
    assert!(found.contains(&(Code::GroupMma, title.to_owned())), "{found:#?}\n{changed}");
}

/// A box of a part is copied to one program, and begins at a multiple of its extents: barrier programs that say otherwise are rejected.
#[test]
fn boxes_of_parts_that_are_changed_by_hand() {
    use super::mixed::{Case, How, PLAIN, plain};
    let made = super::lowered::compiled(&plain(&Case { how: [How::Rows(2), How::Box], ..PLAIN }));
    let good = text::print(&made.barriers);
    assert_eq!(errors(&good), []);
    let view = good.lines().find(|line| line.contains("slice<0>")).and_then(|line| line.split_whitespace().next());
    let view = view.expect("a part of a tensor");
    let named =
        good.lines().find(|line| line.contains(&format!("ttg.source_tile {view}["))).expect("a tile of the part");
    let tile = named.split_whitespace().next().expect("its name");
    let copy = good.lines().find(|line| line.contains(&format!(".load {tile}, "))).expect("its copy");
    for (changed, reason) in [
        (good.replace(copy, &copy.replace('}', ", multicast = 3}")), "are not copied to several programs"),
        (good.replace(named, &named.replace("source_tile", "source_at")), "could begin before the part"),
    ] {
        assert_ne!(changed, good);
        let found = errors(&changed);
        let right = |(code, title): &(Code, String)| *code == Code::NoTensorMap && title.contains(reason);
        assert!(found.iter().any(right), "{reason}: {found:#?}\n{changed}");
    }
}

/// The notes of each variant for sm_90a that begin so.
fn not_chosen(text: &str) -> Vec<Vec<String>> {
    let kernel = verify(text::parse_one(text).expect("it is tile IR")).expect("it is right");
    let machine = Machine::from_name("sm_90a").expect("it is known");
    let variants = compile(&kernel, machine, None).expect("it is compiled");
    let is_one = |note: &String| ["not persistent", "one instance", "no cluster"].iter().any(|n| note.starts_with(n));
    variants.into_iter().map(|v| v.notes.into_iter().filter(is_one).collect()).collect()
}

/// Programs that walk over the grid, instances in turn and clusters: where a kernel does without, a note says why.
#[test]
fn what_is_not_chosen_has_a_reason() {
    use super::kernels::{Mask, text as attention};
    use super::mixed::{Case, How, PLAIN, with_roles};
    let alone = "no cluster: for launches with one tile along its axis";
    let good = kernel(&GOOD);
    let any = "no cluster: there is one variant for outputs that are not aligned";
    assert_eq!(not_chosen(&good), [vec![], vec![alone.to_owned()], vec![any.to_owned()]]);
    let wide = "one instance: a tile takes 8 warps, and an instance has one warpgroup";
    assert_eq!(
        not_chosen(&kernel(&Gemm { tile: [128, 256, 64], ..GOOD })),
        [vec![wide], vec![wide, alone], vec![wide, any]]
    );
    let overlap = "the MMAs of a tile overlap instead";
    let (one, walk) = (format!("one instance: {overlap}"), format!("not persistent: {overlap}"));
    let own = "no cluster: programs do not loop over tiles";
    assert_eq!(not_chosen(&attention([128, 64, 128], Mask::Tail)), [[&walk, &one, own]]);
    let uneven = "not persistent: programs differ in how much they do, which the device balances";
    assert_eq!(not_chosen(&attention([128, 64, 128], Mask::Causal)), [[uneven, &one, own]]);
    let once = good.replace("grid(cdiv(M, 64), cdiv(N, 64))", "grid(cdiv(M, 64) * 1, cdiv(N, 64))");
    let grid = "not persistent: the grid depends on more than extents and constants";
    assert_eq!(not_chosen(&once), [[grid, "one instance: each program has one tile", own]; 2]);
    let gathered = with_roles(&Case { how: [How::Gathered, How::Columns(2)], ..PLAIN });
    let shared = "no cluster: neighbouring tiles share no tile that is copied in bulk in parts";
    assert_eq!(not_chosen(&gathered), [[shared]; 2]);
}
