//! Arguments for which a declared grid is too small: a search among small numbers and numbers around the kernel's constants.
//!
//! An example that is found is certain. If none is found, the launch still checks.

use super::Short;
use crate::ir::{DimSpec, Elem, HostEnv, HostExpr, Need, ParamKind, Signature, Symbol};

/// The maximum number of combinations that are tried.
const TRIES: usize = 4096;
/// The maximum number of different constants that are used.
const CONSTANTS: usize = 8;
/// Larger numbers are not tried, because they make unreadable examples.
const LARGEST: i64 = 1 << 16;

/// The values of the leaves of host expressions.
struct Values<'a> {
    leaves: &'a [HostExpr],
    values: Vec<i64>,
}

impl Values<'_> {
    fn of(&self, leaf: &HostExpr) -> i64 {
        self.leaves.iter().position(|l| l == leaf).and_then(|i| self.values.get(i)).copied().unwrap_or(1)
    }
}

impl HostEnv for Values<'_> {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.of(&HostExpr::Symbol(symbol))
    }

    fn scalar(&self, param: usize) -> i64 {
        self.of(&HostExpr::Scalar(param))
    }

    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.of(&HostExpr::Dim(param, axis))
    }
}

/// Arguments that the kernel accepts and for which `extent` is less than the number of programs needed.
pub(super) fn find(sig: &Signature, extent: &HostExpr, need: Need) -> Option<Short> {
    let asked = [extent, &need.programs];
    let mut leaves = Vec::new();
    asked.iter().for_each(|e| add_leaves(e, &mut leaves));
    let by_name = |leaf: &HostExpr| matches!(leaf, HostExpr::Symbol(_));
    if !leaves.iter().all(by_name) {
        return None;
    }
    let shown = leaves.len();
    let output = shape(sig, need.param);
    let demands = demands(sig, &output, &mut leaves);
    let candidates = candidates(asked.into_iter().chain(demands.iter().map(|(e, _)| e)));
    // Non-empty grids are preferred, since launches reject empty ones anyway.
    [1, 0].into_iter().find_map(|least| {
        (0..combinations(candidates.len(), leaves.len())).find_map(|number| {
            let values = choose(sig, &leaves, &candidates, number);
            let values = Values { leaves: &leaves, values };
            let meets = |(e, least): &(HostExpr, i64)| e.eval(&values).is_ok_and(|v| v >= *least);
            if !demands.iter().all(meets) {
                return None;
            }
            let (found, wanted) = (extent.eval(&values).ok()?, need.programs.eval(&values).ok()?);
            (found >= least && found < wanted).then(|| {
                let name = |leaf: &HostExpr| match leaf {
                    HostExpr::Symbol(s) => sig.symbols.get(s.index()).cloned().unwrap_or_default(),
                    HostExpr::Scalar(_)
                    | HostExpr::Dim(..)
                    | HostExpr::Const(_)
                    | HostExpr::Not(_)
                    | HostExpr::Binary(..) => String::new(),
                };
                let example = leaves.iter().zip(&values.values).take(shown).map(|(l, v)| (name(l), *v)).collect();
                Short { need: need.clone(), example, found, wanted, right: Vec::new() }
            })
        })
    })
}

fn shape(sig: &Signature, param: usize) -> Vec<DimSpec> {
    match sig.params.get(param).map(|p| &p.kind) {
        Some(ParamKind::Tensor { shape, .. }) => shape.clone(),
        Some(ParamKind::Scalar(_)) | None => Vec::new(),
    }
}

/// The conditions on the leaves, as expressions with the minimum of each: the output is not empty, the extents exist, and the requirements
/// hold that mention the same names. Other requirements are about other arguments.
fn demands(sig: &Signature, output: &[DimSpec], leaves: &mut Vec<HostExpr>) -> Vec<(HostExpr, i64)> {
    let mut open: Vec<(HostExpr, i64)> = sig.requires.iter().map(|e| (e.clone(), 1)).collect();
    for param in 0..sig.params.len() {
        let equal =
            shape(sig, param).into_iter().filter_map(|d| if let DimSpec::Equals(e) = d { Some(e) } else { None });
        open.extend(equal.map(|e| (e, 0)));
    }
    let mut out = Vec::new();
    for dim in output {
        if let DimSpec::Equals(e) = dim {
            add_leaves(e, leaves);
            out.push((e.clone(), 1));
        }
    }
    loop {
        let before = open.len();
        open.retain(|(e, least)| {
            let mut own = Vec::new();
            add_leaves(e, &mut own);
            let related = own.iter().any(|l| leaves.contains(l));
            if related {
                add_leaves(e, leaves);
                out.push((e.clone(), *least));
            }
            !related
        });
        if open.len() == before {
            return out;
        }
    }
}

fn add_leaves(e: &HostExpr, leaves: &mut Vec<HostExpr>) {
    e.visit(&mut |leaf| match leaf {
        HostExpr::Symbol(_) | HostExpr::Scalar(_) | HostExpr::Dim(..) => {
            if !leaves.contains(leaf) {
                leaves.push(leaf.clone());
            }
        }
        HostExpr::Const(_) | HostExpr::Not(_) | HostExpr::Binary(..) => {}
    });
}

/// Numbers around the constants and their products, in ascending order.
fn candidates<'a>(exprs: impl Iterator<Item = &'a HostExpr>) -> Vec<i64> {
    let mut constants = vec![1, 2];
    for e in exprs {
        e.visit(&mut |node| {
            if let HostExpr::Const(c) = node
                && (1..=LARGEST).contains(c)
                && !constants.contains(c)
            {
                constants.push(*c);
            }
        });
    }
    constants.truncate(CONSTANTS);
    let products = constants.iter().flat_map(|a| constants.iter().map(move |b| a * b));
    let mut out: Vec<i64> = products.flat_map(|c| [c - 1, c, c + 1]).filter(|v| (1..=LARGEST).contains(v)).collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn combinations(candidates: usize, leaves: usize) -> usize {
    u32::try_from(leaves).ok().and_then(|n| candidates.checked_pow(n)).map_or(TRIES, |n| n.min(TRIES))
}

/// The combination with a number: all combinations are enumerated, or a sample of them if there are too many.
fn choose(sig: &Signature, leaves: &[HostExpr], candidates: &[i64], number: usize) -> Vec<i64> {
    let n = candidates.len().max(1);
    let all = u32::try_from(leaves.len()).ok().and_then(|k| n.checked_pow(k)).is_some_and(|all| all <= TRIES);
    let mut rest = if all { number as u64 } else { mixed(number as u64) };
    let one = |leaf: &HostExpr| {
        let digit = usize::try_from(rest % n as u64).unwrap_or(0);
        rest = if all { rest / n as u64 } else { mixed(rest) };
        let is_bool = |p: usize| matches!(sig.params.get(p).map(|p| &p.kind), Some(ParamKind::Scalar(Elem::Bool)));
        match leaf {
            HostExpr::Scalar(p) if is_bool(*p) => i64::from(digit % 2 == 1),
            HostExpr::Symbol(_)
            | HostExpr::Scalar(_)
            | HostExpr::Dim(..)
            | HostExpr::Const(_)
            | HostExpr::Not(_)
            | HostExpr::Binary(..) => candidates.get(digit).copied().unwrap_or(1),
        }
    };
    leaves.iter().map(one).collect()
}

/// A hash of a number in which every bit affects the others.
const fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (x >> 31)
}
