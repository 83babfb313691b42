//! The book: its code blocks, compiled and run as doc tests of `book/blocks`, a workspace of its own, and its pages for a browser.

mod rejected;
mod site;

use crate::cargo::{cargo, root};
use std::io;

pub(crate) const HELP: &str = "\
cargo xtask book [NAME] [-- ARGS]     compiles and runs the code blocks, or rejects them by the errors that they name; only those of pages
                                      with NAME in their names
cargo xtask book --site               makes target/book/html, by `mdbook`, in which docs/ is the last part of the book";

/// Runs what is asked for; whether it succeeded.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(crate) fn run(args: &[String]) -> io::Result<bool> {
    match args {
        [flag] if flag == "--help" || flag == "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        [flag] if flag == "--site" => site::make(),
        rest => blocks(rest),
    }
}

/// Compiles and runs every code block; whether all passed.
#[expect(clippy::print_stdout, reason = "the outcome is printed to the terminal")]
pub(crate) fn blocks(args: &[String]) -> io::Result<bool> {
    println!("\nblocks of the book");
    let mut command = cargo();
    command.current_dir(root().join("book/blocks")).args(["test", "--doc", "--locked", "--"]);
    command.args(args.iter().filter(|arg| *arg != "--"));
    // In the repository's target folder, where the libraries of others are built already.
    command.env("CARGO_TARGET_DIR", crate::tools::target()?);
    let passed = command.status()?.success();
    let names: Vec<&String> = args.iter().take_while(|arg| *arg != "--").collect();
    Ok(rejected::check(&names)? && passed)
}
