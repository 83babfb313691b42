//! The dialect `ttg.amd`: operations of a wave of gfx942, whose completion is tracked by counters.
//!
//! A wave counts its vector memory operations in flight (`vmcnt`) and those on its local memory (`lgkmcnt`); each kind completes in order
//! (CDNA3 ISA, "Manually inserted wait states and s_waitcnt"). `s_waitcnt` waits until a counter is at most its immediate; a single
//! operation cannot be waited for.
//!
//! Deliberately absent: scalar memory operations, which count in `lgkmcnt` out of order, and exports.

/// An operation of the dialect. Its operands, results and meaning are a row of [`super::op_table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdOp {
    /// Waits until the counters are at most these values; the maxima 63 and 15 mean no wait.
    Waitcnt {
        /// Vector memory operations that may stay in flight.
        vmcnt: u32,
        /// Operations on local memory that may stay in flight.
        lgkmcnt: u32,
    },
    /// A copy from a tensor to a region that bypasses registers.
    BufferLoadLds {
        /// The size of the copy in bytes.
        bytes: u32,
        /// The number of the operation's token.
        n: u32,
    },
    /// Starts reading a region.
    DsRead {
        /// The number of the operation's token.
        n: u32,
    },
    /// Starts writing a region.
    DsWrite {
        /// The number of the operation's token.
        n: u32,
    },
    /// A barrier of all waves of the program (`s_barrier`).
    Barrier,
    /// An MMA on registers.
    Mfma,
    /// Sets the priority of the wave.
    SetPrio {
        /// The priority, from 0 to 3.
        level: u32,
    },
}
