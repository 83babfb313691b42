//! Tables of tensor maps for parts of tensors, and the kernel that makes them before the kernel that copies by them runs.
//!
//! A table has an entry for each end that a part may have ([`crate::analysis::ends`]). Program `n` of the maker makes entry `n` of each table: it
//! copies the map that the launch has made for the whole tensor, and replaces the extents along the axes of the part by the ends. While the
//! kernel that copies runs, no entry changes, so copies in flight need no protection. A thread that copies acquires the entry once.
//!
//! **Example.** With the offsets 0, 5, 5, 8 and parts `off[e]..off[e + 1]` along axis 1 of a tensor with 8 columns, the number of an entry is
//! that of the part's end:
//!
//! | entry | end | extent along axis 1 | of the part |
//! |---|---|---|---|
//! | 0 | 0 | 1: an extent of 0 has no map | none ends there |
//! | 1 | 5 | 5 | 0..5 |
//! | 2 | 5 | 5 | 5..5, whose tiles are at the coordinate `MOST_EXTENT` |
//! | 3 | 8 | 8 | 5..8 |
//!
//! A role whose number is that of no element has trapped, and goes on with the last entry. What it loads and stores then is not specified, but
//! inside of the tensor.
//!
//! Deliberately absent: maps that a kernel changes while it copies by others.

use super::{Lower, LowerError, Reg, WarpSet};
use crate::analysis::ends::{At, End, EndOp, Ends, Entry};
use crate::ir::{Kernel, LaidOut, Pred};
use crate::lane::{self, Builder, Func, IntBin};
use crate::launch::abi::{MapParam, PartMap};
use crate::target::Target;

/// A table: its map without its number, and the ends.
pub(super) type Table = (MapParam, Vec<(u8, End)>);

impl Lower<'_> {
    /// The address of the entry of a table by which the current program copies a part.
    pub(super) fn entry_of(&mut self, map: impl FnOnce(PartMap) -> MapParam, ends: Ends) -> Result<Reg, LowerError> {
        let Ends { entry, of_axes } = ends;
        let axes = of_axes.iter().map(|(axis, _)| *axis).collect();
        let mut map = map(PartMap::Ending { table: 0, axes, entries: entry.map(|entry| entry.of) });
        let known = self.tables.iter().position(|(of, ends)| *of == map && *ends == of_axes);
        let number = known.unwrap_or_else(|| {
            self.tables.push((map.clone(), of_axes));
            self.tables.len() - 1
        });
        if let PartMap::Ending { table, .. } = &mut map.part {
            *table = u32::try_from(number).unwrap_or(u32::MAX);
        }
        let at = match entry {
            None => self.b.i32(0),
            Some(Entry { of, value, plus }) => {
                let last = self.last_entry(of)?;
                let at = self.scalar(value);
                let at = self.b.add_const(at, i64::from(plus));
                self.b.int(IntBin::MinU, at, last)
            }
        };
        let map = self.b.map_number(map);
        Ok(self.b.one(lane::NvOp::MapEntry(map), &[at]))
    }

    /// The number of the last entry of tables with an entry for each element of an argument, and at least one.
    fn last_entry(&mut self, of: u32) -> Result<Reg, LowerError> {
        let view = self.view(self.k.param(of as usize))?;
        let last = self.b.add_const(view.extents[0], -1);
        let zero = self.b.i32(0);
        Ok(self.b.int(IntBin::MaxS, last, zero))
    }

    /// The end of a part for an entry.
    fn end_of(&mut self, end: &End, entry: Reg) -> Result<Reg, LowerError> {
        Ok(match end {
            End::Const(c) => self.b.i32(*c),
            End::Scalar(param) => self.scalar(self.k.param(*param as usize)),
            End::Extent(param, axis) => self.view(self.k.param(*param as usize))?.extents[usize::from(*axis)],
            End::Element(param, at) => {
                let view = self.view(self.k.param(*param as usize))?;
                let at = match at {
                    At::Fixed(at) => self.b.i32(*at),
                    At::Entry(plus) => self.b.add_const(entry, i64::from(*plus)),
                };
                let (exists, zero) = (self.exists(&view, &[at]), self.b.i32(0));
                self.masked_element(&view, &[at], Some((exists, zero)))
            }
            End::Binary(of, a, b) => {
                let (a, b) = (self.end_of(a, entry)?, self.end_of(b, entry)?);
                let of = match of {
                    EndOp::Add => IntBin::Add,
                    EndOp::Sub => IntBin::Sub,
                    EndOp::Mul => IntBin::Mul,
                    EndOp::Min => IntBin::MinS,
                    EndOp::Max => IntBin::MaxS,
                };
                self.b.int(of, a, b)
            }
        })
    }
}

/// The function that makes the tables of a function; `None` if it has none.
pub(super) fn maker(
    kernel: &Kernel,
    laid: &LaidOut,
    target: &Target,
    (func, tables): (&Func, &[Table]),
) -> Result<Option<Func>, LowerError> {
    if tables.is_empty() {
        return Ok(None);
    }
    let mut run = Lower::new(kernel, laid, target);
    run.b = Builder::new(&format!("{} maps", func.name), func.slots.clone(), laid.lanes, laid.lanes);
    run.b.set_maps(func.maps.clone());
    run.warp_set = WarpSet { first: 0, warps: 1, role: None };
    run.parameters();
    let entry = run.b.one(lane::OpKind::ProgramId(0), &[]);
    let first = run.is_first_thread();
    for (number, map) in (0u32..).zip(&func.maps) {
        let PartMap::Ending { table, axes, entries } = &map.part else { continue };
        let Some((_, ends)) = tables.get(*table as usize) else { continue };
        // Another table may have more entries.
        let last = match entries {
            Some(of) => run.last_entry(*of)?,
            None => run.b.i32(0),
        };
        let exists = run.b.cmp_s(Pred::Le, entry, last);
        let makes = run.b.and(first, exists);
        let mut open = run.b.begin_if(makes, &[]);
        let (mut args, one) = (vec![entry], run.b.i32(1));
        for (_, end) in ends {
            let end = run.end_of(end, entry)?;
            args.push(run.b.int(IntBin::MaxS, end, one));
        }
        run.b.op(lane::NvOp::MakeMap { map: number, axes: axes.clone() }, &args);
        run.b.terminate(lane::OpKind::Yield, &[]);
        run.b.begin_else(&mut open);
        run.b.terminate(lane::OpKind::Yield, &[]);
        run.b.end(open);
    }
    run.b.terminate(lane::OpKind::Return, &[]);
    let mut made = run.b.finish().map_err(|e| LowerError::internal(kernel, e.to_string()))?;
    lane::eliminate_dead(&mut made);
    Ok(Some(made))
}
