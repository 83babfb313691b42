//! Rules 46 to 61 and 70 to 73: programs of the barrier dialect, with regions, barriers, groups and counters.
//!
//! * `place`: the checks that do not depend on the order of operations (rules 46 to 53);
//! * `lives`, `numbers`: initialisation and invalidation of barriers (rules 48 and 58); threads and registers (rule 51);
//! * `objects`: the barrier or memory that each value names;
//! * `machine`: the state of barriers, groups and accesses, with happens-before;
//! * `seen`: equality of two states up to a shift of times;
//! * `event`, `access`: the effect of one operation on the state, in the co-execution of the roles
//!   (`crate::verify::pipes::coexecution`, rules 54 to 60);
//! * `outputs`: which bulk stores to one output write different elements;
//! * `index`: which element of an array an index selects; `parity`: which phase a parity stands for; `forms`: parities that are
//!   wrong as written;
//! * `messages`: the texts of errors;
//! * `boxes`: bulk copies of tiles (rule 70).
//! * `proxies`: fences between generic and asynchronous accesses (rule 61);
//! * `tensor`: tensor memory (rules 73 to 76).
//!
//! A role is one thread of control. Deliberately absent: races between the threads of one role; the contents of memory; other
//! programs of a cluster.

mod access;
pub(super) mod boxes;
pub(super) mod event;
mod forms;
mod index;
mod lives;
pub(super) mod machine;
pub(super) mod messages;
pub(super) mod numbers;
pub(super) mod objects;
mod outputs;
mod parity;
mod place;
pub(super) mod proxies;
mod seen;
mod tensor;

pub(super) use place::{beginning, check, words};
