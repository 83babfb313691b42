//! Functions of `f64` to about 100 bits, as sums of two `f64`: what the 64-bit functions are measured against.
//!
//! Sums and products: T. Dekker, "A floating-point technique for extending the available precision", 1971.

use std::ops::{Add, Mul};

/// The unevaluated sum of two numbers, the second far below the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide(pub(crate) f64, pub(crate) f64);

const LN_2: Wide = Wide(std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);
const LN_2_THIRD: f64 = 5.707_708_438_416_212e-34;

fn two_sum(a: f64, b: f64) -> Wide {
    let s = a + b;
    let t = s - a;
    Wide(s, (a - (s - t)) + (b - t))
}

impl From<f64> for Wide {
    fn from(x: f64) -> Wide {
        Wide(x, 0.0)
    }
}

impl Add for Wide {
    type Output = Wide;
    fn add(self, b: Wide) -> Wide {
        let (high, low) = (two_sum(self.0, b.0), two_sum(self.1, b.1));
        let sum = two_sum(high.0, high.1 + low.0);
        two_sum(sum.0, sum.1 + low.1)
    }
}

impl Mul for Wide {
    type Output = Wide;
    fn mul(self, b: Wide) -> Wide {
        let p = self.0 * b.0;
        let rest = self.0.mul_add(b.0, -p);
        two_sum(p, rest + (self.0 * b.1 + self.1 * b.0))
    }
}

impl Wide {
    pub(crate) fn negate(self) -> Wide {
        Wide(-self.0, -self.1)
    }

    pub(crate) fn inverse(self) -> Wide {
        let y = Wide::from(1.0 / self.0);
        // Newton: y · (2 − x · y), twice as many digits each time.
        let y = y * (Wide::from(2.0) + (self * y).negate());
        y * (Wide::from(2.0) + (self * y).negate())
    }

    /// 2ⁿ · x, exact but for subnormals, which keep their digits in the pair.
    fn power(self, n: i32) -> Wide {
        let half = 2f64.powi(n / 2);
        let rest = 2f64.powi(n - n / 2);
        Wide(self.0 * half * rest, self.1 * half * rest)
    }

    /// eˣ, and 2ⁿ apart from it.
    fn exp_parts(self) -> (Wide, i32) {
        let n = (self.0 / LN_2.0).round();
        let r = self + LN_2 * Wide::from(-n) + Wide::from(-n * LN_2_THIRD);
        let (mut sum, mut term) = (Wide::from(1.0), Wide::from(1.0));
        for k in 1..32 {
            term = term * r * Wide::from(f64::from(k)).inverse();
            sum = sum + term;
        }
        (sum, n as i32)
    }

    pub(crate) fn exp(self) -> Wide {
        let (y, n) = self.exp_parts();
        y.power(n)
    }

    pub(crate) fn exp2(x: f64) -> Wide {
        let n = x.round();
        ((LN_2 * Wide::from(x - n)).exp()).power(n as i32)
    }

    /// One step of Newton from `libm`.
    pub(crate) fn ln(x: f64) -> Wide {
        let guess = libm::log(x);
        let (y, n) = Wide::from(-guess).exp_parts();
        let half = Wide(x, 0.0).power(n / 2).power(n - n / 2);
        let rest = half * y + Wide::from(-1.0);
        // ln(1 + d) = d − d² / 2 for the least d.
        Wide::from(guess) + rest + rest * rest * Wide::from(-0.5)
    }

    pub(crate) fn log2(x: f64) -> Wide {
        Wide::ln(x) * LN_2.inverse()
    }

    /// xʸ for x > 0, by way of e^(y · ln x), and 2ⁿ by which it is to be multiplied: to about 90 bits where the exponent has ten.
    pub(crate) fn pow(x: f64, y: f64) -> (Wide, i32) {
        (Wide::ln(x) * Wide::from(y)).exp_parts()
    }

    /// 1 / (1 + e⁻ˣ), by way of e^−|x|.
    pub(crate) fn sigmoid(x: f64) -> Wide {
        let e = Wide::from(-x.abs().min(750.0)).exp();
        let inverse = (Wide::from(1.0) + e).inverse();
        if x < 0.0 { e * inverse } else { inverse }
    }

    pub(crate) fn tanh(x: f64) -> Wide {
        // Odd: the sum of the series of sinh over that of cosh where e^−2x would cancel.
        if x.abs() < 0.5 {
            let square = Wide::from(x) * Wide::from(x);
            let (mut s, mut c, mut term) = (Wide::from(x), Wide::from(1.0), Wide::from(1.0));
            for k in 1..14 {
                term = term * square * Wide::from(f64::from((2 * k - 1) * 2 * k)).inverse();
                c = c + term;
                s = s + term * Wide::from(x) * Wide::from(f64::from(2 * k + 1)).inverse();
            }
            return s * c.inverse();
        }
        let e = Wide::from(-2.0 * x.abs().min(100.0)).exp();
        let y = (Wide::from(1.0) + e.negate()) * (Wide::from(1.0) + e).inverse();
        if x < 0.0 { y.negate() } else { y }
    }

    /// 2 / √π · e^−x² · Σ 2ⁿ x²ⁿ⁺¹ / (1 · 3 · … · (2n + 1)): all terms have one sign.
    pub(crate) fn erf(x: f64) -> Wide {
        if x.abs() > 6.5 {
            return Wide::from(1f64.copysign(x));
        }
        let square = Wide::from(x) * Wide::from(x);
        let (mut sum, mut term) = (Wide::from(x), Wide::from(x));
        for k in 1..220 {
            term = term * square * Wide::from(2.0) * Wide::from(f64::from(2 * k + 1)).inverse();
            sum = sum + term;
        }
        // 2 / √π
        let factor = Wide(std::f64::consts::FRAC_2_SQRT_PI, 1.533_545_961_316_588e-17);
        sum * factor * square.negate().exp()
    }

    pub(crate) fn rsqrt(x: f64) -> Wide {
        let y = Wide::from(1.0 / x.sqrt());
        // Newton: y + y · (1 − x · y²) / 2
        let rest = Wide::from(1.0) + (Wide::from(x) * (y * y)).negate();
        y + y * rest * Wide::from(0.5)
    }

    /// For |x| ≤ 2¹⁶ and results that are not small: the quadrant, its sine and its cosine.
    fn turn(x: f64) -> (i64, Wide, Wide) {
        let n = (x * std::f64::consts::FRAC_2_PI).round();
        let parts = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];
        let r = parts.iter().fold(Wide::from(x), |r, part| r + Wide::from(-n) * Wide::from(*part));
        let (mut sin, mut cos, mut term) = (r, Wide::from(1.0), r);
        let mut even = Wide::from(1.0);
        for k in 1..16 {
            let step = |k: i32| Wide::from(-f64::from(k) * f64::from(k + 1)).inverse();
            even = even * r * r * step(2 * k - 1);
            term = term * r * r * step(2 * k);
            (cos, sin) = (cos + even, sin + term);
        }
        (n as i64, sin, cos)
    }

    pub(crate) fn sin(x: f64) -> Wide {
        let (n, sin, cos) = Wide::turn(x);
        match n.rem_euclid(4) {
            0 => sin,
            1 => cos,
            2 => sin.negate(),
            _ => cos.negate(),
        }
    }

    pub(crate) fn cos(x: f64) -> Wide {
        let (n, sin, cos) = Wide::turn(x);
        match n.rem_euclid(4) {
            0 => cos,
            1 => sin.negate(),
            2 => cos.negate(),
            _ => sin,
        }
    }
}
