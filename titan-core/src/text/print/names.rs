//! Names of values.

use crate::ir::{Block, Kernel, Value};
use crate::text::lex::{is_word, quote};
use std::collections::BTreeMap;

/// The names of the values, in the order of the text: the second `acc` is `%acc.2`, a value without a name has its number.
pub(super) fn names(kernel: &Kernel) -> Vec<Option<String>> {
    let mut names = Names { kernel, seen: BTreeMap::new(), names: vec![None; kernel.values.len()] };
    for i in 0..kernel.sig.params.len().min(kernel.values.len()) {
        names.add(Value::new(i), Some(&kernel.sig.params[i].name));
    }
    names.block(kernel.body);
    names.names
}

struct Names<'k> {
    kernel: &'k Kernel,
    seen: BTreeMap<&'k str, u32>,
    names: Vec<Option<String>>,
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
        if is_word(name) { text.push_str(name) } else { quote(name, &mut text) }
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

    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        let Some(data) = kernel.blocks.get(block.index()) else { return };
        for op in data.ops.iter().filter_map(|id| kernel.ops.get(id.index())) {
            self.add_all(&op.results);
            for region in &op.regions {
                if let Some(inner) = kernel.blocks.get(region.index()) {
                    self.add_all(&inner.args);
                }
                self.block(*region);
            }
        }
    }
}
