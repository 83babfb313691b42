//! Arguments that a kernel accepts and for which an output is not covered: a search among small numbers and numbers around the kernel's
//! constants.
//!
//! An example that is found is certain. If none is found for a grid, the launch still checks.

use super::Short;
use crate::analysis::affine::I32;
use crate::analysis::grid::bound;
use crate::ir::{DimSpec, Elem, HostEnv, HostExpr, HostOp, Need, ParamKind, Signature, Symbol};

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

    /// Whether the types of scalar arguments can hold their values.
    fn are_arguments(&self, sig: &Signature) -> bool {
        self.leaves.iter().zip(&self.values).all(|(leaf, value)| {
            let range = bound(sig, leaf);
            (range.lo..=range.hi).contains(value)
        })
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

/// What arguments are searched for.
pub(super) struct Search<'a> {
    /// The signature of the kernel.
    pub(super) sig: &'a Signature,
    /// The output, which is not empty.
    pub(super) param: usize,
    /// The expressions whose leaves are in the example.
    pub(super) asked: Vec<HostExpr>,
    /// Expressions with the minimum of each, besides those of the signature.
    pub(super) demands: Vec<(HostExpr, i64)>,
}

impl Search<'_> {
    /// Arguments that the kernel accepts and for which the test has a result, as names with values.
    pub(super) fn find<T>(&self, test: &dyn Fn(&[i64]) -> Option<T>) -> Option<(Vec<(String, i64)>, T)> {
        let asked: Vec<HostExpr> = self.asked.iter().map(|e| named(self.sig, e)).collect();
        let mut leaves = Vec::new();
        asked.iter().for_each(|e| add_leaves(e, &mut leaves));
        let shown = leaves.len();
        let (demands, others) = demands(self, &mut leaves);
        let candidates = candidates(asked.iter().chain(demands.iter().map(|(e, _)| e)));
        let found = (0..combinations(candidates.len(), leaves.len())).find_map(|number| {
            let values = choose(self.sig, &leaves, &candidates, number);
            let values = Values { leaves: &leaves, values };
            let meets = |(e, least): &(HostExpr, i64)| e.eval(&values).is_ok_and(|v| (*least..=I32.hi).contains(&v));
            if !(values.are_arguments(self.sig) && demands.iter().all(meets)) {
                return None;
            }
            let results = asked.iter().map(|e| e.eval(&values).ok()).collect::<Option<Vec<i64>>>()?;
            let found = test(&results)?;
            let names = leaves.iter().take(shown).map(|l| l.in_attribute(self.sig));
            Some((names.zip(values.values.iter().copied()).collect(), found))
        })?;
        // What is demanded of other arguments must be possible too.
        let Some((first, _)) = others.first() else { return Some(found) };
        let other = Search { sig: self.sig, param: self.param, asked: vec![first.clone()], demands: others };
        other.find(&|_| Some(())).map(|_| found)
    }
}

/// Arguments that the kernel accepts and for which `extent` is less than the number of programs needed.
pub(super) fn find(sig: &Signature, extent: &HostExpr, need: Need) -> Option<Short> {
    let asked = vec![extent.clone(), need.programs.clone()];
    let mut leaves = Vec::new();
    asked.iter().for_each(|e| add_leaves(&named(sig, e), &mut leaves));
    if !leaves.iter().all(|leaf| matches!(leaf, HostExpr::Symbol(_))) {
        return None;
    }
    let search = Search { sig, param: need.param, asked, demands: Vec::new() };
    // Non-empty grids are preferred, since launches reject empty ones anyway.
    let (example, [found, wanted]) = [1, 0].into_iter().find_map(|least| {
        search.find(&|results| match *results {
            [found, wanted] if found >= least && found < wanted => Some([found, wanted]),
            _ => None,
        })
    })?;
    Some(Short { need, example, found, wanted, right: Vec::new() })
}

/// The arguments of an example at the beginning of a message; empty if there are none.
pub(super) fn when(example: &[(String, i64)]) -> String {
    let when = example.iter().map(|(n, v)| format!("{n} = {v}")).collect::<Vec<_>>().join(" and ");
    if when.is_empty() { String::new() } else { format!("with {when} ") }
}

/// The expression with the declared extents of tensors instead of `dim`, so that each extent has one leaf.
pub(super) fn named(sig: &Signature, e: &HostExpr) -> HostExpr {
    resolved(sig, e, sig.params.len())
}

/// The same through at most this many declarations, since an extent may be declared as itself.
fn resolved(sig: &Signature, e: &HostExpr, most: usize) -> HostExpr {
    match e {
        HostExpr::Dim(param, axis) => match shape(sig, *param).get(*axis) {
            Some(DimSpec::Bind(symbol)) => HostExpr::Symbol(*symbol),
            Some(DimSpec::Equals(declared)) if most > 0 => {
                let declared = resolved(sig, declared, most - 1);
                if mentions_dim(&declared) { e.clone() } else { declared }
            }
            Some(DimSpec::Equals(_) | DimSpec::Any) | None => e.clone(),
        },
        HostExpr::Not(a) => HostExpr::Not(Box::new(resolved(sig, a, most))),
        HostExpr::Binary(op, a, b) => HostExpr::binary(*op, resolved(sig, a, most), resolved(sig, b, most)),
        HostExpr::Const(_) | HostExpr::Symbol(_) | HostExpr::Scalar(_) => e.clone(),
    }
}

/// Whether an expression contains an extent of a tensor that is not a shape name.
pub(super) fn mentions_dim(e: &HostExpr) -> bool {
    let mut found = false;
    e.visit(&mut |node| found |= matches!(node, HostExpr::Dim(..)));
    found
}

fn shape(sig: &Signature, param: usize) -> Vec<DimSpec> {
    match sig.params.get(param).map(|p| &p.kind) {
        Some(ParamKind::Tensor { shape, .. }) => shape.clone(),
        Some(ParamKind::Scalar(_)) | None => Vec::new(),
    }
}

/// Expressions with the minimum of each.
type Demands = Vec<(HostExpr, i64)>;

/// The conditions on the leaves: the output is not empty, the extents exist, and the requirements and demands hold that mention the same
/// names. Other requirements are about other arguments; the demands that are about other arguments are the second result.
fn demands(search: &Search<'_>, leaves: &mut Vec<HostExpr>) -> (Demands, Demands) {
    let sig = search.sig;
    let mut others: Demands = search.demands.iter().map(|(e, least)| (named(sig, e), *least)).collect();
    let mut open: Demands = sig.requires.iter().map(|e| (named(sig, e), 1)).collect();
    for param in 0..sig.params.len() {
        for (axis, dim) in shape(sig, param).into_iter().enumerate() {
            let DimSpec::Equals(declared) = dim else { continue };
            open.push((named(sig, &declared), 0));
            // An extent with a leaf of its own equals what is declared.
            let own = named(sig, &HostExpr::Dim(param, axis));
            if mentions_dim(&own) && own != named(sig, &declared) {
                open.push((HostExpr::binary(HostOp::Eq, own, named(sig, &declared)), 1));
            }
        }
    }
    let mut out = Vec::new();
    for (axis, dim) in shape(sig, search.param).iter().enumerate() {
        if let DimSpec::Equals(_) = dim {
            let extent = named(sig, &HostExpr::Dim(search.param, axis));
            add_leaves(&extent, leaves);
            out.push((extent, 1));
        }
    }
    loop {
        let before = out.len();
        for list in [&mut open, &mut others] {
            list.retain(|(e, least)| {
                let mut own = Vec::new();
                add_leaves(e, &mut own);
                let is_related = own.is_empty() || own.iter().any(|l| leaves.contains(l));
                if is_related {
                    add_leaves(e, leaves);
                    out.push((e.clone(), *least));
                }
                !is_related
            });
        }
        if out.len() == before {
            return (out, others);
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
