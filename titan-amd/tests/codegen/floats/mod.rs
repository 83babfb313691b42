//! Operations on floats as the tests of the lowering of tiles evaluate them, for kernels of lane IR that are run there.

#[path = "../../../../titan-core/tests/scalar/eval/float.rs"]
mod float;

use titan_core::lane::op::AtomicFn;
use titan_core::lane::{FloatBin, FloatTy, FloatUn, OpKind};

/// The error that approximate operations are evaluated with: here always none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the other tests evaluate with errors")]
enum Margin {
    None,
    High,
    Low,
}

/// The low 32 bits.
const fn low32(bits: u64) -> u32 {
    bits as u32
}

fn flushed(bits: u64) -> u64 {
    let x = f32::from_bits(low32(bits));
    if x.is_subnormal() { u64::from(0f32.copysign(x).to_bits()) } else { bits }
}

/// The results of an operation, or what an atomic update leaves.
pub(crate) fn results(kind: &OpKind, x: &[u64]) -> Vec<u64> {
    let one = |bits: u64| vec![bits];
    match (kind, x) {
        (OpKind::Float(bin, ty), [a, b]) => one(float::binary(*bin, *ty, *a, *b)),
        // The machine flushes subnormal operands and results of these two: ISA §12.8.
        (OpKind::FloatUn(un @ (FloatUn::Ex2Approx | FloatUn::Lg2Approx), ty), [a]) => {
            one(flushed(float::unary(*un, *ty, flushed(*a), Margin::None)))
        }
        (OpKind::FloatUn(un, ty), [a]) => one(float::unary(*un, *ty, *a, Margin::None)),
        (OpKind::Fma(ty), [a, b, c]) => one(float::fma(*ty, *a, *b, *c)),
        (OpKind::FloatCmp(pred, ty), [a, b]) => one(float::compare(*pred, *ty, *a, *b).into()),
        (OpKind::Convert { from, to }, all) => all.iter().map(|a| float::convert(*from, *to, *a)).collect(),
        (OpKind::Atomic { op: AtomicFn::AddF32, .. }, [a, b]) => {
            one(float::binary(FloatBin::Add, FloatTy::F32, *a, *b))
        }
        (OpKind::Atomic { op: AtomicFn::AddF64, .. }, [a, b]) => {
            one(float::binary(FloatBin::Add, FloatTy::F64, *a, *b))
        }
        (OpKind::Atomic { op: AtomicFn::AddF16x2, .. }, [a, b]) => {
            let half =
                |i: u32| float::binary(FloatBin::Add, FloatTy::F16, a >> (16 * i) & 0xffff, b >> (16 * i) & 0xffff);
            one(half(0) | half(1) << 16)
        }
        _ => panic!("{kind:?} is no operation on floats"),
    }
}
