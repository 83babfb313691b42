//! The tensors of a launch: checks of what memory safety rests on, leases, views.

use super::memory::{Lease, Memory};
use super::view::{View, elements};
use titan_core::ir::Elem;

/// A tensor argument as the launcher describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorArg<'a> {
    pub(crate) name: &'a str,
    pub(crate) memory: &'a Memory,
    /// In bytes.
    pub(crate) offset: usize,
    pub(crate) elem: Elem,
    pub(crate) extents: &'a [i32],
    /// In elements.
    pub(crate) strides: &'a [i64],
    /// `&mut` in the kernel.
    pub(crate) written: bool,
}

/// A checked tensor argument.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) elem: Elem,
    pub(super) base: i64,
    pub(super) extents: [i32; 4],
    pub(super) strides: [i64; 4],
    /// Extent and stride of the first of five axes; 1 and 0 for fewer.
    pub(super) first: (i32, i64),
    pub(super) rank: usize,
    pub(super) writable: bool,
    pub(super) frozen: bool,
    lease: usize,
    memory: usize,
    /// The first bit and the last; `None` if there is no element.
    pub(super) span: Option<(i128, i128)>,
}

/// Why a launch cannot happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindError {
    /// The arguments are not such that the launch would be safe.
    Arguments(String),
    /// A memory is being used by another launch or by the host.
    InUse(String),
}

/// The tensors of a launch, and the right to use their memories while this lives.
#[derive(Debug)]
pub(crate) struct Tensors {
    slots: Vec<Option<Slot>>,
    leases: Vec<Lease>,
}

impl Tensors {
    /// Checks tensor arguments and leases their memories. `None` is an argument that is not a tensor.
    pub(crate) fn bind(args: &[Option<TensorArg<'_>>]) -> Result<Self, BindError> {
        let mut slots = Vec::with_capacity(args.len());
        for arg in args {
            slots.push(arg.as_ref().map(Slot::check).transpose().map_err(BindError::Arguments)?);
        }
        check_outputs(args, &slots).map_err(BindError::Arguments)?;
        freeze(&mut slots);
        let mut leases: Vec<Lease> = Vec::new();
        for i in 0..slots.len() {
            let (Some(arg), Some(memory)) = (&args[i], slots[i].as_ref().map(|s| s.memory)) else { continue };
            let known = leases.iter().position(|l| l.id() == memory);
            let lease = match known {
                Some(lease) => lease,
                None => {
                    let exclusive = slots.iter().flatten().any(|s| s.memory == memory && s.writable);
                    let lease = arg.memory.lease(exclusive);
                    leases.push(lease.ok_or_else(|| BindError::InUse(arg.name.to_owned()))?);
                    leases.len() - 1
                }
            };
            if let Some(slot) = &mut slots[i] {
                slot.lease = lease;
            }
        }
        Ok(Tensors { slots, leases })
    }

    /// The view of argument `i`, if it is a tensor.
    pub(crate) fn view(&self, i: usize) -> Option<View<'_>> {
        let slot = self.slots.get(i)?.as_ref()?;
        Some(View::new(self.leases.get(slot.lease)?, slot))
    }
}

impl Slot {
    fn check(arg: &TensorArg<'_>) -> Result<Slot, String> {
        let name = arg.name;
        let rank = arg.extents.len();
        if rank != arg.strides.len() || !(1..=5).contains(&rank) {
            return Err(format!("`{name}`: {rank} extents and {} strides", arg.strides.len()));
        }
        let bits = arg.elem.bits() as usize;
        if !arg.offset.is_multiple_of((bits / 8).max(1)) {
            return Err(format!(
                "`{name}`: byte {} is not where an element of {} bytes can start",
                arg.offset,
                bits / 8
            ));
        }
        if let Some(n) = arg.extents.iter().find(|n| **n < 0) {
            return Err(format!("`{name}`: an extent of {n}"));
        }
        let len = elements(arg.elem, arg.memory.len());
        let base = elements(arg.elem, arg.offset);
        let (first, last) = reach(base, arg.extents, arg.strides);
        let empty = arg.extents.contains(&0);
        if !empty && (first < 0 || last >= i128::from(len)) {
            return Err(format!(
                "`{name}`: elements {first} ..= {last} of a memory of {len} elements ({} bytes)",
                arg.memory.len()
            ));
        }
        let mut slot = Slot {
            elem: arg.elem,
            base,
            extents: [1; 4],
            strides: [0; 4],
            first: (1, 0),
            rank,
            writable: arg.written,
            frozen: false,
            lease: 0,
            memory: arg.memory.id(),
            span: (!empty).then_some((first * bits as i128, (last + 1) * bits as i128 - 1)),
        };
        let (mut extents, mut strides) = (arg.extents, arg.strides);
        if let ([extent, inner @ ..], [stride, rest @ ..]) = (extents, strides)
            && rank == 5
        {
            (slot.first, extents, strides) = ((*extent, *stride), inner, rest);
        }
        slot.extents[4 - extents.len()..].copy_from_slice(extents);
        slot.strides[4 - strides.len()..].copy_from_slice(strides);
        Ok(slot)
    }

    /// Whether the spans have a byte in common; not yet whether an element has.
    fn touches(&self, other: &Slot) -> bool {
        match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => self.memory == other.memory && a / 8 <= d / 8 && c / 8 <= b / 8,
            (None, _) | (_, None) => false,
        }
    }
}

/// The least and the greatest element.
fn reach(base: i64, extents: &[i32], strides: &[i64]) -> (i128, i128) {
    let (mut first, mut last) = (i128::from(base), i128::from(base));
    for (n, stride) in extents.iter().zip(strides) {
        let far = i128::from((*n - 1).max(0)) * i128::from(*stride);
        first += far.min(0);
        last += far.max(0);
    }
    (first, last)
}

/// Nothing writes what a frozen tensor spans.
fn freeze(slots: &mut [Option<Slot>]) {
    for i in 0..slots.len() {
        let frozen = slots[i].as_ref().is_some_and(|slot| {
            !slot.writable && !slots.iter().flatten().any(|other| other.writable && slot.touches(other))
        });
        if let Some(slot) = &mut slots[i] {
            slot.frozen = frozen;
        }
    }
}

/// An output has no element twice, and shares none with another argument.
fn check_outputs(args: &[Option<TensorArg<'_>>], slots: &[Option<Slot>]) -> Result<(), String> {
    let named = || args.iter().zip(slots).filter_map(|(a, s)| Some((a.as_ref()?.name, s.as_ref()?)));
    for (i, (name, slot)) in named().enumerate() {
        if !slot.writable {
            continue;
        }
        if !is_injective(slot) {
            return Err(format!("`{name}`: an output whose elements are not provably distinct"));
        }
        for (j, (other_name, other)) in named().enumerate() {
            if i != j && slot.touches(other) && !interleaved(slot, other) {
                return Err(format!("`{name}` is written and overlaps `{other_name}`"));
            }
        }
    }
    Ok(())
}

/// Strides and extents of the axes that have more than one element, the greatest stride first.
fn axes(slot: &Slot) -> Vec<(i128, i128)> {
    let mut axes: Vec<(i128, i128)> = slot
        .strides
        .iter()
        .zip(&slot.extents)
        .chain([(&slot.first.1, &slot.first.0)])
        .filter(|(_, n)| **n > 1)
        .map(|(s, n)| (i128::from(*s).abs(), i128::from(*n)))
        .collect();
    axes.sort_unstable_by(|a, b| b.cmp(a));
    axes
}

/// Each stride is greater than what the smaller ones reach.
fn is_injective(slot: &Slot) -> bool {
    let axes = axes(slot);
    (0..axes.len()).all(|i| axes[i].0 > axes[i + 1..].iter().map(|(s, n)| s * (n - 1)).sum()) || slot.span.is_none()
}

/// Whether two tensors whose spans touch are columns of one matrix side by side: they step by the same greatest stride, and
/// between two steps each keeps to its own part.
fn interleaved(a: &Slot, b: &Slot) -> bool {
    let ((Some(span_a), Some(span_b)), bits) = ((a.span, b.span), i128::from(a.elem.bits())) else { return true };
    let (axes_a, axes_b) = (axes(a), axes(b));
    let (Some((stride, _)), Some((other, _))) = (axes_a.first(), axes_b.first()) else { return false };
    let step = stride * bits;
    if step != other * i128::from(b.elem.bits()) || step == 0 || a.elem.bits() < 8 || b.elem.bits() < 8 {
        return false;
    }
    let part = |span: (i128, i128), axes: &[(i128, i128)], bits: i128| {
        let within: i128 = axes[1..].iter().map(|(s, n)| s * (n - 1)).sum();
        (span.0.rem_euclid(step), span.0.rem_euclid(step) + (within + 1) * bits)
    };
    let (lo_a, hi_a) = part(span_a, &axes_a, bits);
    let (lo_b, hi_b) = part(span_b, &axes_b, i128::from(b.elem.bits()));
    hi_a <= step && hi_b <= step && (hi_a <= lo_b || hi_b <= lo_a)
}
