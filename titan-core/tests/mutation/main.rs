//! Every good pipeline of the tree, broken in every way that there is a row for, and given to each layer of checks.

mod barriers;
mod kinds;
mod rings;
mod sources;
mod text;
mod verifier;
