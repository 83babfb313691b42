//! Rules 46 to 53, 61, 70, 73 to 76 and 79: rules of programs in the barrier dialect (regions, barriers, groups and counters) that do not
//! depend on the order of execution. The rules that do are checked by the co-execution of the roles (`crate::verify::coexecution`).
//!
//! * `place`: the placement of regions and barriers, copies, tokens (rules 46 to 53);
//! * `lives`, `numbers`: initialisation of barriers (rule 48); threads and registers (rule 51);
//! * `boxes`: bulk copies of tiles (rule 70);
//! * `strided`: bulk copies with element strides (rule 79);
//! * `proxies`: fences between generic and asynchronous accesses (rule 61);
//! * `tensor`: tensor memory (rules 73 to 76).

pub(super) mod boxes;
mod lives;
pub(super) mod numbers;
mod place;
pub(super) mod proxies;
pub(super) mod strided;
mod tensor;

pub(super) use place::{check, words};
