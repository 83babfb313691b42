//! The arguments of `cargo xtask test`.

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Every case of every test, instead of samples.
    pub(crate) full: bool,
    /// CPU seconds of each test program are printed at the end.
    pub(crate) times: bool,
    /// Only tests of these packages; of all if there is none.
    pub(crate) packages: Vec<String>,
    /// Only these test programs; all if there is none.
    pub(crate) programs: Vec<String>,
    /// What the test programs are told: a part of the names of tests, and what follows `--`.
    pub(crate) passed_on: Vec<String>,
}

pub(crate) const HELP: &str = "\
cargo xtask test [--full] [--times] [-p PACKAGE]... [--test PROGRAM]... [NAME] [-- ARGS]

  --full          every case of every test, other people's tools to compare with, and Windows under wine; what is missing for
                  that is installed (about 3.5 GB); without it, samples with fixed seeds
  --times         print the CPU seconds of each test program
  -p PACKAGE      only tests of this package, given by its name or its folder
  --test PROGRAM  only this test program, such as `hopper`; `lib` are the tests inside libraries
  NAME            only tests whose names contain this
  -- ARGS         arguments of the test programs, such as `--nocapture`";

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().cloned().ok_or(format!("`{arg}` needs a value\n\n{HELP}"));
            match arg.as_str() {
                "--full" => options.full = true,
                "--times" => options.times = true,
                "-p" | "--package" => options.packages.push(value()?),
                "--test" => options.programs.push(value()?),
                "--" => options.passed_on.extend(rest.by_ref().cloned()),
                flag if flag.starts_with('-') => return Err(format!("unknown option `{flag}`\n\n{HELP}")),
                name => options.passed_on.push(name.to_owned()),
            }
        }
        Ok(options)
    }

    /// Whether all tests are asked for.
    pub(crate) fn is_everything(&self) -> bool {
        self.packages.is_empty() && self.programs.is_empty() && self.passed_on.is_empty()
    }

    /// Whether a test program is asked for.
    pub(crate) fn wants(&self, package: &str, folder: &str, program: &str) -> bool {
        let package = self.packages.is_empty() || self.packages.iter().any(|p| p == package || p == folder);
        package && (self.programs.is_empty() || self.programs.iter().any(|p| p == program))
    }
}
