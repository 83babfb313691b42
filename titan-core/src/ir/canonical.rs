//! Canonical numbering of values, operations and blocks: the numbering of [`Builder`](super::Builder), which parsing the text form
//! restores.
//!
//! Parameters come first; then, block by block in program order, block arguments, and operations, where nested blocks come before the
//! results of their operation. Whatever is unreachable from the body is dropped.

use super::kernel::{Block, BlockData, Def, Kernel, Value, ValueData};
use super::op::{Op, OpId};

impl Kernel {
    /// The same kernel with canonical numbering. Kernels that differ only in numbering have equal canonical forms.
    #[must_use]
    pub fn canonical(&self) -> Kernel {
        let mut out = Kernel {
            sig: self.sig.clone(),
            pipes: self.pipes.clone(),
            roles: self.roles.clone(),
            laid_out: self.laid_out.clone(),
            body: Block::new(0),
            values: vec![],
            ops: vec![],
            blocks: vec![],
        };
        let mut map =
            Renumber { from: self, values: vec![None; self.values.len()], seen: vec![false; self.blocks.len()] };
        for i in 0..self.sig.params.len() {
            map.value(&mut out, Value::new(i), Def::Param(i));
        }
        map.block(&mut out, self.body, 0);
        out
    }
}

/// Blocks nested more deeply are not followed. The verifier rejects such kernels, and its limit is far below.
const MAX_DEPTH: usize = 300;

struct Renumber<'k> {
    from: &'k Kernel,
    values: Vec<Option<Value>>,
    /// Visited blocks. A kernel in which a block has two owners is invalid; the first owner keeps the block.
    seen: Vec<bool>,
}

impl Renumber<'_> {
    fn value(&mut self, out: &mut Kernel, value: Value, def: Def) -> Value {
        let new = Value::new(out.values.len());
        if let (Some(data), Some(slot)) = (self.from.values.get(value.index()), self.values.get_mut(value.index())) {
            out.values.push(ValueData { ty: data.ty, name: data.name.clone(), def, place: data.place });
            *slot = Some(new);
        }
        new
    }

    fn block(&mut self, out: &mut Kernel, block: Block, depth: usize) -> Block {
        let new = Block::new(out.blocks.len());
        let Some(data) = self.from.blocks.get(block.index()) else { return block };
        if depth > MAX_DEPTH || std::mem::replace(&mut self.seen[block.index()], true) {
            return block;
        }
        out.blocks.push(BlockData::default());
        for (i, arg) in data.args.iter().enumerate() {
            let arg = self.value(out, *arg, Def::BlockArg(new, i));
            out.blocks[new.index()].args.push(arg);
        }
        for op in data.ops.iter().filter_map(|id| self.from.ops.get(id.index())) {
            let args = op.args.iter().map(|v| self.values.get(v.index()).copied().flatten().unwrap_or(*v)).collect();
            let regions = op.regions.iter().map(|b| self.block(out, *b, depth + 1)).collect();
            let id = OpId::new(out.ops.len());
            let results = op.results.iter().enumerate().map(|(i, v)| self.value(out, *v, Def::Result(id, i))).collect();
            let Op { ref kind, planned, peeled, unmasked, origin, loc, .. } = *op;
            out.ops.push(Op { kind: kind.clone(), args, results, regions, planned, peeled, unmasked, origin, loc });
            out.blocks[new.index()].ops.push(id);
        }
        new
    }
}
