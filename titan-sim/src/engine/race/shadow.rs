//! Shadow memory: the last accesses to each byte.

use super::clock::Known;

/// An access: its component, clock and place in the program, and its strength. Or accesses of several agents that follow each other, by one
/// instruction, at equal clocks: of 32 threads that read a word together, one is recorded and not 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    /// The first component.
    pub(super) component: u32,
    /// The components, as bits from the first one on.
    pub(super) lanes: u32,
    pub(super) clock: u32,
    pub(super) place: u32,
    pub(super) strong: bool,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// A write that does not change the bytes.
    WriteSame,
}

impl Epoch {
    const NONE: Epoch = Epoch { component: u32::MAX, lanes: 1, clock: 0, place: 0, strong: false };

    const fn is_some(&self) -> bool {
        self.component != u32::MAX
    }

    /// The first access of these with which `now`, by an agent with the view `known`, races if one of the two writes.
    #[inline]
    fn clash(&self, now: &Epoch, known: Known<'_>) -> Option<Epoch> {
        let races = self.is_some() && !(self.strong && now.strong) && !covered(self, now, known);
        if races { self.each().find(|one| !covered(one, now, known)) } else { None }
    }

    /// The accesses one by one.
    fn each(self) -> impl Iterator<Item = Epoch> {
        let lanes = (0..u32::BITS).filter(move |lane| self.lanes >> lane & 1 == 1);
        lanes.map(move |lane| Epoch { component: self.component.saturating_add(lane), lanes: 1, ..self })
    }

    /// Whether all components are among those of another access.
    const fn is_of(&self, other: &Epoch) -> bool {
        let Some(behind) = self.component.checked_sub(other.component) else { return false };
        behind <= other.lanes.ilog2()
            && self.lanes.leading_zeros() >= behind
            && (self.lanes << behind) & !other.lanes == 0
    }
}

/// Whether earlier accesses are all ordered before one of `now`. The accesses of one component that are reported later are
/// ordered later only if it is an agent: the operations of a helper are not ordered among themselves.
#[inline]
fn covered(earlier: &Epoch, now: &Epoch, known: Known<'_>) -> bool {
    // Parts of the same operation are reported at the same clock.
    let is_same = |component| component == now.component && earlier.clock == now.clock;
    if earlier.lanes == 1 {
        return is_same(earlier.component) || known.covers(earlier.component, earlier.clock);
    }
    are_covered(earlier, now, known)
}

/// The same of accesses of several components.
#[inline(never)]
fn are_covered(earlier: &Epoch, now: &Epoch, known: Known<'_>) -> bool {
    known.covers_all(earlier.component, earlier.lanes, earlier.clock)
        || earlier.each().all(|one| covered(&one, now, known))
}

/// The last write to a byte, the last strong write since then, and the last reads: one read, or several in `Shadow::readers`. A strong
/// write does not replace the weak one before it, because later accesses must be ordered after the weak one too.
#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Epoch,
    strong: Epoch,
    read: Epoch,
    /// 1 + the index of more readers.
    many: u32,
}

impl Cell {
    const EMPTY: Cell = Cell { write: Epoch::NONE, strong: Epoch::NONE, read: Epoch::NONE, many: 0 };
}

/// Bytes that share a cell as long as every access to them is to all of them.
const WORD: usize = 4;

/// A cell for each word, or for each byte of it once an access was to a part of it.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    len: usize,
    words: Vec<Cell>,
    /// 1 + the index in `parts` of words that are split into bytes.
    apart: Vec<u32>,
    parts: Vec<[Cell; WORD]>,
    readers: Readers,
}

/// Lists of readers. A read replaces one that is ordered before it, so they stay short.
#[derive(Clone, Debug, Default)]
struct Readers {
    lists: Vec<Vec<Epoch>>,
}

/// A race: the earlier access, and whether it wrote.
type Clash = Option<(Epoch, bool)>;

impl Shadow {
    pub(super) fn new(len: usize) -> Shadow {
        let words = len.div_ceil(WORD);
        Shadow {
            len,
            words: vec![Cell::EMPTY; words],
            apart: vec![0; words],
            parts: Vec::new(),
            readers: Readers::default(),
        }
    }

    /// Records an access; returns the first byte and the earlier access it races with, and whether that one wrote.
    pub(super) fn access(
        &mut self,
        start: usize,
        len: usize,
        now: Epoch,
        touch: Touch,
        known: Known<'_>,
    ) -> Option<(usize, Epoch, bool)> {
        let end = start.saturating_add(len).min(self.len);
        let mut at = start;
        while at < end {
            let word = at / WORD;
            let until = end.min((word + 1) * WORD);
            if self.apart[word] == 0 && until - at < WORD {
                self.take_apart(word);
            }
            if self.apart[word] == 0 {
                if let Some((other, wrote)) = self.readers.touch(&mut self.words[word], now, touch, known) {
                    return Some((at, other, wrote));
                }
            } else {
                let part = &mut self.parts[self.apart[word] as usize - 1];
                for byte in at..until {
                    if let Some((other, wrote)) = self.readers.touch(&mut part[byte % WORD], now, touch, known) {
                        return Some((byte, other, wrote));
                    }
                }
            }
            at = until;
        }
        None
    }

    /// Records a read of whole words by several agents, whose views of the others are all `vector`; returns false if it must be recorded for
    /// each of them, because it may be a race, or because views of themselves count.
    pub(super) fn read_together(&mut self, start: usize, len: usize, now: Epoch, vector: &[u32]) -> bool {
        let (first, end) = (start / WORD, (start + len) / WORD);
        let (Some(cells), Some(apart)) = (self.words.get_mut(first..end), self.apart.get(first..end)) else {
            return false;
        };
        let knows = |write: &Epoch| {
            !write.is_some()
                || write.lanes == 1 && vector.get(write.component as usize).is_some_and(|n| *n >= write.clock)
        };
        if start % WORD + len % WORD != 0
            || apart.iter().any(|apart| *apart != 0)
            || !cells.iter().all(|cell| knows(&cell.write) && knows(&cell.strong))
        {
            return false;
        }
        let known = Known::of_others(vector);
        cells.iter_mut().for_each(|cell| self.readers.read(cell, now, known));
        true
    }

    #[cold]
    fn take_apart(&mut self, word: usize) {
        let whole = self.words[word];
        let mut part = [whole; WORD];
        for cell in &mut part[1..] {
            cell.many = self.readers.copy(whole.many);
        }
        self.parts.push(part);
        self.apart[word] = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
    }
}

impl Readers {
    /// A new list with the contents of another.
    fn copy(&mut self, many: u32) -> u32 {
        let contents = (many as usize).checked_sub(1).map(|i| self.lists[i].clone());
        contents.map_or(0, |list| {
            let new = self.take();
            self.lists[new as usize - 1] = list;
            new
        })
    }

    /// An empty list: 1 + its index.
    fn take(&mut self) -> u32 {
        self.lists.push(Vec::new());
        u32::try_from(self.lists.len()).unwrap_or(u32::MAX)
    }

    fn touch(&mut self, cell: &mut Cell, now: Epoch, touch: Touch, known: Known<'_>) -> Clash {
        if touch != Touch::WriteSame {
            for write in [cell.write, cell.strong] {
                if let Some(write) = write.clash(&now, known) {
                    return Some((write, true));
                }
            }
        }
        if touch == Touch::Read {
            self.read(cell, now, known);
            return None;
        }
        if let Some(read) = cell.read.clash(&now, known) {
            return Some((read, false));
        }
        if cell.many != 0 {
            let readers = &self.lists[cell.many as usize - 1];
            if let Some(other) = readers.iter().find_map(|r| r.clash(&now, known)) {
                return Some((other, false));
            }
        }
        if now.strong {
            cell.strong = now;
            return None;
        }
        // Accesses that are ordered after this write are ordered after the reads before it. The reads are kept for a later write
        // of equal bytes that is not ordered.
        cell.write = now;
        cell.strong = Epoch::NONE;
        None
    }

    #[inline]
    fn read(&mut self, cell: &mut Cell, now: Epoch, known: Known<'_>) {
        let replaces = |old: &Epoch| {
            !old.is_some() || (old.strong || !now.strong) && (old.is_of(&now) || covered(old, &now, known))
        };
        if replaces(&cell.read) {
            cell.read = now;
            return;
        }
        if cell.many == 0 {
            cell.many = self.take();
        }
        let readers = &mut self.lists[cell.many as usize - 1];
        match readers.iter_mut().find(|r| replaces(r)) {
            Some(old) => *old = now,
            None => readers.push(now),
        }
    }
}
