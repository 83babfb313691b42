//! The events of rings: operations of roles on rings by tokens, and by the claims of barrier programs.
//!
//! * `event`: the effect of an operation on tokens (rules 41 to 45);
//! * `claims`: the effect of a claim (rule 64);
//! * `touches`: accesses to slots (rules 64, 66 and 83);
//! * `pairs`: the values by which claims name times;
//! * `find`: the claims of a barrier program, and its accesses to rings.
//!
//! Deliberately absent: the implementation of claims by barriers (`crate::verify::barriers`).

pub(in crate::verify) mod claims;
mod event;
pub(in crate::verify) mod find;
pub(in crate::verify) mod pairs;
pub(in crate::verify) mod touches;
