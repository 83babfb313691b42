//! Replaces buffers in shared memory by their addresses, after allocation.
//!
//! Deliberately absent: the allocation, which is done on the barrier program (`crate::allocate`).

use super::func::{Func, Op, OpId, Value};
use super::op::{IntBin, OpKind, Ty};
use super::{Def, ValueData};

/// Replaces each `buffer` by `shared_base + offset`, with the base and the offset computed at the start of the function.
pub fn place(func: &mut Func) {
    func.shared_bytes = func.buffers.iter().map(|b| b.offset.saturating_add(b.bytes)).max().unwrap_or(0);
    let offsets: Vec<u32> = func.buffers.iter().map(|b| b.offset).collect();
    let base = prepend(func, OpKind::SharedBase);
    for i in 0..func.ops.len() {
        let OpKind::Buffer(buffer) = func.ops[i].kind else { continue };
        let offset = prepend(func, OpKind::Const(Ty::B32, u64::from(offsets[buffer as usize])));
        func.ops[i].kind = OpKind::Int(IntBin::Add);
        func.ops[i].args = vec![base, offset];
    }
}

fn prepend(func: &mut Func, kind: OpKind) -> Value {
    let id = OpId::new(func.ops.len());
    let value = Value::new(func.values.len());
    func.values.push(ValueData { ty: Ty::B32, def: Def::Result(id, 0) });
    func.ops.push(Op {
        kind,
        args: Vec::new(),
        results: vec![value],
        regions: Vec::new(),
        loc: crate::ir::Loc::default(),
    });
    let body = func.body;
    func.blocks[body.index()].ops.insert(0, id);
    value
}
