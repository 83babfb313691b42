//! Bounds near 2³¹: what a kernel of rings computes in 32 bits does not wrap, or the launch is refused.

use titan_core::ir::{Const, Elem, HostNames};
use titan_core::launch::{ArgInfo, BindError, bind};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};

/// One role fills a ring in a loop over `fills`, another reads it as `reads` says; both are text over `%n` and `%one`.
fn kernel(fills: &str, reads: &str) -> Verified {
    let text = format!(
        "kernel @k(%x: in tensor<f32>[N], %c: mut tensor<f32>[M], %s: i32) grid(1) pipe(2, tile<16xf32>) role(f, 1) role(r, 1) {{\n\
         %zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n%v = const 0.0 : f32\n%n = dim<0> %x\nttg.roles f {{\n\
         {fills}\nttg.pipeline.finalize\nyield\n}} r {{\n{reads}\nset %c[%zero], %v\nttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n"
    );
    let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn fill(name: &str) -> String {
    format!("%a{name} = ttg.stage.acquire<0>\nttg.stage.zero %a{name}\n")
}

fn read(name: &str) -> String {
    format!(
        "%r{name} = ttg.stage.ready<0>\n%w{name} = ttg.stage.wait_ready %r{name}\n%p{name} = ttg.stage.read_perm %w{name}\n\
         %d{name} = ttg.stage.consumed %p{name}\nttg.stage.release %d{name}\n"
    )
}

fn looped(index: &str, to: &str, body: &str) -> String {
    format!("for %{index} = %zero to {to} step %one {{\n{body}continue\n}}\n")
}

fn asked(kernel: &Verified) -> Vec<String> {
    let one = |e: &titan_core::ir::HostExpr| {
        let mut text = String::new();
        e.write(&mut text, &kernel.sig as &dyn HostNames).unwrap();
        text
    };
    kernel.sig.requires.iter().map(one).collect()
}

/// Whether a launch with these arguments is let through.
fn launches(kernel: &Verified, n: i64, s: i64) -> Result<(), BindError> {
    let (extents, one, strides) = ([n], [1], [1]);
    let args = [
        ArgInfo::Tensor { elem: Elem::F32, extents: &extents, strides: &strides },
        ArgInfo::Tensor { elem: Elem::F32, extents: &one, strides: &strides },
        ArgInfo::Scalar(Const::Int(Elem::I32, s)),
    ];
    bind(&kernel.sig, &args).map(drop)
}

const GREATEST: i64 = i32::MAX as i64;

#[test]
fn a_count_that_would_wrap_is_refused_at_the_launch() {
    let fills = format!("%more = add %n, %one\n{}", looped("i", "%more", &fill("")));
    let kernel = kernel(&fills, &format!("{}{}", looped("j", "%n", &read("a")), read("b")));
    assert_eq!(asked(&kernel), ["N <= 2147483646"]);
    assert!(launches(&kernel, GREATEST - 1, 0).is_ok());
    let error = launches(&kernel, GREATEST, 0).unwrap_err();
    assert!(matches!(error, BindError::Requirement { .. }), "{error}");
    assert!(error.to_string().starts_with("the kernel requires `N <= 2147483646`, but N = 2147483647"), "{error}");
    // What is asked once is not asked again.
    let again = verify(kernel.clone().into_kernel()).unwrap();
    assert_eq!(asked(&again), asked(&kernel));
}

/// Programs of barriers are asked the same: each of these counts the phases of one barrier in `%t`.
#[test]
fn a_clock_that_would_wrap_is_refused_at_the_launch() {
    let wait = |t: &str| {
        format!(
            "%s = ttg.nv.mbarrier.arrive %full {{arrivals = 1}}\n%p = rem %{t}, %two\nttg.nv.mbarrier.wait_parity %full, %p\n"
        )
    };
    let steps = |from: &str| {
        let body = wait("t");
        format!(
            "%tn = for %j = %zero to %n step %one carry(%t = {from}) {{\n{body}%u = add %t, %one\ncontinue %u\n}}\n"
        )
    };
    let tiles = |to: &str| {
        format!("%tm = for %i = %zero to {to} step %one carry(%t0 = %zero) {{\n{}continue %tn\n}}\n", steps("%t0"))
    };
    let outer = format!(
        "%tk = for %k = %zero to %n step %one carry(%t00 = %zero) {{\n{}continue %tm\n}}\n",
        tiles("%m").replace("carry(%t0 = %zero)", "carry(%t0 = %t00)")
    );
    for (body, wanted) in [
        (steps("%zero"), &[][..]),
        (tiles("%m"), &["M * N <= 2147483647"]),
        (tiles("%one"), &[]),
        (tiles("%zero"), &[]),
        (outer, &["N * M <= 2147483647", "N * N * M <= 2147483647"]),
    ] {
        let text = format!(
            "kernel @k(%x: in tensor<f32>[N], %y: in tensor<f32>[M], %c: mut tensor<f32>[C]) grid(1) require(C == 1) {{\n\
             %zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n%v = const 0.0 : f32\n%n = dim<0> %x\n%m = dim<0> %y\n\
             %words = ttg.region {{offset = 0, bytes = 64}}\n%full = ttg.nv.mbarrier.alloc %words {{at = 0, n = 1}}\n\
             ttg.nv.mbarrier.init %full {{count = 1}}\n{body}set %c[%zero], %v\nreturn\n}}\n"
        );
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        assert_eq!(asked(&kernel)[1..], *wanted, "{text}");
    }
}

#[test]
fn a_guard_that_looks_ahead_is_a_bound_too() {
    let guarded = |index: &str, body: &str| {
        format!(
            "%t{index} = add %{index}, %two\n%g{index} = lt %t{index}, %n\nif %g{index} {{\n{body}yield\n}} else {{\nyield\n}}\n"
        )
    };
    let kernel = kernel(&looped("i", "%n", &guarded("i", &fill(""))), &looped("j", "%n", &guarded("j", &read(""))));
    assert_eq!(asked(&kernel), ["N <= 2147483646"]);
}

#[test]
fn what_cannot_wrap_asks_for_nothing() {
    // t + 1 ≤ n, and the halves of an extent.
    let next = |index: &str, body: &str| {
        format!(
            "%t{index} = add %{index}, %one\n%g{index} = lt %t{index}, %n\nif %g{index} {{\n{body}yield\n}} else {{\nyield\n}}\n"
        )
    };
    let simple = kernel(&looped("i", "%n", &next("i", &fill(""))), &looped("j", "%n", &next("j", &read(""))));
    assert_eq!(asked(&simple), [""; 0]);
    let half = kernel(
        &format!("%h = div %n, %two\n%h1 = add %h, %one\n{}", looped("i", "%h1", &fill(""))),
        &format!("%q = div %n, %two\n{}{}", looped("j", "%q", &read("a")), read("b")),
    );
    assert_eq!(asked(&half), [""; 0]);
}

#[test]
fn scalars_have_two_ends() {
    let kernel = kernel(
        &format!("%d = add %s, %s\n{}", looped("i", "%d", &fill(""))),
        &format!("{}{}", looped("j", "%s", &read("a")), looped("k", "%s", &read("b"))),
    );
    assert!(launches(&kernel, 1, 1 << 29).is_ok() && launches(&kernel, 1, -(1 << 29)).is_ok());
    assert!(launches(&kernel, 1, 1 << 30).is_err() && launches(&kernel, 1, i64::from(i32::MIN)).is_err());
}

#[test]
fn what_data_says_is_not_taken_for_a_number() {
    let text = |reads: &str| {
        format!(
            "kernel @k(%x: in tensor<i32>[N], %c: mut tensor<f32>[M]) grid(1) pipe(2, tile<16xf32>) role(f, 1) role(r, 1) {{\n\
             %zero = const 0 : i32\n%one = const 1 : i32\n%v = const 0.0 : f32\nttg.roles f {{\n\
             %data = get %x[%zero]\n%sum = add %data, %one\n{}ttg.pipeline.finalize\nyield\n}} r {{\n{reads}set %c[%zero], %v\nttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n",
            looped("i", "%sum", &fill(""))
        )
    };
    // The same sum on both sides is the same number, wrapped or not.
    let same = text(&format!("%f = get %x[%zero]\n%g = add %f, %one\n{}", looped("j", "%g", &read(""))));
    assert!(verify(parse_one(&same).unwrap()).is_ok());
    // One more than what was loaded is not, if that is 2³¹ − 1.
    let other = text(&format!(
        "%f = get %x[%zero]\n{}%ge = ge %f, %zero\nif %ge {{\n{}yield\n}} else {{\nyield\n}}\n",
        looped("j", "%f", &read("a")),
        read("b")
    ));
    assert!(verify(parse_one(&other).unwrap()).is_err());
}
