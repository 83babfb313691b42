//! Parts of tiles, picked elements, and reductions and scans of tuples of tiles.
//!
//! The function of a reduction of a tuple is applied to whole tiles, as that of `map` is, so that the order is the same on every device:
//!
//! ```text
//! reduction   x0 x1 x2 x3 x4   pairs of neighbours, the last one passes if it has none
//!             (01) (23) 4      again
//!             ((01)(23)) 4     until one is left
//! scan        element i becomes (i - d, i) for d = 1, 2, 4, .., where i >= d
//! ```
//!
//! Deliberately absent: reductions of one tile, which are operations of the IR whose order a device chooses.

use super::{Closure, FnLower, Lowered, Stop, Val};
use crate::ast::{Expr, ExprKind, GenericArg};
use crate::consts::{self, ConstValue};
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Elem, OpKind, Pred, ReduceOp, TileShape, Ty, Value};

/// How the bits of elements are held in integers.
#[derive(Clone, Copy)]
enum Held {
    /// They are integers.
    As,
    Bitcast(Elem),
    Cast(Elem),
}

impl FnLower<'_, '_, '_> {
    /// `x.slice::<A, B>([i, j])`: a cut along each axis of which it is not the whole.
    pub(super) fn part(&mut self, e: &Expr, v: Value, at: &Expr) -> Lowered<Val> {
        let (from, (_, to)) = (self.tile_shape(v)?, self.tile_ty(e.id, e.span)?);
        let ExprKind::Array(list, _) = &at.kind else { return Err(Stop) };
        let mut part = v;
        for (nth, first) in list.iter().enumerate() {
            let Ok(ConstValue::Int(first)) = consts::eval(first, &self.env) else { return Err(Stop) };
            let (axis, first) = (u8::try_from(nth).map_err(|_| Stop)?, i32::try_from(first).map_err(|_| Stop)?);
            if to[nth] != from[nth] {
                part = self.op(e.span, OpKind::Cut { axis, from: first, n: to[nth] }, &[part])?;
            }
        }
        Ok(Val::Value(part))
    }

    /// `x.at([i, j])`: the element where all coordinates agree, or 0: a sum of integers of which at most one is not 0.
    pub(super) fn element_at(&mut self, v: Value, at: &Expr, span: Span) -> Lowered<Val> {
        let mut coordinates = Vec::new();
        self.coordinates(at, &mut coordinates)?;
        if coordinates.iter().any(|i| !matches!(self.ty(*i), Ty::Scalar(_))) {
            let title = "`at` in a closure, by the element that the closure takes";
            let help = "`x.gather([i])` of a tensor picks an element for each element of a tile, `table[i]` one of an array of numbers";
            return Err(self.push_diag(Diagnostic::new(Code::InClosure, span, title).help(help)));
        }
        let (mut tile, held) = self.as_integers(v, span)?;
        for i in coordinates {
            let shape = self.tile_shape(tile)?;
            let zero = self.zero(self.ty(tile).elem());
            let zero = self.op(span, OpKind::Splat(shape), &[zero])?;
            let mask = self.is_index(i, shape, span)?;
            let chosen = self.op(span, OpKind::Select, &[mask, tile, zero])?;
            tile = self.op(span, OpKind::Reduce(ReduceOp::Sum, 0), &[chosen])?;
        }
        self.from_integers(tile, held, span).map(Val::Value)
    }

    /// Whether the coordinate along the first axis is `i`, for each element of a tile.
    fn is_index(&mut self, i: Value, shape: TileShape, span: Span) -> Lowered<Value> {
        let first = TileShape::new(&shape[..1]).ok_or(Stop)?;
        let (places, i) = (self.op(span, OpKind::Iota(shape[0]), &[])?, self.op(span, OpKind::Splat(first), &[i])?);
        let mut mask = self.op(span, OpKind::Cmp(Pred::Eq), &[places, i])?;
        for (axis, n) in (0u8..).zip(shape.iter()).skip(1) {
            mask = self.op(span, OpKind::Broadcast { axis, n: *n }, &[mask])?;
        }
        Ok(mask)
    }

    /// The element of a tile of one element, with its bits.
    pub(super) fn only_element(&mut self, tile: Value, span: Span) -> Lowered<Value> {
        let (mut tile, held) = self.as_integers(tile, span)?;
        while self.ty(tile).tile_shape().is_some() {
            tile = self.op(span, OpKind::Reduce(ReduceOp::Sum, 0), &[tile])?;
        }
        self.from_integers(tile, held, span)
    }

    /// A tile of integers with the bits of the elements. Sums of them are exact.
    fn as_integers(&mut self, tile: Value, span: Span) -> Lowered<(Value, Held)> {
        let elem = self.ty(tile).elem();
        let bits = match elem {
            Elem::F64 => Elem::U64,
            Elem::F32 | Elem::Tf32 => Elem::U32,
            Elem::F16 | Elem::Bf16 => Elem::U16,
            Elem::E4m3 | Elem::E5m2 => Elem::U8,
            Elem::I4 | Elem::U4 | Elem::Bool => {
                return Ok((self.op(span, OpKind::Cast(Elem::I32), &[tile])?, Held::Cast(elem)));
            }
            Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 | Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 => {
                return Ok((tile, Held::As));
            }
        };
        Ok((self.op(span, OpKind::Bitcast(bits), &[tile])?, Held::Bitcast(elem)))
    }

    fn from_integers(&mut self, value: Value, held: Held, span: Span) -> Lowered<Value> {
        match held {
            Held::As => Ok(value),
            Held::Bitcast(elem) => self.op(span, OpKind::Bitcast(elem), &[value]),
            Held::Cast(elem) => self.op(span, OpKind::Cast(elem), &[value]),
        }
    }

    /// `(a, b).reduce::<AX>(|x, y| ..)` and `(a, b).scan::<AX>(|x, y| ..)`
    pub(super) fn tuple_fold(
        &mut self,
        e: &Expr,
        scan: bool,
        recv: &Expr,
        generics: &[GenericArg],
        args: &[Expr],
    ) -> Lowered<Val> {
        if self.closure != Closure::None {
            let title = "a reduction or a scan of tiles in a closure";
            let help = "compute it outside of the closure, which works on single elements";
            return Err(self.push_diag(Diagnostic::new(Code::InClosure, e.span, title).help(help)));
        }
        let Val::Tuple(list) = self.expr(recv)? else { return Err(Stop) };
        let tiles = list.into_iter().map(|v| self.value(v, recv.span)).collect::<Lowered<Vec<Value>>>()?;
        let (axis, f) = (self.axis(generics)?, args.first().ok_or(Stop)?);
        let out = if scan { self.scanned(tiles, axis, f, e.span)? } else { self.folded(tiles, axis, f, e.span)? };
        Ok(Val::Tuple(out.into_iter().map(Val::Value).collect()))
    }

    /// A scan in log2(n) steps: in step d, element i takes in what element i - d has.
    fn scanned(&mut self, mut tiles: Vec<Value>, axis: u8, f: &Expr, span: Span) -> Lowered<Vec<Value>> {
        let n = self.tile_shape(*tiles.first().ok_or(Stop)?)?[usize::from(axis)];
        let mut by = 1;
        while by < n {
            let head = self.cut_all(&tiles, (axis, 0, by), span)?;
            let (before, own) =
                (self.cut_all(&tiles, (axis, 0, n - by), span)?, self.cut_all(&tiles, (axis, by, n - by), span)?);
            let joined = self.combined(f, before, own)?;
            tiles = self.concat_all(&head, &joined, axis, span)?;
            by = by.saturating_mul(2);
        }
        Ok(tiles)
    }

    /// A reduction by a tree over pairs of neighbours, along the last axis.
    fn folded(&mut self, tiles: Vec<Value>, axis: u8, f: &Expr, span: Span) -> Lowered<Vec<Value>> {
        let shape = self.tile_shape(*tiles.first().ok_or(Stop)?)?;
        let last = u8::try_from(shape.rank() - 1).map_err(|_| Stop)?;
        let mut tiles = self.axis_last(tiles, axis, shape, span)?;
        let mut n = shape[usize::from(axis)];
        while n > 1 {
            let odd = if n % 2 == 0 { None } else { Some(self.cut_all(&tiles, (last, n - 1, 1), span)?) };
            let even = if odd.is_some() { self.cut_all(&tiles, (last, 0, n - 1), span)? } else { tiles };
            let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
            for tile in even {
                let halves = self.ops(span, OpKind::Split, &[tile])?;
                let [first, second] = halves[..] else { return Err(Stop) };
                firsts.push(first);
                seconds.push(second);
            }
            tiles = self.combined(f, firsts, seconds)?;
            if let Some(odd) = odd {
                tiles = self.concat_all(&tiles, &odd, last, span)?;
            }
            n = n / 2 + n % 2;
        }
        let rest = shape.without(usize::from(axis));
        let ended = |s: &mut Self, tile: Value| match rest {
            Some(rest) => s.op(span, OpKind::Reshape(rest), &[tile]),
            None => s.only_element(tile, span),
        };
        tiles.into_iter().map(|tile| ended(self, tile)).collect()
    }

    /// The tiles with an axis as the last one.
    fn axis_last(&mut self, tiles: Vec<Value>, axis: u8, shape: TileShape, span: Span) -> Lowered<Vec<Value>> {
        let rank = u8::try_from(shape.rank()).map_err(|_| Stop)?;
        if axis + 1 == rank {
            return Ok(tiles);
        }
        let mut perm = [0, 1, 2, 3];
        for (to, from) in perm.iter_mut().zip((0..rank).filter(|a| *a != axis).chain([axis])) {
            *to = from;
        }
        tiles.into_iter().map(|tile| self.op(span, OpKind::Permute(perm), &[tile])).collect()
    }

    fn cut_all(&mut self, tiles: &[Value], (axis, from, n): (u8, i32, i32), span: Span) -> Lowered<Vec<Value>> {
        tiles.iter().map(|tile| self.op(span, OpKind::Cut { axis, from, n }, &[*tile])).collect()
    }

    fn concat_all(&mut self, a: &[Value], b: &[Value], axis: u8, span: Span) -> Lowered<Vec<Value>> {
        a.iter().zip(b).map(|(a, b)| self.op(span, OpKind::Concat(axis), &[*a, *b])).collect()
    }

    /// The function of two tuples, applied to each element of two tuples of tiles.
    fn combined(&mut self, f: &Expr, first: Vec<Value>, second: Vec<Value>) -> Lowered<Vec<Value>> {
        let ExprKind::Closure { params, body } = &f.kind else { return Err(Stop) };
        let tys: Vec<Ty> = first.iter().map(|v| self.ty(*v)).collect();
        for (pat, tiles) in params.iter().zip([first, second]) {
            self.bind(pat, Val::Tuple(tiles.into_iter().map(Val::Value).collect()))?;
        }
        let was = std::mem::replace(&mut self.closure, Closure::Map);
        let result = self.expr(body);
        self.closure = was;
        let Val::Tuple(list) = result? else {
            return Err(self.internal(body.span, "a function of tuples that returns none"));
        };
        let mut out = Vec::new();
        for (val, ty) in list.into_iter().zip(tys) {
            let Ty::Tile(elem, shape) = ty else { return Err(Stop) };
            out.push(self.beside(val, elem, shape, body.span)?);
        }
        Ok(out)
    }
}
