//! Parts of tiles, tiles that are put together, picked elements, and reductions of tuples of tiles.

use super::method::Call;
use super::{E, ITy, Infer};
use crate::ast::{Expr, ExprKind};
use crate::consts::{self, ConstValue};
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

impl Infer<'_> {
    /// `x.slice::<A, B>([i, j])`: the extents of the part, and the constant coordinates of its first element.
    pub(super) fn part(&mut self, e: E, shape: TileShape, call: &Call<'_>) -> ITy {
        if !self.takes(call, 1) {
            return ITy::Unknown;
        }
        let Some(to) = self.generic_shape(call) else { return ITy::Unknown };
        let Some(from) = self.constants(&call.args[0], shape, call) else { return ITy::Unknown };
        let span = call.span();
        if to.rank() != shape.rank() {
            let title = format!("a part of {} axes of a tile of shape {shape}", to.rank());
            let help = "write an extent for each axis of the tile; `.reshape::<..>()` removes axes of extent 1";
            self.cx.error_help(Code::TilePart, span, title, help);
            return ITy::Unknown;
        }
        for (axis, first) in from.iter().enumerate() {
            let end = first.saturating_add(i64::from(to[axis]));
            if *first < 0 || end > i64::from(shape[axis]) {
                let title =
                    format!("elements {first} to {} along axis {axis}, of which the tile has {}", end - 1, shape[axis]);
                let help = "a part is inside of its tile: the coordinates are those of its first element";
                self.cx.error_help(Code::TilePart, call.args[0].span, title, help);
                return ITy::Unknown;
            }
        }
        ITy::Tile(e, self.known_shape(to))
    }

    /// Coordinates that are constants, one for each axis of a tile.
    fn constants(&mut self, arg: &Expr, shape: TileShape, call: &Call<'_>) -> Option<Vec<i64>> {
        let n = self.coordinates_of_tile(arg, shape, call)?;
        let ExprKind::Array(list, _) = &arg.kind else {
            let help = "write them in brackets, as in `x.slice::<4, 16>([0, 32])`";
            self.cx.error_help(Code::ConstEval, arg.span, "the coordinates of a part must be written out", help);
            return None;
        };
        let mut out = Vec::with_capacity(n);
        for e in list {
            let Ok(ConstValue::Int(value)) = consts::eval(e, &self.env) else {
                let title = "the coordinates of a part must be constants";
                let help = "use numbers and constant parameters; `x.at([i, j])` picks one element by an `i32`, and a tensor is loaded from anywhere";
                self.cx.error_help(Code::ConstEval, e.span, title, help);
                return None;
            };
            out.push(value);
        }
        Some(out)
    }

    /// `[i, j]`: an `i32` for each axis of a tile. Returns their number.
    fn coordinates_of_tile(&mut self, arg: &Expr, shape: TileShape, call: &Call<'_>) -> Option<usize> {
        let name = call.name.to_string();
        let example = if name == "at" { "x.at([i, j])" } else { "x.slice::<4, 16>([0, 32])" };
        match self.expr(arg) {
            ITy::Unknown | ITy::Never => None,
            ITy::Array(item, n) => {
                if n != shape.rank() {
                    let title =
                        format!("{} for a tile of rank {}", titan_core::diag::counted(n, "coordinate"), shape.rank());
                    let help = format!("write one for each axis, as in `{example}`");
                    self.cx.error_help(Code::TilePart, arg.span, title, help);
                    return None;
                }
                if !self.index_elem(&item, arg.span) {
                    return None;
                }
                let want = ITy::Scalar(self.known(Elem::I32));
                self.unify(&want, &item, arg.span);
                Some(n)
            }
            other => {
                let title = format!("`{name}` takes an array of coordinates, not {}", self.describe(&other));
                self.cx.error_help(Code::Arguments, arg.span, title, format!("as in `{example}`"));
                None
            }
        }
    }

    /// `a.concat::<A, B>(b)`: the result differs from both tiles along one axis, of which it has the elements of both.
    pub(super) fn concat(&mut self, e: E, shape: TileShape, call: &Call<'_>) -> ITy {
        if !self.takes(call, 1) {
            return ITy::Unknown;
        }
        let other = self.expr(&call.args[0]);
        let Some(to) = self.generic_shape(call) else { return ITy::Unknown };
        let second = match &other {
            ITy::Tile(f, s) => {
                let want = ITy::Tile(e, *s);
                let _ = f;
                self.unify(&want, &other, call.args[0].span);
                self.shape_of(*s)
            }
            ITy::Unknown | ITy::Never => return ITy::Unknown,
            other => {
                let title = format!("`concat` puts two tiles together, and this is {}", self.describe(other));
                let help =
                    "a scalar becomes a tile by `Tile::<f32, 1, 16>::full(x)`, a vector by `.reshape::<1, 16>()`";
                self.cx.error_help(Code::TileJoin, call.args[0].span, title, help);
                return ITy::Unknown;
            }
        };
        let Some(second) = second else {
            return self.cannot_infer(call.args[0].span, "the shape of the tile", "write its type where it is created");
        };
        if joined(shape, second, to).is_none() {
            let title = format!("tiles of shapes {shape} and {second} do not make up one of shape {to}");
            let help = "along one axis the result has the elements of both, and along the others all three have the same extent";
            self.cx.error_help(Code::TileJoin, call.span(), title, help);
            return ITy::Unknown;
        }
        ITy::Tile(e, self.known_shape(to))
    }

    /// `x.at([i, j])`
    pub(super) fn element_at(&mut self, e: E, shape: TileShape, call: &Call<'_>) -> ITy {
        if !self.takes(call, 1) {
            return ITy::Unknown;
        }
        let arg = &call.args[0];
        if self.coordinates_of_tile(arg, shape, call).is_none() {
            return ITy::Unknown;
        }
        if let ExprKind::Array(list, _) = &arg.kind {
            for (axis, at) in list.iter().enumerate() {
                if let Ok(ConstValue::Int(i)) = consts::eval(at, &self.env)
                    && !(0..i64::from(shape[axis])).contains(&i)
                {
                    let title = format!("element {i} along axis {axis}, of which the tile has {}", shape[axis]);
                    let help = "coordinates count from 0; outside of the tile an element is 0, which a constant says more clearly";
                    self.cx.error_help(Code::TilePart, at.span, title, help);
                    return ITy::Unknown;
                }
            }
        }
        ITy::Scalar(e)
    }

    /// `(a, b).reduce::<AX>(|x, y| ..)` and `(a, b).scan::<AX>(|x, y| ..)`: two to four tiles of one shape.
    pub(super) fn tuple_fold(&mut self, parts: &[ITy], call: &Call<'_>) -> ITy {
        let mut tiles = Vec::new();
        for part in parts {
            match part {
                ITy::Tile(e, s) => tiles.push((*e, *s)),
                ITy::Unknown | ITy::Never => return ITy::Unknown,
                other => {
                    let title = format!("`{}` of a tuple with {}", call.name, self.describe(other));
                    let help =
                        "all elements of the tuple are tiles of one shape; `Tile::<f32, 64>::full(x)` repeats a scalar";
                    self.cx.error_help(Code::TileTuple, call.span(), title, help);
                    return ITy::Unknown;
                }
            }
        }
        if !(2..=4).contains(&tiles.len()) {
            let title = format!("`{}` of a tuple of {}", call.name, titan_core::diag::counted(tiles.len(), "tile"));
            self.cx.error_help(
                Code::TileTuple,
                call.span(),
                title,
                "tuples of two to four tiles can be reduced and scanned",
            );
            return ITy::Unknown;
        }
        let (_, first) = tiles[0];
        for (_, s) in &tiles[1..] {
            if let (Some(a), Some(b)) = (self.shape_of(first), self.shape_of(*s))
                && a != b
            {
                let title = format!("`{}` of tiles of shapes {a} and {b}", call.name);
                self.cx.error_help(Code::TileTuple, call.span(), title, "all tiles of the tuple have one shape");
                return ITy::Unknown;
            }
        }
        let Some(shape) = self.shape_of(first) else {
            return self.cannot_infer(call.span(), "the shape of the tiles", "write it where they are created");
        };
        if call.args.len() == 2 {
            let title = format!("`{}` of a tuple takes a function only", call.name);
            let help =
                "it begins with the first elements, so that no neutral element is needed: `.reduce::<0>(|a, b| ..)`";
            self.cx.error_help(Code::Arguments, call.span(), title, help);
            return ITy::Unknown;
        }
        if !self.takes(call, 1) || self.axis(shape, call).is_none() {
            return ITy::Unknown;
        }
        let item = ITy::Tuple(tiles.iter().map(|(e, _)| ITy::Scalar(*e)).collect());
        self.closure(&call.args[0], &[item.clone(), item.clone()], &item);
        if call.name == "scan" {
            return ITy::Tuple(tiles.iter().map(|(e, s)| ITy::Tile(*e, *s)).collect());
        }
        ITy::Tuple(tiles.iter().map(|(e, _)| self.reduced(*e, shape, call)).collect())
    }
}

/// The axis along which two tiles make up a third one.
pub(crate) fn joined(a: TileShape, b: TileShape, to: TileShape) -> Option<u8> {
    if a.rank() != to.rank() || b.rank() != to.rank() {
        return None;
    }
    let fits = |axis: usize| {
        let sum = i64::from(a[axis]) + i64::from(b[axis]) == i64::from(to[axis]);
        sum && (0..to.rank()).all(|other| other == axis || a[other] == b[other] && a[other] == to[other])
    };
    (0..to.rank()).find(|axis| fits(*axis)).and_then(|axis| u8::try_from(axis).ok())
}
