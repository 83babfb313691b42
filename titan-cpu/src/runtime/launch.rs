//! The tensors of a launch: the checks on which memory safety depends, leases, views.

use super::memory::{Lease, Memory};
use super::view::{View, elements};
use titan_core::ir::Elem;
use titan_core::launch::{Footprint, is_injective};

/// A tensor argument as the launcher describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorArg<'a> {
    pub(crate) name: &'a str,
    pub(crate) memory: &'a Memory,
    /// The offset of the first element, in bytes.
    pub(crate) offset: usize,
    pub(crate) elem: Elem,
    pub(crate) extents: &'a [i32],
    /// The stride of each axis, in elements.
    pub(crate) strides: &'a [i64],
    /// Whether the kernel takes it as `&mut`.
    pub(crate) written: bool,
}

/// A checked tensor argument.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) elem: Elem,
    pub(super) base: i64,
    pub(super) extents: [i32; 4],
    pub(super) strides: [i64; 4],
    /// The extent and stride of the first of five axes; 1 and 0 if there are fewer.
    pub(super) first: (i32, i64),
    pub(super) rank: usize,
    pub(super) writable: bool,
    pub(super) frozen: bool,
    lease: usize,
    memory: usize,
    pub(super) footprint: Footprint,
}

/// The reason why a launch is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BindError {
    /// The launch would not be safe with these arguments.
    Arguments(String),
    /// A memory is being used by another launch or by the host.
    InUse(String),
}

/// The tensors of a launch, with the right to use their memories as long as this value exists.
#[derive(Debug)]
pub(crate) struct Tensors {
    slots: Vec<Option<Slot>>,
    leases: Vec<Lease>,
}

impl Tensors {
    /// Checks tensor arguments and leases their memories. `None` stands for an argument that is not a tensor.
    pub(crate) fn bind(args: &[Option<TensorArg<'_>>]) -> Result<Self, BindError> {
        let mut slots = Vec::with_capacity(args.len());
        for arg in args {
            slots.push(match arg {
                Some(arg) => Some(Slot::check(arg).map_err(BindError::Arguments)?),
                None => None,
            });
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
        let axes = arg.extents.iter().zip(arg.strides).map(|(n, stride)| (i64::from(*n), *stride));
        let footprint = Footprint::new(arg.elem, base, axes);
        let (first, last) = footprint.elements();
        if !footprint.is_empty() && (first < 0 || last >= i128::from(len)) {
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
            footprint,
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

    /// Whether the spans of two tensors share a byte, even if only one of them has an element there.
    fn touches(&self, other: &Slot) -> bool {
        let (a, b) = (self.footprint.bytes(), other.footprint.bytes());
        self.memory == other.memory && a.start.max(b.start) < a.end.min(b.end)
    }
}

/// Marks the tensors whose span nothing writes as frozen.
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

/// Checks that an output has no element twice, and shares none with another argument.
fn check_outputs(args: &[Option<TensorArg<'_>>], slots: &[Option<Slot>]) -> Result<(), String> {
    let given = || args.iter().zip(slots).filter_map(|(a, s)| Some((a.as_ref()?, s.as_ref()?)));
    for (i, (arg, slot)) in given().enumerate().filter(|(_, (_, slot))| slot.writable) {
        let name = arg.name;
        // There are at most five axes.
        let mut extents = [1; 5];
        extents.iter_mut().zip(arg.extents).for_each(|(to, n)| *to = i64::from(*n));
        if !slot.footprint.is_empty() && !is_injective(&extents[..arg.extents.len().min(5)], arg.strides) {
            return Err(format!("`{name}`: an output whose elements are not provably distinct"));
        }
        for (j, (other, used)) in given().enumerate() {
            if i != j && slot.memory == used.memory && slot.footprint.overlaps(&used.footprint) {
                return Err(format!("`{name}` is written and overlaps `{}`", other.name));
            }
        }
    }
    Ok(())
}
