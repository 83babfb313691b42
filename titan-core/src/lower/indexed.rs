//! Single elements, gathers and scatters.

use super::tensor::View;
use super::tile::LoweredValue;
use super::vector::Place;
use super::{Lower, LowerError, Reg};
use crate::analysis::{number, vector};
use crate::ir::{Op, Pred, Ty, Value};
use crate::lane::Space;
use crate::layout::Layout;

impl Lower<'_> {
    /// Loads one element, which must be inside the tensor.
    pub(super) fn get(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let at = self.scalars(&op.args[1..]);
        let exists = self.exists(&view, &at);
        self.trap_unless(exists, &format!("`get` outside of {}", number::named(self.k, op.args[0])))?;
        self.touch_view(&view, false);
        let reg = if self.warp_set.role.is_some() {
            let zero = self.zero(view.elem);
            self.masked_element(&view, &at, Some((exists, zero)))
        } else {
            self.get_element(&view, &at)
        };
        self.define(op.results[0], LoweredValue::Scalar(reg));
        Ok(())
    }

    /// Stores one element, which must be inside the tensor; the first thread does it.
    pub(super) fn set(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let at = self.scalars(&op.args[1..=rank]);
        let value = self.scalar(op.args[rank + 1]);
        let exists = self.exists(&view, &at);
        self.trap_unless(exists, &format!("`set` outside of {}", number::named(self.k, op.args[0])))?;
        self.touch_view(&view, true);
        let first = self.is_first_thread();
        let mask = if self.warp_set.role.is_some() { self.b.and(first, exists) } else { first };
        self.put_element(&view, &at, value, Some(mask));
        Ok(())
    }

    /// Whether coordinates are inside the tensor.
    pub(super) fn exists(&mut self, view: &View, at: &[Reg]) -> Reg {
        let mut mask = view.exists;
        for (at, extent) in at.iter().zip(view.extents.clone()) {
            let inside = self.b.cmp_u(Pred::Lt, *at, extent);
            mask = self.both(mask, Some(inside));
        }
        mask.unwrap_or_else(|| self.b.pred(true))
    }

    /// Loads an element that is inside the tensor.
    pub(super) fn get_element(&mut self, view: &View, at: &[Reg]) -> Reg {
        self.masked_element(view, at, None)
    }

    /// Loads an element, or returns the padding if the mask is false.
    pub(super) fn masked_element(&mut self, view: &View, at: &[Reg], mask: Option<(Reg, Reg)>) -> Reg {
        if view.elem.bits() < 8 {
            let position = self.position(view, at);
            return self.load_half(view, position, mask);
        }
        let address = self.address_of(view, at);
        self.load_vector(Place { space: Space::Global, address, offset: 0 }, view.elem, 1, mask)[0]
    }

    /// Stores an element if the mask is true.
    fn put_element(&mut self, view: &View, at: &[Reg], value: Reg, mask: Option<Reg>) {
        if view.elem.bits() < 8 {
            let position = self.position(view, at);
            return self.store_half(view, position, value, mask);
        }
        let address = self.address_of(view, at);
        self.store_vector(Place { space: Space::Global, address, offset: 0 }, view.elem, &[value], mask);
    }

    /// Loads elements selected by index tiles.
    pub(super) fn gather(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let layout = self.layout(op.results[0]);
        let columns = self.index_columns(&op.args[1..=rank], &layout)?;
        let pad = self.scalar(op.args[rank + 1]);
        self.touch_view(&view, false);
        let mut regs = Vec::new();
        for i in 0..layout.registers() {
            let at: Vec<Reg> = columns.iter().map(|c| c[i]).collect();
            let exists = self.exists(&view, &at);
            let mask = self.inside_tile(&layout, layout.register_coords(i), Some(exists));
            regs.push(self.masked_element(&view, &at, mask.map(|m| (m, pad))));
        }
        self.define(op.results[0], LoweredValue::Tile(regs));
        Ok(())
    }

    /// The registers of index tiles, or of scalars, in a layout.
    pub(super) fn index_columns(&mut self, args: &[Value], layout: &Layout) -> Result<Vec<Vec<Reg>>, LowerError> {
        args.iter()
            .map(|arg| {
                let is_tile = matches!(self.k.ty(*arg), Ty::Tile(..));
                if is_tile { Ok(self.regs(*arg)) } else { Ok(vec![self.scalar(*arg); layout.registers()]) }
            })
            .collect()
    }

    /// Stores elements selected by index tiles.
    pub(super) fn scatter(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let value = op.args[rank + 1];
        let layout = self.layout(value);
        let columns = self.index_columns(&op.args[1..=rank], &layout)?;
        let regs = self.regs(value);
        self.touch_view(&view, true);
        let first = self.is_first_copy(&layout);
        for i in 0..layout.registers() {
            let at: Vec<Reg> = columns.iter().map(|c| c[i]).collect();
            let exists = self.exists(&view, &at);
            let mask = self.both(Some(exists), first);
            let mask = self.inside_tile(&layout, layout.register_coords(i), mask);
            self.put_element(&view, &at, regs[i], mask);
        }
        Ok(())
    }

    /// Loads rows selected by indices.
    pub(super) fn gather_rows(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let layout = self.layout(op.results[0]);
        let rows = self.row_indices(&op.args[1..rank], &layout)?;
        let column = self.scalar(op.args[rank]);
        let pad = self.scalar(op.args[rank + 1]);
        self.touch_view(&view, false);
        let mut regs = vec![pad; layout.registers()];
        let n = self.row_vector(&view, op.args[rank], &layout);
        for i in (0..layout.registers()).step_by(n as usize) {
            let at = self.row_element(&rows, i, column, &layout);
            let exists = self.exists(&view, &at);
            let mask = self.inside_tile(&layout, layout.register_coords(i), Some(exists));
            if n == 1 {
                regs[i] = self.masked_element(&view, &at, mask.map(|m| (m, pad)));
                continue;
            }
            let address = self.address_of(&view, &at);
            let place = Place { space: Space::Global, address, offset: 0 };
            for (k, reg) in self.load_vector(place, view.elem, n, mask.map(|m| (m, pad))).into_iter().enumerate() {
                regs[i + k] = reg;
            }
        }
        self.define(op.results[0], LoweredValue::Tile(regs));
        Ok(())
    }

    /// Stores rows selected by indices.
    pub(super) fn scatter_rows(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let value = op.args[rank + 1];
        let layout = self.layout(value);
        let rows = self.row_indices(&op.args[1..rank], &layout)?;
        let column = self.scalar(op.args[rank]);
        let regs = self.regs(value);
        self.touch_view(&view, true);
        let first = self.is_first_copy(&layout);
        let mut n = self.row_vector(&view, op.args[rank], &layout);
        if view.elem.bits() < 8 {
            // Two threads may store the same row, and stores of 4-bit halves would then race. The output rule requires whole bytes.
            n = n.max(2);
            if layout.vector(1) < n {
                return Err(LowerError::internal(self.k, "a scatter of halves of bytes".to_owned()));
            }
        }
        for i in (0..layout.registers()).step_by(n as usize) {
            let at = self.row_element(&rows, i, column, &layout);
            let exists = self.exists(&view, &at);
            let mask = self.both(Some(exists), first);
            let mask = self.inside_tile(&layout, layout.register_coords(i), mask);
            if n == 1 {
                self.put_element(&view, &at, regs[i], mask);
                continue;
            }
            let address = self.address_of(&view, &at);
            let place = Place { space: Space::Global, address, offset: 0 };
            self.store_vector(place, view.elem, &regs[i..i + n as usize], mask);
        }
        Ok(())
    }

    /// The indices of rows: for each index operand, one register for each register of the tile.
    pub(super) fn row_indices(&mut self, args: &[Value], layout: &Layout) -> Result<Vec<Vec<Reg>>, LowerError> {
        let narrow = layout.without(1);
        let mut columns = Vec::new();
        for arg in args {
            columns.push(if matches!(self.k.ty(*arg), Ty::Tile(..)) {
                let regs = self.regs(*arg);
                self.spread(&regs, &narrow, layout, 1)
            } else {
                vec![self.scalar(*arg); layout.registers()]
            });
        }
        Ok(columns)
    }

    /// The coordinates in the tensor of the element in a register.
    pub(super) fn row_element(&mut self, rows: &[Vec<Reg>], register: usize, column: Reg, layout: &Layout) -> Vec<Reg> {
        let mut at: Vec<Reg> = rows.iter().map(|c| c[register]).collect();
        let thread = self.thread_coord(layout, 1);
        let own = self.b.add_const(thread, i64::from(layout.register_coords(register)[1]));
        at.push(self.b.add(column, own));
        at
    }

    /// The number of adjacent elements of a row that are accessed at once.
    pub(super) fn row_vector(&mut self, view: &View, column: Value, layout: &Layout) -> u32 {
        let step = vector::divisor(self.k, column);
        vector::width((view.elem.bits(), view.aligned, view.packing), step).min(layout.vector(1))
    }
}
