//! Rule 79: a bulk copy that states a box and an element stride has a tensor map, and leaves zeros beyond its box where it wants them.
//!
//! The copy engine knows the end of the tensor, but not that of the box. A copy that starts at `r` more than a multiple of the box `B` has the
//! element `r + i * e` of it at position `i`; if that is beyond the box but in the tensor, the position is not zero. All `r` that the
//! coordinate may have are tried, for the boxes at the two ends of the tensor. Where [`fttc`] holds, no other coordinates help.
//!
//! Deliberately absent: the contents of tiles that are copied without `zeros`, and strides along several axes at once.

use super::super::Error;
use crate::analysis::affine::{I32, Range};
use crate::analysis::forms::Forms;
use crate::analysis::fttc::fttc;
use crate::diag::Code;
use crate::ir::{BinOp, Def, DimSpec, HostExpr, HostNames, Kernel, NvOp, Op, OpKind, ParamKind, Strided, Ty, Value};

/// The maximum extent of a box, and the maximum element stride. CUDA driver API, `cuTensorMapEncodeTiled`, `boxDim` and `elementStrides`.
const MOST: (u32, u32) = (256, 8);

/// The depth to which sums and products are followed.
const DEPTH: u32 = 6;

/// A position of a tile that should be zero.
struct Wrong {
    /// The distance of the copy's coordinate from a multiple of the box, and whether it lies before the tensor.
    past: i64,
    before: bool,
    /// The position, and the element that it holds.
    position: i64,
    element: i64,
}

/// Violations of rule 79.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut forms = None;
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::BulkLoad { strided, bytes, .. }) = op.kind
            && strided != Strided::NONE
        {
            match no_map(kernel, op, strided, bytes) {
                Some(why) => {
                    let title = format!("no tensor map describes this bulk copy: {why}");
                    errors.push(Error::new(Code::NoTensorMap, op.loc, title));
                }
                None if strided.zeros => {
                    let forms = forms.get_or_insert_with(|| Forms::new(kernel, true));
                    errors.extend(no_zeros(kernel, forms, op, strided));
                }
                None => {}
            }
        }
    });
    errors
}

/// The reason why no tensor map has such a box.
fn no_map(kernel: &Kernel, op: &Op, strided: Strided, bytes: u32) -> Option<String> {
    let Strided { along, boxed, every, zeros: _ } = strided;
    let Some(Ty::Tensor(elem, rank)) = op.args.first().map(|v| kernel.ty(*v)) else {
        return Some("the box of a tile follows from its encoding, and is not stated".to_owned());
    };
    if boxed == 0 || boxed > MOST.0 {
        return Some(format!("it states boxes of {boxed} elements, and 1 to {} are possible", MOST.0));
    }
    if along >= rank {
        return Some(format!("it states a box along axis {along} of a tensor with {rank} axes"));
    }
    if every == 0 || every > MOST.1 {
        return Some(format!("it copies one in every {every} elements, and strides of 1 to {} are possible", MOST.1));
    }
    if every > 1 && along + 1 == rank {
        return Some(format!("along the last axis it can only copy every element, not one in {every}"));
    }
    let positions = u64::from(boxed.div_ceil(every));
    let rows = positions * u64::from(elem.bits());
    (!(u64::from(bytes) * 8).is_multiple_of(rows)).then(|| {
        format!("its tile has {positions} positions along axis {along}, one in every {every} of {boxed} elements, and {bytes} bytes do not divide into them")
    })
}

/// The error of a copy that has an element of the tensor where a zero is wanted.
fn no_zeros(kernel: &Kernel, forms: &Forms, op: &Op, strided: Strided) -> Option<Error> {
    let tensor = *op.args.first()?;
    let x = *op.args.get(1 + usize::from(strided.along))?;
    let (size, axis) = extent(kernel, tensor, strided.along);
    let wrong = wrong(kernel, forms, x, strided, size)?;
    let (boxed, every) = (i64::from(strided.boxed), i64::from(strided.every));
    let name = |v| kernel.display_name(v);
    let at = match (kernel.int_constant(x), wrong.before) {
        (Some(x), _) => format!("the copy that starts at {x}"),
        (None, true) => format!("where `{}` is {}", name(x), wrong.past - boxed),
        (None, false) => format!("where `{}` is {}", name(x), wrong.past),
    };
    let at = if kernel.int_constant(x).is_some() { format!("{at} has") } else { format!("{at}, the copy has") };
    let title = format!(
        "the copy of `{}` cannot leave zeros beyond its boxes: along {axis} it copies one in every {every} elements of boxes of {boxed}, and \
         {at} element {} at position {} of its tile, where the box has ended",
        name(tensor),
        wrong.element,
        wrong.position,
    );
    let dim = usize::from(strided.along);
    let help = if fttc(dim, size, boxed, every).is_err() {
        format!(
            "no coordinates make all copies right: copy one in every {} elements, which divides {boxed}; or leave `zeros` out and \
             select zeros after the copy",
            (1..=every).rev().find(|e| boxed % e == 0).unwrap_or(1),
        )
    } else {
        format!("start at most {} after a multiple of {boxed}, the first element of a box", every.min(boxed) - 1)
    };
    Some(Error::new(Code::StridedZeros, op.loc, title).help(help))
}

/// The extent of a tensor along an axis if the signature states it as a number, and the axis as a user calls it.
fn extent(kernel: &Kernel, tensor: Value, along: u8) -> (Option<i64>, String) {
    let mut name = format!("axis {along}");
    let Def::Param(param) = kernel.value(tensor).def else { return (None, name) };
    let Some(ParamKind::Tensor { shape, .. }) = kernel.sig.params.get(param).map(|p| &p.kind) else {
        return (None, name);
    };
    let size = match shape.get(usize::from(along)) {
        Some(DimSpec::Bind(symbol)) => {
            name = format!("axis `{}`", kernel.sig.symbol(*symbol));
            None
        }
        Some(DimSpec::Equals(HostExpr::Const(size))) => Some(*size),
        Some(DimSpec::Equals(_) | DimSpec::Any) | None => None,
    };
    (size, name)
}

/// A copy that is wrong; `None` if all are right. If the coordinate is known, the counterexample is about it.
fn wrong(kernel: &Kernel, forms: &Forms, x: Value, strided: Strided, size: Option<i64>) -> Option<Wrong> {
    let (boxed, every) = (i64::from(strided.boxed), i64::from(strided.every));
    let range = kernel.int_constant(x).map_or_else(|| forms.range(x), Range::point);
    let past = past((kernel, forms), x, boxed, DEPTH);
    let positions = (boxed + every - 1) / every;
    for before in [false, true] {
        if before && range.lo >= 0 {
            continue;
        }
        let start = if before { -boxed } else { 0 };
        for past in past.lo..=past.hi {
            let position = (boxed - past + every - 1) / every;
            // Where the first position beyond the box is outside of the tensor, so are those that follow it.
            let element = start + past + position * every;
            if position < positions && size.is_none_or(|size| element < size) {
                return Some(Wrong { past, before, position, element });
            }
        }
    }
    None
}

/// How far a value may be beyond a multiple of `boxed`; from 0 to `boxed - 1` if nothing is known.
fn past((kernel, forms): (&Kernel, &Forms), x: Value, boxed: i64, depth: u32) -> Range {
    let unknown = Range { lo: 0, hi: boxed - 1 };
    let known = |range: Range| {
        let first = range.lo.div_euclid(boxed) * boxed;
        let range = Range { lo: range.lo - first, hi: range.hi - first };
        if range.within(unknown) { range } else { unknown }
    };
    if let Some(c) = kernel.int_constant(x) {
        return known(Range::point(c));
    }
    // Sums and products wrap by multiples of 2^32, which has the divisors 2^k.
    let exact = |range: Option<Range>| boxed.count_ones() == 1 || range.is_some_and(|range| range.within(I32));
    let bounded = known(forms.range(x));
    if let Def::BlockArg(block, 0) = kernel.value(x).def {
        let mut stepped = None;
        kernel.walk(&mut |_, op| {
            if let (OpKind::For(_), [lo, _, step, ..]) = (&op.kind, &op.args[..])
                && op.regions.first() == Some(&block)
            {
                let ints = kernel.int_constant(*lo).zip(kernel.int_constant(*step));
                stepped = ints.filter(|(_, step)| step % boxed == 0).map(|(lo, _)| known(Range::point(lo)));
            }
        });
        return stepped.unwrap_or(bounded);
    }
    let Some(Op { kind: OpKind::Binary(binary), args, .. }) = kernel.def_op(x).filter(|_| depth > 0) else {
        return bounded;
    };
    let of = |v| past((kernel, forms), v, boxed, depth - 1);
    let [a, b] = args[..] else { return bounded };
    let ranges = (forms.range(a), forms.range(b));
    if *binary == BinOp::Mul && exact(ranges.0.times(ranges.1)) {
        let whole = |v| of(v) == Range::point(0);
        return if whole(a) || whole(b) { Range::point(0) } else { bounded };
    }
    if *binary == BinOp::Add && exact(ranges.0.plus(ranges.1)) {
        let sum = of(a).plus(of(b));
        return sum.filter(|sum| sum.within(unknown) && bounded == unknown).unwrap_or(bounded);
    }
    bounded
}
