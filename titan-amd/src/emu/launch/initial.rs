//! The scalar registers of a wave when it starts, which the kernel's descriptor asks for (LLVM, "User Guide for AMDGPU Backend", "Initial
//! Kernel Execution State").

use super::Env;
use crate::emu::exec::Run;
use crate::emu::wave::Wave;
use crate::object::descriptor::UserSgpr;

impl Env<'_> {
    /// Fills the user registers, and those with the number of the workgroup behind them.
    pub(super) fn user_registers(&self, w: &mut Wave, id: [u32; 3], wave: usize) -> Run<()> {
        let d = &self.kernel.entry.descriptor;
        let mut next = 0_u8;
        let mut put = |w: &mut Wave, n: u8, value: u64| {
            let at = next;
            next += n;
            w.set_defined(at, n, value)
        };
        for user in d.user_sgprs() {
            match user {
                UserSgpr::KernargSegmentPtr => put(w, 2, self.kernarg.0)?,
                UserSgpr::DispatchPtr => put(w, 2, self.dispatch)?,
                // Kernels that ask for the last one are not launched (`absent::asked`).
                UserSgpr::DispatchId | UserSgpr::QueuePtr | UserSgpr::FlatScratchInit => put(w, 2, 0)?,
                UserSgpr::PrivateSegmentSize => put(w, 1, self.private_bytes().into())?,
                UserSgpr::PrivateSegmentBuffer => {
                    put(w, 2, 0)?;
                    put(w, 2, 0)?;
                }
                UserSgpr::Preload(n) => {
                    let words = self.kernarg.1.chunks(4).skip(d.preload_offset() as usize).take(n as usize);
                    for word in words {
                        let value = word.iter().rev().fold(0_u64, |all, b| all << 8 | u64::from(*b));
                        put(w, 1, value)?;
                    }
                }
            }
        }
        // Fewer registers may be filled than are reserved.
        let filled: u32 = d.user_sgprs().iter().map(|u| u.registers()).sum();
        for _ in filled..d.user_sgpr_count() {
            put(w, 1, 0)?;
        }
        for (asked, value) in d.workgroup_ids().into_iter().zip(id) {
            if asked {
                put(w, 1, value.into())?;
            }
        }
        if d.workgroup_info() {
            put(w, 1, (wave as u64) << 20 | self.waves() as u64)?;
        }
        Ok(())
    }
}
