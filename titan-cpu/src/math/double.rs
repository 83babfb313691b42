//! The `f64` functions: one call of `libm` each.

pub(crate) fn exp<const FMA: bool>(x: f64) -> f64 {
    libm::exp(x)
}

pub(crate) fn exp2<const FMA: bool>(x: f64) -> f64 {
    libm::exp2(x)
}

pub(crate) fn ln<const FMA: bool>(x: f64) -> f64 {
    libm::log(x)
}

pub(crate) fn log2<const FMA: bool>(x: f64) -> f64 {
    libm::log2(x)
}

pub(crate) fn sin(x: f64) -> f64 {
    libm::sin(x)
}

pub(crate) fn cos(x: f64) -> f64 {
    libm::cos(x)
}

pub(crate) fn tanh<const FMA: bool>(x: f64) -> f64 {
    libm::tanh(x)
}

pub(crate) fn sigmoid<const FMA: bool>(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

pub(crate) fn erf<const FMA: bool>(x: f64) -> f64 {
    libm::erf(x)
}

/// `libm` reduces every argument.
pub(crate) fn is_huge(_: f64) -> bool {
    false
}
