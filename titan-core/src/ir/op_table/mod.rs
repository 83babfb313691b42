//! The op table: one row for each operation, with everything that is particular to it.
//!
//! A row states how the operation is written in the text form (mnemonic, attributes, arrangement of the operands), its [`Facts`] (effect,
//! accesses and ordering, completion, the number that hardware limits), and its documentation: the spelling in kernels, operands,
//! results, elements, meaning, and the rules that a use can violate. Printer, parser, verifier, analyses and documents read the rows.
//! A new operation is a variant of its enum and a row in the file of its dialect; without a complete row the crate does not compile,
//! because the matches that `table!` makes of the rows have no wildcard arm.
//!
//! A row has these columns; those with a question mark are for operations with attributes:
//!
//! ```text
//! "mnemonic" Group [kind, with a name for each attribute]
//!     <a, b> MEANING ?         integers in angle brackets, and what the parser says of them if they are missing
//!     @list(a) ?               an attribute with a form of its own, read by `Head::list` and written by `Written::list`
//!     {a = 1, b = 2 or 0} ?    attributes in braces: the example of a message, and the default value that is not printed
//!     : ty(a, b) ?             attributes that are not written here but in the first result type, read by `Head::ty`
//!     Form, facts,
//!     "spelling", "operands" => "result", ELEMENTS, "meaning", [codes];
//! ```
//!
//! `docs/ops.md` and `docs/ir.md` are generated from the table. The operand types are defined by [`infer`](super::infer), and the results
//! by `docs/semantics.md`; the table summarizes both in one line. In the column *elements*, `numbers` are `f64 f32 f16 bf16` and the
//! integers of 8 bits and more; `floats` and `integers` are the two halves of that. T0801 (invalid operands) is not repeated in every row.

mod amd;
mod facts;
mod group;
mod local;
mod nv;
mod region;
pub(crate) mod syntax;
mod tensor;
mod tile;
mod ttg;

pub use facts::Facts;
pub use group::Group;
pub(super) use tile::dialect;
pub(crate) use tile::{read, written};
pub(super) use ttg::ttg_facts;

use super::{Family, OpKind};
use crate::diag::Code;
use syntax::Form;

/// The documentation of an operation.
#[derive(Debug, PartialEq, Eq)]
pub struct OpRow {
    /// The name in the text form.
    pub mnemonic: &'static str,
    /// The arrangement of the operands in the text form.
    pub(crate) form: Form,
    /// The group under which the documentation lists it.
    pub group: Group,
    /// The spelling in kernels; several spellings are separated by two spaces.
    pub surface: &'static str,
    /// The operands, in order.
    pub operands: &'static str,
    /// The results.
    pub result: &'static str,
    /// The element types that it supports.
    pub elements: &'static str,
    /// The meaning, in one line.
    pub meaning: &'static str,
    /// The rules that a use can violate, besides T0801.
    pub errors: &'static [Code],
}

/// All rows, by group.
pub fn ops() -> impl Iterator<Item = &'static OpRow> {
    [tile::ROWS, ttg::ROWS, local::ROWS, region::ROWS, nv::ROWS, tensor::ROWS, amd::ROWS].into_iter().flatten()
}

/// The row of an operation.
#[must_use]
pub fn row(kind: &OpKind) -> &'static OpRow {
    tile::row(kind)
}

/// The mnemonic of an operation.
#[must_use]
pub fn mnemonic(kind: &OpKind) -> &'static str {
    row(kind).mnemonic
}

impl OpKind {
    /// The facts that the row of the operation states.
    #[must_use]
    pub const fn facts(&self) -> Facts {
        tile::facts(self)
    }
}

const ANY: &str = "any";
const NUMBERS: &str = "numbers";
const FLOATS: &str = "floats";
const INTEGERS: &str = "integers";
const BITS: &str = "integers, bool";
const COMPARED: &str = "numbers, bool";
const I32: &str = "i32";
const BOOL: &str = "bool";
const ATOMIC: &str = "floats, integers of 16 bits and more";
const WIDE: &str = "integers of 16 bits and more";
const WHOLE: &str = "8 bits and more";
const TRIPLES: &str = "the triples of docs/semantics.md";
const NONE: &str = "";

/// The tables of a dialect: its rows, and, for each operation, its row, its facts, and the reading and writing of its attributes.
/// The first line names the enum, the function that returns the facts of an operation, and the type of these facts. `dialects` lists the
/// variants that are dialects with a file of their own.
macro_rules! table {
    ($Kind:ident, $facts_of:ident -> $Facts:ident;
     $($mnemonic:literal $group:ident [$($kind:tt)+]
        $(<$($int:ident),+> $ints:tt)? $(@$own:ident($whole:ident))?
        $({$($name:ident $(= $example:tt)? $(or $default:expr)?),+})? $(: $ty:ident($($part:ident),+))?
        $form:ident, $facts:expr,
        $surface:literal, $operands:literal => $result:literal, $elements:expr, $meaning:literal, [$($code:ident)*];)*
     $(dialects { $($dialect:path, $op:ident => $module:ident $(as $family:expr)?;)+ })?
    ) => {
        /// The rows, by group.
        pub(super) static ROWS: &[OpRow] = &[$(table!(@row $mnemonic $group $form
            $surface $operands $result $elements, $meaning [$($code)*])),*];

        /// The row of an operation.
        #[expect(unused_variables, reason = "a row names all attributes of its operation")]
        pub(super) const fn row(kind: &$Kind) -> &'static OpRow {
            match kind {
                $($($kind)+ => &const { table!(@row $mnemonic $group $form
                    $surface $operands $result $elements, $meaning [$($code)*]) },)*
                $($($dialect($op) => $module::row($op),)+)?
            }
        }

        /// The facts of an operation.
        #[expect(unused_variables, reason = "a row names all attributes of its operation, and not all of them are facts")]
        pub(in crate::ir) const fn $facts_of(kind: &$Kind) -> $Facts {
            match kind {
                $($($kind)+ => $facts,)*
                $($($dialect($op) => $module::facts($op),)+)?
            }
        }

        /// Writes the attributes of an operation, except for those that its result type contains.
        pub(crate) fn written<'k>(kind: &'k $Kind, out: &mut Written<'k>) {
            match kind {
                $($($kind)+ => {
                    $($(out.int($int);)+)?
                    $(out.$own($whole);)?
                    $($(out.named(stringify!($name), $name, table!(@default $($default)?));)+)?
                    $($(let _ = $part;)+)?
                })*
                $($($dialect($op) => $module::written($op, out),)+)?
            }
        }

        /// The operation with a mnemonic and these attributes.
        pub(crate) fn read(mnemonic: &str, head: &Head<'_>) -> Result<$Kind, HeadError> {
            Ok(match mnemonic {
                $($mnemonic => {
                    const EXAMPLE: &str = concat!($($($(stringify!($name), " = ", stringify!($example), ", ",)?)+)?);
                    head.only(&[$($(stringify!($int),)+)? $(stringify!($whole))?], &[$($(stringify!($name)),+)?], EXAMPLE)?;
                    $(let [$($int),+] = head.ints($ints)?; $(let $int = Int::read($int)?;)+)?
                    $(let $whole = head.$own()?;)?
                    $($(let $name = head.named(stringify!($name), table!(@default $($default)?), EXAMPLE)?;)+)?
                    $(let ($($part,)+) = head.$ty()?;)?
                    $($kind)+
                })*
                _ => {
                    $($(let found = $module::read(mnemonic, head);
                    if found != Err(HeadError::Unknown) {
                        return found.map($dialect);
                    })+)?
                    return Err(HeadError::Unknown);
                }
            })
        }

        table! { @dialect $Kind [$([$($kind)+])*] $($($dialect, $op $(as $family)?;)+)? }
    };
    (@row $mnemonic:literal $group:ident $form:ident
        $surface:literal $operands:literal $result:literal $elements:expr, $meaning:literal [$($code:ident)*]) => {
        OpRow {
            mnemonic: $mnemonic,
            form: Form::$form,
            group: Group::$group,
            surface: $surface,
            operands: $operands,
            result: $result,
            elements: $elements,
            meaning: $meaning,
            errors: &[$(Code::$code),*],
        }
    };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
    (@dialect $Kind:ident [$([$($kind:tt)+])*] $($dialect:path, $op:ident as $family:expr;)+) => {
        /// The dialect of an operation, if it has one with a file of its own.
        #[expect(unused_variables, reason = "a row names all attributes of its operation")]
        pub(in crate::ir) const fn dialect(kind: &$Kind) -> Option<Family<'_>> {
            match kind {
                $($($kind)+ => None,)*
                $($dialect($op) => Some($family),)+
            }
        }
    };
    (@dialect $Kind:ident $kinds:tt $($dialect:path, $op:ident;)*) => {};
}

use table;
