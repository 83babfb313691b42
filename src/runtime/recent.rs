//! The last launches of a kernel whose arguments fitted its signature: another launch with the same element types, extents, strides and
//! integers fits for the same reasons and has the same grid, so that its arguments are compared instead of checked.
//!
//! Deliberately absent: what depends on memories, which is whether an output shares elements with another argument.

use super::arg::ArgValue;
use super::lock;
use std::sync::{Arc, Mutex};
use titan_core::ir::{Const, Elem};
use titan_core::launch::Bound;

/// The number of launches that are kept: those of one kernel often alternate between a few shapes.
const KEPT: usize = 4;

/// The last launches, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    /// The grid of the caller, if it set one.
    grid: Option<[u32; 3]>,
    args: Vec<KnownArg>,
    bound: Arc<Bound>,
}

/// An argument as far as the checks depend on it.
#[derive(Debug)]
enum KnownArg {
    Tensor {
        elem: Elem,
        extents: Vec<i64>,
        strides: Vec<i64>,
    },
    Absent,
    Int(Elem, i64),
    /// Floats are in no shape, requirement or grid, so that any value is as good.
    Float(Elem),
}

impl KnownArg {
    fn of(arg: &ArgValue) -> KnownArg {
        match arg {
            ArgValue::Tensor(t) => {
                KnownArg::Tensor { elem: t.elem, extents: t.extents().to_vec(), strides: t.strides().to_vec() }
            }
            ArgValue::Absent => KnownArg::Absent,
            ArgValue::Scalar(Const::Int(elem, value)) => KnownArg::Int(*elem, *value),
            ArgValue::Scalar(Const::Float(elem, _)) => KnownArg::Float(*elem),
        }
    }

    /// Whether the checks find the same for both.
    #[inline]
    fn is_like(&self, arg: &ArgValue) -> bool {
        match (self, arg) {
            (KnownArg::Tensor { elem, extents, strides }, ArgValue::Tensor(t)) => {
                *elem == t.elem && extents == t.extents() && strides == t.strides()
            }
            (KnownArg::Absent, ArgValue::Absent) => true,
            (KnownArg::Int(elem, value), ArgValue::Scalar(Const::Int(of, given))) => elem == of && value == given,
            (KnownArg::Float(elem), ArgValue::Scalar(Const::Float(of, _))) => elem == of,
            (KnownArg::Tensor { .. } | KnownArg::Absent | KnownArg::Int(..) | KnownArg::Float(_), _) => false,
        }
    }
}

impl Recent {
    /// What the checks of an equal launch found.
    pub(crate) fn find(&self, args: &[ArgValue], grid: Option<[u32; 3]>) -> Option<Arc<Bound>> {
        let is_like = |known: &&Known| {
            known.grid == grid
                && known.args.len() == args.len()
                && known.args.iter().zip(args).all(|(known, arg)| known.is_like(arg))
        };
        lock(&self.0).iter().rev().find(is_like).map(|known| Arc::clone(&known.bound))
    }

    /// Keeps a launch that passed the checks, in place of the oldest one.
    pub(crate) fn keep(&self, args: &[ArgValue], grid: Option<[u32; 3]>, bound: &Arc<Bound>) {
        let args = args.iter().map(KnownArg::of).collect();
        let mut kept = lock(&self.0);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(Known { grid, args, bound: Arc::clone(bound) });
    }
}
