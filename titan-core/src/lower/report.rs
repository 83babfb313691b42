//! Traps and prints, which write to the report buffer ([`crate::launch::report`]).

use super::vector::Place;
use super::{Lower, LowerError, Reg};
use crate::ir::{Elem, Loc, Op, Pred, Ty};
use crate::lane::{self, AtomicFn, Region, Shuffle, Space};
use crate::launch::abi::Slot;
use crate::launch::report::{self, Site, SiteKind};

impl Lower<'_> {
    fn site(&mut self, kind: SiteKind) -> i32 {
        let loc = self.at.map_or_else(Loc::default, |op| self.k.op(op).loc);
        self.sites.push(Site { loc, kind });
        i32::try_from(self.sites.len()).unwrap_or(i32::MAX)
    }

    /// Ends the program with a message if a condition, uniform over all threads, is false. A role continues, because other roles wait for
    /// it: the launch fails at its end, and until then the guarded operation must be skipped.
    pub(super) fn trap_unless(&mut self, cond: Reg, message: &str) -> Result<(), LowerError> {
        if self.b.func().constant(cond) == Some(1) {
            return Ok(());
        }
        let site = self.site(SiteKind::Trap(message.to_owned()));
        let failed = self.b.not(cond);
        let mut open = self.b.begin_if(failed, &[]);
        let reporter = self.of_one_thread().map(|first| self.b.begin_if(first, &[]));
        self.report_trap(site);
        if let Some(mut reporter) = reporter {
            self.b.terminate(lane::OpKind::Yield, &[]);
            self.b.begin_else(&mut reporter);
            self.b.terminate(lane::OpKind::Yield, &[]);
            self.b.end(reporter);
        }
        let end = if self.warp_set.role.is_some() { lane::OpKind::Yield } else { lane::OpKind::Return };
        self.b.terminate(end, &[]);
        self.b.begin_else(&mut open);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.end(open);
        Ok(())
    }

    /// Writes the number of a site to the report, if it is the first trap of the launch.
    fn report_trap(&mut self, site: i32) {
        let report = self.slot(Slot::Report);
        let zero = self.b.i32(0);
        let site = self.b.i32(site);
        let before = self.b.one(lane::OpKind::CompareSwap(Space::Global), &[report, zero, site]);
        let won = self.b.cmp_u(Pred::Eq, before, zero);
        for axis in 0..3u8 {
            let id = self.program_index(axis);
            let offset = 4 * (i32::from(axis) + 1);
            let kind = lane::OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset, masked: true };
            self.b.op(kind, &[report, id, won]);
        }
    }

    /// Lowers an assertion: traps if its condition is false.
    pub(super) fn assert(&mut self, op: &Op, message: &str) -> Result<(), LowerError> {
        let cond = self.scalar(op.args[0]);
        self.trap_unless(cond, message)
    }

    /// Lowers a print: writes a record to the report.
    pub(super) fn print(&mut self, op: &Op, format: &str) -> Result<(), LowerError> {
        let is_scratch = |v: &&crate::ir::Value| self.k.ty(**v) == Ty::Barrier(crate::ir::BarrierTy::Region);
        let scratch = op.args.last().filter(is_scratch).copied();
        let args = &op.args[..op.args.len() - usize::from(scratch.is_some())];
        let tys: Vec<Ty> = args.iter().map(|a| self.k.ty(*a)).collect();
        let words: u32 = 4 + tys.iter().map(|ty| print_words(*ty)).sum::<u32>();
        let site = self.site(SiteKind::Print(format.to_owned(), tys.clone()));
        let (start, room) = self.reserve(words, scratch)?;
        let report = self.slot(Slot::Report);
        let wide = self.b.widen(start);
        let four = self.b.i64(4);
        let bytes = self.b.mul(wide, four);
        let base = self.b.add(report, bytes);
        let first = self.is_first_thread();
        let header = self.b.and(first, room);
        let head = [self.b.i32(site), self.program_index(0), self.program_index(1), self.program_index(2)];
        for (i, word) in (0i32..).zip(head) {
            let place = Place { space: Space::Global, address: base, offset: 4 * i };
            self.store_vector(place, Elem::U32, &[word], Some(header));
        }
        let mut at = 4;
        for (arg, ty) in args.iter().zip(tys) {
            self.print_value(*arg, ty, base, at, room)?;
            at += print_words(ty);
        }
        Ok(())
    }

    /// Reserves words of the report for a record: returns the index of the first word, and whether all of them fit. The first thread
    /// reserves them, and passes the result to the others through shared memory.
    fn reserve(&mut self, words: u32, scratch: Option<crate::ir::Value>) -> Result<(Reg, Reg), LowerError> {
        let address = self.slot(Slot::Report);
        let used = self.b.add_const(address, 4 * words_at(report::USED));
        let n = self.b.i32(words.cast_signed());
        let first = self.is_first_thread();
        let add = lane::OpKind::Atomic { op: AtomicFn::Add, space: Space::Global, masked: true };
        let start = self.b.one(add, &[used, n, first]);
        let start = if self.warp_set.warps == 1 {
            self.b.one(lane::OpKind::Shuffle(Shuffle::Lane(0)), &[start])
        } else {
            let Some(staged) = scratch.map(|region| self.bytes_of(region)).transpose()? else {
                return Err(self.defect("a report of several warps without shared memory"));
            };
            self.touch(Region::Buffer(staged.buffer), true);
            let base = self.b.one(lane::OpKind::Buffer(staged.buffer), &[]);
            let place = Place { space: Space::Shared, address: base, offset: 0 };
            self.store_vector(place, Elem::U32, &[start], Some(first));
            self.warp_set_barrier();
            self.touch(Region::Buffer(staged.buffer), false);
            self.load_vector(place, Elem::U32, 1, None)[0]
        };
        let place = Place { space: Space::Global, address, offset: 4 * i32::try_from(report::ROOM).unwrap_or(0) };
        let room = self.load_vector(place, Elem::U32, 1, None)[0];
        let end = self.b.add(start, n);
        let not_wrapped = self.b.cmp_u(Pred::Ge, end, start);
        let fits = self.b.cmp_u(Pred::Le, end, room);
        let fits = self.b.and(fits, not_wrapped);
        let start = self.b.add_const(start, words_at(report::RECORDS));
        Ok((start, fits))
    }

    /// Writes the elements of an argument, each as one or two words.
    fn print_value(
        &mut self,
        value: crate::ir::Value,
        ty: Ty,
        base: Reg,
        at: u32,
        room: Reg,
    ) -> Result<(), LowerError> {
        let elem = ty.elem();
        let (layout, regs) = if matches!(ty, Ty::Tile(..)) {
            let layout = self.layout(value);
            (Some(layout), self.regs(value))
        } else {
            (None, vec![self.scalar(value)])
        };
        let Some(layout) = layout else {
            let first = self.is_first_thread();
            let mask = self.b.and(first, room);
            let place = Place { space: Space::Global, address: base, offset: (4 * at).cast_signed() };
            self.print_element(place, regs[0], mask);
            return Ok(());
        };
        let copy = self.is_first_copy(&layout);
        let size = if elem.bits() == 64 { 8 } else { 4 };
        for (r, reg) in regs.iter().enumerate() {
            let part = layout.register_coords(r);
            let mut linear = self.b.i32(0);
            for (axis, extent) in layout.extents().to_vec().into_iter().enumerate() {
                let extent = self.b.i32(extent.cast_signed());
                let thread = self.thread_coord(&layout, axis);
                let coord = self.b.add_const(thread, i64::from(part[axis]));
                linear = self.b.mul(linear, extent);
                linear = self.b.add(linear, coord);
            }
            let wide = self.b.widen(linear);
            let size = self.b.i64(size);
            let skip = self.b.mul(wide, size);
            let address = self.b.add(base, skip);
            let mask = self.both(Some(room), copy);
            let mask = self.inside_tile(&layout, part, mask).unwrap_or(room);
            let place = Place { space: Space::Global, address, offset: (4 * at).cast_signed() };
            self.print_element(place, *reg, mask);
        }
        Ok(())
    }

    /// Writes an element as words: a 64-bit element as two, since records are aligned to 4 bytes only.
    fn print_element(&mut self, place: Place, reg: Reg, mask: Reg) {
        let words = match self.b.ty(reg) {
            lane::Ty::Pred => vec![self.b.one(lane::OpKind::FromPred, &[reg])],
            lane::Ty::B16 => {
                vec![self.b.one(lane::OpKind::Extend { from: 16, signed: false, to: lane::Ty::B32 }, &[reg])]
            }
            lane::Ty::B32 => vec![reg],
            lane::Ty::B64 => self.b.op(lane::OpKind::Unpack, &[reg]),
        };
        for (i, word) in (0i32..).zip(words) {
            let place = Place { offset: place.offset + 4 * i, ..place };
            self.store_vector(place, Elem::U32, &[word], Some(mask));
        }
    }
}

/// The offset of a word of the report.
fn words_at(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(0)
}

fn print_words(ty: Ty) -> u32 {
    u32::try_from(report::words(ty)).unwrap_or(u32::MAX)
}
