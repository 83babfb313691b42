//! Bulk copies of tiles, and MMAs of warpgroups with their matrix descriptors.
//!
//! A descriptor (PTX ISA, "Matrix descriptor format" of `wgmma`) has the address of the first element in its low bits; the other bits
//! follow from the encoding of the tile. So it is one 64-bit number for each tile: the descriptor for slot 0, computed before loops, plus
//! the index of the slot times its size, plus constants for each step of K and for the next 64 rows.
//!
//! ```text
//! | bits    | content, addresses and distances in units of 16 bytes                                   |
//! |  0 - 13 | address                                                                                |
//! | 16 - 29 | the distance between panels; unused if K-major with a swizzle                           |
//! | 32 - 45 | the distance between groups of 8 rows of a panel                                        |
//! | 62 - 63 | 1, 2, 3: rows of 128, 64, 32 bytes; 0: panels of 16 bytes, without a swizzle            |
//! ```
//!
//! Without a swizzle, the two distances are exchanged in MN-major operands.

use super::fragment::canonical;
use super::tile::{LoweredValue, Staged};
use super::{Lower, LowerError, Reg};
use crate::analysis::boxes::{self, Boxed, Part};
use crate::analysis::one_thread;
use crate::ir::{Block, Elem, NvOp, Op, OpKind, Pred, TtgOp, Unit, Value};
use crate::lane::{self, GroupMma, GroupOperand, IntBin};
use crate::launch::abi::{MapParam, PartMap};
use crate::layout::{Coords, Layout, Swizzle};

/// The maximum number of panels of a tile whose bulk copies are not in a loop. Each of them has an address and a coordinate; with 15 panels,
/// the thread that only copies needed more than the registers that it keeps ([`crate::driver::table::REGISTERS`]), and spilled.
const UNROLLED: usize = 8;

/// A panel of a tile in shared memory: its offset, and its first column.
struct Panel {
    bytes: u32,
    column: u32,
}

/// An operand in shared memory: the descriptor of its first element, and how it is read.
struct Described {
    descriptor: Reg,
    staged: Staged,
    transposed: bool,
}

impl Lower<'_> {
    /// Issues a bulk copy of a tile, with one instruction for each panel of its encoding.
    pub(super) fn bulk_load(&mut self, op: &Op) -> Result<(), LowerError> {
        let [source, tile, barrier] = op.args[..] else {
            return Err(self.unsupported("a bulk copy of bytes"));
        };
        let multicast = if let OpKind::Nv(NvOp::BulkLoad { multicast, .. }) = op.kind { multicast } else { 0 };
        let staged = self.staged(tile)?;
        let parts = if multicast == 0 { 1 } else { self.laid.cluster };
        let Ok(boxed) = crate::lay_out::part_by_map(self.k, source, &staged.encoding, parts) else {
            return Err(self.defect("a bulk copy that no tensor map describes"));
        };
        let word = self.barriers_of(barrier)?;
        let barrier = self.barrier_word(word, 0);
        let mut coords = self.box_coords(source, &boxed.part)?;
        let map = self.map_of(boxed, staged.encoding.swizzle)?;
        self.touch(staged.region(), true);
        let first = self.of_one_thread();
        let mut to = self.first_byte(&staged, 0);
        if multicast != 0 {
            // The part that this program copies starts `rows` rows of the tile further for each rank, in the tensor and in each panel.
            let rows = staged.encoding.extents[0] / parts;
            let bytes = staged.encoding.rows() / staged.encoding.extents[0] * rows * staged.encoding.pitch;
            let rank = self.cluster_rank();
            let [rows, bytes] = [rows, bytes].map(|n| self.b.i32(n.cast_signed()));
            let [down, skip] = [rows, bytes].map(|n| self.b.mul(rank, n));
            let axis = crate::lay_out::first_axis(self.k, source);
            coords[axis] = self.b.add(coords[axis], down);
            to = self.b.add(to, skip);
        }
        let rank = u8::try_from(coords.len()).unwrap_or(u8::MAX);
        let kind = lane::OpKind::Nv(lane::NvOp::BulkLoad { rank, multicast, masked: first.is_some() });
        coords.reverse();
        let (Some((fastest, others)), panels) = (coords.split_first(), self.panels(&staged)) else {
            return Err(self.defect("a bulk copy of a tensor without axes"));
        };
        let all = |at: [Reg; 2]| [&[map, at[0], barrier, at[1]], others, first.as_slice()].concat();
        if let [_, second, ..] = &panels[..]
            && panels.len() > UNROLLED
        {
            let n = i32::try_from(panels.len()).unwrap_or(i32::MAX);
            let [zero, one, n] = [0, 1, n].map(|n| self.b.i32(n));
            let (open, _, at) = self.b.begin_for([zero, n, one], &[to, *fastest]);
            let (to, column) = (at[0], at[1]);
            self.b.op(kind, &all([to, column]));
            let next = [(to, second.bytes), (column, second.column)].map(|(at, n)| self.b.add_const(at, n.into()));
            self.b.terminate(lane::OpKind::Continue(0), &next);
            self.b.end(open);
            return Ok(());
        }
        for Panel { bytes, column } in panels {
            let at = [(to, bytes), (*fastest, column)].map(|(at, n)| self.b.add_const(at, n.into()));
            self.b.op(kind.clone(), &all(at));
        }
        Ok(())
    }

    /// Issues a bulk copy of a tile in shared memory to a tile of a tensor, by one thread of the first warp.
    pub(super) fn bulk_store(&mut self, op: &Op) -> Result<(), LowerError> {
        let [to, tile] = op.args[..] else { return Err(self.unsupported("a bulk copy of bytes")) };
        let staged = self.staged(tile)?;
        let Ok(boxed) = crate::lay_out::by_map(self.k, to, &staged.encoding) else {
            return Err(self.defect("a bulk copy that no tensor map describes"));
        };
        let Some(LoweredValue::Source(place)) = self.lowered[to.index()].clone() else {
            return Err(self.defect("a bulk copy to no tile"));
        };
        let coords = self.box_coords(to, &boxed.part)?;
        let map = self.map_of(boxed, staged.encoding.swizzle)?;
        let panels = self.panels(&staged);
        let from = self.first_byte(&staged, 0);
        self.touch_view(&place.view, true);
        self.touch(staged.region(), false);
        let mut open = self.begin_one_thread();
        for Panel { bytes, column } in panels {
            let mut args = vec![map, self.b.add_const(from, i64::from(bytes))];
            let mut fastest_first = coords.iter().rev().copied();
            args.extend(fastest_first.next().map(|x| self.b.add_const(x, i64::from(column))));
            args.extend(fastest_first);
            let rank = u8::try_from(coords.len()).unwrap_or(u8::MAX);
            self.b.op(lane::NvOp::BulkStore { rank }, &args);
        }
        self.end_one_thread(&mut open);
        Ok(())
    }

    /// The panels of a tile in shared memory.
    fn panels(&self, staged: &Staged) -> Vec<Panel> {
        let e = &staged.encoding;
        let bytes = e.rows() * e.pitch;
        (0..e.extents[e.fast_axis()] / e.row).map(|n| Panel { bytes: n * bytes, column: n * e.row }).collect()
    }

    /// Opens a branch for the elected thread of the first warp of a role.
    fn begin_one_thread(&mut self) -> Vec<lane::Open> {
        if self.elected {
            return Vec::new();
        }
        let (warp, zero) = (self.warp_number(), self.b.i32(0));
        let first = self.b.cmp_u(Pred::Eq, warp, zero);
        let only = self.b.begin_if(first, &[]);
        let elected = self.b.one(lane::NvOp::Elect, &[]);
        vec![only, self.b.begin_if(elected, &[])]
    }

    /// Opens a branch for one thread: the elected one, or the first one on machines that elect none.
    pub(super) fn begin_any_thread(&mut self) -> Vec<lane::Open> {
        if self.target.box_copies().is_some() || self.elected {
            return self.begin_one_thread();
        }
        let first = self.is_first_thread();
        vec![self.b.begin_if(first, &[])]
    }

    pub(super) fn end_one_thread(&mut self, open: &mut Vec<lane::Open>) {
        while let Some(mut inner) = open.pop() {
            self.b.terminate(lane::OpKind::Yield, &[]);
            self.b.begin_else(&mut inner);
            self.b.terminate(lane::OpKind::Yield, &[]);
            self.b.end(inner);
        }
    }

    /// The coordinates of a source's first element in the tensor parameter, one for each axis; before them the two by which a copy stops at
    /// the end of a part of the tensor along an axis (see [`MapParam`]). The coordinates of a tile that does not exist are outside of the
    /// tensor.
    fn box_coords(&mut self, source: Value, part: &Part) -> Result<Vec<Reg>, LowerError> {
        let Some(Op { kind: OpKind::Ttg(TtgOp::Source(unit, shape)), args, .. }) = self.k.def_op(source) else {
            return Err(self.defect("a bulk copy of no tile"));
        };
        let (unit, extents, args) = (*unit, Vec::<u32>::from(*shape), args.clone());
        let most = self.b.i32(MapParam::MOST_EXTENT);
        let mut coords = Vec::new();
        for start in self.starts(unit, &args[1..=extents.len()], &extents) {
            coords.push(match (unit, start.exists) {
                (Unit::Tile, Some(exists)) => self.b.select(exists, start.at, most),
                (Unit::Tile, None) | (Unit::Elem, _) => self.b.int(IntBin::MinS, start.at, most),
            });
        }
        // Whether the first row of the tile is inside of the part, along each axis along which the view is one.
        let mut inside: Vec<Option<Reg>> = vec![None; coords.len()];
        let (mut tensor, mut outer) = (args[0], None);
        while let Some(view) = self.k.def_op(tensor).cloned() {
            if let OpKind::Index(axis) = view.kind {
                coords.insert(usize::from(axis), self.scalar(view.args[1]));
                inside.insert(usize::from(axis), None);
            } else if let Some(axis) = boxes::cut(&view).map(usize::from) {
                let cut = self.view(tensor)?;
                let Some((lo, hi)) = cut.part else { return Err(self.defect("a part of a tensor without bounds")) };
                let (at, rows) = (coords[axis], cut.extents[axis]);
                // A tile that begins in a part of a part begins in both.
                let begins = *inside[axis].get_or_insert_with(|| self.b.cmp_u(Pred::Lt, at, rows));
                coords[axis] = match part {
                    // Row `i` of a part with `n` rows has the coordinate `most - n + i`. Rows before the part and behind it are outside.
                    Part::Along(_) => {
                        outer = Some([most, hi]);
                        let first = self.b.int(IntBin::Sub, most, rows);
                        let row = self.b.add(first, at);
                        self.b.select(begins, row, most)
                    }
                    Part::Whole | Part::Ending(_) => self.b.add(lo, at),
                };
            }
            tensor = view.args[0];
        }
        if let Part::Ending(_) = part {
            for (at, begins) in coords.iter_mut().zip(inside) {
                *at = begins.map_or(*at, |begins| self.b.select(begins, *at, most));
            }
        }
        coords.splice(0..0, outer.into_iter().flatten());
        Ok(coords)
    }

    /// The address of the tensor map for boxes of a tensor.
    fn map_of(&mut self, boxed: Boxed, swizzle: Swizzle) -> Result<Reg, LowerError> {
        let Boxed { param, elem, extents, part } = boxed;
        let param = u32::try_from(param).unwrap_or(u32::MAX);
        let of = |part| MapParam { param, elem, extents, swizzle, part };
        Ok(match part {
            Part::Whole => self.b.tensor_map(of(PartMap::Whole)),
            Part::Along(axis) => self.b.tensor_map(of(PartMap::Along(axis))),
            Part::Ending(ends) => self.entry_of(of, ends)?,
        })
    }

    /// The address of the byte `more` of a tile without a computed offset of its origin.
    fn first_byte(&mut self, staged: &Staged, more: u32) -> Reg {
        let base = self.b.one(lane::OpKind::Buffer(staged.buffer), &[]);
        let (moved, skip) = staged.base.map_or((None, 0), |(offset, skip)| (Some(offset), skip));
        let at = moved.map_or(base, |offset| self.b.add(base, offset));
        self.b.add_const(at, i64::from(skip + more))
    }

    /// Lowers one step of an MMA of warpgroups.
    pub(super) fn group_mma(&mut self, op: &Op) -> Result<(), LowerError> {
        let [a, b, acc] = op.args[..] else { return Err(self.unsupported("an MMA on regions")) };
        let elems = [a, b, acc].map(|v| self.k.ty(v).elem());
        let Some(atom) = self.target.group_atom(elems).map(|atom| atom.mma) else {
            return Err(self.defect("an MMA that no instruction of warpgroups computes"));
        };
        let layout = self.layout(acc);
        let shape: Vec<u32> = layout.extents().to_vec();
        let along_n = 1u32 << layout.warps_along(1).len();
        let own = shape[1] / along_n;
        let n = own / own.div_ceil(atom.n);
        let columns = self.described(b, 1, along_n)?;
        let rows = if matches!(self.k.ty(a), crate::ir::Ty::Smem(..)) {
            Some(self.described(a, 0, self.warp_set.warps / GroupMma::WARPS / along_n)?)
        } else {
            None
        };
        let (words, fresh) = (if rows.is_none() { self.words(a)? } else { Vec::new() }, self.is_zero(acc));
        let from = if fresh { Vec::new() } else { self.regs(acc) };
        self.touch(columns.staged.region(), false);
        if let Some(rows) = &rows {
            self.touch(rows.staged.region(), false);
        }
        let slabs = shape[0] / (16 * (1 << layout.warps_along(0).len()));
        let each = (n / 2) as usize;
        let mut out = Vec::new();
        for slab in 0..slabs {
            // The slabs of 64 rows of all warpgroups along M alternate.
            let at = slab * (16 << layout.warps_along(0).len());
            for part in 0..own / n {
                let mut args = match &rows {
                    Some(rows) => vec![self.further(rows, 0, at)],
                    None => words[slab as usize * 4..slab as usize * 4 + 4].to_vec(),
                };
                args.push(self.further(&columns, 1, part * n));
                let c = from.get(out.len()..out.len() + each).unwrap_or_default();
                args.extend(c);
                let a = rows
                    .as_ref()
                    .map_or(GroupOperand::Registers, |r| GroupOperand::Shared { transposed: r.transposed });
                let mma = GroupMma { atom: lane::MmaAtom { n, ..atom }, a, b_transposed: columns.transposed, fresh };
                out.extend(self.b.op(lane::NvOp::GroupMma(mma), &args));
            }
        }
        self.define(op.results[0], LoweredValue::Tile(out));
        Ok(())
    }

    /// Whether all elements of a tile are known to be zero.
    fn is_zero(&self, tile: Value) -> bool {
        let splat = self.k.def_op(tile).filter(|op| matches!(op.kind, OpKind::Splat(_)));
        let value = splat.and_then(|op| self.k.constant(op.args[0]));
        value.is_some_and(|c| match c {
            crate::ir::Const::Int(_, v) => v == 0,
            crate::ir::Const::Float(_, v) => v.to_bits() == 0,
        })
    }

    /// The words of A in registers: four for each 64 rows that the warpgroup computes.
    fn words(&mut self, tile: Value) -> Result<Vec<Reg>, LowerError> {
        match self.lowered[tile.index()].clone() {
            Some(LoweredValue::Packed(words)) => Ok(words),
            _ => Err(self.defect("an operand of warpgroups that is not in words")),
        }
    }

    /// The words of operand A for one step of K. An MMA reads them until it is waited for, so that they are written where the verifier of barrier
    /// programs has seen it, and are registers of this operand alone.
    pub(super) fn words_of_fragment(
        &mut self,
        regs: &[Reg],
        layout: &Layout,
        elem: Elem,
    ) -> Result<Vec<Reg>, LowerError> {
        if canonical(layout, elem) != Some((layout.clone(), false)) {
            return Err(self.defect("an operand of warpgroups that is no fragment"));
        }
        let each = (32 / elem.bits()) as usize;
        let zero = self.b.i32(0);
        let word = |word: &[Reg]| match word {
            // A copy.
            [one] => self.b.in_place(lane::OpKind::Int(IntBin::Or), &[*one, zero]),
            parts => self.b.in_place(lane::OpKind::Pack, parts),
        };
        Ok(regs.chunks(each).map(word).collect())
    }

    /// The descriptor of the part of an operand that belongs to this warpgroup; `groups` warpgroups divide it along `axis`.
    fn described(&mut self, tile: Value, axis: usize, groups: u32) -> Result<Described, LowerError> {
        let (staged, zero) = (self.staged(tile)?, self.b.i32(0));
        let e = &staged.encoding;
        let mode = match e.swizzle {
            Swizzle::B128 => 1u32,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
            Swizzle::None if e.has_core_matrices() => 0,
            Swizzle::None => {
                return Err(self.defect("an operand of warpgroups with neither a swizzle nor core matrices"));
            }
        };
        // Whether the rows of A, or the columns of B, are contiguous in memory.
        let transposed = e.fast_axis() == axis;
        let (panel, group) = (e.rows() * e.pitch / 16, 8 * e.pitch / 16);
        let (leading, stride) = match (mode, transposed) {
            (0, true) => (group, panel),
            (0, false) | (_, true) => (panel, group),
            (_, false) => (0, group),
        };
        let high = stride | mode << 30;
        let own = if axis == 0 { GroupMma::M } else { e.extents[1] / groups };
        let part = self.bytes_to(&staged, axis, own);
        let (slot, start) = match staged.slot {
            Some(slot) => {
                let base = staged.base.map(|(_, skip)| (zero, skip));
                (Some(slot), Staged { base, ..staged.clone() })
            }
            None => (None, staged.clone()),
        };
        let mut at = self.first_byte(&start, 0);
        if groups > 1 {
            let number = self.group_number(axis, groups);
            let step = self.b.i32(part.cast_signed());
            let skip = self.b.mul(number, step);
            at = self.b.add(at, skip);
        }
        let four = self.b.i32(4);
        let low = self.b.int(IntBin::ShrU, at, four);
        let low = if leading > 0 { self.b.add_const(low, i64::from(leading << 16)) } else { low };
        let high = self.b.i32(high.cast_signed());
        let mut descriptor = self.b.one(lane::OpKind::Pack, &[low, high]);
        if let Some((number, bytes)) = slot {
            // The assembler makes one instruction of the product and the sum of 64 bits. Addresses of slots fit in their 14 bits.
            let bytes = self.b.i32((bytes / 16).cast_signed());
            let skip = self.b.one(lane::OpKind::MulWide { signed: false }, &[number, bytes]);
            descriptor = self.b.add(descriptor, skip);
        }
        let further = e.linear(staged.origin.at);
        if further > 0 {
            let more = self.b.i64(i64::from(further / 16));
            descriptor = self.b.add(descriptor, more);
        }
        Ok(Described { descriptor, staged, transposed })
    }

    /// The distance of `n` elements along an axis in bytes; `n` must span whole panels or whole rows.
    fn bytes_to(&self, staged: &Staged, axis: usize, n: u32) -> u32 {
        let mut at = Coords::default();
        at[axis] = n;
        staged.encoding.linear(at)
    }

    /// The descriptor of the element that is `n` elements further along an axis.
    fn further(&mut self, operand: &Described, axis: usize, n: u32) -> Reg {
        let bytes = self.bytes_to(&operand.staged, axis, n);
        if bytes == 0 {
            return operand.descriptor;
        }
        let more = self.b.i64(i64::from(bytes / 16));
        self.b.add(operand.descriptor, more)
    }

    /// The index of this warpgroup along an axis of the accumulator, of which the first is M.
    fn group_number(&mut self, axis: usize, groups: u32) -> Reg {
        let warp = self.warp_number();
        let all = self.warp_set.warps / GroupMma::WARPS;
        let shift = GroupMma::WARPS.trailing_zeros() + if axis == 0 { 0 } else { (all / groups).trailing_zeros() };
        let shift = self.b.i32(shift.cast_signed());
        let number = self.b.int(IntBin::ShrU, warp, shift);
        let mask = self.b.i32((groups - 1).cast_signed());
        self.b.and(number, mask)
    }

    /// Waits for groups of MMAs, and defines the tiles that are complete then.
    pub(super) fn group_wait(&mut self, op: &Op, n: u32) {
        let each: Vec<Vec<Reg>> = op.args.iter().map(|v| self.regs(*v)).collect();
        let mut out = self.b.op(lane::NvOp::GroupWait(n), &each.concat()).into_iter();
        for (result, regs) in op.results.iter().zip(each) {
            let own = out.by_ref().take(regs.len()).collect();
            self.define(*result, LoweredValue::Tile(own));
        }
    }

    /// The number of registers that each thread has at the start of the program, on machines that can change it: what can be allocated for
    /// all threads of the program's warpgroups.
    pub(super) fn entry_registers(&self) -> u32 {
        let warps = self.laid.warps.next_multiple_of(self.target.role_warps.max(1));
        self.target.equal_registers(warps * self.laid.lanes).min(self.target.registers)
    }

    /// Lowers the code of a role. If one thread can execute all of it, the branch to one elected thread is around all of it. Otherwise a
    /// thread is elected at its start, where the warps have not diverged, and starts all bulk copies of the role: the assembler would repeat
    /// them for each thread of a warp if the thread were chosen by its number.
    pub(super) fn role_code(&mut self, region: Block) -> Result<(), LowerError> {
        if !one_thread::executes(self.k, region, false) {
            let mut copies = false;
            self.k.walk_block(region, &mut |_, op| copies |= matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. })));
            if copies {
                let (warp, zero) = (self.warp_number(), self.b.i32(0));
                let first = self.b.cmp_u(Pred::Eq, warp, zero);
                let elected = self.b.one(lane::NvOp::Elect, &[]);
                self.copying = Some(self.b.and(first, elected));
            }
            self.block(region)?;
            self.copying = None;
            return Ok(());
        }
        let first = one_thread::first(self.k, region);
        let (of_group, rest) = self.k.block(region).ops.split_at(first.len());
        let (of_group, rest) = (of_group.to_vec(), rest.to_vec());
        self.operations(&of_group)?;
        let mut open = self.begin_one_thread();
        self.elected = true;
        // The terminator belongs to the role, not to this branch.
        self.operations(rest.split_last().map_or(&[], |(_, rest)| rest))?;
        self.elected = false;
        self.end_one_thread(&mut open);
        self.b.terminate(lane::OpKind::Yield, &[]);
        Ok(())
    }

    /// The condition by which one thread of the role executes an operation; `None` if only one thread executes this code anyway.
    pub(super) fn of_one_thread(&mut self) -> Option<Reg> {
        if self.elected {
            return None;
        }
        Some(self.copying.unwrap_or_else(|| self.is_first_thread()))
    }
}
