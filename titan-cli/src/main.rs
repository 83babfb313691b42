//! The `titan` command.
fn main() {}
