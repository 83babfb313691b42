//! The events of programs of the barrier dialect: barriers, groups and memory (rules 54 to 60).
//!
//! * `objects`: the barrier or memory that each value names;
//! * `machine`: the state of barriers, groups and accesses, with happens-before;
//! * `seen`: equality of two states up to a shift of times;
//! * `event`, `access`: the effect of one operation on the state;
//! * `lives`: invalidation of barriers (rule 58);
//! * `outputs`: which bulk stores to one output write different elements;
//! * `index`: which element of an array an index selects; `parity`: which phase a parity stands for; `forms`: parities that are
//!   wrong as written;
//! * `messages`: the texts of errors.
//!
//! A role is one thread of control. Deliberately absent: races between the threads of one role; the contents of memory; other
//! programs of a cluster; all that does not depend on the order of operations (`crate::verify::barriers`).

mod access;
mod event;
mod forms;
pub(in crate::verify) mod index;
pub(in crate::verify) mod lives;
pub(in crate::verify) mod machine;
pub(in crate::verify) mod messages;
pub(in crate::verify) mod objects;
mod outputs;
mod parity;
mod seen;
