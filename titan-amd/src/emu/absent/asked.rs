//! What a kernel's descriptor asks for and the emulator does not have.
//!
//! Source: LLVM, "Kernel Descriptor", `compute_pgm_rsrc1` and `compute_pgm_rsrc2`, whose names these are.

use super::Absent;
use crate::object::descriptor::{Descriptor, UserSgpr};

/// Bits of `compute_pgm_rsrc1`.
const PRIV: u32 = 1 << 20;
const DEBUG_MODE: u32 = 1 << 22;
const CDBG_USER: u32 = 1 << 25;
/// Bits of `compute_pgm_rsrc2`: the exceptions of addresses and of memory, those of IEEE 754, and divisions of integers by zero.
const EXCEPTIONS: u32 = 3 << 13 | 0x7F << 24;

/// The feature, with the field by which the descriptor asks for it.
pub(crate) fn by_descriptor(d: &Descriptor) -> Option<(Absent, &'static str)> {
    let user = |what: UserSgpr| d.user_sgprs().contains(&what);
    if d.rsrc2 & EXCEPTIONS != 0 {
        Some((Absent::Exceptions, "`ENABLE_EXCEPTION_*` of the kernel's descriptor"))
    } else if d.rsrc1 & DEBUG_MODE != 0 {
        Some((Absent::Exceptions, "`DEBUG_MODE` of the kernel's descriptor"))
    } else if d.rsrc1 & PRIV != 0 {
        Some((Absent::TrapHandler, "`PRIV` of the kernel's descriptor"))
    } else if d.rsrc1 & CDBG_USER != 0 {
        Some((Absent::Debugging, "`CDBG_USER` of the kernel's descriptor"))
    } else if user(UserSgpr::PrivateSegmentBuffer) {
        Some((Absent::PrivateBase, "`ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER` of the kernel's descriptor"))
    } else if user(UserSgpr::FlatScratchInit) {
        Some((Absent::PrivateBase, "`ENABLE_SGPR_FLAT_SCRATCH_INIT` of the kernel's descriptor"))
    } else {
        None
    }
}
