//! The errors of the emulator: in the PTX text, in a launch, and while a kernel runs.

use std::fmt;

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The text is not PTX.
    Syntax,
    /// A name that is not declared, or declared twice.
    Symbol,
    /// An instruction, type or modifier that the emulator does not know. It never guesses.
    Unknown,
    /// An instruction that the module's version or target does not have.
    Target,
    /// Operands that do not fit the instruction.
    Operand,
    /// Launch parameters that do not fit the kernel.
    Launch,
    /// An access outside of every allocation.
    OutOfBounds,
    /// An access to memory that is freed or may not be written.
    Permission,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A read of a register or a byte of memory that was never written.
    Uninitialised,
    /// Unordered conflicting accesses to shared memory.
    Race,
    /// Threads of a warp that should execute an instruction together do not.
    Divergence,
    /// An undefined use of a barrier.
    Barrier,
    /// A use of a register that an operation in flight uses.
    InFlight,
    /// A deadlock: no thread can continue.
    Deadlock,
    /// The kernel executed `trap`.
    Trap,
    /// The limit on executed instructions was reached.
    Limit,
}

impl ErrorCode {
    /// The name of the code in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ErrorCode::Syntax => "syntax",
            ErrorCode::Symbol => "symbol",
            ErrorCode::Unknown => "unknown",
            ErrorCode::Target => "target",
            ErrorCode::Operand => "operand",
            ErrorCode::Launch => "launch",
            ErrorCode::OutOfBounds => "out-of-bounds",
            ErrorCode::Permission => "permission",
            ErrorCode::Misaligned => "misaligned",
            ErrorCode::Uninitialised => "uninitialised",
            ErrorCode::Race => "race",
            ErrorCode::Divergence => "divergence",
            ErrorCode::Barrier => "barrier",
            ErrorCode::InFlight => "in-flight",
            ErrorCode::Deadlock => "deadlock",
            ErrorCode::Trap => "trap",
            ErrorCode::Limit => "limit",
        }
    }
}

/// A place in the kernel's source, from `.loc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file, as `.file` names it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if not known.
    pub column: u32,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A place in the PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The line of the PTX text, from 1; 0 if the error is at no line.
    pub line: u32,
    /// The instruction there.
    pub instruction: String,
    /// The source locations: the innermost one first, then the call sites at which it is inlined.
    pub sources: Vec<Source>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX line {}", self.line)?;
        if !self.instruction.is_empty() {
            write!(f, ": {}", self.instruction)?;
        }
        for (i, source) in self.sources.iter().enumerate() {
            write!(f, "\n    {} {source}", if i == 0 { "from" } else { "inlined at" })?;
        }
        Ok(())
    }
}

/// A thread, by its block and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId {
    /// The block's index, `%ctaid`.
    pub block: [u32; 3],
    /// The thread's index, `%tid`.
    pub thread: [u32; 3],
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([bx, by, bz], [x, y, z]) = (self.block, self.thread);
        write!(f, "thread ({x}, {y}, {z}) of block ({bx}, {by}, {bz})")
    }
}

/// An error, with the place in the PTX and in the kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmuError(Box<Report>);

/// The contents of an [`EmuError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The rule that was broken.
    pub code: ErrorCode,
    /// The message.
    pub message: String,
    /// The place of the error.
    pub site: Site,
    /// The thread; if several threads are involved, the first.
    pub thread: Option<ThreadId>,
    /// The other side: for a race, the access that was executed first.
    pub other: Option<(Site, String)>,
    /// A suggestion how to fix the error.
    pub help: Option<String>,
}

impl EmuError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> EmuError {
        EmuError(Box::new(Report {
            code,
            message: message.into(),
            site: Site::default(),
            thread: None,
            other: None,
            help: None,
        }))
    }

    /// An error at a line of the text.
    pub(crate) fn at(code: ErrorCode, line: u32, message: impl Into<String>) -> EmuError {
        let mut e = EmuError::new(code, message);
        e.0.site.line = line;
        e
    }

    #[must_use]
    pub(crate) fn with_site(mut self, site: Site) -> EmuError {
        self.0.site = site;
        self
    }

    #[must_use]
    pub(crate) fn with_thread(mut self, thread: ThreadId) -> EmuError {
        self.0.thread = Some(thread);
        self
    }

    #[must_use]
    pub(crate) fn with_other(mut self, site: Site, who: String) -> EmuError {
        self.0.other = Some((site, who));
        self
    }

    #[must_use]
    pub(crate) fn with_help(mut self, help: impl Into<String>) -> EmuError {
        self.0.help = Some(help.into());
        self
    }

    /// The error with renamed source locations: `.loc` has the names that the compiler was given.
    #[must_use]
    pub fn renamed(mut self, rename: impl Fn(&mut Source)) -> EmuError {
        self.0.site.sources.iter_mut().for_each(&rename);
        self.0.other.iter_mut().flat_map(|(site, _)| &mut site.sources).for_each(&rename);
        self
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

    /// The line of the PTX text, from 1; 0 if the error is at no line.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.0.site.line
    }
}

impl fmt::Display for EmuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { code, message, site, thread, other, help } = &*self.0;
        write!(f, "error[emu::{}]: {message}", code.name())?;
        if site.line > 0 {
            write!(f, "\n  at {site}")?;
        }
        if let Some(thread) = thread {
            write!(f, "\n  in {thread}")?;
        }
        if let Some((site, who)) = other {
            write!(f, "\n  against {who} at {site}")?;
        }
        help.as_ref().map_or(Ok(()), |h| write!(f, "\n  help: {h}"))
    }
}

impl std::error::Error for EmuError {}
