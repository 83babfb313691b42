//! What several test programs use.
#![allow(dead_code, reason = "every test program uses some of it")]

pub(crate) mod depth;
pub(crate) mod oracle;
