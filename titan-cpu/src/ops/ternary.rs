//! Operations of three operands: select, and the fused multiply-add.

use super::ElementFn;
use super::number::Float;
use crate::rep::Rep;
use crate::simd::Isa;
use half::{bf16, f16};
use titan_core::ir::Elem;

/// Mask, then, else, for elements of this type.
pub(crate) fn select(e: Elem) -> ElementFn {
    fn make<T: Rep>() -> ElementFn {
        ElementFn { tile: select_tile::<T>, scalar: |[mask, a, b]| if mask != 0 { a } else { b } }
    }
    crate::rep::with_width!(crate::rep::size(e), make())
}

fn select_tile<T: Rep>(isa: Isa, dst: &mut [u8], [mask, a, b]: [&[u8]; 3]) {
    let dst: &mut [T] = bytemuck::cast_slice_mut(dst);
    let (a, b): (&[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    isa.run(|| match (mask, a, b) {
        ([m], _, _) => {
            let chosen = if *m != 0 { a } else { b };
            dst.iter_mut().zip(chosen.iter().cycle()).for_each(|(d, x)| *d = *x);
        }
        (_, [a], [b]) => dst.iter_mut().zip(mask).for_each(|(d, m)| *d = if *m != 0 { *a } else { *b }),
        (_, [a], _) => dst.iter_mut().zip(mask).zip(b).for_each(|((d, m), b)| *d = if *m != 0 { *a } else { *b }),
        (_, _, [b]) => dst.iter_mut().zip(mask).zip(a).for_each(|((d, m), a)| *d = if *m != 0 { *a } else { *b }),
        _ => {
            for (((d, m), a), b) in dst.iter_mut().zip(mask).zip(a).zip(b) {
                *d = if *m != 0 { *a } else { *b };
            }
        }
    });
}

/// `a · b + c`, rounded once.
pub(crate) fn mul_add(e: Elem) -> Option<ElementFn> {
    fn make<T: Float>() -> Option<ElementFn> {
        let scalar = |[a, b, c]: [u64; 3]| T::from_bits(a).mul_add(T::from_bits(b), T::from_bits(c)).to_bits();
        Some(ElementFn { tile: mul_add_tile::<T>, scalar })
    }
    match e {
        Elem::F64 => make::<f64>(),
        Elem::F32 => make::<f32>(),
        Elem::F16 => make::<f16>(),
        Elem::Bf16 => make::<bf16>(),
        Elem::Tf32
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I64
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4
        | Elem::Bool => None,
    }
}

fn mul_add_tile<T: Float>(isa: Isa, dst: &mut [u8], [a, b, c]: [&[u8]; 3]) {
    let dst: &mut [T] = bytemuck::cast_slice_mut(dst);
    let (a, b, c): (&[T], &[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b), bytemuck::cast_slice(c));
    isa.run(|| match (a, b, c) {
        (_, _, [c]) if a.len() == b.len() => {
            dst.iter_mut().zip(a).zip(b).for_each(|((d, a), b)| *d = a.mul_add(*b, *c));
        }
        (_, [b], _) if a.len() == c.len() => {
            dst.iter_mut().zip(a).zip(c).for_each(|((d, a), c)| *d = a.mul_add(*b, *c));
        }
        ([a], _, _) if b.len() == c.len() => {
            dst.iter_mut().zip(b).zip(c).for_each(|((d, b), c)| *d = a.mul_add(*b, *c));
        }
        _ => {
            let all = |x: &[T], i: usize| if let [x] = x { *x } else { x[i] };
            for (i, d) in dst.iter_mut().enumerate() {
                *d = all(a, i).mul_add(all(b, i), all(c, i));
            }
        }
    });
}
