//! Rows of memory operations: the local data share, addresses, descriptors.

use crate::isa::format::{Field, Format};
use crate::isa::row::{Access, Class, Implicit, MAX_ARGS, Mods, Row, Unit};
use crate::isa::ty::*;

use Access::{Read, ReadWrite, Write};

const fn memory(format: Format, op: u16, name: &'static str, unit: Unit) -> Row {
    Row::new(format, op, name, unit).reads(Implicit::EXEC)
}

pub(in crate::isa::tables) const fn ds(
    op: u16,
    name: &'static str,
    result: Option<Ty>,
    address: bool,
    data: &[Ty],
) -> Row {
    let mut row = memory(Format::Ds, op, name, Unit::Lds);
    if let Some(ty) = result {
        row = row.arg(Write, Field::Vdst, Class::Va, ty);
    }
    if address {
        row = row.arg(Read, Field::Addr, Class::V, U32);
    }
    let mut i = 0;
    while i < data.len() {
        row = row.arg(Read, [Field::Data0, Field::Data1][i], Class::Va, data[i]);
        i += 1;
    }
    row
}

pub(in crate::isa::tables) const fn ds_nop(op: u16, name: &'static str) -> Row {
    Row::new(Format::Ds, op, name, Unit::Lds)
}

/// The memory that a flat instruction accesses.
#[derive(Clone, Copy)]
pub(in crate::isa::tables) enum Segment {
    Flat,
    Scratch,
    Global,
}

impl Segment {
    const fn row(self, op: u16, name: &'static str, unit: Unit) -> Row {
        match self {
            Segment::Flat => {
                memory(Format::Flat, op, name, unit).fixed(&[(Field::Seg, 0)]).reads(Implicit::FLAT_SCRATCH)
            }
            Segment::Scratch => {
                memory(Format::Scratch, op, name, unit).fixed(&[(Field::Seg, 1)]).reads(Implicit::FLAT_SCRATCH)
            }
            Segment::Global => memory(Format::Global, op, name, unit).fixed(&[(Field::Seg, 2)]),
        }
    }

    const fn address(self, row: Row) -> Row {
        match self {
            Segment::Flat => row.arg(Read, Field::Addr, Class::V, B64),
            Segment::Scratch => row.arg(Read, Field::Addr, Class::ScratchAddr, U32),
            Segment::Global => row.arg(Read, Field::Addr, Class::GlobalAddr, B64),
        }
    }

    const fn base(self, row: Row) -> Row {
        match self {
            Segment::Flat => row,
            Segment::Scratch => row.arg(Read, Field::Saddr, Class::ScratchBase, U32),
            Segment::Global => row.arg(Read, Field::Saddr, Class::GlobalBase, B64),
        }
    }
}

pub(in crate::isa::tables) const fn load_v(segment: Segment, op: u16, name: &'static str, data: Ty) -> Row {
    let row = segment.row(op, name, Unit::Load).arg(Write, Field::Vdst, Class::Va, data);
    segment.base(segment.address(row)).mods(Mods::OFFSET.and(Mods::CACHE))
}

pub(in crate::isa::tables) const fn store_v(segment: Segment, op: u16, name: &'static str, data: Ty) -> Row {
    let row = segment.address(segment.row(op, name, Unit::Store)).arg(Read, Field::Data, Class::Va, data);
    segment.base(row).mods(Mods::OFFSET.and(Mods::CACHE))
}

pub(in crate::isa::tables) const fn load_lds(segment: Segment, op: u16, name: &'static str, data: Ty) -> Row {
    // The loaded data have no operand: the mnemonic determines their type.
    let _ = data;
    let row = segment.row(op, name, Unit::LoadLds).reads(Implicit::M0);
    segment.base(segment.address(row)).mods(Mods::OFFSET.and(Mods::CACHE))
}

/// An atomic on a value of type `ty`; compare-and-swap operations take two values.
pub(in crate::isa::tables) const fn atomic(
    segment: Segment,
    op: u16,
    name: &'static str,
    ty: Ty,
    data: Ty,
    returns: bool,
) -> Row {
    let mut row = segment.row(op, name, Unit::Atomic);
    if returns {
        row = row.arg(Write, Field::Vdst, Class::Va, ty);
    }
    row = segment.base(segment.address(row).arg(Read, Field::Data, Class::Va, data));
    let fixed: &'static [(Field, u32)] = match (segment, returns) {
        (Segment::Flat, false) => &[(Field::Seg, 0), (Field::Sc0, 0)],
        (Segment::Flat, true) => &[(Field::Seg, 0), (Field::Sc0, 1)],
        (Segment::Scratch, _) => &[(Field::Seg, 1)],
        (Segment::Global, false) => &[(Field::Seg, 2), (Field::Sc0, 0)],
        (Segment::Global, true) => &[(Field::Seg, 2), (Field::Sc0, 1)],
    };
    row.fixed(fixed).mods(Mods::OFFSET.and(Mods::CACHE_ATOMIC))
}

const fn buffer(op: u16, name: &'static str, unit: Unit) -> Row {
    memory(Format::Mubuf, op, name, unit).mods(Mods::OFFSET.and(Mods::BUFFER))
}

const fn buffer_address(row: Row) -> Row {
    row.arg(Read, Field::Vaddr, Class::BufferAddr, U32).arg(Read, Field::Srsrc, Class::Srsrc, B128).arg(
        Read,
        Field::Soffset,
        Class::Soffset,
        U32,
    )
}

pub(in crate::isa::tables) const fn buffer_load(op: u16, name: &'static str, data: Ty) -> Row {
    let row = buffer(op, name, Unit::Load).arg(Write, Field::Vdata, Class::Va, data);
    buffer_address(row).fixed(&[(Field::Lds, 0)]).mods(Mods::CACHE)
}

pub(in crate::isa::tables) const fn buffer_store(op: u16, name: &'static str, data: Ty) -> Row {
    let row = buffer(op, name, Unit::Store).arg(Read, Field::Vdata, Class::Va, data);
    buffer_address(row).fixed(&[(Field::Lds, 0)]).mods(Mods::CACHE)
}

pub(in crate::isa::tables) const fn buffer_lds(op: u16, name: &'static str, data: Ty) -> Row {
    let _ = data;
    buffer_address(buffer(op, name, Unit::LoadLds).reads(Implicit::M0)).fixed(&[(Field::Lds, 1)]).mods(Mods::CACHE)
}

pub(in crate::isa::tables) const fn buffer_atomic(op: u16, name: &'static str, data: Ty, returns: bool) -> Row {
    let access = if returns { ReadWrite } else { Read };
    let row = buffer_address(buffer(op, name, Unit::Atomic).arg(access, Field::Vdata, Class::Va, data));
    let row = if returns {
        row.fixed(&[(Field::Lds, 0), (Field::Sc0, 1)])
    } else {
        row.fixed(&[(Field::Lds, 0), (Field::Sc0, 0)])
    };
    row.mods(Mods::CACHE_ATOMIC)
}

pub(in crate::isa::tables) const fn buffer_cache(op: u16, name: &'static str) -> Row {
    Row::new(Format::Mubuf, op, name, Unit::Cache).fixed(&[(Field::Lds, 0)]).mods(Mods::SCOPES)
}

const _: () = assert!(MAX_ARGS == 6, "a carry has five operands, a buffer operation four");
