//! The errors of the emulator: when a code object is loaded, in a launch, and while a kernel runs.

use std::fmt;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The bytes are not a code object for this machine.
    Object,
    /// Launch parameters that do not fit the kernel.
    Launch,
    /// Bytes that are not an instruction, or an instruction with operands or modes for which the manual states no result.
    Unknown,
    /// A feature of the machine that the emulator does not have ([`Absent`](super::Absent)). It never guesses.
    Unsupported,
    /// A register beyond those that the kernel was allocated.
    Register,
    /// An access outside of every allocation.
    OutOfBounds,
    /// An access to memory that is freed or may not be written.
    Permission,
    /// An address that is not sufficiently aligned.
    Misaligned,
    /// A read of a register or a byte of memory that was never written.
    Uninitialised,
    /// A use of a register that an operation in flight will write: a wait is missing.
    InFlight,
    /// Too few wait states between two instructions.
    Hazard,
    /// Unordered conflicting accesses to the local data share.
    Race,
    /// No wave can continue.
    Deadlock,
    /// The kernel executed `s_trap`.
    Trap,
    /// The limit on executed instructions was reached.
    Limit,
}

impl ErrorCode {
    /// The name of the code in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::Object => "object",
            ErrorCode::Launch => "launch",
            ErrorCode::Unknown => "unknown",
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Register => "register",
            ErrorCode::OutOfBounds => "out-of-bounds",
            ErrorCode::Permission => "permission",
            ErrorCode::Misaligned => "misaligned",
            ErrorCode::Uninitialised => "uninitialised",
            ErrorCode::InFlight => "in-flight",
            ErrorCode::Hazard => "hazard",
            ErrorCode::Race => "race",
            ErrorCode::Deadlock => "deadlock",
            ErrorCode::Trap => "trap",
            ErrorCode::Limit => "limit",
        }
    }
}

/// A place in a code object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The address within the code object.
    pub address: u64,
    /// The function that contains it, which is a kernel or called by one, and the offset from its start, in bytes.
    pub function: Option<(String, u64)>,
    /// The instruction at that address.
    pub instruction: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        if let Some((name, offset)) = &self.function {
            write!(f, " (`{name}` + {offset:#x})")?;
        }
        if self.instruction.is_empty() { Ok(()) } else { write!(f, ": {}", self.instruction) }
    }
}

/// A wave, and possibly one of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveId {
    /// The index of the workgroup, along each axis.
    pub workgroup: [u32; 3],
    /// The index of the wave in the workgroup.
    pub wave: u32,
    /// The lane at which the error occurred, if it is one lane's.
    pub lane: Option<u32>,
}

impl fmt::Display for WaveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        if let Some(lane) = self.lane {
            write!(f, "lane {lane} of ")?;
        }
        write!(f, "wave {} of workgroup ({x}, {y}, {z})", self.wave)
    }
}

/// An error, with the instruction and the wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmuError(Box<Report>);

/// The contents of an [`EmuError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The rule that was broken.
    pub code: ErrorCode,
    /// The message.
    pub message: String,
    /// The place of the error, if it is at an instruction.
    pub site: Option<Site>,
    /// The wave in which it occurred.
    pub wave: Option<WaveId>,
    /// The other side: the instruction that is in flight or preceded too closely, and its wave.
    pub other: Option<(Site, String)>,
    /// A suggestion how to fix it.
    pub help: Option<String>,
}

impl EmuError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> EmuError {
        let (site, wave, other, help) = (None, None, None, None);
        EmuError(Box::new(Report { code, message: message.into(), site, wave, other, help }))
    }

    pub(crate) fn from_report(report: Report) -> EmuError {
        EmuError(Box::new(report))
    }

    /// The contents of the error.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.0
    }

    /// The rule that was broken.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }
}

impl fmt::Display for EmuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { code, message, site, wave, other, help } = &*self.0;
        write!(f, "error[emu::{}]: {message}", code.name())?;
        if let Some(site) = site {
            write!(f, "\n  at {site}")?;
        }
        if let Some(wave) = wave {
            write!(f, "\n  in {wave}")?;
        }
        if let Some((site, what)) = other {
            write!(f, "\n  against {what} at {site}")?;
        }
        help.as_ref().map_or(Ok(()), |h| write!(f, "\n  help: {h}"))
    }
}

impl std::error::Error for EmuError {}
