//! Rules 1 to 3: the arenas are consistent, so that all later code may index them.

use super::Error;
use crate::diag::Code;
use crate::ir::{Block, Def, Kernel, Loc, Op, OpId, Value};

/// The maximum nesting depth of regions, to which the recursion of every walk over a kernel is limited.
pub const MAX_DEPTH: usize = 128;

/// Violations of rules 1 to 3; rules 2 and 3 are checked only if rule 1 holds.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let errors = dangling(kernel);
    if !errors.is_empty() {
        return errors;
    }
    let errors = owners(kernel);
    if errors.is_empty() { definitions(kernel) } else { errors }
}

fn dangling(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut report =
        |loc: Loc, what: String| errors.push(Error::new(Code::Structure, loc, format!("{what}, which does not exist")));
    if kernel.body.index() >= kernel.blocks.len() {
        report(Loc::default(), format!("the body is {}", kernel.body));
    }
    for (i, op) in kernel.ops.iter().enumerate() {
        let id = OpId::new(i);
        for v in op.args.iter().filter(|v| v.index() >= kernel.values.len()) {
            report(op.loc, format!("{id} takes {v}"));
        }
        for v in op.results.iter().filter(|v| v.index() >= kernel.values.len()) {
            report(op.loc, format!("{id} gives {v}"));
        }
        for b in op.regions.iter().filter(|b| b.index() >= kernel.blocks.len()) {
            report(op.loc, format!("{id} has the region {b}"));
        }
    }
    for (i, block) in kernel.blocks.iter().enumerate() {
        let id = Block::new(i);
        for v in block.args.iter().filter(|v| v.index() >= kernel.values.len()) {
            report(Loc::default(), format!("{id} has the argument {v}"));
        }
        for op in block.ops.iter().filter(|op| op.index() >= kernel.ops.len()) {
            report(Loc::default(), format!("{id} holds {op}"));
        }
    }
    errors
}

/// Rule 2. The check is not recursive, because the depth of nesting is not bounded yet.
fn owners(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    let (mut blocks, mut ops) = (vec![false; kernel.blocks.len()], vec![false; kernel.ops.len()]);
    let mut open = vec![(kernel.body, 0usize, Loc::default())];
    while let Some((block, depth, loc)) = open.pop() {
        if std::mem::replace(&mut blocks[block.index()], true) {
            errors.push(Error::new(Code::Structure, loc, format!("{block} is a region twice")));
            continue;
        }
        if depth > MAX_DEPTH {
            errors.push(Error::new(Code::Structure, loc, format!("blocks nest more than {MAX_DEPTH} deep")));
            return errors;
        }
        for id in &kernel.block(block).ops {
            let op: &Op = kernel.op(*id);
            if std::mem::replace(&mut ops[id.index()], true) {
                errors.push(Error::new(Code::Structure, op.loc, format!("{id} stands in two places")));
                continue;
            }
            open.extend(op.regions.iter().map(|r| (*r, depth + 1, op.loc)));
        }
    }
    for (i, _) in blocks.iter().enumerate().filter(|(_, seen)| !**seen) {
        errors.push(Error::new(Code::Structure, Loc::default(), format!("{} is the region of nothing", Block::new(i))));
    }
    for (i, _) in ops.iter().enumerate().filter(|(_, seen)| !**seen) {
        let (id, loc) = (OpId::new(i), kernel.ops[i].loc);
        errors.push(Error::new(Code::Structure, loc, format!("{id} stands in no block")));
    }
    errors
}

/// Checks rule 3.
fn definitions(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut found: Vec<Option<Def>> = vec![None; kernel.values.len()];
    let mut define = |value: Value, def: Def, loc: Loc| match found.get_mut(value.index()) {
        Some(slot @ None) => *slot = Some(def),
        Some(Some(_)) => errors.push(Error::new(Code::Visibility, loc, format!("{value} is defined twice"))),
        None => errors.push(Error::new(Code::Visibility, loc, format!("there is no value for {value}"))),
    };
    for i in 0..kernel.sig.params.len() {
        define(Value::new(i), Def::Param(i), Loc::default());
    }
    for (b, block) in kernel.blocks.iter().enumerate() {
        block.args.iter().enumerate().for_each(|(i, v)| define(*v, Def::BlockArg(Block::new(b), i), Loc::default()));
    }
    for (o, op) in kernel.ops.iter().enumerate() {
        op.results.iter().enumerate().for_each(|(i, v)| define(*v, Def::Result(OpId::new(o), i), op.loc));
    }
    for (i, (value, def)) in kernel.values.iter().zip(&found).enumerate() {
        let name = || kernel.display_name(Value::new(i));
        match def {
            None => {
                errors.push(Error::new(Code::Visibility, Loc::default(), format!("`{}` is defined nowhere", name())))
            }
            Some(def) if *def != value.def => {
                let name = name();
                let title = format!("`{name}` is {} but says that it is {}", words(*def), words(value.def));
                errors.push(Error::new(Code::Visibility, Loc::default(), title));
            }
            Some(_) => {}
        }
    }
    errors
}

fn words(def: Def) -> String {
    match def {
        Def::Param(i) => format!("parameter {i}"),
        Def::BlockArg(block, i) => format!("argument {i} of {block}"),
        Def::Result(op, i) => format!("result {i} of {op}"),
    }
}
