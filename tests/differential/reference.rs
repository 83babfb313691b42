//! What single operations mean, on numbers.

use crate::bounds::{self, Bound};
use crate::numbers::{Num, is_float, range, round, wrap};
use titan_core::ir::{BinOp, Elem, Pred, ReduceOp, UnOp};

/// A result, and how far from it a device may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) value: Num,
    pub(crate) bound: Bound,
}

impl Want {
    pub(crate) fn exact(value: Num) -> Want {
        Want { value, bound: Bound::EXACT }
    }

    fn float(x: f64) -> Want {
        Want::exact(Num::Float(x))
    }
}

/// A number of bits.
fn count(n: u32) -> Want {
    Want::exact(Num::Int(n.into()))
}

/// The bits of an integer, without copies of its sign.
fn bits_of(elem: Elem, x: i128) -> u64 {
    (x & ((1 << elem.bits()) - 1)) as u64
}

/// A function of one operand.
pub(crate) fn unary(op: UnOp, elem: Elem, x: Num) -> Want {
    if !is_float(elem) {
        let x = x.int();
        let y = match op {
            UnOp::Neg => -x,
            UnOp::Abs => x.abs(),
            UnOp::Not => !x,
            UnOp::CountOnes => return count(bits_of(elem, x).count_ones()),
            UnOp::LeadingZeros => return count(bits_of(elem, x).leading_zeros() + elem.bits() - 64),
            other => panic!("{other} is not for integers"),
        };
        return Want::exact(Num::Int(wrap(elem, y)));
    }
    let x = x.float();
    let y = match op {
        UnOp::Neg => -x,
        UnOp::Abs => x.abs(),
        UnOp::Exp => x.exp(),
        UnOp::Exp2 => x.exp2(),
        UnOp::Ln => x.ln(),
        UnOp::Log2 => x.log2(),
        UnOp::Sqrt => x.sqrt(),
        UnOp::Rsqrt => 1.0 / x.sqrt(),
        UnOp::Recip => 1.0 / x,
        // Those of mingw are wrong for large angles.
        UnOp::Sin if cfg!(windows) => libm::sin(x),
        UnOp::Cos if cfg!(windows) => libm::cos(x),
        UnOp::Sin => x.sin(),
        UnOp::Cos => x.cos(),
        UnOp::Tanh => x.tanh(),
        UnOp::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnOp::Erf => libm::erf(x),
        UnOp::Floor => x.floor(),
        UnOp::Ceil => x.ceil(),
        UnOp::Trunc => x.trunc(),
        UnOp::Round => x.round(),
        UnOp::RoundTiesEven => x.round_ties_even(),
        UnOp::IsNan => return Want::exact(Num::Int(x.is_nan().into())),
        UnOp::Not | UnOp::CountOnes | UnOp::LeadingZeros => panic!("not for floats"),
    };
    Want { value: Num::Float(y), bound: bounds::function(op, elem, x) }
}

fn least(x: f64, y: f64) -> f64 {
    match (x.is_nan(), y.is_nan()) {
        (true, _) => y,
        (_, true) => x,
        _ if x == y => {
            if x.is_sign_negative() {
                x
            } else {
                y
            }
        }
        _ => {
            if x < y {
                x
            } else {
                y
            }
        }
    }
}

/// A function of two operands of one type.
pub(crate) fn binary(op: BinOp, elem: Elem, x: Num, y: Num) -> Want {
    if is_float(elem) {
        let (x, y) = (x.float(), y.float());
        // Sums, products and quotients of `f64` are rounded to it, which for narrower types is innocuous or settled by ties.
        return Want::float(match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            BinOp::Mul => x * y,
            BinOp::Div => x / y,
            BinOp::Min => least(x, y),
            BinOp::Max => -least(-x, -y),
            BinOp::Rem => x % y,
            BinOp::Powf => {
                let value = Num::Float(libm::pow(x, y));
                return Want { value, bound: bounds::power(elem, libm::pow(x, y)) };
            }
            other => panic!("{other} is not for floats"),
        });
    }
    let (x, y) = (x.int(), y.int());
    let bits = i128::from(elem.bits());
    let (low, _) = range(elem);
    let outside = !(0..bits).contains(&wrap(unsigned(elem), y));
    Want::exact(Num::Int(wrap(
        elem,
        match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            BinOp::Mul => x.wrapping_mul(y),
            BinOp::Div if y == 0 => 0,
            BinOp::Div => x / y,
            BinOp::Rem if y == 0 => x,
            BinOp::Rem => x % y,
            BinOp::And => x & y,
            BinOp::Or => x | y,
            BinOp::Xor => x ^ y,
            BinOp::Shl if outside => 0,
            BinOp::Shl => x << y,
            BinOp::Shr if outside => {
                if low < 0 && x < 0 {
                    -1
                } else {
                    0
                }
            }
            BinOp::Shr => x >> y,
            BinOp::Min => x.min(y),
            BinOp::Max => x.max(y),
            // Of `u64`, the product wraps to the low 128 bits, all that an upper half has.
            BinOp::MulHi => x.wrapping_mul(y) >> bits,
            BinOp::Powf => panic!("{op} is not for integers"),
        },
    )))
}

fn unsigned(elem: Elem) -> Elem {
    match elem {
        Elem::I64 => Elem::U64,
        Elem::I32 => Elem::U32,
        Elem::I16 => Elem::U16,
        Elem::I8 => Elem::U8,
        other => other,
    }
}

/// A comparison.
pub(crate) fn compare(pred: Pred, x: Num, y: Num) -> bool {
    let order = match (x, y) {
        (Num::Int(x), Num::Int(y)) => Some(x.cmp(&y)),
        (x, y) => x.float().partial_cmp(&y.float()),
    };
    match pred {
        Pred::Eq => order.is_some_and(std::cmp::Ordering::is_eq),
        Pred::Ne => !order.is_some_and(std::cmp::Ordering::is_eq),
        Pred::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
        Pred::Le => order.is_some_and(std::cmp::Ordering::is_le),
        Pred::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
        Pred::Ge => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

/// A conversion.
pub(crate) fn cast(to: Elem, x: Num) -> Want {
    Want::exact(match (to, x) {
        (Elem::Bool, x) => Num::Int((x.float() != 0.0).into()),
        (to, Num::Float(x)) if is_float(to) => Num::Float(round(to, x)),
        (to, Num::Int(x)) if is_float(to) => Num::Float(round_int(to, x)),
        (_, Num::Float(x)) if x.is_nan() => Num::Int(0),
        (to, Num::Float(x)) => {
            let (low, high) = range(to);
            Num::Int((x.trunc() as i128).clamp(low, high))
        }
        (to, Num::Int(x)) => Num::Int(wrap(to, x)),
    })
}

/// An integer rounded once: `f64` has not all of those of 64 bits.
fn round_int(to: Elem, x: i128) -> f64 {
    let near = x as f64;
    let off = x - near as i128;
    // To odd: what lies between two of `f64` is moved off their ties.
    if off == 0 || near.to_bits() & 1 == 1 || to == Elem::F64 {
        return round(to, near);
    }
    let step = if (off > 0) == (near > 0.0) { 1 } else { u64::MAX };
    round(to, f64::from_bits(near.to_bits().wrapping_add(step)))
}

/// A reduction of a line, in any order.
pub(crate) fn reduce(op: ReduceOp, elem: Elem, line: &[Num]) -> Want {
    if !is_float(elem) {
        let all = line.iter().map(|x| x.int());
        let value = match op {
            ReduceOp::Sum => all.fold(0i128, |a, b| wrap(elem, a + b)),
            ReduceOp::Prod => all.fold(1i128, |a, b| wrap(elem, a.wrapping_mul(b))),
            ReduceOp::Max => all.max().unwrap_or(0),
            ReduceOp::Min => all.min().unwrap_or(0),
        };
        return Want::exact(Num::Int(value));
    }
    let all: Vec<f64> = line.iter().map(|x| x.float()).collect();
    let numbers = all.iter().copied().filter(|x| !x.is_nan());
    match op {
        ReduceOp::Sum => {
            let magnitude: f64 = all.iter().map(|x| x.abs()).sum();
            // −0 is the neutral element.
            let sum = all.iter().fold(-0.0, |sum, x| sum + x);
            Want { value: Num::Float(sum), bound: bounds::sum(elem, all.len(), magnitude) }
        }
        ReduceOp::Prod => {
            let value: f64 = all.iter().product();
            Want { value: Num::Float(value), bound: bounds::product(elem, all.len(), value) }
        }
        ReduceOp::Max => Want::float(numbers.reduce(|x, y| -least(-x, -y)).unwrap_or(f64::NAN)),
        ReduceOp::Min => Want::float(numbers.reduce(least).unwrap_or(f64::NAN)),
    }
}

/// `c + Σ aᵢ bᵢ`.
pub(crate) fn dot(elem: Elem, a: &[Num], b: &[Num], c: Num) -> Want {
    if elem == Elem::I32 {
        let sum: i128 = a.iter().zip(b).map(|(x, y)| x.int() * y.int()).sum();
        return Want::exact(Num::Int(wrap(elem, sum + c.int())));
    }
    let products = a.iter().zip(b).map(|(x, y)| x.float() * y.float());
    let magnitude: f64 = products.clone().map(f64::abs).sum::<f64>() + c.float().abs();
    // A sum of terms that are all −0 may be 0, and products may be rounded to zeros before they are added.
    let negative = products.clone().chain([c.float()]).all(|x| x == 0.0 && x.is_sign_negative());
    let value = products.fold(c.float(), |sum, x| sum + x);
    let any_zero = negative || value != 0.0;
    Want { value: Num::Float(value), bound: Bound { any_zero, ..bounds::sum(elem, 2 * a.len() + 1, magnitude) } }
}
