//! Methods that change shapes.

use super::method::Call;
use super::{E, ITy, Infer};
use titan_core::diag::{Code, counted};
use titan_core::ir::TileShape;

impl Infer<'_> {
    pub(super) fn counted_shape(&mut self, call: &Call<'_>, from: TileShape, want: usize) -> Option<TileShape> {
        let to = self.generic_shape(call)?;
        if to.len() == want {
            return Some(to);
        }
        let elements = counted(from.len(), "element");
        let title = format!("a tile of shape {from} has {elements}, but one of shape {to} has {}", to.len());
        let at = call.generics.first().map_or(call.span(), |g| g.span);
        self.cx.error_help(Code::ElementCount, at, title, "a reshape keeps the number of elements");
        None
    }

    pub(super) fn doubled(&mut self, call: &Call<'_>, from: TileShape) -> Option<TileShape> {
        let mut dims = from.to_vec();
        let last = dims.len() - 1;
        dims[last] *= 2;
        let want = TileShape::new(&dims)?;
        self.written_shape(call, want, "`interleave` doubles the last extent")
    }

    pub(super) fn halved(&mut self, call: &Call<'_>, from: TileShape) -> Option<TileShape> {
        let mut dims = from.to_vec();
        let last = dims.len() - 1;
        if dims[last] % 2 != 0 {
            let title = format!("the last extent of the shape {from} is odd");
            self.cx.error_help(Code::ElementCount, call.span(), title, "`split` halves the last extent");
            return None;
        }
        dims[last] /= 2;
        let want = TileShape::new(&dims)?;
        self.written_shape(call, want, "`split` halves the last extent")
    }

    /// The shape in the turbofish, which must be `want`.
    pub(super) fn written_shape(&mut self, call: &Call<'_>, want: TileShape, rule: &str) -> Option<TileShape> {
        let to = self.generic_shape(call)?;
        if to == want {
            return Some(to);
        }
        let at = call.generics.first().map_or(call.span(), |g| g.span);
        self.cx.error_help(Code::ElementCount, at, format!("the result has the shape {want}, not {to}"), rule);
        None
    }

    pub(super) fn broadcast(&mut self, e: E, shape: TileShape, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        let (Some(axis), Some(n)) = (self.generic_const(call, 0), self.generic_const(call, 1)) else {
            return ITy::Unknown;
        };
        let to = usize::try_from(axis).ok().zip(i32::try_from(n).ok()).and_then(|(a, n)| shape.with(a, n));
        match to {
            Some(to) => match to.problem() {
                None => ITy::Tile(e, self.known_shape(to)),
                Some(p) => {
                    self.cx.error(Code::TileSize, call.span(), p);
                    ITy::Unknown
                }
            },
            None => {
                self.cx.error(
                    Code::BadAxis,
                    call.span(),
                    format!("an axis {axis} cannot be inserted into a tile of shape {shape}"),
                );
                ITy::Unknown
            }
        }
    }

    pub(super) fn transpose(&mut self, e: E, shape: TileShape, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        let mut dims = shape.to_vec();
        let r = dims.len();
        if !(2..=3).contains(&r) {
            self.cx.error(
                Code::UnknownOp,
                call.span(),
                format!("`t` transposes tiles of rank 2 and 3, not of rank {r}"),
            );
            return ITy::Unknown;
        }
        dims.swap(r - 1, r - 2);
        TileShape::new(&dims).map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
    }

    pub(super) fn permute(&mut self, e: E, shape: TileShape, call: &Call<'_>) -> ITy {
        self.takes(call, 0);
        let axes: Vec<i64> = (0..shape.rank()).filter_map(|i| self.generic_const(call, i)).collect();
        let dims: Vec<i32> = axes.iter().filter_map(|a| shape.get(usize::try_from(*a).ok()?).copied()).collect();
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if dims.len() != shape.rank() || sorted.len() != shape.rank() {
            self.cx.error(
                Code::BadAxis,
                call.span(),
                format!("{axes:?} is not a permutation of the axes of a tile of shape {shape}"),
            );
            return ITy::Unknown;
        }
        TileShape::new(&dims).map_or(ITy::Unknown, |to| ITy::Tile(e, self.known_shape(to)))
    }
}
