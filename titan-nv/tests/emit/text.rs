//! The PTX text: parameters, lines, branches, copies, addresses.

use crate::{cases, kernels};
use titan_core::ir::{Loc, Pred};
use titan_core::lane::{Builder, FloatBin, FloatTy, FloatUn, Func, IntBin, Num, OpKind, Space, Ty, Value};
use titan_nv::{Machine, emit};

fn text(func: &Func) -> String {
    emit(func, Machine::from_name("sm_80").unwrap(), None).unwrap().text
}

fn count(text: &str, what: &str) -> usize {
    text.lines().filter(|line| line.contains(what)).count()
}

/// A function of one load and what is made of it.
fn with(make: impl Fn(&mut Builder, Value, Value)) -> Func {
    let (mut b, from, to) = cases::begin("made", 4, 4);
    make(&mut b, from, to);
    b.terminate(OpKind::Return, &[]);
    b.finish().unwrap()
}

#[test]
fn the_frame_is_the_kernels() {
    let ptx = emit(&kernels::matmul(), Machine::from_name("sm_90a").unwrap(), Some(("src/lib.rs", 10))).unwrap();
    assert_eq!((ptx.entry.as_str(), ptx.version, ptx.target), ("matmul_f16_64_64_32", 80, "sm_90a"));
    let head = "\
// matmul::<f16, 64, 64, 32>
.version 8.0
.target sm_90a
.address_size 64
.file 1 \"src/lib.rs\"
.extern .shared .align 1024 .b8 smem[];

.visible .entry matmul_f16_64_64_32(
  .param .b64 p0, // parameter 0: address
  .param .b64 p1, // parameter 1: address
  .param .b64 p2, // parameter 2: address
  .param .b32 p3, // parameter 2: extent of axis 1
  .param .b32 p4 // parameter 0: extent of axis 1
)
.maxntid 128, 1, 1
.minnctapersm 1
{
";
    assert!(ptx.text.starts_with(head), "{}", ptx.text);
}

#[test]
fn the_same_function_gives_the_same_text() {
    for func in kernels::all() {
        assert_eq!(text(&func), text(&func));
    }
}

#[test]
fn the_version_is_the_lowest_that_has_every_instruction() {
    let machine = |name| Machine::from_name(name).unwrap();
    let version = |func: &Func, name| emit(func, machine(name), None).unwrap().version;
    let case = |name: &str| cases::registers().into_iter().find(|c| c.func.name == name).unwrap().func;
    assert_eq!(version(&kernels::matmul(), "sm_80"), 70);
    assert_eq!(version(&kernels::matmul(), "sm_89"), 78);
    assert_eq!(version(&case("convert.f32.e4m3_b32"), "sm_89"), 81);
    let fp8 = "mma.m16n8k32.e4m3.e4m3.f32_b32_b32_b32_b32_b32_b32_b32_b32_b32_b32";
    assert_eq!(version(&case(fp8), "sm_89"), 84);
}

#[test]
fn lines_are_those_of_the_users_file() {
    let func = with(|b, from, to| {
        b.set_loc(Loc { line: 2, column: 5 });
        let x = cases::load(b, Ty::B32, from, 0);
        b.set_loc(Loc { line: 4, column: 1 });
        cases::store(b, x, to, 0);
        cases::store(b, x, to, 1);
    });
    let ptx = emit(&func, Machine::from_name("sm_80").unwrap(), Some(("a.rs", 100))).unwrap().text;
    let lines: Vec<&str> = ptx.lines().skip_while(|l| !l.contains(".loc")).map(str::trim).collect();
    assert_eq!(lines[0], ".loc 1 101 5");
    assert!(lines[1].starts_with("ld.global"), "{ptx}");
    assert_eq!(lines[2], ".loc 1 103 1");
    assert_eq!(count(&ptx, ".loc"), 2, "{ptx}");
    assert_eq!(count(&text(&func), ".loc"), 0);
}

#[test]
fn constants_beyond_an_address_are_its_offset() {
    let func = with(|b, from, to| {
        let more = b.add_const(from, 4096);
        let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: -16, masked: false };
        let x = b.one(kind, &[more]);
        cases::store(b, x, to, 3);
    });
    let text = text(&func);
    assert!(text.contains("+4080];"), "{text}");
    assert!(text.contains("+24], "), "{text}");
    assert!(!text.contains("4096"), "the sum is not computed:\n{text}");
}

/// `[%r1-8]` is no address, for ptxas and in the manual.
#[test]
fn offsets_below_zero_are_added() {
    let func = with(|b, from, to| {
        let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: -16, masked: false };
        let x = b.one(kind, &[from]);
        cases::store(b, x, to, 3);
    });
    let text = text(&func);
    assert!(text.contains("+-16];"), "{text}");
}

#[test]
fn an_offset_that_does_not_fit_is_computed() {
    let func = with(|b, from, to| {
        let more = b.add_const(from, i64::from(i32::MAX));
        let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 5, masked: false };
        let x = b.one(kind, &[more]);
        cases::store(b, x, to, 0);
    });
    let text = text(&func);
    assert!(text.contains("0x7fffffff;") && text.contains("+5];"), "{text}");
}

#[test]
fn branches_that_a_warp_takes_alike_say_so() {
    let text = text(&kernels::row_sum());
    // The one branch by the thread's number is not uniform; those of the loop are.
    assert_eq!((count(&text, " bra.uni "), count(&text, " bra ")), (2, 1), "{text}");
    let text = self::text(&kernels::collatz());
    assert!(text.contains("bra.uni $L4;"), "what is no choice is uniform:\n{text}");
    assert_eq!(count(&text, "} bra.uni"), 0, "{text}");
}

#[test]
fn a_rotation_of_three_costs_four_copies() {
    let text = text(&kernels::rotate());
    let body: Vec<&str> = text.lines().skip_while(|l| *l != "$L3:").take_while(|l| !l.contains("bra")).collect();
    assert_eq!(body.iter().filter(|l| l.contains("mov.b32")).count(), 4, "{body:?}");
}

#[test]
fn inverted_conditions_are_inverted_guards() {
    let func = with(|b, from, to| {
        let (x, y) = (cases::load(b, Ty::B32, from, 0), cases::load(b, Ty::B32, from, 1));
        let less = b.cmp_s(Pred::Lt, x, y);
        let not = b.not(less);
        let kind = OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: true };
        b.op(kind, &[to, x, not]);
    });
    let text = text(&func);
    assert!(text.contains("@!%p0 st.global.b32") && !text.contains("not.pred"), "{text}");
}

#[test]
fn the_sign_of_nan_is_kept_where_something_sees_it() {
    let negate = |b: &mut Builder, from| {
        let x = cases::load(b, Ty::B32, from, 0);
        b.one(OpKind::FloatUn(FloatUn::Neg, FloatTy::F32), &[x])
    };
    let stored = with(|b, from, to| {
        let y = negate(b, from);
        cases::store(b, y, to, 0);
    });
    assert!(text(&stored).contains("xor.b32") && !text(&stored).contains("neg.f32"));
    let added = with(|b, from, to| {
        let y = negate(b, from);
        let sum = b.float(FloatBin::Add, FloatTy::F32, y, y);
        cases::store(b, sum, to, 0);
    });
    assert!(text(&added).contains("neg.f32") && !text(&added).contains("xor.b32"));
}

#[test]
fn what_nothing_uses_is_not_there() {
    let func = with(|b, from, to| {
        let x = cases::load(b, Ty::B32, from, 0);
        let y = cases::load(b, Ty::B32, from, 1);
        b.int(IntBin::Mul, x, y);
        cases::store(b, x, to, 0);
    });
    let text = text(&func);
    assert_eq!((count(&text, "ld.global"), count(&text, "mul.lo")), (1, 0), "{text}");
}

#[test]
fn a_step_that_may_pass_the_end_of_numbers_compares_distances() {
    let counted = |hi: Option<i32>, step: i32| {
        with(|b, from, to| {
            let hi = match hi {
                Some(hi) => b.i32(hi),
                None => cases::load(b, Ty::B32, from, 0),
            };
            let (lo, step) = (b.i32(0), b.i32(step));
            let (open, i, _) = b.begin_for([lo, hi, step], &[]);
            cases::store(b, i, to, 0);
            b.terminate(OpKind::Continue(0), &[]);
            b.end(open);
        })
    };
    for (hi, step, distances) in
        [(None, 1, 0), (Some(i32::MAX), 1, 0), (None, 2, 1), (Some(i32::MAX), 2, 1), (Some(100), 7, 0)]
    {
        assert_eq!(count(&text(&counted(hi, step)), "setp.gt.u32"), distances, "{hi:?} by {step}");
    }
}

/// The text of the one case of a conversion.
fn conversion(from: Num, to: Num) -> String {
    let is = |case: &cases::Case| case.kind == OpKind::Convert { from, to } && case.args.len() == 1;
    text(&cases::registers().into_iter().find(is).unwrap().func)
}

/// The manual leaves 0 for NaN to conversions of `f16` and `f32` to 32 bits; the others give the integer of the highest bit
/// alone ("cvt", on NaN).
#[test]
fn nan_becomes_zero_by_a_selection_where_the_instruction_does_not() {
    for (from, to, repaired) in [
        (Num::F32, Num::S32, false),
        (Num::F16, Num::U32, false),
        (Num::Bf16, Num::S32, false),
        (Num::F32, Num::S64, true),
        (Num::F16, Num::U64, true),
        (Num::F64, Num::S32, true),
        (Num::F64, Num::U64, true),
        (Num::Bf16, Num::S64, true),
    ] {
        let text = conversion(from, to);
        assert_eq!(count(&text, "setp.nan") == 1 && count(&text, "selp") == 1, repaired, "{from} to {to}:\n{text}");
    }
}

/// The manual leaves the low bits of a `tf32` to the implementation; matrix products do not read them.
#[test]
fn the_bits_that_a_tf32_has_not_are_cut_unless_only_products_see_it() {
    assert_eq!(count(&conversion(Num::F32, Num::Tf32), "and.b32"), 1);
    assert_eq!(count(&conversion(Num::F64, Num::Tf32), "and.b32"), 1);
    let product = with(|b, from, to| {
        let atom = cases::atoms().into_iter().find(|a| a.a == titan_core::ir::Elem::Tf32 && a.k == 4).unwrap();
        let mut args = Vec::new();
        for i in 0..3 {
            let x = cases::load(b, Ty::B32, from, i);
            args.push(b.one(OpKind::Convert { from: Num::F32, to: Num::Tf32 }, &[x]));
        }
        let zero = b.f32(0.0);
        args.extend([zero; 4]);
        let d = b.op(OpKind::Mma(atom), &args);
        cases::store(b, d[0], to, 0);
    });
    let text = text(&product);
    assert_eq!((count(&text, "cvt.rna.tf32"), count(&text, "and.b32")), (3, 0), "{text}");
}

/// Compiling a kernel has 100 ms for everything.
#[test]
fn large_functions_are_quick() {
    let func = with(|b, from, to| {
        let mut x = cases::load(b, Ty::B32, from, 0);
        for i in 0..20_000 {
            let y = b.i32(i);
            x = b.int(if i % 2 == 0 { IntBin::Mul } else { IntBin::Xor }, x, y);
            if i % 100 == 0 {
                let some = b.cmp_s(Pred::Lt, x, y);
                let mut arms = b.begin_if(some, &[Ty::B32]);
                b.terminate(OpKind::Yield, &[x]);
                b.begin_else(&mut arms);
                b.terminate(OpKind::Yield, &[y]);
                x = b.end(arms)[0];
            }
        }
        cases::store(b, x, to, 0);
    });
    let start = std::time::Instant::now();
    let lines = text(&func).lines().count();
    let took = start.elapsed();
    crate::ptxas::say(&format!("{lines} lines in {took:?}"));
    // A machine may be busy: a hundred times what it takes alone.
    assert!(took.as_secs() < 5, "{took:?}");
}

#[test]
fn who_waits_looks_again_until_it_is_so() {
    use crate::rings::{Free, program};
    let on =
        |target: &str, free| emit(&program(2, free, None), Machine::from_name(target).unwrap(), None).unwrap().text;
    let old = on("sm_80", Free::Mbarrier);
    assert!(old.starts_with("// ring2") && old.contains(".version 7.1\n"), "{old}");
    assert_eq!((old.matches("mbarrier.test_wait.parity").count(), old.matches("mbarrier.try_wait").count()), (2, 0));
    // Look, and back unless it is so: each lane for itself. The roles part by whole warps.
    let lines: Vec<&str> = old.lines().map(str::trim).collect();
    for at in (0..lines.len()).filter(|i| lines[*i].starts_with("mbarrier.test_wait")) {
        let label = lines[at - 1].trim_end_matches(':');
        let done = lines[at].split([' ', ',']).nth(1).unwrap();
        assert_eq!(lines[at + 1], format!("@!{done} bra {label};"));
    }
    let at = lines.iter().position(|l| *l == "bar.sync 0;").unwrap();
    assert!(lines[at + 1].starts_with("setp.ge.u32") && lines[at + 2].contains(" bra.uni "), "{old}");
    let new = on("sm_90a", Free::Mbarrier);
    assert_eq!(
        (new.matches("mbarrier.test_wait.parity").count(), new.matches("mbarrier.try_wait.parity").count()),
        (0, 2)
    );
    let counted = on("sm_80", Free::Sequence);
    assert_eq!(
        (counted.matches("ld.acquire.cta.shared").count(), counted.matches("st.release.cta.shared").count()),
        (1, 1)
    );
    assert_eq!(counted.matches("bar.sync 2, 64;").count(), 1, "{counted}");
}
