//! The tile in shared memory of which another one is a part, or another view.

use crate::ir::{Kernel, LocalOp, OpKind, Value};

/// The buffer, or tile of a stage, of which a tile in shared memory is a part, or which it names with other extents.
pub(crate) fn of(kernel: &Kernel, tile: Value) -> Value {
    let mut at = tile;
    while let Some(op) = kernel.def_op(at) {
        let renames =
            matches!(op.kind, OpKind::Local(LocalOp::Slice { .. } | LocalOp::Reshape(_)) | OpKind::Permute(_));
        match op.args.first().filter(|_| renames) {
            Some(of) => at = *of,
            None => break,
        }
    }
    at
}
