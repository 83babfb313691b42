//! What can go wrong with a code object: when it is loaded, in what a launch asks for, and while it runs.

use std::fmt;

/// Which rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The bytes are no code object for this machine.
    Object,
    /// A launch that does not fit the kernel.
    Launch,
    /// Bytes that are no instruction, an instruction or a mode that the emulator does not know. It never guesses.
    Unknown,
    /// A register beyond those that the kernel was given.
    Register,
    /// An access outside of every allocation.
    OutOfBounds,
    /// An access to memory that is freed or may not be written.
    Permission,
    /// An address that is not a multiple of what it must be.
    Misaligned,
    /// A register or a byte of memory is read that was never written.
    Uninitialised,
    /// A register is used while an operation in flight is to write it: a wait is missing.
    InFlight,
    /// Too few wait states between two instructions.
    Hazard,
    /// Unordered conflicting accesses to the local data share.
    Race,
    /// No wave can continue.
    Deadlock,
    /// The kernel executed `s_trap`.
    Trap,
    /// More steps than allowed.
    Limit,
}

impl ErrorCode {
    /// Its name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::Object => "object",
            ErrorCode::Launch => "launch",
            ErrorCode::Unknown => "unknown",
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
    /// The kernel that begins before it, and how far.
    pub kernel: Option<(String, u64)>,
    /// The instruction there.
    pub instruction: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        if let Some((name, offset)) = &self.kernel {
            write!(f, " (`{name}` + {offset:#x})")?;
        }
        if self.instruction.is_empty() { Ok(()) } else { write!(f, ": {}", self.instruction) }
    }
}

/// Which wave, and which lane of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveId {
    /// The workgroup, along each axis.
    pub workgroup: [u32; 3],
    /// The wave within it.
    pub wave: u32,
    /// The lane to blame, if one is.
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

/// What an [`EmuError`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which rule.
    pub code: ErrorCode,
    /// What happened.
    pub message: String,
    /// Where, if an instruction is to blame.
    pub site: Option<Site>,
    /// In which wave.
    pub wave: Option<WaveId>,
    /// The other side: the instruction that is in flight or came too shortly before, and whose it is.
    pub other: Option<(Site, String)>,
    /// How to correct it.
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

    /// All that it says.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.0
    }

    /// Which rule was broken.
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
