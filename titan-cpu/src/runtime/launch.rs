//! The tensors of a launch: the checks on which memory safety depends, leases, views.
//!
//! What the checks find depends on places and shapes, and on which arguments share a memory, but not on which memories they are. So it is
//! kept ([`Checked`]), and a launch with arguments of the same places only leases their memories.

use super::memory::{Lease, Memory};
use super::view::{View, elements};
use std::sync::Arc;
use titan_core::ir::Elem;
use titan_core::launch::{Footprint, is_injective};

/// The place of a tensor argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorPlace<'a> {
    pub(crate) memory: &'a Memory,
    /// The offset of the first element, in bytes.
    pub(crate) offset: usize,
    pub(crate) extents: &'a [i32],
    /// The stride of each axis, in elements.
    pub(crate) strides: &'a [i64],
}

/// A tensor argument as the launcher describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorArg<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: TensorPlace<'a>,
    pub(crate) elem: Elem,
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
    /// The position of its memory in [`Checked::memories`].
    lease: usize,
    /// The elements that the tensor covers; `None` if there are none, or if they are parts of bytes.
    pub(super) covered: Option<Covered>,
}

/// The bytes that a tensor covers, from the start of its memory, and the element with which they begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    pub(super) bytes: [usize; 2],
    pub(super) origin: i64,
}

/// An argument that is being checked: the slot, its memory, and the elements that it covers.
struct Candidate {
    slot: Slot,
    memory: usize,
    footprint: Footprint,
}

/// Tensor arguments that may be launched with, by any launch whose arguments are in the same places.
#[derive(Debug)]
pub(crate) struct Checked {
    /// `None` for an argument that is not a tensor.
    args: Vec<Option<CheckedArg>>,
    /// For each memory, the first argument that is in it, and whether the launch writes it.
    memories: Vec<(usize, bool)>,
}

#[derive(Debug)]
struct CheckedArg {
    slot: Slot,
    /// The place that was checked, and the size of its memory in bytes.
    offset: usize,
    extents: Vec<i32>,
    strides: Vec<i64>,
    bytes: usize,
}

/// The tensors of a launch, with the right to use their memories as long as this value exists.
#[derive(Debug)]
pub(crate) struct Tensors {
    checked: Arc<Checked>,
    leases: Vec<Lease>,
}

impl Checked {
    /// Checks tensor arguments; `None` stands for an argument that is not a tensor. The error is the problem of an argument.
    pub(crate) fn new(args: &[Option<TensorArg<'_>>]) -> Result<Self, String> {
        let mut found = Vec::with_capacity(args.len());
        for arg in args {
            found.push(match arg {
                Some(arg) => Some(Candidate::check(arg)?),
                None => None,
            });
        }
        check_outputs(args, &found)?;
        freeze(&mut found);
        let mut memories: Vec<(usize, bool)> = Vec::new();
        for i in 0..found.len() {
            let Some(memory) = found[i].as_ref().map(|c| c.memory) else { continue };
            let known =
                memories.iter().position(|(first, _)| found[*first].as_ref().is_some_and(|c| c.memory == memory));
            let lease = known.unwrap_or_else(|| {
                let written = found.iter().flatten().any(|c| c.memory == memory && c.slot.writable);
                memories.push((i, written));
                memories.len() - 1
            });
            if let Some(candidate) = &mut found[i] {
                candidate.slot.lease = lease;
            }
        }
        let checked = |(arg, found): (&Option<TensorArg<'_>>, Option<Candidate>)| {
            let (TensorPlace { memory, offset, extents, strides }, slot) = (arg.as_ref()?.place, found?.slot);
            let (extents, strides) = (extents.to_vec(), strides.to_vec());
            Some(CheckedArg { slot, offset, extents, strides, bytes: memory.len() })
        };
        Ok(Checked { args: args.iter().zip(found).map(checked).collect(), memories })
    }

    /// Leases the memories of arguments, if they are in the places that were checked: otherwise the result is `None`. If a memory is in use,
    /// the error is the number of an argument in it.
    pub(crate) fn lease<'a>(
        self: &Arc<Self>,
        place: impl Fn(usize) -> Option<TensorPlace<'a>>,
    ) -> Option<Result<Tensors, usize>> {
        let memory_of = |lease: usize| place(self.memories.get(lease)?.0).map(|place| place.memory.id());
        for (i, arg) in self.args.iter().enumerate() {
            let fits = match (arg, place(i)) {
                (None, None) => true,
                (Some(arg), Some(place)) => arg.is_at(&place) && memory_of(arg.slot.lease) == Some(place.memory.id()),
                (Some(_), None) | (None, Some(_)) => false,
            };
            if !fits {
                return None;
            }
        }
        // Arguments that were in different memories are in different ones now, too: what they share was checked.
        if (0..self.memories.len()).any(|a| (0..a).any(|b| memory_of(a) == memory_of(b))) {
            return None;
        }
        let mut leases = Vec::with_capacity(self.memories.len());
        for (first, written) in &self.memories {
            match place(*first)?.memory.lease(*written) {
                Some(lease) => leases.push(lease),
                None => return Some(Err(*first)),
            }
        }
        Some(Ok(Tensors { checked: Arc::clone(self), leases }))
    }
}

impl CheckedArg {
    /// Whether an argument is in the same place of a memory of the same size.
    fn is_at(&self, place: &TensorPlace<'_>) -> bool {
        self.offset == place.offset
            && self.bytes == place.memory.len()
            && self.extents == place.extents
            && self.strides == place.strides
    }
}

impl Tensors {
    /// The view of argument `i`, if it is a tensor.
    #[inline]
    pub(crate) fn view(&self, i: usize) -> Option<View<'_>> {
        let slot = &self.checked.args.get(i)?.as_ref()?.slot;
        Some(View::new(self.leases.get(slot.lease)?, slot))
    }
}

impl Candidate {
    fn check(arg: &TensorArg<'_>) -> Result<Candidate, String> {
        let (name, TensorPlace { memory, offset, extents, strides }) = (arg.name, arg.place);
        let rank = extents.len();
        if rank != strides.len() || !(1..=5).contains(&rank) {
            return Err(format!("`{name}`: {rank} extents and {} strides", strides.len()));
        }
        let bits = arg.elem.bits() as usize;
        if !offset.is_multiple_of((bits / 8).max(1)) {
            return Err(format!("`{name}`: byte {offset} is not where an element of {} bytes can start", bits / 8));
        }
        if let Some(n) = extents.iter().find(|n| **n < 0) {
            return Err(format!("`{name}`: an extent of {n}"));
        }
        let len = elements(arg.elem, memory.len());
        let base = elements(arg.elem, offset);
        let axes = extents.iter().zip(strides).map(|(n, stride)| (i64::from(*n), *stride));
        let footprint = Footprint::new(arg.elem, base, axes);
        let (first, last) = footprint.elements();
        if !footprint.is_empty() && (first < 0 || last >= i128::from(len)) {
            return Err(format!(
                "`{name}`: elements {first} ..= {last} of a memory of {len} elements ({} bytes)",
                memory.len()
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
            covered: covered(&footprint, bits),
        };
        let (mut extents, mut strides) = (extents, strides);
        if let ([extent, inner @ ..], [stride, rest @ ..]) = (extents, strides)
            && rank == 5
        {
            (slot.first, extents, strides) = ((*extent, *stride), inner, rest);
        }
        slot.extents[4 - extents.len()..].copy_from_slice(extents);
        slot.strides[4 - strides.len()..].copy_from_slice(strides);
        Ok(Candidate { slot, memory: memory.id(), footprint })
    }

    /// Whether the spans of two tensors share a byte, even if only one of them has an element there.
    fn touches(&self, other: &Candidate) -> bool {
        let (a, b) = (self.footprint.bytes(), other.footprint.bytes());
        self.memory == other.memory && a.start.max(b.start) < a.end.min(b.end)
    }
}

/// The bytes of whole elements.
fn covered(footprint: &Footprint, bits: usize) -> Option<Covered> {
    if footprint.is_empty() || bits < 8 {
        return None;
    }
    let (bytes, (first, _)) = (footprint.bytes(), footprint.elements());
    let bytes = [usize::try_from(bytes.start).ok()?, usize::try_from(bytes.end).ok()?];
    Some(Covered { bytes, origin: i64::try_from(first).ok()? })
}

/// Marks the tensors whose span nothing writes as frozen.
fn freeze(found: &mut [Option<Candidate>]) {
    for i in 0..found.len() {
        let frozen = found[i].as_ref().is_some_and(|tensor| {
            !tensor.slot.writable && !found.iter().flatten().any(|other| other.slot.writable && tensor.touches(other))
        });
        if let Some(tensor) = &mut found[i] {
            tensor.slot.frozen = frozen;
        }
    }
}

/// Checks that an output has no element twice, and shares none with another argument.
fn check_outputs(args: &[Option<TensorArg<'_>>], found: &[Option<Candidate>]) -> Result<(), String> {
    let given = || args.iter().zip(found).filter_map(|(a, c)| Some((a.as_ref()?, c.as_ref()?)));
    for (i, (arg, output)) in given().enumerate().filter(|(_, (_, c))| c.slot.writable) {
        let (name, place) = (arg.name, arg.place);
        // There are at most five axes.
        let mut extents = [1; 5];
        extents.iter_mut().zip(place.extents).for_each(|(to, n)| *to = i64::from(*n));
        if !output.footprint.is_empty() && !is_injective(&extents[..place.extents.len().min(5)], place.strides) {
            return Err(format!("`{name}`: an output whose elements are not provably distinct"));
        }
        for (j, (other, used)) in given().enumerate() {
            if i != j && output.memory == used.memory && output.footprint.overlaps(&used.footprint) {
                return Err(format!("`{name}` is written and overlaps `{}`", other.name));
            }
        }
    }
    Ok(())
}
