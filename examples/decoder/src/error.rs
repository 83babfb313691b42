//! What can fail: TITAN, the weights, the pages of the cache.

use std::fmt;

/// An error of the decoder.
#[derive(Debug)]
pub enum Error {
    /// A launch, an allocation or a file that TITAN reads.
    Titan(titan::Error),
    /// Weights that are not those of a decoder of this kind.
    Weights(String),
    /// All pages of the cache are in use.
    NoPages {
        /// Pages that were asked for.
        wanted: usize,
        /// Pages that are free.
        free: usize,
    },
    /// A request that cannot be fulfilled: an empty prompt, or a sequence longer than the positions of the model.
    Request(String),
}

impl From<titan::Error> for Error {
    fn from(error: titan::Error) -> Self {
        Error::Titan(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Titan(error) => write!(f, "{error}"),
            Error::Weights(problem) => write!(f, "weights: {problem}"),
            Error::NoPages { wanted, free } => write!(f, "the cache has {free} free pages, but {wanted} are needed"),
            Error::Request(problem) => write!(f, "{problem}"),
        }
    }
}

impl std::error::Error for Error {}
