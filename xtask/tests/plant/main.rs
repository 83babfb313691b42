//! `cargo xtask plant`: its list applies to the sources as they are, and what it reads and writes.

#[path = "../../src/plant/defect.rs"]
mod defect;
#[path = "../../src/plant/list.rs"]
mod list;
#[path = "../../src/plant/options.rs"]
mod options;
#[path = "../../src/plant/page.rs"]
mod page;
#[path = "../../src/plant/verdict.rs"]
mod verdict;

mod applies;
mod format;
mod output;
