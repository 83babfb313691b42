//! Errors of the `f32` functions against `libm` in `f64`, over every exponent and around the edges.
#![expect(
    clippy::cast_possible_truncation,
    clippy::approx_constant,
    reason = "rounding to f32 is what is examined, digit by digit"
)]

use titan_cpu::internals::{Both, FUNCTIONS, LIMIT};

/// Numbers of every exponent, with many significands each, and known difficult cases.
fn points() -> Vec<f32> {
    let mut points =
        vec![0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN, 1.0, 88.72, 88.73, 103.9, 104.1, 127.9, 128.1];
    points.extend([126.0, 149.0, 150.1, 151.5, 0.624_999, 0.625, 0.927_734_4, 0.7071, 1.4142, 3.9, 5.9, 9.2]);
    for k in 1..2000u16 {
        let multiple = f64::from(k) * std::f64::consts::FRAC_PI_2;
        points.push(multiple as f32);
    }
    let mut state = 1u32;
    for exponent in 0..255u32 {
        for _ in 0..700 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            points.push(f32::from_bits(exponent << 23 | state >> 9));
        }
    }
    let negative: Vec<f32> = points.iter().map(|x| -x).collect();
    points.extend(negative);
    points
}

/// The unit in the last place of the `f32`s around `x`.
fn ulp(x: f64) -> f64 {
    let exponent = if x == 0.0 { -126 } else { libm::ilogb(x).max(-126) };
    libm::scalbn(1.0, exponent - 23)
}

fn check(name: &str, ulps: f64, absolute: impl Fn(f64) -> f64, ours: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) {
    let mut worst = (0.0, 0.0);
    for x in points() {
        let (got, want) = (ours(x), exact(f64::from(x)));
        if want.is_nan() {
            assert!(got.is_nan(), "{name}({x}) = {got}, not NaN");
            continue;
        }
        if f64::from(want as f32).is_infinite() || got.is_infinite() {
            let over = want.abs() > f64::from(f32::MAX) * (1.0 - 1e-6);
            assert!(
                over && (f64::from(got) == want || got.is_infinite() || got.abs() > 3.4e38),
                "{name}({x}) = {got}, not {want}"
            );
            continue;
        }
        let error = (f64::from(got) - want).abs();
        let allowed = (ulps * ulp(want)).max(absolute(f64::from(x)));
        if error / allowed > worst.0 {
            worst = (error / allowed, x.into());
        }
        assert!(error <= allowed, "{name}({x:e}) = {got:e}, not {want:e}: {} ulp", error / ulp(want));
        assert!(want != 0.0 || got.is_sign_negative() == want.is_sign_negative(), "{name}({x}): the sign of zero");
    }
    // An error of exactly 0 everywhere would mean that nothing was compared.
    assert!(worst.0 > 0.01, "{name} was not examined");
}

/// A function on `f32`: with fused multiply-adds, and without.
fn both(name: &str) -> Both {
    let found = FUNCTIONS.iter().find(|(known, _)| *known == name);
    found.expect("a function of this name").1
}

/// Without the overflow of a large exponential.
fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

fn nothing(_: f64) -> f64 {
    0.0
}

#[test]
fn exponentials() {
    for ours in both("exp") {
        check("exp", 2.0, nothing, ours, libm::exp);
    }
    for ours in both("exp2") {
        check("exp2", 2.0, nothing, ours, libm::exp2);
    }
}

#[test]
fn logarithms() {
    let near_one = |x: f64| if (0.5..2.0).contains(&x) { libm::scalbn(1.0, -22) } else { 0.0 };
    for ours in both("ln") {
        check("ln", 2.0, near_one, ours, libm::log);
    }
    for ours in both("log2") {
        check("log2", 2.0, near_one, ours, libm::log2);
    }
}

#[test]
fn sine_and_cosine() {
    let far = |x: f64| if x.abs() > 65536.0 { libm::scalbn(1.0, -22) } else { 0.0 };
    // Beyond the limit another function is called.
    let known = |x: f64| x.abs() <= f64::from(LIMIT);
    let within = |of: fn(f64) -> f64| move |x: f64| if known(x) { of(x) } else { f64::NAN };
    for ours in both("sin") {
        check("sin", 2.0, far, |x| if known(x.into()) { ours(x) } else { f32::NAN }, within(libm::sin));
    }
    for ours in both("cos") {
        check("cos", 2.0, far, |x| if known(x.into()) { ours(x) } else { f32::NAN }, within(libm::cos));
    }
}

#[test]
fn bounded_functions() {
    for ours in both("tanh") {
        check("tanh", 4.0, nothing, ours, libm::tanh);
    }
    for ours in both("sigmoid") {
        check("sigmoid", 4.0, nothing, ours, sigmoid);
    }
    for ours in both("erf") {
        check("erf", 4.0, nothing, ours, libm::erf);
    }
}
