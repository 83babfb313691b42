//! What the asynchronous proxy sees of bytes that threads wrote and have not fenced.
//!
//! Ordinary stores go by the generic proxy. Bulk copies and `wgmma` read and write by the asynchronous one, and see a
//! thread's store only after that thread has executed `fence.proxy.async`; until then they see what was there before. Here
//! each unfenced byte keeps its old value, and asynchronous reads get that:
//!
//! | step | thread reads | asynchronous read gets |
//! |---|---|---|
//! | byte is 1 | 1 | 1 |
//! | thread 5 stores 2 | 2 | 1 |
//! | thread 6 executes the fence | 2 | 1 |
//! | thread 5 executes the fence | 2 | 2 |
//!
//! This is stricter than the memory model, by which a fence of another thread that has synchronised with the writer would
//! do as well (PTX ISA, "Causality order", third clause of proxy-preserved base causality order). NVIDIA's guides and
//! libraries fence in every thread that writes, and so does TITAN.

use super::op::Reach;
use std::collections::BTreeMap;

/// A byte: the number of its memory, and its address there.
type Key = (u32, u64);

/// The number of global memory; smaller ones are the shared memories of a cluster's blocks.
pub(crate) const GLOBAL: u32 = u32::MAX;

/// A byte as it was before the store, `None` if it was never written; and who stored.
#[derive(Clone, Copy, Debug)]
struct Old {
    value: Option<u8>,
    writer: u64,
}

/// The unfenced bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfenced {
    old: BTreeMap<Key, Old>,
    /// The bytes of each writer, some of which others may have written since.
    by: BTreeMap<u64, Vec<Key>>,
}

impl Unfenced {
    /// A thread is about to store to bytes, which now are `value` where they are `written`.
    pub(crate) fn store(&mut self, writer: u64, space: u32, address: u64, (value, written): (&[u8], &[bool])) {
        let mine = self.by.entry(writer).or_default();
        for (i, (value, written)) in (0..).zip(value.iter().zip(written)) {
            let key = (space, address + i);
            let old = self.old.entry(key).or_insert(Old { value: written.then_some(*value), writer: u64::MAX });
            if old.writer != writer {
                old.writer = writer;
                mine.push(key);
            }
        }
    }

    /// A thread of block `rank` fences what it stored.
    pub(crate) fn fence(&mut self, writer: u64, reach: Reach, rank: u32) {
        let Some(mine) = self.by.get_mut(&writer) else { return };
        let reaches = |space: u32| match reach {
            Reach::All => true,
            Reach::Global => space == GLOBAL,
            Reach::Block => space == rank,
            Reach::Cluster => space != GLOBAL,
        };
        let old = &mut self.old;
        mine.retain(|key| {
            if !reaches(key.0) {
                return true;
            }
            if old.get(key).is_some_and(|o| o.writer == writer) {
                old.remove(key);
            }
            false
        });
    }

    /// Corrects what was read of memory to what the asynchronous proxy sees.
    pub(crate) fn view(&self, space: u32, address: u64, value: &mut [u8], written: &mut [bool]) {
        let end = address + value.len() as u64;
        for ((_, at), old) in self.old.range((space, address)..(space, end)) {
            let Some(i) = usize::try_from(at - address).ok().filter(|i| *i < value.len()) else { continue };
            value[i] = old.value.unwrap_or(0);
            written[i] = old.value.is_some();
        }
    }

    /// The asynchronous proxy writes bytes: unfenced stores before stay on top of them. `current` is what threads see, and
    /// is returned as what they see afterwards.
    pub(crate) fn overwrite(&mut self, space: u32, address: u64, new: &[u8], current: &[u8]) -> Vec<u8> {
        let mut seen = new.to_vec();
        let end = address + new.len() as u64;
        for ((_, at), old) in self.old.range_mut((space, address)..(space, end)) {
            let Some(i) = usize::try_from(*at - address).ok().filter(|i| *i < new.len()) else { continue };
            old.value = Some(new[i]);
            seen[i] = current[i];
        }
        seen
    }

    /// Whether every byte is as both proxies see it.
    pub(crate) fn is_empty(&self) -> bool {
        self.old.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(u: &Unfenced, current: u8) -> Option<u8> {
        let (mut value, mut written) = ([current], [true]);
        u.view(0, 8, &mut value, &mut written);
        written[0].then_some(value[0])
    }

    #[test]
    fn a_store_is_seen_after_its_threads_fence() {
        let mut u = Unfenced::default();
        u.store(5, 0, 8, (&[1], &[true]));
        assert_eq!(seen(&u, 2), Some(1));
        u.fence(6, Reach::All, 0);
        u.fence(5, Reach::Global, 0);
        u.fence(5, Reach::Block, 1);
        assert_eq!(seen(&u, 2), Some(1));
        u.fence(5, Reach::Cluster, 1);
        assert_eq!(seen(&u, 2), Some(2));
        assert!(u.is_empty());
    }

    #[test]
    fn the_last_writer_has_to_fence() {
        let mut u = Unfenced::default();
        u.store(5, 0, 8, (&[1], &[false]));
        u.store(6, 0, 8, (&[2], &[true]));
        u.fence(5, Reach::All, 0);
        assert_eq!(seen(&u, 3), None, "it was never written as far as the copy engine knows");
        u.store(5, 0, 8, (&[3], &[true]));
        u.fence(6, Reach::All, 0);
        assert_eq!(seen(&u, 4), None);
        u.fence(5, Reach::All, 0);
        assert_eq!(seen(&u, 4), Some(4));
    }

    #[test]
    fn an_unfenced_store_may_come_after_a_copy() {
        let mut u = Unfenced::default();
        u.store(5, 0, 8, (&[1], &[true]));
        assert_eq!(u.overwrite(0, 7, &[70, 80], &[7, 2]), [70, 2]);
        assert_eq!(seen(&u, 2), Some(80));
    }
}
