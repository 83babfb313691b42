//! An error at run time, with numbers instead of names.

use super::error::ErrorCode;
use super::wave::Serial;
use titan_sim::engine::{Halt, Stop};

/// An error as the interpreter raises it: with addresses and indices, which are translated to names later.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    /// The address and the wave, if they differ from those that the interpreter executes.
    pub(crate) at: Option<(u64, usize)>,
    pub(crate) lane: Option<u32>,
    pub(crate) help: Option<&'static str>,
    /// The operation in flight that caused the error.
    pub(crate) because: Option<Serial>,
    /// Another address that is involved, and a description.
    pub(crate) other: Option<(u64, String)>,
}

impl Fail {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Fail {
        let (at, lane, help, because, other) = (None, None, None, None, None);
        Fail { code, message: message.into(), at, lane, help, because, other }
    }

    pub(crate) const fn lane(mut self, lane: u32) -> Fail {
        self.lane = Some(lane);
        self
    }

    pub(crate) const fn help(mut self, help: &'static str) -> Fail {
        self.help = Some(help);
        self
    }

    pub(crate) const fn because(mut self, op: Option<Serial>) -> Fail {
        self.because = op;
        self
    }

    pub(crate) fn against(mut self, address: u64, what: impl Into<String>) -> Fail {
        self.other = Some((address, what.into()));
        self
    }

    pub(crate) const fn or_at(mut self, pc: u64, wave: usize) -> Fail {
        if self.at.is_none() {
            self.at = Some((pc, wave));
        }
        self
    }
}

impl From<Halt> for Fail {
    fn from(halt: Halt) -> Fail {
        match halt {
            Halt::Stop => Fail::new(ErrorCode::Race, "unordered accesses"),
            Halt::Barrier(_, fault) => Fail::new(ErrorCode::Race, fault.to_string()),
            Halt::Meeting(_, fault) => Fail::new(ErrorCode::Deadlock, format!("`s_barrier`: {fault}")),
            Halt::Unknown => Fail::new(ErrorCode::Unknown, "the engine knows no such barrier"),
        }
    }
}

impl From<Stop> for Fail {
    fn from(stop: Stop) -> Fail {
        Halt::from(stop).into()
    }
}
