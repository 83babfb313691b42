//! What was last done to each byte.

use super::clock::Known;

/// Who did something, when, and where in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) component: u32,
    pub(super) clock: u32,
    pub(super) place: u32,
    pub(super) strong: bool,
}

/// What is done to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    /// The bytes stay what they are.
    WriteSame,
}

impl Epoch {
    const NONE: Epoch = Epoch { component: u32::MAX, clock: 0, place: 0, strong: false };

    const fn is_some(&self) -> bool {
        self.component != u32::MAX
    }

    /// Whether `now`, done by one who knows `known`, races with this if one of the two writes.
    #[inline]
    fn clashes(&self, now: &Epoch, known: Known<'_>) -> bool {
        self.is_some() && !(self.strong && now.strong) && !covered(self, now, known)
    }
}

/// Whether an earlier access is ordered before one of `now`. The accesses of one component that are told later are
/// ordered later only if it is an agent: the operations of a helper are not ordered among themselves.
#[inline]
fn covered(earlier: &Epoch, now: &Epoch, known: Known<'_>) -> bool {
    // Parts of the same operation are told at the same clock.
    (earlier.component == now.component && earlier.clock == now.clock)
        || known.covers(earlier.component, earlier.clock)
}

/// The last write to a byte, the last strong one since, and the reads since the former, which are one, or many in
/// `Shadow::readers`. A strong write does not hide the weak one before it, after which others must be ordered too.
#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Epoch,
    strong: Epoch,
    read: Epoch,
    /// 1 + the index of more readers.
    many: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    readers: Vec<Vec<Epoch>>,
    free: Vec<u32>,
}

impl Shadow {
    pub(super) fn new(len: usize) -> Shadow {
        let empty = Cell { write: Epoch::NONE, strong: Epoch::NONE, read: Epoch::NONE, many: 0 };
        Shadow { cells: vec![empty; len], readers: Vec::new(), free: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Records an access; the first byte and the earlier access it races with, and whether that one wrote.
    pub(super) fn access(
        &mut self, start: usize, len: usize, now: Epoch, touch: Touch, known: Known<'_>,
    ) -> Option<(usize, Epoch, bool)> {
        let end = start.saturating_add(len).min(self.cells.len());
        for at in start..end {
            let cell = self.cells[at];
            if touch != Touch::WriteSame {
                for write in [cell.write, cell.strong] {
                    if write.clashes(&now, known) {
                        return Some((at, write, true));
                    }
                }
            }
            if touch == Touch::Read {
                self.read(at, now, known);
                continue;
            }
            if cell.read.clashes(&now, known) {
                return Some((at, cell.read, false));
            }
            if cell.many != 0 {
                let readers = &mut self.readers[cell.many as usize - 1];
                if let Some(other) = readers.iter().find(|r| r.clashes(&now, known)) {
                    return Some((at, *other, false));
                }
            }
            if now.strong {
                self.cells[at].strong = now;
                continue;
            }
            if cell.many != 0 {
                self.readers[cell.many as usize - 1].clear();
                self.free.push(cell.many - 1);
            }
            self.cells[at] = Cell { write: now, strong: Epoch::NONE, read: Epoch::NONE, many: 0 };
        }
        None
    }

    #[inline]
    fn read(&mut self, at: usize, now: Epoch, known: Known<'_>) {
        let cell = &mut self.cells[at];
        let replaces = |old: &Epoch| {
            !old.is_some() || (old.strong || !now.strong) && (old.component == now.component || covered(old, &now, known))
        };
        if replaces(&cell.read) {
            cell.read = now;
            return;
        }
        if cell.many == 0 {
            cell.many = 1 + self.free.pop().unwrap_or_else(|| {
                self.readers.push(Vec::new());
                u32::try_from(self.readers.len() - 1).unwrap_or(u32::MAX - 1)
            });
        }
        let readers = &mut self.readers[cell.many as usize - 1];
        match readers.iter_mut().find(|r| replaces(r)) {
            Some(old) => *old = now,
            None => readers.push(now),
        }
    }
}
