//! How fast a machine executes instructions, for whoever compares schedules.
//!
//! A multiprocessor has partitions, among which the warps of a program are divided; each has a matrix unit, an arithmetic unit and one for
//! special functions, and all share the path to shared memory. The numbers are rates of a partition, or of the multiprocessor for shared
//! memory, and latencies of single instructions. They tell which of two orders keeps a unit busier.
//!
//! Deliberately absent: predictions of times; global memory and barriers. How far ahead copies are issued follows from the slots of rings.

/// Rates and latencies of a machine; back ends state their sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The number of partitions of a multiprocessor.
    pub partitions: u32,
    /// Multiply-adds of 16-bit elements that a partition's matrix unit does in a cycle.
    pub macs: u32,
    /// Cycles from the issue of a matrix instruction to its result.
    pub matrix_latency: u32,
    /// Elements of 32 bits that a partition computes in a cycle.
    pub lanes: u32,
    /// Cycles from the issue of such an instruction to its result.
    pub lanes_latency: u32,
    /// Special functions, such as `exp2` of 32 bits, that a partition computes in a cycle.
    pub special: u32,
    /// Cycles from the issue of such an instruction to its result.
    pub special_latency: u32,
    /// Bytes of shared memory that all warps of a multiprocessor together read or write in a cycle.
    pub shared_bytes: u32,
    /// Cycles from the issue of a load from shared memory to its result.
    pub shared_latency: u32,
}
