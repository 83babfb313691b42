//! The events of programs of the barrier dialect: barriers, groups and memory (rules 54 to 60, 80 and 83).
//!
//! * `objects`: the barrier or memory to which each value refers;
//! * `machine`: the state of barriers, groups and accesses, with happens-before; `conflicts`: accesses that are not ordered by it;
//! * `seen`: equality of two states up to a shift of times;
//! * `event`, `access`: the effect of one operation on the state;
//! * `lives`: invalidation of barriers (rule 58);
//! * `tensor`: accesses to tensor memory, their order and fences (rule 80);
//! * `written`: reads of memory that nothing has written (rule 83);
//! * `outputs`: bulk stores to one output that write different elements;
//! * `index`: the element of an array that an index selects; `parity`: the phase that a parity stands for; `forms`: parities that are
//!   wrong as written;
//! * `messages`: the texts of errors.
//!
//! A role is one thread of control. Deliberately absent: races between the threads of one role; the contents of memory; other programs of a
//! cluster; everything that does not depend on the order of operations (`crate::verify::barriers`).

mod access;
mod conflicts;
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
mod tensor;
pub(in crate::verify) mod written;
