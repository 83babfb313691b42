//! Arguments for any kernel, from its signature.

use titan_core::ir::{Const, DimSpec, Elem, HostEnv, Kernel, LocalOp, OpKind, ParamKind, Signature, Symbol};
use titan_core::verify::WellFormed;
use titan_sim::sim::Arg;

/// The kernels of a text, with what the verifier says of each.
pub(crate) fn kernels(text: &str) -> Vec<(WellFormed, bool)> {
    let parsed = titan_core::text::parse_located(text).unwrap_or_default();
    let one = |k: titan_core::text::Located| {
        let good = match k.kernel.laid_out {
            // Before shared memory has addresses, nothing runs a kernel.
            Some(_) => !allocates(&k.kernel) && titan_core::verify::barrier_program(&k.kernel).is_ok(),
            None => titan_core::verify::verify(k.kernel.clone()).is_ok(),
        };
        titan_core::verify::well_formed(k.kernel).ok().map(|k| (k, good))
    };
    parsed.into_iter().filter_map(one).collect()
}

fn allocates(kernel: &Kernel) -> bool {
    kernel.ops.iter().any(|op| matches!(op.kind, OpKind::Local(LocalOp::Alloc { .. })))
}

struct Env<'a> {
    symbols: &'a [i64],
    scalar: i64,
}

impl HostEnv for Env<'_> {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.symbols.get(symbol.index()).copied().unwrap_or(1)
    }
    fn scalar(&self, _: usize) -> i64 {
        self.scalar
    }
    fn dim(&self, _: usize, _: usize) -> i64 {
        1
    }
}

/// Arguments in which every shape name is `extent` and every integer `scalar`. Floats are small multiples of 1/8.
pub(crate) fn make(sig: &Signature, extent: i64, scalar: i64) -> Vec<Arg> {
    let symbols: Vec<i64> = (0..sig.symbols.len() as i64).map(|i| extent + i % 2 * 16).collect();
    let env = Env { symbols: &symbols, scalar };
    let dim = |d: &DimSpec| match d {
        DimSpec::Any => extent,
        DimSpec::Bind(s) => env.symbol(*s),
        DimSpec::Equals(e) => e.eval(&env).unwrap_or(1).max(0),
    };
    sig.params
        .iter()
        .map(|p| match &p.kind {
            ParamKind::Scalar(e) if e.is_float() => Arg::Scalar(Const::Float(*e, 0.5)),
            ParamKind::Scalar(Elem::Bool) => Arg::Scalar(Const::Int(Elem::Bool, 1)),
            // Two counts that need not be equal are not.
            ParamKind::Scalar(e) => {
                Arg::Scalar(Const::Int(*e, if p.name == "m" { scalar - 1 + scalar % 2 * 2 } else { scalar }))
            }
            ParamKind::Tensor { elem, shape, .. } => {
                let shape: Vec<i64> = shape.iter().map(dim).collect();
                let n = usize::try_from(shape.iter().product::<i64>()).unwrap();
                // Offsets of segments are in order, and most segments have several rows.
                let bytes = if (*elem, shape.len()) == (Elem::I32, 1) {
                    let last = i32::try_from(extent - 1).unwrap();
                    (0..n as i32).flat_map(|i| (i * 3).min(last).to_le_bytes()).collect()
                } else {
                    fill(*elem, n)
                };
                Arg::dense(*elem, &shape, bytes)
            }
        })
        .collect()
}

/// `n` elements, not all alike.
pub(crate) fn fill(elem: Elem, n: usize) -> Vec<u8> {
    let value = |i: usize| (i * 7 % 13) as f64 / 8.0 - 0.5;
    let code = |i: usize| -> u64 {
        match elem {
            Elem::F64 => value(i).to_bits(),
            Elem::F32 | Elem::Tf32 => (value(i) as f32).to_bits().into(),
            Elem::F16 => titan_core::num::f16_from_f64(value(i)).into(),
            Elem::Bf16 => titan_core::num::bf16_from_f64(value(i)).into(),
            Elem::E4m3 => titan_core::num::e4m3_from_f64(value(i)).into(),
            Elem::E5m2 => titan_core::num::e5m2_from_f64(value(i)).into(),
            Elem::Bool => i.is_multiple_of(3).into(),
            _ => (i % 3) as u64,
        }
    };
    if elem.bits() == 4 {
        return titan_core::num::pack_nibbles(&(0..n).map(|i| code(i) as u8 & 0xF).collect::<Vec<_>>());
    }
    let size = elem.bits() as usize / 8;
    (0..n).flat_map(|i| code(i).to_le_bytes()[..size].to_vec()).collect()
}
