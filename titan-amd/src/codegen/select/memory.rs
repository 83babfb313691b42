//! Loads and stores of global and shared memory.
//!
//! An access is one instruction for all of its elements: elements of 1 and 2 bytes are packed into words, and unpacked. A masked access
//! is executed by the lanes of its mask only. The lanes that are off keep what the registers of a load had before, so that the values for
//! that case are moved there first; where elements are unpacked, they are selected afterwards.
//!
//! | memory | address | offset |
//! |---|---|---|
//! | global | two vector registers; or two scalar registers and a vector register with 0 | −4096 to 4095 (ISA §10.2, `OFFSET` of 13 bits) |
//! | shared | one vector register | 0 to 65535 (ISA §11.3) |

use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first};
use crate::codegen::machine_ir::{Block, File, Operand, Part};
use crate::isa::{Field, Form, Operand as Isa};
use titan_core::lane::{IntBin, Op, OpKind, Space, Value};

/// The address space and offset of an access, the size and number of its elements, and whether it is masked.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) space: Space,
    pub(super) bytes: u8,
    pub(super) n: u8,
    pub(super) offset: i32,
    pub(super) masked: bool,
}

impl Access {
    /// The words of all elements together.
    pub(super) const fn words(self) -> u8 {
        (self.bytes * self.n).div_ceil(4)
    }

    fn load(self) -> Result<&'static str, Fault> {
        Ok(match (self.space, self.bytes * self.n) {
            (Space::Global, 1) => "global_load_ubyte",
            (Space::Global, 2) => "global_load_ushort",
            (Space::Global, 4) => "global_load_dword",
            (Space::Global, 8) => "global_load_dwordx2",
            (Space::Global, 16) => "global_load_dwordx4",
            (Space::Shared, 1) => "ds_read_u8",
            (Space::Shared, 2) => "ds_read_u16",
            (Space::Shared, 4) => "ds_read_b32",
            (Space::Shared, 8) => "ds_read_b64",
            (Space::Shared, 16) => "ds_read_b128",
            (_, _) => return Err(self.no_size()),
        })
    }

    fn store(self) -> Result<&'static str, Fault> {
        Ok(match (self.space, self.bytes * self.n) {
            (Space::Global, 1) => "global_store_byte",
            (Space::Global, 2) => "global_store_short",
            (Space::Global, 4) => "global_store_dword",
            (Space::Global, 8) => "global_store_dwordx2",
            (Space::Global, 16) => "global_store_dwordx4",
            (Space::Shared, 1) => "ds_write_b8",
            (Space::Shared, 2) => "ds_write_b16",
            (Space::Shared, 4) => "ds_write_b32",
            (Space::Shared, 8) => "ds_write_b64",
            (Space::Shared, 16) => "ds_write_b128",
            (_, _) => return Err(self.no_size()),
        })
    }

    fn no_size(self) -> Fault {
        Fault::Refused(format!("an access of {} elements of {} bytes", self.n, self.bytes))
    }
}

/// An address as the operands of an instruction, and its offset.
pub(super) struct Address {
    pub(super) operands: Vec<Operand>,
    pub(super) offset: u32,
}

/// The lanes that were active before a masked access.
pub(super) struct Masked(Option<Part>);

/// Masked loads that follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loads {
    block: Block,
    /// The number of the instruction that masks the first of them, and of the one after the last of them.
    first: usize,
    end: usize,
    /// The lanes that were active before.
    saved: Part,
}

impl Select<'_> {
    /// The address of a value and a constant. The operands of a global address are those in the order of its text: the address, and the
    /// scalar base after the data.
    pub(super) fn address(&mut self, space: Space, value: Value, offset: i32) -> Result<Address, Fault> {
        let (value, offset) = self.based(space, value, offset)?;
        let src = self.src(value)?;
        match space {
            Space::Global => self.global_address(src, offset),
            Space::Shared => self.shared_address(src, offset),
        }
    }

    /// An address as another value and a constant, as long as the constant fits the offset of an access.
    fn based(&self, space: Space, value: Value, offset: i32) -> Result<(Value, i32), Fault> {
        let (mut value, mut offset) = (value, offset);
        while let Some(op) = self.func.def_op(value) {
            let (OpKind::Int(IntBin::Add), [a, b]) = (&op.kind, op.args.as_slice()) else { break };
            let (rest, more) = match (self.spot(*a)?, self.spot(*b)?) {
                (_, Spot::Bits(more)) => (*a, more),
                (Spot::Bits(more), _) => (*b, more),
                (Spot::S(_) | Spot::V(_) | Spot::Mask(_), Spot::S(_) | Spot::V(_) | Spot::Mask(_)) => break,
            };
            let sum = i32::try_from(more.cast_signed()).ok().and_then(|more| offset.checked_add(more));
            let fits = |sum: &i32| match space {
                Space::Global => (-4096..4096).contains(sum),
                Space::Shared => (0..0x1_0000).contains(sum),
            };
            let Some(sum) = sum.filter(fits) else { break };
            (value, offset) = (rest, sum);
        }
        Ok((value, offset))
    }

    fn global_address(&mut self, src: Src, offset: i32) -> Result<Address, Fault> {
        if (-4096..4096).contains(&offset) {
            let field = offset.cast_unsigned() & 0x1fff;
            if let Src::S(base) = src {
                let zero = self.in_vector(Src::Bits(0), 1)?;
                return Ok(Address { operands: vec![zero.into(), base.into()], offset: field });
            }
            let at = self.in_vector(src, 2)?;
            return Ok(Address { operands: vec![at.into(), Isa::Off.into()], offset: field });
        }
        let sum = self.add_wide(src, Src::Bits(i64::from(offset).cast_unsigned()))?;
        Ok(Address { operands: vec![sum.into(), Isa::Off.into()], offset: 0 })
    }

    fn shared_address(&mut self, src: Src, offset: i32) -> Result<Address, Fault> {
        let known = match src {
            Src::Bits(bits) => bits.wrapping_add(i64::from(offset).cast_unsigned()) & 0xffff_ffff,
            Src::S(_) | Src::V(_) | Src::Isa(_) => i64::from(offset).cast_unsigned(),
        };
        match (src, u16::try_from(known)) {
            (Src::Bits(_), Ok(offset)) => {
                let zero = self.in_vector(Src::Bits(0), 1)?;
                Ok(Address { operands: vec![zero.into()], offset: offset.into() })
            }
            (_, Ok(offset)) => {
                let at = self.in_vector(src, 1)?;
                Ok(Address { operands: vec![at.into()], offset: offset.into() })
            }
            (_, Err(_)) => {
                let sum = Src::Bits(known & 0xffff_ffff);
                let at = if let Src::Bits(_) = src {
                    self.in_vector(sum, 1)?
                } else {
                    self.valu_new("v_add_u32", 1, &[sum, src])?
                };
                Ok(Address { operands: vec![at.into()], offset: 0 })
            }
        }
    }

    /// The modifiers with an offset.
    pub(super) fn offset_field(space: Space, offset: u32) -> Vec<(Field, u32)> {
        match space {
            Space::Global if offset > 0 => vec![(Field::Offset, offset)],
            Space::Shared if offset > 0 => vec![(Field::Offset0, offset & 0xff), (Field::Offset1, offset >> 8)],
            Space::Global | Space::Shared => Vec::new(),
        }
    }

    /// Splits off the condition of a masked operation, its last operand.
    pub(super) fn mask<'v>(&self, masked: bool, args: &'v [Value]) -> Result<(Option<Src>, &'v [Value]), Fault> {
        let Some((mask, rest)) = args.split_last().filter(|_| masked) else { return Ok((None, args)) };
        let mask = self.src(*mask)?;
        Ok((Some(mask).filter(|mask| *mask != Src::Bits(u64::MAX)), rest))
    }

    /// Makes only the lanes of a mask active, until [`Select::unmask`].
    pub(super) fn only(&mut self, mask: Option<Src>) -> Result<Masked, Fault> {
        let Some(mask) = mask else { return Ok(Masked(None)) };
        let saved = self.salu_new("s_and_saveexec_b64", 2, &[mask])?;
        Ok(Masked(Some(saved)))
    }

    pub(super) fn unmask(&mut self, masked: &Masked) -> Done {
        match masked.0 {
            Some(saved) => self.salu("s_mov_b64", Some(Self::EXEC), &[Src::S(saved)]),
            None => Ok(()),
        }
    }

    /// The number of instructions of the current block.
    fn position(&self) -> usize {
        self.code.insts(self.block).len()
    }

    /// Makes only the lanes of a mask active for a load, after some words were set for the others. If this follows another masked load, the
    /// lanes of one mask are exchanged for those of the other, and constant words are set before the first of these loads:
    ///
    /// ```text
    /// v_mov a, 0                              v_mov a, 0
    /// s_and_saveexec saved, m                 v_mov b, 0
    /// load a                                  s_and_saveexec saved, m
    /// s_mov exec, saved               ─▶      load a
    /// v_mov b, 0                              s_and exec, saved, n
    /// s_and_saveexec saved', n                load b
    /// load b                                  s_mov exec, saved
    /// s_mov exec, saved'
    /// ```
    fn only_after(&mut self, out: Part, words: &[Src], mask: Option<Src>) -> Result<Masked, Fault> {
        let constant = words.iter().all(|word| matches!(word, Src::Bits(_)));
        let open = self.row_of_loads.filter(|open| open.block == self.block && open.end == self.position() && constant);
        let (Some(open), Some(mask)) = (open, mask) else {
            self.begin(out);
            self.move_words(out, words)?;
            let at = self.position();
            let masked = self.only(mask)?;
            self.row_of_loads = masked.0.map(|saved| Loads { block: self.block, first: at, end: 0, saved });
            return Ok(masked);
        };
        let insts = &mut self.code.blocks[self.block.index()].insts;
        insts.pop();
        let behind = insts.split_off(open.first);
        self.begin(out);
        self.move_words(out, words)?;
        let first = self.position();
        self.code.blocks[self.block.index()].insts.extend(behind);
        self.salu("s_and_b64", Some(Self::EXEC), &[Src::S(open.saved), mask])?;
        self.row_of_loads = Some(Loads { first, ..open });
        Ok(Masked(Some(open.saved)))
    }

    pub(super) fn load(&mut self, access: Access, op: &Op) -> Done {
        let (mask, args) = self.mask(access.masked, &op.args)?;
        let at = self.address(access.space, first(args)?, access.offset)?;
        let others = args.iter().skip(1).map(|value| self.src(*value)).collect::<Result<Vec<Src>, Fault>>()?;
        let whole = access.bytes >= 4;
        // What lanes without the load have before it is their result, unless it is several elements that are unpacked afterwards.
        let set = whole || access.n == 1 || others.iter().all(|other| *other == Src::Bits(0));
        let out = if mask.is_some() {
            self.register(File::V, access.words(), true)
        } else {
            self.fresh(File::V, access.words())
        };
        let masked = if mask.is_some() {
            let each = access.bytes / 4;
            let mut words = Vec::new();
            for n in 0..access.words() {
                words.push(match others.get(usize::from(n / each.max(1))) {
                    Some(other) if set && whole => other.word(n % each),
                    Some(other) if set => *other,
                    Some(_) | None => Src::Bits(0),
                });
            }
            self.only_after(out, &words, mask)?
        } else {
            Masked(None)
        };
        let mut operands = vec![out.into()];
        operands.extend(at.operands);
        self.full(access.load()?, Form::Base, &operands, &Self::offset_field(access.space, at.offset))?;
        self.unmask(&masked)?;
        let end = self.position();
        self.row_of_loads = self.row_of_loads.filter(|_| masked.0.is_some()).map(|open| Loads { end, ..open });
        if whole || mask.is_none() || set {
            return self.elements(access, out, op);
        }
        for (n, value) in (0..access.n).zip(&op.results) {
            let element = self.element(access, out, n)?;
            let element = match (mask, others.get(usize::from(n))) {
                (Some(mask), Some(other)) => {
                    let mask = self.in_scalar(mask, 2)?;
                    self.choose(mask, Src::V(element), *other)?
                }
                (_, _) => element,
            };
            self.set(*value, Spot::V(element));
        }
        Ok(())
    }

    /// The elements of words that were loaded, as the results of an operation.
    pub(super) fn elements(&mut self, access: Access, words: Part, op: &Op) -> Done {
        let each = access.bytes / 4;
        for (n, value) in (0..access.n).zip(&op.results) {
            let element = if each > 0 { words.slice(n * each, each) } else { self.element(access, words, n)? };
            self.set(*value, Spot::V(element));
        }
        Ok(())
    }

    /// An element of 1 or 2 bytes of words that were loaded.
    fn element(&mut self, access: Access, words: Part, n: u8) -> Result<Part, Fault> {
        let bit = u64::from(n * access.bytes) * 8;
        let word = words.word(n * access.bytes / 4);
        if access.n == 1 || (access.bytes == 2 && bit % 32 == 0) {
            return Ok(word);
        }
        let bits = [Src::Bits(bit % 32), Src::Bits(u64::from(access.bytes) * 8)];
        self.valu_new("v_bfe_u32", 1, &[Src::V(word), bits[0], bits[1]])
    }

    pub(super) fn store(&mut self, access: Access, op: &Op) -> Done {
        let (mask, args) = self.mask(access.masked, &op.args)?;
        let at = self.address(access.space, first(args)?, access.offset)?;
        let data = self.stored(access, args.get(1..).unwrap_or_default())?;
        let masked = self.only(mask)?;
        let mut operands = at.operands;
        operands.insert(1, data.into());
        self.full(access.store()?, Form::Base, &operands, &Self::offset_field(access.space, at.offset))?;
        self.unmask(&masked)
    }

    /// The elements of a store in consecutive registers.
    fn stored(&mut self, access: Access, values: &[Value]) -> Result<Part, Fault> {
        let mut words = Vec::new();
        for group in values.chunks(usize::from((4 / access.bytes).max(1))) {
            let mut srcs = Vec::new();
            for value in group {
                srcs.push(self.src(*value)?);
            }
            match *srcs.as_slice() {
                [one] if access.bytes == 8 => words.extend(one.halves()),
                [one] => words.push(one),
                [a, b] if access.bytes == 2 => words.push(Src::V(self.halves(a, b)?)),
                [a, b] => words.push(Src::V(self.bytes([a, b, Src::Bits(0), Src::Bits(0)])?)),
                [a, b, c, d] => words.push(Src::V(self.bytes([a, b, c, d])?)),
                _ => return Err(access.no_size()),
            }
        }
        if let Some(part) = consecutive(&words) {
            return Ok(part);
        }
        if let [one] = words.as_slice() {
            return self.in_vector(*one, 1);
        }
        let Ok(count) = u8::try_from(words.len()) else { return Err(access.no_size()) };
        let out = self.pieces(File::V, count);
        for (n, word) in (0..count).zip(words) {
            self.move_word(out.word(n), word)?;
        }
        Ok(out)
    }
}

/// The words as consecutive ones of one register that begin where a tuple may, if they are that.
pub(super) fn consecutive(words: &[Src]) -> Option<Part> {
    let Some(Src::V(first)) = words.first() else { return None };
    let count = u8::try_from(words.len()).ok()?;
    let in_order = (0..count).zip(words).all(|(n, word)| *word == Src::V(Part { first: first.first + n, ..*first }));
    let aligned = count == 1 || first.first.is_multiple_of(2);
    (in_order && aligned).then_some(Part { words: count, ..*first })
}
