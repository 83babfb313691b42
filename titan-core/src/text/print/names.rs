//! Names of values.

use crate::collections::SortedMap;
use crate::ir::{Block, Kernel, Value};
use crate::text::MAX_DEPTH;
use crate::text::lex::{is_word, quote};

/// The names of the values, in the order of the text: the second `acc` is `%acc.2`, and a value without a name has its number.
pub(super) fn names(kernel: &Kernel) -> Vec<Option<String>> {
    let blocks = Once::new(kernel);
    let mut names = Names { kernel, seen: SortedMap::new(), names: vec![None; kernel.values.len()], blocks };
    for i in 0..kernel.sig.params.len().min(kernel.values.len()) {
        names.add(Value::new(i), Some(&kernel.sig.params[i].name));
    }
    names.block(kernel.body, 0);
    names.names
}

struct Names<'k> {
    kernel: &'k Kernel,
    seen: SortedMap<&'k str, u32>,
    names: Vec<Option<String>>,
    blocks: Once,
}

/// Blocks that have been visited. A block that is its own region, or is nested too deeply, is not followed.
pub(super) struct Once(Vec<bool>);

impl Once {
    pub(super) fn new(kernel: &Kernel) -> Once {
        Once(vec![false; kernel.blocks.len()])
    }

    /// Whether to follow a block, which is done only once.
    pub(super) fn enter(&mut self, block: Block, depth: usize) -> bool {
        depth <= 2 * MAX_DEPTH && self.0.get_mut(block.index()).is_some_and(|seen| !std::mem::replace(seen, true))
    }
}

impl<'k> Names<'k> {
    fn add(&mut self, value: Value, name: Option<&'k str>) {
        let Some(slot) = self.names.get_mut(value.index()) else { return };
        let Some(name) = name else {
            *slot = Some(value.to_string());
            return;
        };
        let n = self.seen.entry(name).and_modify(|n| *n += 1).or_insert(1);
        let mut text = String::from("%");
        if is_word(name) {
            text.push_str(name)
        } else {
            quote(name, &mut text)
        }
        if *n > 1 {
            text.push_str(&format!(".{n}"));
        }
        *slot = Some(text);
    }

    fn add_all(&mut self, values: &'k [Value]) {
        for v in values {
            self.add(*v, self.kernel.values.get(v.index()).and_then(|d| d.name.as_deref()));
        }
    }

    fn block(&mut self, block: Block, depth: usize) {
        if !self.blocks.enter(block, depth) {
            return;
        }
        let kernel = self.kernel;
        for op in kernel.blocks[block.index()].ops.iter().filter_map(|id| kernel.ops.get(id.index())) {
            self.add_all(&op.results);
            for region in &op.regions {
                if let Some(inner) = kernel.blocks.get(region.index()) {
                    self.add_all(&inner.args);
                }
                self.block(*region, depth + 1);
            }
        }
    }
}
