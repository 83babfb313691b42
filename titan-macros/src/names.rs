//! The kind of a name before resolution: functions of the language, constants, other items.

use crate::ast::{Builtin, Function, Path};
use proc_macro2::{Span, TokenStream};

/// An item whose tokens are obtained from its companion macro.
#[derive(Debug, Clone)]
pub(crate) struct Companion {
    /// [`Path::key`], as [`Res::Constant`] and [`Callee::Device`] carry it.
    pub(crate) key: String,
    /// The path as written, without generic arguments.
    pub(crate) path: TokenStream,
    pub(crate) needed: Needed,
}

/// What the item of a companion is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    Function,
    Constant,
}

impl Companion {
    /// The last token of the path.
    pub(crate) fn span(&self) -> Span {
        self.path.clone().into_iter().last().map_or_else(Span::call_site, |t| t.span())
    }
}

/// The path of a companion as written, of its key.
pub(crate) fn text_of(key: &str) -> &str {
    key.split('#').next().unwrap_or(key)
}

/// A function of the language, by its unqualified name or with a path from `titan::`.
pub(crate) fn builtin(path: &Path) -> Option<Builtin> {
    let names: Vec<String> = path.segments.iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = match &names[..] {
        [.., ty @ ("Tile" | "Ring" | "Staging" | "Acc" | "Stage"), f] => {
            return match (*ty, *f) {
                ("Tile", "zeros") => Some(Builtin::TileZeros),
                ("Tile", "ones") => Some(Builtin::TileOnes),
                ("Tile", "full") => Some(Builtin::TileFull),
                ("Ring", "new") => Some(Builtin::RingNew),
                ("Staging", "new") => Some(Builtin::StagingNew),
                ("Acc", "zeros") => Some(Builtin::AccZeros),
                ("Acc", "from_tile") => Some(Builtin::AccFromTile),
                ("Stage", "join") => Some(Builtin::StageJoin),
                _ => None,
            };
        }
        [one] | [.., "titan" | "prelude", one] => *one,
        _ => return None,
    };
    FUNCTIONS.iter().find(|(n, _)| *n == name).map(|(_, b)| *b)
}

/// The functions of the language.
const FUNCTIONS: [(&str, Builtin); 13] = [
    ("program_id", Builtin::ProgramId),
    ("num_programs", Builtin::NumPrograms),
    ("cdiv", Builtin::Cdiv),
    ("unflatten", Builtin::Unflatten),
    ("unflatten_grouped", Builtin::UnflattenGrouped),
    ("pipelined", Builtin::Pipelined),
    ("mma", Builtin::Mma),
    ("mma_async", Builtin::MmaAsync),
    ("mma_async_reg", Builtin::MmaAsyncReg),
    ("role", Builtin::Role),
    ("iota", Builtin::Iota),
    ("select", Builtin::Select),
    ("Some", Builtin::Some),
];

/// The function of the language with a similar name.
pub(crate) fn similar_function(name: &str) -> Option<&'static str> {
    let names = FUNCTIONS.iter().map(|(n, _)| *n).filter(|n| *n != "Some");
    titan_core::text::closest(name, names)
}

/// Whether a name in a type position is a constant item, by its spelling.
pub(crate) fn is_constant_of_others(func: &Function, name: &str) -> bool {
    let is_generic = func.generics.iter().any(|g| g.name == name);
    !is_generic && is_constant_name(name) && titan_core::ir::Elem::from_name(name).is_none()
}

/// Whether a name is that of a type in the prelude or in Rust.
pub(crate) fn is_type(name: &str) -> bool {
    const TYPES: &[&str] = &[
        "Acc", "Cast", "Col", "D1", "D2", "D3", "D4", "Device", "Elem", "Float", "Int", "Num", "Own", "Ring", "Row",
        "Shape", "Smem", "Stage", "Staging", "Stream", "Tensor", "Tile", "Option", "String", "Vec", "Box", "usize",
        "isize", "char", "str",
    ];
    TYPES.contains(&name) || titan_core::ir::Elem::from_name(name).is_some()
}

/// `HEAD_DIM`, by Rust's convention.
pub(crate) fn is_constant_name(name: &str) -> bool {
    name.chars().any(|c| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}
