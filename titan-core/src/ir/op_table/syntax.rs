//! How operations are written in the text form: the arrangement of their operands, and their attributes.
//!
//! The rows of the op table use this to write and to read attributes, so that printer and parser always agree.
//!
//! Deliberately absent: constants, loops, branches and roles, whose text the printer and the parser of `crate::text` know themselves.

use crate::ir::{
    BarrierTy, CallProxy, Collector, Elem, FenceSpace, Fill, MmaKind, Pipe, Proxy, Scope, Strided, TensorElem,
    TensorShape, TileShape, Touch, Ty,
};

/// The arrangement of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `op %a, %b`
    Plain,
    /// `op %t[%i, %j]`
    At,
    /// `op %t[%i, %j] or %padding`
    AtOr,
    /// `op %t[%i, %j], %v`
    AtValue,
    /// `op %t[%i, %j], %a, %b`: an index for each axis of the tensor; of a tile of a tensor instead of a tensor, as `Plain`
    AtMany,
    /// `op "text", %a, %b`
    TextFirst,
    /// `op %a, "text"`
    TextLast,
}

impl Form {
    /// The arrangement if the first operand has the type `first`.
    pub(crate) const fn of(self, first: Option<Ty>) -> Form {
        if matches!((self, first), (Form::AtMany, Some(Ty::Source(..)))) { Form::Plain } else { self }
    }

    /// An example of the arrangement, for messages.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Form::Plain => "%a, %b, …",
            Form::At => "%t[%i, …]",
            Form::AtOr => "%t[%i, …] or %padding",
            Form::AtValue => "%t[%i, …], %value",
            Form::AtMany => "%t[%i, …], %a, …",
            Form::TextFirst => "\"text\", %a, …",
            Form::TextLast => "%condition, \"text\"",
        }
    }
}

/// The reason why a mnemonic with attributes is not an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadError {
    /// No operation has this mnemonic.
    Unknown,
    /// The operation requires this number of integers in angle brackets, with this meaning.
    Attributes(usize, &'static str),
    /// An integer is out of range.
    Range(i64),
    /// The operation is determined by its result type, which is missing or of another kind.
    NeedsType(&'static str),
    /// The operation requires a string in quotes.
    NeedsText,
    /// The operation requires these attributes in braces; empty if it has none.
    Named(&'static str),
}

/// The value of an attribute in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// An integer.
    Int(i64),
    /// A word, such as the name of a proxy.
    Word(String),
}

/// The parts of an operation before and after the operands.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    /// The integers in angle brackets.
    pub(crate) attrs: &'a [i64],
    /// The first stated result type.
    pub(crate) ty: Option<Ty>,
    /// The string among the operands.
    pub(crate) text: Option<String>,
    /// The attributes in braces.
    pub(crate) named: &'a [(String, Named)],
}

impl Head<'_> {
    /// Checks that no other attributes are stated than those that the operation has.
    pub(super) fn only(&self, ints: &[&str], named: &[&str], example: &'static str) -> Result<(), HeadError> {
        if ints.is_empty() {
            let [] = self.ints("nothing")?;
        }
        let known = self.named.iter().all(|(name, _)| named.contains(&name.as_str()));
        if known { Ok(()) } else { Err(HeadError::Named(trimmed(example))) }
    }

    pub(super) fn ints<const N: usize>(&self, meaning: &'static str) -> Result<[i64; N], HeadError> {
        self.attrs.try_into().map_err(|_| HeadError::Attributes(N, meaning))
    }

    pub(super) fn named<T: Attr>(&self, name: &str, default: Option<T>, example: &'static str) -> Result<T, HeadError> {
        let value = match self.named.iter().find(|(n, _)| n == name) {
            Some((_, value)) => T::read(value)?,
            None => default,
        };
        value.ok_or(HeadError::Named(trimmed(example)))
    }

    /// A permutation. Axes that are not stated stay in their places.
    pub(super) fn permutation(&self) -> Result<[u8; 4], HeadError> {
        if self.attrs.is_empty() || self.attrs.len() > 4 {
            return Err(HeadError::Attributes(2, "the order of the axes, one to four integers"));
        }
        let mut perm = [0, 1, 2, 3];
        for (slot, a) in perm.iter_mut().zip(self.attrs) {
            *slot = narrow(*a)?;
        }
        Ok(perm)
    }

    /// The number of a loop; 0, the innermost one, need not be stated.
    pub(super) fn level(&self) -> Result<u32, HeadError> {
        if self.attrs.is_empty() { Ok(0) } else { narrow(self.ints::<1>("how many loops to leave out")?[0]) }
    }

    pub(super) fn text(&self) -> Result<String, HeadError> {
        let [] = self.ints("nothing")?;
        self.text.clone().ok_or(HeadError::NeedsText)
    }

    /// An attribute of an operation that the parser reads itself.
    pub(super) const fn own<T>(&self) -> Result<(T,), HeadError> {
        Err(HeadError::Unknown)
    }

    /// A flag that the operation does not have, unlike others of its variant.
    pub(super) const fn off(&self) -> Result<(bool,), HeadError> {
        Ok((false,))
    }

    /// No box with element strides, which only tensor copies have.
    pub(super) const fn unstrided(&self) -> Result<(Strided,), HeadError> {
        Ok((Strided::NONE,))
    }

    pub(super) fn elem(&self) -> Result<(Elem,), HeadError> {
        match self.ty {
            Some(Ty::Scalar(e) | Ty::Tile(e, _)) => Ok((e,)),
            Some(_) | None => Err(HeadError::NeedsType("a scalar or tile")),
        }
    }

    pub(super) fn tile(&self) -> Result<(TileShape,), HeadError> {
        Ok((self.ty.and_then(Ty::tile_shape).ok_or(HeadError::NeedsType("a tile"))?,))
    }

    pub(super) fn rows_of_tile(&self) -> Result<(i32, i32), HeadError> {
        rows(self.tile()?.0).ok_or(HeadError::NeedsType("a rank-2 tile"))
    }

    pub(super) fn source(&self) -> Result<(TileShape,), HeadError> {
        match self.ty {
            Some(Ty::Source(_, shape)) => Ok((shape,)),
            Some(_) | None => Err(HeadError::NeedsType("as in `source<128x64xf16>`")),
        }
    }

    pub(super) fn rows_of_source(&self) -> Result<(i32, i32), HeadError> {
        rows(self.source()?.0).ok_or(HeadError::NeedsType("a rank-2 source"))
    }

    pub(super) fn smem(&self) -> Result<(Elem, TileShape), HeadError> {
        match self.ty {
            Some(Ty::Smem(elem, shape)) => Ok((elem, shape)),
            Some(_) | None => Err(HeadError::NeedsType("as in `smem<128x64xf16>`")),
        }
    }

    /// The extents of a tile in shared memory.
    pub(super) fn extents(&self) -> Result<(TileShape,), HeadError> {
        Ok((self.smem()?.1,))
    }

    /// The number of a token.
    pub(super) fn vtok(&self) -> Result<(u32,), HeadError> {
        match self.ty {
            Some(Ty::Barrier(BarrierTy::Vtok(_, n))) => Ok((n,)),
            Some(_) | None => Err(HeadError::NeedsType("as in `vtok<cp_async, 0>`")),
        }
    }
}

fn rows(shape: TileShape) -> Option<(i32, i32)> {
    if let [rows, width] = shape[..] { Some((rows, width)) } else { None }
}

/// An example, which the table makes with a comma after each attribute.
fn trimmed(example: &'static str) -> &'static str {
    example.trim_end_matches(", ")
}

fn narrow<T: TryFrom<i64>>(v: i64) -> Result<T, HeadError> {
    T::try_from(v).map_err(|_| HeadError::Range(v))
}

/// The attributes of an operation, as they are written.
#[derive(Debug)]
pub(crate) struct Written<'k> {
    /// The rank of the first operand.
    rank: usize,
    /// The integers in angle brackets.
    pub(crate) ints: Vec<i64>,
    /// The attributes in braces.
    pub(crate) named: Vec<(&'static str, String)>,
    /// The string among the operands.
    pub(crate) text: Option<&'k str>,
}

impl<'k> Written<'k> {
    /// No attributes, of an operation whose first operand has this rank.
    pub(crate) const fn new(rank: usize) -> Written<'k> {
        Written { rank, ints: Vec::new(), named: Vec::new(), text: None }
    }

    pub(super) fn int<T: Int>(&mut self, v: &T) {
        self.ints.push(v.int());
    }

    pub(super) fn named<T: Attr>(&mut self, name: &'static str, v: &T, default: Option<T>) {
        if default.as_ref() != Some(v) {
            self.named.push((name, v.word()));
        }
    }

    pub(super) fn permutation(&mut self, perm: &[u8; 4]) {
        let tail_is_identity = (self.rank..4).all(|i| usize::from(perm[i]) == i);
        let n = if tail_is_identity { self.rank.min(4) } else { 4 };
        self.ints.extend(perm[..n].iter().map(|p| i64::from(*p)));
    }

    pub(super) fn level(&mut self, level: &u32) {
        self.ints.extend((*level != 0).then_some(i64::from(*level)));
    }

    pub(super) fn text(&mut self, text: &'k str) {
        self.text = Some(text);
    }
}

/// An attribute in angle brackets.
pub(super) trait Int: Sized {
    fn int(&self) -> i64;
    fn read(v: i64) -> Result<Self, HeadError>;
}

/// An attribute in braces.
pub(super) trait Attr: Sized + PartialEq {
    fn word(&self) -> String;
    /// The value; `None` if it is of another kind.
    fn read(value: &Named) -> Result<Option<Self>, HeadError>;
}

macro_rules! ints {
    ($($t:ty)*) => {$(
        impl Int for $t {
            fn int(&self) -> i64 {
                i64::from(*self)
            }
            fn read(v: i64) -> Result<Self, HeadError> {
                narrow(v)
            }
        }

        impl Attr for $t {
            fn word(&self) -> String {
                self.to_string()
            }
            fn read(value: &Named) -> Result<Option<Self>, HeadError> {
                if let Named::Int(v) = value { narrow(*v).map(Some) } else { Ok(None) }
            }
        }
    )*};
}

ints! { u8 u16 u32 i32 }

impl Int for Pipe {
    fn int(&self) -> i64 {
        i64::try_from(self.index()).unwrap_or(i64::MAX)
    }
    fn read(v: i64) -> Result<Self, HeadError> {
        let n: u32 = narrow(v)?;
        Ok(Pipe::new(n as usize))
    }
}

/// Attributes that are words, each with the function that reads it. What does not start with a letter is in quotes.
macro_rules! words {
    ($($t:ty: $read:expr;)*) => {$(
        impl Attr for $t {
            fn word(&self) -> String {
                let word = self.to_string();
                if word.starts_with(|c: char| c.is_ascii_digit()) { format!("\"{word}\"") } else { word }
            }
            fn read(value: &Named) -> Result<Option<Self>, HeadError> {
                Ok(if let Named::Word(word) = value { $read(word) } else { None })
            }
        }
    )*};
}

words! {
    bool: |word: &str| word.parse().ok();
    Proxy: Proxy::from_name;
    Scope: Scope::from_name;
    FenceSpace: FenceSpace::from_name;
    Fill: Fill::from_name;
    CallProxy: CallProxy::from_name;
    MmaKind: MmaKind::from_name;
    TensorElem: TensorElem::from_name;
    TensorShape: TensorShape::from_name;
    Collector: Collector::from_name;
}

/// The accesses of a call to its regions, in quotes if there are several.
impl Attr for Vec<Touch> {
    fn word(&self) -> String {
        let words: Vec<&str> = self.iter().map(|t| t.name()).collect();
        if let [word] = words[..] { word.to_owned() } else { format!("\"{}\"", words.join(", ")) }
    }
    fn read(value: &Named) -> Result<Option<Self>, HeadError> {
        let Named::Word(words) = value else { return Ok(None) };
        Ok(words.split(',').map(|word| Touch::from_name(word.trim())).collect())
    }
}

/// An attribute that need not be stated.
impl<T: Attr> Attr for Option<T> {
    fn word(&self) -> String {
        self.as_ref().map_or(String::new(), T::word)
    }
    fn read(value: &Named) -> Result<Option<Self>, HeadError> {
        Ok(T::read(value)?.map(Some))
    }
}
