//! The arguments of `cargo xtask plant`.

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// What survives the quick depth is tried in the full one.
    pub(crate) full: bool,
    /// Nothing is run: the defects are listed.
    pub(crate) list: bool,
    /// Only whether each defect compiles.
    pub(crate) check: bool,
    /// The page is rewritten.
    pub(crate) write: bool,
    /// Minutes after which tests that have not ended are ended.
    pub(crate) minutes: u64,
    /// Areas, or parts of the names of defects; all if there is none.
    pub(crate) names: Vec<String>,
}

pub(crate) const HELP: &str = "\
cargo xtask plant [--full] [--list] [--check] [--write] [--minutes N] [NAME]...

Plants defects of one line, one after the other, in a copy of the repository (target/plant), and runs the tests that concern each in
their quick depth. A defect is found if a test fails.

  --full       try what survives the quick depth in the full depth
  --list       list the defects
  --check      only check that each defect compiles
  --write      write the results into docs/planted.md; rows of other defects stay
  --minutes N  tests that run longer than this are ended, and the defect is found; 10 by default
  NAME         only defects of this area, which is a file of xtask/defects, or with this in their name";

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options { minutes: 10, ..Options::default() };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            match arg.as_str() {
                "--full" => options.full = true,
                "--list" => options.list = true,
                "--check" => options.check = true,
                "--write" => options.write = true,
                "--minutes" => {
                    let number = rest.next().and_then(|n| n.parse().ok()).filter(|n| *n > 0);
                    options.minutes = number.ok_or(format!("`--minutes` needs a number of minutes\n\n{HELP}"))?;
                }
                flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`\n\n{HELP}")),
                name => options.names.push(name.to_owned()),
            }
        }
        Ok(options)
    }
}
