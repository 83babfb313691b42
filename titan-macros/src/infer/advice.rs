//! Messages about operands, arguments and methods, with the help that goes with each.

use super::method::Call;
use super::misfit::expected_help;
use super::misfit::extents;
use super::pipe::PipeTy;
use super::{ITy, Infer, S};
use crate::ast::{Expr, ExprKind};
use crate::method::{self, Method, Receiver, lookup};
use crate::usage;
use proc_macro2::{Ident, Span};
use titan_core::diag::Code;
use titan_core::ir::{Access, Elem};

impl Infer<'_> {
    /// A value of one kind where another is expected.
    pub(super) fn wrong_kind(&mut self, want: &ITy, got: &ITy, span: Span) {
        let title = format!("expected {}, found {}", self.describe(want), self.describe(got));
        match self.kind_help(want, got) {
            Some(help) => self.cx.error_help(Code::Arguments, span, title, help),
            None => self.cx.error(Code::Arguments, span, title),
        }
    }

    fn kind_help(&self, want: &ITy, got: &ITy) -> Option<String> {
        Some(match (want, got) {
            (ITy::Tensor(t), ITy::Tile(..)) if t.access == Access::Mut => {
                "a tile is stored by `y.store_tile([i], v)`".to_owned()
            }
            (ITy::Scalar(_) | ITy::Tile(..) | ITy::Row(..) | ITy::Col(..), ITy::Tensor(t)) => load_help(t.rank),
            (ITy::Tile(e, s), ITy::Scalar(_)) => {
                let tile = match (self.elem_of(*e), self.shape_of(*s)) {
                    // Rust has no literals of the small floats.
                    (Some(e), Some(s)) if e.is_float() && e != Elem::F32 && e != Elem::F64 => {
                        format!("Tile::<f32, {}>::full(v).cast::<{e}>()", extents(s))
                    }
                    (Some(e), Some(s)) => format!("Tile::<{e}, {}>::full(v)", extents(s)),
                    _ => "Tile::<f32, 64>::full(v)".to_owned(),
                };
                format!("`{tile}` makes a tile that repeats one value; `y.set([i], v)` stores one element")
            }
            (ITy::Tile(_, s), ITy::Row(..)) => match self.shape_of(*s).filter(|s| s.rank() == 2) {
                Some(s) => format!("`.broadcast::<0, {}>()` in place of `.row()` makes a whole tile", s[0]),
                None => "`.broadcast::<0, M>()` in place of `.row()` makes a tile of M rows".to_owned(),
            },
            (ITy::Tile(_, s), ITy::Col(..)) => match self.shape_of(*s).filter(|s| s.rank() == 2) {
                Some(s) => format!("`.broadcast::<1, {}>()` in place of `.col()` makes a whole tile", s[1]),
                None => "`.broadcast::<1, N>()` in place of `.col()` makes a tile of N columns".to_owned(),
            },
            (ITy::Scalar(_), ITy::Tile(..)) => {
                "reduce the tile along each axis to one value: `.reduce_sum::<0>()`".to_owned()
            }
            (ITy::Range, ITy::Scalar(_)) => "write a range with both ends: `0..n`".to_owned(),
            (ITy::Array(item, n), ITy::Scalar(_) | ITy::Tuple(_) | ITy::Tile(..))
                if matches!(**item, ITy::Scalar(_) | ITy::Tile(..)) =>
            {
                in_brackets(*n)
            }
            (ITy::Tile(..) | ITy::Scalar(_), ITy::Pipe(PipeTy::View(..))) => {
                "`.load()` loads a tile of a stage to registers: `stage.get().load()`".to_owned()
            }
            (ITy::Tensor(_), _) => "name a parameter that is a tensor, or a view of one".to_owned(),
            (ITy::Unit, _) => "end the statement with `;`, or store the value".to_owned(),
            (_, ITy::Unit) => "a store has no value, and an `if` has one only with an `else`".to_owned(),
            _ => return None,
        })
    }

    /// Reports a tensor where a tile or scalar is expected.
    pub(super) fn in_memory(&mut self, tensor: &ITy, what: &str, span: Span) {
        let ITy::Tensor(t) = tensor else { return };
        let title = format!("{} is memory: {what}", self.describe(tensor));
        self.cx.error_help(Code::Arguments, span, title, load_help(t.rank));
    }

    /// A condition that is not one `bool`.
    pub(super) fn not_a_condition(&mut self, ty: &ITy, lazy: Option<&str>, span: Span) {
        let title = match lazy {
            Some(op) => format!("`{op}` takes two conditions, one `bool` each, not {}", self.describe(ty)),
            None => format!("a condition is one `bool`, not {}", self.describe(ty)),
        };
        let help = match (ty, lazy) {
            (ITy::Tile(..) | ITy::Row(..) | ITy::Col(..), Some(op)) => {
                let one = if op == "&&" { "&" } else { "|" };
                format!("masks combine with `{one}`, in parentheses: `(a > b) {one} (a < c)`")
            }
            (ITy::Tile(..) | ITy::Row(..) | ITy::Col(..), None) => {
                "`select(mask, a, b)` chooses element by element; `mask.any::<0>()` and `mask.all::<0>()` reduce a vector to one `bool`"
                    .to_owned()
            }
            (ITy::Scalar(_), _) => "compare it: `n != 0`".to_owned(),
            (ITy::Tensor(t), _) if t.optional => "`option.is_some()`, or `if let Some(x) = option { .. }`".to_owned(),
            _ => "write a comparison of scalars, or a `bool`".to_owned(),
        };
        self.cx.error_help(Code::Condition, span, title, help);
    }

    /// Reports a mask whose rank is not that of the other operands of its `select`; returns whether it did.
    pub(super) fn small_mask(&mut self, mask: S, arms: &[ITy], span: Span) -> bool {
        let arm = arms.iter().find_map(|t| if let ITy::Tile(_, s) = t { self.shape_of(*s) } else { None });
        let (Some(mask), Some(arm)) = (self.shape_of(mask), arm) else { return false };
        if mask.rank() == arm.rank() {
            return false;
        }
        let title = format!("a mask of shape {mask} does not fit tiles of shape {arm}");
        self.cx.error_help(Code::ShapeMismatch, span, title, expected_help(arm, mask));
        true
    }

    /// Help that shows how the first operand of a `select` is turned into a mask.
    pub(super) fn mask_help(&self, mask: &ITy, arms: &[ITy]) -> String {
        let shape = arms.iter().find_map(|t| match t {
            ITy::Tile(_, s) => self.shape_of(*s).filter(|s| s.rank() == 2),
            _ => None,
        });
        match mask {
            ITy::Row(..) => format!(
                "`.broadcast::<0, {}>()` in place of `.row()` makes a whole mask",
                shape.map_or("M".to_owned(), |s| s[0].to_string())
            ),
            ITy::Col(..) => format!(
                "`.broadcast::<1, {}>()` in place of `.col()` makes a whole mask",
                shape.map_or("N".to_owned(), |s| s[1].to_string())
            ),
            ITy::Scalar(_) => "compare it: `n != 0`".to_owned(),
            _ => "to choose for the whole program, write `if condition { a } else { b }`".to_owned(),
        }
    }

    /// The wrong number of arguments for an operation of the language.
    pub(super) fn wrong_count(&mut self, args: &[Expr], n: usize, what: &str, span: Span) {
        let count = if n == 1 { "one argument".to_owned() } else { format!("{n} arguments") };
        let title = match n {
            0 => format!("`{what}` takes no arguments"),
            _ => format!("`{what}` takes {count}, not {}", args.len()),
        };
        let help = match (args, what) {
            // The axis was meant.
            ([Expr { kind: ExprKind::Int(axis, ..), .. }], _) if n == 0 && axis_in_turbofish(what) => {
                Some(format!("the axis is a constant generic argument: `.{what}::<{axis}>()`"))
            }
            _ if n == 0 && axis_in_turbofish(what) => {
                Some(format!("the axis is a constant generic argument: `.{what}::<0>()`"))
            }
            ([], "max" | "min") => {
                Some(format!("write `x.{what}(y)`, or `.reduce_{what}::<0>()` for the {what} along an axis"))
            }
            _ => usage::example(what).map(|example| format!("as in `{example}`")),
        };
        match help {
            Some(help) => self.cx.error_help(Code::Arguments, span, title, help),
            None => self.cx.error(Code::Arguments, span, title),
        }
    }

    /// The type of an expression whose value is used. An operation without a value is reported here; `more` continues the help.
    pub(super) fn value(&mut self, e: &Expr, more: &str) -> ITy {
        let before = self.cx.reports();
        let ty = self.expr(e);
        let (ITy::Unit, ExprKind::Method { name, .. }) = (&ty, &e.kind) else { return ty };
        if self.cx.reports() == before {
            let why = match name.to_string() {
                n if n.starts_with("atomic_") => {
                    let fetch = n.replace("atomic_", "fetch_").replace("_tile", "");
                    format!("`y.{fetch}([i, ..], v)` returns what was there before")
                }
                _ => format!("it only stores{more}"),
            };
            self.cx.error_help(Code::Arguments, name.span(), format!("`{name}` returns no value"), why);
        }
        ITy::Unknown
    }

    /// Reports a method that the receiver does not have.
    pub(super) fn no_method(&mut self, ty: &ITy, receiver: Option<Receiver>, name: &Ident) -> ITy {
        let text = name.to_string();
        let title = format!("{} has no operation `{text}`", self.describe(ty));
        let known = |r| lookup(r, &text).is_some();
        let help = match ty {
            ITy::Row(..) if text == "broadcast" => {
                "`.broadcast::<0, M>()` in place of `.row()` makes a tile of M rows".to_owned()
            }
            ITy::Col(..) if text == "broadcast" => {
                "`.broadcast::<1, N>()` in place of `.col()` makes a tile of N columns".to_owned()
            }
            ITy::Row(..) | ITy::Col(..) if known(Receiver::Tile) => {
                let line = if matches!(ty, ITy::Row(..)) { "row" } else { "col" };
                let dots = match lookup(Receiver::Tile, &text) {
                    Some(Method::Unary(_) | Method::Composed(_)) => "",
                    _ => "..",
                };
                format!("apply it before `.{line}()`: `x.{text}({dots}).{line}()`")
            }
            ITy::Row(..) | ITy::Col(..) => {
                "rows and columns only have operators; call other operations on the vector, before `.row()` or `.col()`"
                    .to_owned()
            }
            ITy::Tensor(t) if known(Receiver::Tile) => format!("{}, then `.{text}(..)`", load_help(t.rank)),
            ITy::Tensor(_) => match usage::foreign_method_of_tensors(&text) {
                Some(help) => help.to_owned(),
                None => similar(Receiver::Tensor, &text),
            },
            ITy::Tile(..) | ITy::Scalar(_) if known(Receiver::Tensor) && usage::foreign_method(&text).is_none() => {
                format!("`{text}` is an operation of tensors")
            }
            ITy::Scalar(_) if known(Receiver::Tile) => format!("`{text}` is an operation of tiles; this is one number"),
            ITy::Tile(..) | ITy::Scalar(_) => match usage::foreign_method(&text) {
                Some(help) => help.to_owned(),
                None => similar(if matches!(ty, ITy::Tile(..)) { Receiver::Tile } else { Receiver::Scalar }, &text),
            },
            ITy::Array(..) => "read an element by `a[0]`, and loop over a range".to_owned(),
            _ => receiver.map_or_else(|| LISTED.to_owned(), |r| all_of(r, &text)),
        };
        self.cx.error_help(Code::UnknownOp, name.span(), title, help);
        ITy::Unknown
    }

    /// Reports a store through a read-only view.
    pub(super) fn read_only(&mut self, made_by: &str, call: &Call<'_>) {
        let title = format!("`{}` through a read-only view", call.name);
        self.cx.error_help(Code::ReadView, call.span(), title, format!("create the view by `{made_by}_mut`"));
    }
}

const LISTED: &str = "docs/language.md lists the operations";

/// Help that names the operation with a similar name, or all operations of the receiver.
fn all_of(receiver: Receiver, name: &str) -> String {
    let list: Vec<String> = method::names(receiver).map(|n| format!("`{n}`")).collect();
    match titan_core::text::closest(name, method::names(receiver)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if list.is_empty() => LISTED.to_owned(),
        None => format!("it has {}", list.join(", ")),
    }
}

/// Help that names the operation with a similar name, or the page that lists all.
fn similar(receiver: Receiver, name: &str) -> String {
    match titan_core::text::closest(name, method::names(receiver)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => LISTED.to_owned(),
    }
}

pub(super) fn load_help(rank: u8) -> String {
    let (extents, at) = match rank {
        1 => ("64", "[i]"),
        2 => ("16, 64", "[i, j]"),
        3 => ("1, 16, 64", "[i, j, k]"),
        _ => return "load a tile of a view of rank 4 or less: `x.index::<0>(i).load_tile::<..>(..)`".to_owned(),
    };
    format!("load a tile of it: `x.load_tile::<{extents}>({at})`")
}

/// Help that shows how an array of `n` indices is written.
pub(super) fn in_brackets(n: usize) -> String {
    let names: Vec<&str> = ["i", "j", "k", "l", "m"].into_iter().take(n).collect();
    format!("write one for each axis, in brackets: `[{}]`", names.join(", "))
}

/// Whether the axis of an operation is written in its turbofish.
fn axis_in_turbofish(name: &str) -> bool {
    name.starts_with("reduce_") || name.starts_with("scan_") || matches!(name, "argmax" | "argmin" | "any" | "all")
}
