//! Rules 46 to 61: programs that state their protocol themselves, in regions, barriers, groups and counters.
//!
//! * `place`: what does not depend on the order of operations (rules 46 to 53);
//! * `lives`, `numbers`: how barriers begin and end (rule 48, and 58 of those that follow); threads and registers (rule 51);
//! * `objects`: what each value names;
//! * `machine`: barriers, groups and accesses, and who knows of what;
//! * `seen`: whether two states of it are the same;
//! * `event`, `access`: what one operation does to them, as the roles run together in `crate::verify::pipes::coexecution` (rules 54
//!   to 60);
//! * `outputs`: which raw bulk stores to one output go to different elements;
//! * `index`: which element of an array an index picks; `parity`: which phase a parity means; `forms`: parities that are
//!   wrong as they are written;
//! * `words`: messages;
//! * `proxies`: fences between ordinary and asynchronous accesses (rule 61).
//!
//! A role is one thread of control. Deliberately absent: races between the threads of one role; the contents of memory; other
//! programs of a cluster.

mod access;
pub(super) mod event;
mod forms;
mod index;
mod lives;
pub(super) mod machine;
pub(super) mod messages;
mod numbers;
pub(super) mod objects;
mod outputs;
mod parity;
mod place;
pub(super) mod proxies;
mod seen;

pub(super) use place::{beginning, check, words};
