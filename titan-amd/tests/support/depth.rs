//! How much the tests try: a sample by default, which takes seconds; everything with `TITAN_TESTS=full`.

/// Whether everything is to be tried.
pub(crate) fn full() -> bool {
    std::env::var_os("TITAN_TESTS").is_some_and(|v| v == "full")
}

/// The number of tries: of the sample, or of everything.
pub(crate) fn tries<T>(sample: T, all: T) -> T {
    if full() { all } else { sample }
}
