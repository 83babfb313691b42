//! Memory that knows who touched each byte since the last barrier, and which bytes are still on their way.

use super::Mask;
use titan_core::lane::Space;

/// Where a program's shared memory begins: a multiple of 1024 that is not 0.
pub(crate) const SHARED_BASE: u32 = 4096;

/// Who touched a byte last, and when: counted in barriers.
#[derive(Clone, Copy, Default)]
struct Touched {
    wrote: Option<(u32, usize)>,
    read: Option<(u32, usize)>,
    /// Whether several threads read it then.
    by_many: bool,
}

/// Bytes from one address on.
pub(crate) struct Area {
    pub(crate) name: String,
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
    touched: Vec<Touched>,
}

/// An asynchronous copy that has not been waited for.
struct Copy {
    thread: usize,
    to: u64,
    from: Option<u64>,
    n: u64,
    /// How many groups the thread had closed when this one was.
    group: Option<usize>,
}

pub(crate) struct Memory {
    pub(crate) areas: Vec<Area>,
    epoch: u32,
    flying: Vec<Copy>,
    groups: Vec<usize>,
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory {
            areas: vec![area("shared memory", SHARED_BASE.into(), Vec::new())],
            epoch: 1,
            flying: Vec::new(),
            groups: vec![0; 1024],
        }
    }

    /// Adds a tensor's memory, far from the others; gives its address.
    pub(crate) fn add(&mut self, name: &str, bytes: Vec<u8>) -> u64 {
        let start = 0x1_0000_0000 * (self.areas.len() as u64 + 1);
        self.areas.push(area(name, start, bytes));
        start
    }

    /// Memory as the next program of the launch finds it.
    pub(crate) fn next_program(&mut self, shared: u32) {
        self.areas[0] = area("shared memory", SHARED_BASE.into(), vec![0xa5; shared as usize]);
        self.flying.clear();
        self.epoch += 1;
    }

    pub(crate) fn barrier(&mut self) {
        self.epoch += 1;
    }

    fn place(&self, space: Space, start: u64, n: u64) -> Result<(usize, usize), String> {
        let inside = |a: &Area| start >= a.start && start + n <= a.start + a.bytes.len() as u64;
        let areas = match space {
            Space::Shared => 0..1,
            Space::Global => 1..self.areas.len(),
        };
        let found = areas.into_iter().find(|i| inside(&self.areas[*i]));
        found.map(|i| (i, (start - self.areas[i].start) as usize)).ok_or_else(|| format!("{start:#x} is nowhere"))
    }

    pub(crate) fn peek(&self, space: Space, start: u64, n: u64) -> Result<u64, String> {
        let (area, at) = self.place(space, start, n)?;
        Ok(self.areas[area].bytes[at..at + n as usize].iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)))
    }

    pub(crate) fn poke(&mut self, space: Space, start: u64, n: u64, bits: u64) -> Result<(), String> {
        let (area, at) = self.place(space, start, n)?;
        (0..n as usize).for_each(|i| self.areas[area].bytes[at + i] = (bits >> (8 * i)) as u8);
        Ok(())
    }

    /// Notes a touch, and says whether it meets another one.
    fn touch(&mut self, space: Space, start: u64, n: u64, t: usize, write: bool) -> Result<(), String> {
        let (area, at) = self.place(space, start, n)?;
        let (epoch, area) = (self.epoch, &mut self.areas[area]);
        for i in at..at + n as usize {
            let touched = &mut area.touched[i];
            let now = |by: Option<(u32, usize)>| by.filter(|(e, _)| *e == epoch).map(|(_, t)| t);
            let other = |by: Option<usize>| by.filter(|o| *o != t);
            if let Some(o) = other(now(touched.wrote)) {
                let what = if write { "write" } else { "read" };
                return Err(format!(
                    "thread {t} {what}s byte {i} of {}, which thread {o} wrote, without a barrier",
                    area.name
                ));
            }
            if write {
                let many = touched.by_many && now(touched.read).is_some();
                if many || other(now(touched.read)).is_some() {
                    return Err(format!(
                        "thread {t} writes byte {i} of {}, which another one read, without a barrier",
                        area.name
                    ));
                }
                touched.wrote = Some((epoch, t));
            } else {
                touched.by_many = now(touched.read).is_some_and(|o| touched.by_many || o != t);
                touched.read = Some((epoch, t));
            }
        }
        self.settled(space, start, n, write)
    }

    /// No copy on its way may reach what is touched, nor read what is written.
    fn settled(&self, space: Space, start: u64, n: u64, write: bool) -> Result<(), String> {
        let meets = |from: u64, m: u64| from < start + n && start < from + m;
        for c in &self.flying {
            if space == Space::Shared && meets(c.to, c.n) {
                return Err(format!("{start:#x} is touched while a copy of thread {} to it is on its way", c.thread));
            }
            if space == Space::Global && write && c.from.is_some_and(|from| meets(from, c.n)) {
                return Err(format!("{start:#x} is written while a copy of thread {} from it is on its way", c.thread));
            }
        }
        Ok(())
    }

    pub(crate) fn read(&mut self, space: Space, start: u64, each: u64, n: u64, t: usize) -> Result<Vec<u64>, String> {
        self.touch(space, start, each * n, t, false)?;
        (0..n).map(|i| self.peek(space, start + i * each, each)).collect()
    }

    pub(crate) fn write(&mut self, space: Space, start: u64, each: u64, all: &[u64], t: usize) -> Result<(), String> {
        self.touch(space, start, each * all.len() as u64, t, true)?;
        (0u64..).zip(all).try_for_each(|(i, bits)| self.poke(space, start + i * each, each, *bits))
    }

    /// A copy begins: its bytes may arrive at any time from now on.
    pub(crate) fn copy(&mut self, to: u64, from: Option<u64>, n: u64, t: usize) -> Result<(), String> {
        self.touch(Space::Shared, to, n, t, true)?;
        for i in (0..n).step_by(4) {
            let bits = match from {
                Some(from) => {
                    self.touch(Space::Global, from + i, 4, t, false)?;
                    self.peek(Space::Global, from + i, 4)?
                }
                None => 0,
            };
            self.poke(Space::Shared, to + i, 4, bits)?;
        }
        self.flying.push(Copy { thread: t, to, from, n, group: None });
        Ok(())
    }

    pub(crate) fn commit(&mut self, mask: &Mask) {
        for copy in self.flying.iter_mut().filter(|c| c.group.is_none() && mask[c.thread]) {
            copy.group = Some(self.groups[copy.thread]);
        }
        (0..mask.len()).filter(|t| mask[*t]).for_each(|t| self.groups[t] += 1);
    }

    /// What has arrived was written now.
    pub(crate) fn wait(&mut self, mask: &Mask, n: u32) {
        let groups = self.groups.clone();
        let done = |c: &Copy| mask[c.thread] && c.group.is_some_and(|g| g + (n as usize) < groups[c.thread]);
        let (done, flying) = std::mem::take(&mut self.flying).into_iter().partition(done);
        self.flying = flying;
        let done: Vec<Copy> = done;
        for c in done {
            if let Ok((area, at)) = self.place(Space::Shared, c.to, c.n) {
                let epoch = self.epoch;
                self.areas[area].touched[at..at + c.n as usize]
                    .iter_mut()
                    .for_each(|b| b.wrote = Some((epoch, c.thread)));
            }
        }
    }
}

fn area(name: &str, start: u64, bytes: Vec<u8>) -> Area {
    let touched = vec![Touched::default(); bytes.len()];
    Area { name: name.to_owned(), start, bytes, touched }
}
