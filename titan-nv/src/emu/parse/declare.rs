//! Declarations: variables with initial values, parameters, and the directives before a kernel's body.

use super::Parser;
use crate::emu::ast::{Init, Loc, Param, Var};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::lex::Tok;
use crate::emu::ty::{Kind, Space, Ty};

/// The largest number of bytes of all parameters of a kernel. PTX ISA, ".param": 4,352, and 32,764 since PTX 8.1.
const MOST_PARAMS: u32 = 32_764;
/// The largest number of bytes of one variable: more than any test needs, less than would exhaust the machine.
const MOST_BYTES: u32 = 1 << 30;

/// A declaration: type, alignment, name and extents.
struct Declared {
    ty: Ty,
    align: u32,
    name: String,
    /// The number of elements; `None` for `[]`.
    count: Option<u64>,
    is_array: bool,
}

impl Declared {
    fn size(&self, line: u32) -> Result<Option<u32>, EmuError> {
        let bytes = self.count.map(|n| n.checked_mul(self.ty.bytes().into()).and_then(|b| u32::try_from(b).ok()));
        match bytes {
            Some(Some(some)) if some <= MOST_BYTES => Ok(Some(some)),
            Some(_) => Err(EmuError::at(ErrorCode::Symbol, line, format!("`{}` is too large", self.name))),
            None => Ok(None),
        }
    }
}

/// What comes before the names of a declaration.
#[derive(Clone, Copy)]
struct Kinds {
    ty: Ty,
    lanes: u64,
    align: u32,
}

impl Parser<'_> {
    /// `.align 8 .v2 .b32 name[4][2]`; the word for the space is already read.
    fn declared(&mut self) -> Result<Declared, EmuError> {
        let kind = self.kind()?;
        self.with_name(kind)
    }

    /// `.align 8 .v2 .b32`
    fn kind(&mut self) -> Result<Kinds, EmuError> {
        let (mut align, mut lanes, mut ty) = (0, 1_u64, None);
        while ty.is_none() {
            let line = self.peek().line;
            let word = self.word("a type")?;
            match word {
                ".align" => align = self.small()?,
                ".v2" => lanes = 2,
                ".v4" => lanes = 4,
                // Attributes of parameters that are pointers.
                ".ptr" => self.pointer_attributes()?,
                _ => {
                    let named = word.strip_prefix('.').and_then(Ty::named);
                    let unknown =
                        || EmuError::at(ErrorCode::Unknown, line, format!("`{word}` is no type of variables"));
                    ty = Some(named.filter(|t| t.bits() >= 8 && t.kind() != Kind::Pred).ok_or_else(unknown)?);
                }
            }
        }
        let ty = ty.unwrap_or(Ty::B8);
        if self.accept_word(".ptr") {
            self.pointer_attributes()?;
        }
        if !(align == 0 || align.is_power_of_two() && align <= 4096) {
            return Err(self.error("an alignment is a power of two, up to 4096"));
        }
        Ok(Kinds { ty, lanes, align })
    }

    /// `name[4][2]`
    fn with_name(&mut self, Kinds { ty, lanes, align }: Kinds) -> Result<Declared, EmuError> {
        let name = self.word("a name")?.to_owned();
        let (mut count, mut is_array) = (Some(lanes), lanes > 1);
        while self.accept('[') {
            is_array = true;
            if self.accept(']') {
                count = None;
                continue;
            }
            let n = u64::try_from(self.constant()?).map_err(|_| self.error("an extent is not negative"))?;
            count = count.and_then(|c| c.checked_mul(n));
            self.expect(']')?;
        }
        let natural = ty.bytes() * u32::try_from(lanes).unwrap_or(1);
        Ok(Declared { ty, align: align.max(natural), name, count, is_array })
    }

    /// `.global .align 16` after `.ptr`.
    fn pointer_attributes(&mut self) -> Result<(), EmuError> {
        for space in [".global", ".const", ".shared", ".local"] {
            self.accept_word(space);
        }
        if self.accept_word(".align") {
            self.small()?;
        }
        Ok(())
    }

    /// The rest of a declaration of variables, to its semicolon.
    pub(super) fn variables(&mut self, space: Space, is_extern: bool) -> Result<Vec<Var>, EmuError> {
        let kind = self.kind()?;
        let mut all = vec![self.variable(kind, space, is_extern)?];
        while self.accept(',') {
            all.push(self.variable(kind, space, is_extern)?);
        }
        self.expect(';')?;
        Ok(all)
    }

    fn variable(&mut self, kind: Kinds, space: Space, is_extern: bool) -> Result<Var, EmuError> {
        let line = self.peek().line;
        let d = self.with_name(kind)?;
        let mut size = d.size(line)?;
        let mut init = Init::default();
        if self.accept('=') {
            self.initial(d.ty, &mut init)?;
            // The array `name[] = {..}` has the size of its values.
            size = size.or_else(|| u32::try_from(init.bytes.len()).ok());
        }
        if init.bytes.len() > size.unwrap_or(0) as usize {
            return Err(EmuError::at(ErrorCode::Symbol, line, format!("`{}` has more values than elements", d.name)));
        }
        if size.is_none() && !(is_extern && space == Space::Shared) {
            let message =
                format!("`{}` needs a size: only `.extern .shared` arrays may leave it to the launch", d.name);
            return Err(EmuError::at(ErrorCode::Symbol, line, message));
        }
        if is_extern && size.is_some() {
            let message = format!("`{}` is defined elsewhere, and modules are not linked", d.name);
            return Err(EmuError::at(ErrorCode::Unknown, line, message));
        }
        Ok(Var { name: d.name, space, align: d.align, size, init })
    }

    /// A parameter or result of a function in `.param` space; the word for the space is already read.
    pub(super) fn formal(&mut self) -> Result<Var, EmuError> {
        let line = self.peek().line;
        let d = self.declared()?;
        let size = d.size(line)?;
        if size.is_none() {
            return Err(EmuError::at(ErrorCode::Unknown, line, format!("parameter `{}` has no size", d.name)));
        }
        Ok(Var { name: d.name, space: Space::Param, align: d.align, size, init: Init::default() })
    }

    /// A value, or values in braces, for elements of a type.
    fn initial(&mut self, ty: Ty, init: &mut Init) -> Result<(), EmuError> {
        if self.accept('{') {
            while !self.accept('}') {
                self.nested(|p| p.initial(ty, init))?;
                if !self.is('}') {
                    self.expect(',')?;
                }
            }
            return Ok(());
        }
        let width = ty.bytes() as usize;
        let bits = match self.peek().tok {
            Tok::Word => {
                let generic = self.accept_word("generic");
                if generic {
                    self.expect('(')?;
                }
                let symbol = self.word("a variable")?.to_owned();
                if generic {
                    self.expect(')')?;
                }
                let addend = if self.accept('+') { self.constant()? } else { 0 };
                let addend = i64::try_from(addend).map_err(|_| self.error("the offset is too large"))?;
                init.addresses.push((init.bytes.len(), symbol, addend));
                0
            }
            Tok::F32(bits) => {
                self.next();
                if ty == Ty::F64 { f64::from(f32::from_bits(bits)).to_bits() } else { bits.into() }
            }
            _ => self.number_of(ty)?,
        };
        init.bytes.extend(&bits.to_le_bytes()[..width.min(8)]);
        Ok(())
    }

    /// Parses a floating-point or integer constant as the bits of a type.
    #[expect(clippy::cast_possible_truncation, reason = "constants are rounded to the variable's type")]
    fn number_of(&mut self, ty: Ty) -> Result<u64, EmuError> {
        let negative = self.is('-') && matches!(self.ahead(1).tok, Tok::F64(_));
        if negative {
            self.next();
        }
        if let Tok::F64(bits) = self.peek().tok {
            self.next();
            let value = f64::from_bits(bits) * if negative { -1.0 } else { 1.0 };
            return match ty {
                Ty::F32 => Ok((value as f32).to_bits().into()),
                Ty::F64 | Ty::B64 => Ok(value.to_bits()),
                _ => Err(self.error(format!("a floating-point constant is no `.{}`", ty.name()))),
            };
        }
        let value = self.constant()?;
        match ty {
            Ty::F32 => Ok((value as f32).to_bits().into()),
            Ty::F64 => Ok((value as f64).to_bits()),
            _ => Ok((value as i64).cast_unsigned()),
        }
    }

    /// Parses the parameters of a kernel, after `(`.
    pub(super) fn params(&mut self) -> Result<Vec<Param>, EmuError> {
        let (mut all, mut end): (Vec<Param>, u32) = (Vec::new(), 0);
        while !self.accept(')') {
            if !all.is_empty() {
                self.expect(',')?;
            }
            let line = self.peek().line;
            if !self.accept_word(".param") {
                return Err(self.expected("`.param`"));
            }
            let d = self.declared()?;
            let Some(size) = d.size(line)? else {
                return Err(EmuError::at(ErrorCode::Symbol, line, format!("parameter `{}` needs a size", d.name)));
            };
            let offset = end.next_multiple_of(d.align);
            end = offset.saturating_add(size);
            if end > MOST_PARAMS {
                let message = format!("the parameters have more than {MOST_PARAMS} bytes");
                return Err(EmuError::at(ErrorCode::Symbol, line, message));
            }
            all.push(Param { name: d.name, size, offset, is_array: d.is_array });
        }
        Ok(all)
    }

    /// `.loc file line column`, perhaps with `function_name` and `inlined_at`.
    pub(super) fn loc(&mut self) -> Result<Loc, EmuError> {
        self.next();
        let (file, line, column) = (self.int()?, self.small()?, self.small()?);
        let mut loc = Loc { file, line, column, inlined_at: None };
        while self.accept(',') {
            match self.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.accept('+') {
                        self.int()?;
                    }
                }
                "inlined_at" => loc.inlined_at = Some((self.int()?, self.small()?, self.small()?)),
                other => return Err(self.error(format!("`{other}` is no part of `.loc`"))),
            }
        }
        Ok(loc)
    }

    /// Parses one to three extents.
    pub(super) fn extents(&mut self) -> Result<[u32; 3], EmuError> {
        let mut extents = [1; 3];
        extents[0] = self.small()?;
        for extent in &mut extents[1..] {
            if self.accept(',') {
                *extent = self.small()?;
            }
        }
        Ok(extents)
    }
}
