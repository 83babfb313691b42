//! What to write instead of a store that leaves elements unwritten.

use super::{Found, LeftOut};
use crate::analysis::access::AxisClaims;
use crate::analysis::cover::example::mentions_dim;
use crate::analysis::cover::reach::Reach;
use crate::analysis::forms::Forms;
use crate::collections::SortedSet;
use crate::ir::{BinOp, Def, GridSpec, HostExpr, HostNames as _, Op, OpKind, ParamKind, TtgOp, Unit, Value};

impl Found<'_> {
    /// How to write the rest.
    pub(super) fn helps(&self, forms: &Forms) -> Vec<String> {
        match self.left_out() {
            LeftOut::Before(least) => vec![self.begin_at_zero(least)],
            LeftOut::Between(_) => {
                let numbers = self.tile_numbers(forms);
                if numbers.is_empty() { vec![self.adjoin()] } else { numbers }
            }
            LeftOut::Until(_) => vec![self.adjoin()],
            LeftOut::End => self.end_at_extent(),
        }
    }

    /// How to write to the end of the axis, or to state that it is reached.
    fn end_at_extent(&self) -> Vec<String> {
        let index = self.index;
        let Some(extent) = self.own_extent() else { return Vec::new() };
        // A requirement on a constant cannot be met.
        let required = (!matches!(self.extent, HostExpr::Const(_)))
            .then(|| format!("`require({extent} <= {index})`, if the kernel is used only with such extents"));
        required.into_iter().chain(self.tile_loop(&extent)).collect()
    }

    /// How parts adjoin.
    fn adjoin(&self) -> String {
        let axis = self.axis;
        if let Some((method, ..)) = self.in_tiles(axis) {
            return format!(
                "coordinates of `{method}` are numbers of tiles: advance the one along axis {axis} by 1 from tile to tile"
            );
        }
        match self.reach().map_or(1, Reach::span) {
            1 => format!("advance the coordinate along axis {axis} by 1 from one store to the next"),
            n => format!(
                "advance the coordinate along axis {axis} by {n}, the extent of what is stored, from one store to the next"
            ),
        }
    }

    /// The operation of a store, its claims along an axis, and the coordinate that the user wrote for it.
    fn coordinate(&self, axis: usize) -> Option<(&Op, &AxisClaims, Value)> {
        let access = self.stores.get(self.blamed)?;
        let (_, at) = access.coordinates.iter().rev().find(|(a, _)| *a == axis)?;
        Some((self.kernel.op(access.op), access.axes.get(axis)?, *at))
    }

    /// The method of a store whose coordinate along an axis is the number of a tile, the elements of a tile, and the coordinate.
    fn in_tiles(&self, axis: usize) -> Option<(&'static str, i64, Value)> {
        let (op, claims, at) = self.coordinate(axis)?;
        let by_tile =
            [(OpKind::Store(Unit::Tile), "store_tile"), (OpKind::Ttg(TtgOp::StoreIssue(Unit::Tile)), "store")];
        let (_, method) = by_tile.into_iter().find(|(kind, _)| *kind == op.kind)?;
        // An axis that `index_mut` fixes has coordinates in elements, and so does a tile with one element along it.
        claims.extent.filter(|extent| *extent > 1).map(|extent| (method, extent, at))
    }

    /// Coordinates that are multiples of the extent of a tile, though they are numbers of tiles.
    fn tile_numbers(&self, forms: &Forms) -> Vec<String> {
        let rank = self.stores.get(self.blamed).map_or(0, |a| a.axes.len());
        let (mut helps, mut by_elements) = (Vec::new(), false);
        for (method, tile, at, axis) in (0..rank).filter_map(|axis| {
            let (method, tile, at) = self.in_tiles(axis)?;
            Some((method, tile, at, axis))
        }) {
            let form = forms.of(at);
            let is_multiple = form.terms.values().chain([&form.rest.lo, &form.rest.hi]).all(|c| c % tile == 0);
            if form.terms.is_empty() || !is_multiple {
                continue;
            }
            let instead = match self.multiplied(at, tile) {
                Some(number) => format!("write `{number}` instead of `{number} * {tile}`"),
                None => format!("divide the one along axis {axis} by {tile}"),
            };
            helps.push(format!("coordinates of `{method}` are numbers of tiles, not of elements: {instead}"));
            by_elements |= method == "store_tile";
        }
        helps
            .extend(by_elements.then(|| "use `store_at`, all of whose coordinates are numbers of elements".to_owned()));
        helps
    }

    /// The name of what is multiplied by the extent of a tile.
    fn multiplied(&self, at: Value, tile: i64) -> Option<String> {
        let op = self.kernel.def_op(at)?;
        let (OpKind::Binary(BinOp::Mul), [a, b]) = (&op.kind, &op.args[..]) else { return None };
        let constant = |v: Value| self.kernel.int_constant(v) == Some(tile);
        let number = if constant(*b) { *a } else { Some(*b).filter(|_| constant(*a))? };
        let named = self.kernel.value(number).name.clone();
        named.or_else(|| {
            let OpKind::ProgramId(axis) = self.kernel.def_op(number)?.kind else { return None };
            Some(format!("program_id({axis})"))
        })
    }

    /// How to begin with the first element, for stores that begin at `least`.
    fn begin_at_zero(&self, least: i64) -> String {
        let axis = self.axis;
        // The store that begins first is the one to move.
        if self.reach().and_then(|r| r.least) != Some(least) || self.is_of_a_loop() {
            return format!("let the first store along axis {axis} begin at 0");
        }
        match self.in_tiles(axis) {
            Some((_, tile, _)) if least % tile == 0 => {
                let number = least / tile;
                format!("the first tile has number 0: subtract {number} from the coordinate along axis {axis}")
            }
            Some(_) | None => format!("subtract {least} from the coordinate along axis {axis}"),
        }
    }

    /// Whether the coordinate of the store depends on the counter of a loop, which may be what begins too late.
    fn is_of_a_loop(&self) -> bool {
        let Some((_, _, at)) = self.coordinate(self.axis) else { return false };
        let (mut open, mut seen) = (vec![at], SortedSet::from([at]));
        while let Some(value) = open.pop() {
            match self.kernel.value(value).def {
                Def::BlockArg(..) => return true,
                Def::Param(_) => {}
                Def::Result(op, _) => {
                    open.extend(self.kernel.op(op).args.iter().copied().filter(|v| seen.insert(*v)));
                }
            }
        }
        false
    }

    /// The extent of the axis, as an expression of the kernel's attribute.
    fn own_extent(&self) -> Option<String> {
        let sig = &self.kernel.sig;
        if !mentions_dim(&self.extent) {
            return Some(self.extent.in_attribute(sig));
        }
        match sig.params.get(self.param).map(|p| &p.kind) {
            Some(ParamKind::Tensor { optional: false, .. }) => {
                Some(format!("{}.dim({})", sig.param(self.param), self.axis))
            }
            Some(ParamKind::Tensor { optional: true, .. } | ParamKind::Scalar(_)) | None => None,
        }
    }

    /// The loop over all tiles along the axis.
    fn tile_loop(&self, extent: &str) -> Option<String> {
        let (_, tile, at) = self.in_tiles(self.axis)?;
        let constant = self.kernel.int_constant(at)?;
        (constant == 0).then(|| {
            let axis = self.axis;
            format!("loop over the tiles along axis {axis}: `for i in 0..cdiv({extent}, {tile})`, with `i` as the coordinate")
        })
    }

    /// The attribute that allows the rest to stay unwritten.
    pub(super) fn unchecked(&self) -> String {
        match &self.kernel.sig.grid {
            GridSpec::Extents(declared) if !declared.is_empty() => {
                let all = declared.iter().map(|e| e.in_attribute(&self.kernel.sig)).collect::<Vec<_>>().join(", ");
                format!("`grid(unchecked {all})`")
            }
            GridSpec::Extents(_) | GridSpec::Persistent => "`grid(unchecked)`".to_owned(),
        }
    }
}
