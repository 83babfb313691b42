//! From tiles to lanes: the one place where the meaning of tile operations becomes what a thread does.
//!
//! | module | lowers |
//! |---|---|
//! | [`scalar`] | arithmetic, functions and conversions of one element |

pub mod scalar;
