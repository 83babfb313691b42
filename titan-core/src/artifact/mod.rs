//! Artifacts: the data that a program embeds for each kernel instance.
//!
//! An [`Artifact`] is a list of [`Variant`]s of one kernel, best first: for each target the code, its assumptions about the arguments, and
//! the data that a launch needs. The first variant of the device's target whose [`Assumption`]s hold is launched; the last one for a device
//! has no assumptions. The payload depends on the target: the text form of the kernel for `cpu`, PTX for `sm_80`, an ELF file for `gfx942`.
//! A device may run code for several targets: `sm_90a` for some arguments, and `sm_80` for the others.
//!
//! # Format
//!
//! Integers are little-endian. A *text* is a `u32` length in bytes and UTF-8; a *list* a `u32` count and its items.
//!
//! | offset | size | content |
//! |---|---|---|
//! | 0 | 8 | magic: `89 54 49 54 41 4e 0d 0a`, `\x89TITAN\r\n` |
//! | 8 | 2 | version: [`VERSION`] |
//! | 10 | 2 | zero |
//! | 12 | 4 | length of the body in bytes |
//! | 16 | 8 | FNV-1a, 64 bits, of the body |
//! | 24 | | body: text *kernel*; list of variants; list of refusals: text *target*, text *reason* |
//!
//! | variant | content |
//! |---|---|
//! | `u32` | length of what follows, in bytes |
//! | text | target |
//! | list | configuration: text *name*, text *value* |
//! | list | assumptions: `u8` tag and its fields, see [`Assumption`] |
//! | `u32` `u32` | shared memory in bytes; threads |
//! | `u32` `u8` | programs of a cluster, 0 without clusters; the grid: 0 the kernel's, 1 the device determines it, 2 all programs along axis 0 |
//! | list | notes: text |
//! | list | bank conflicts: `u32` line, `u32` column, `u32` degree |
//! | list | sites: `u32` line, `u32` column, `u8` kind; 0 text *message*; 1 text *format*, list of types |
//! | | a type: `u8` 0 scalar, 1 tile; `u8` index in `Elem::ALL`; of a tile, list of `u32` extents |
//! | `u8` | 0 the code as it is: `u32` and bytes; 1 packed: `u32` its length, `u32` and packed bytes |
//!
//! The bytes are a function of the artifact, and every artifact has exactly one encoding. Code without a zero byte is packed (see
//! `pack.rs`), unless an artifact has more than 64 MiB of it. There is no alignment.
//!
//! # Security
//!
//! [`Artifact::decode`] never panics, reads nothing outside of its argument, and never has more than 1 MiB plus one hundred times the size of
//! the input allocated, for all inputs. The checksum detects accidents, not attacks: an artifact is as trustworthy as the program that embeds it.
//! A payload is code. Programs that load artifacts from elsewhere must trust their source; a payload is checked only by its own reader (the
//! text form is parsed and verified again).

mod assumption;
mod decode;
mod embedded;
mod encode;
mod pack;
mod place;

pub use assumption::{Assumption, TensorFact, TensorFacts};
pub use place::cache_dir;

use crate::diag::Code;
use crate::ir::Loc;
use crate::launch::abi::MapParam;
use crate::launch::report::Site;
use std::fmt;

/// The version that this crate writes, and the only one that it reads.
pub const VERSION: u16 = 9;

/// The artifact of one kernel instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The name of the kernel with its instance: `gemm::<f16, 128, 256, 64>`.
    pub kernel: String,
    /// The variants, best first.
    pub variants: Vec<Variant>,
    /// The requested targets without a variant, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// The grid with which a variant is launched, which may differ from the kernel's grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridRule {
    /// The grid of the kernel.
    #[default]
    Declared,
    /// The device determines it, as for a persistent kernel.
    Persistent,
    /// The same number of programs as the kernel's grid, along axis 0.
    Flat,
}

/// A kernel instance compiled for one target under some assumptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// The target: `cpu`, `sm_80`, `gfx942`.
    pub target: String,
    /// The choices of the compiler, for display: tile sizes, stages, warps.
    pub config: Vec<(String, String)>,
    /// The assumptions about the arguments.
    pub assumptions: Vec<Assumption>,
    /// The shared memory of a program in bytes.
    pub shared_bytes: u32,
    /// The number of threads of a program.
    pub threads: u32,
    /// The number of programs of a cluster, which are adjacent along axis 0 of the grid; 0 without clusters.
    pub cluster: u32,
    /// The grid of a launch.
    pub grid: GridRule,
    /// The notes of the compiler: the reasons for this variant and against others.
    pub notes: Vec<String>,
    /// The accesses to shared memory with bank conflicts, for each line those with the maximum degree.
    pub conflicts: Vec<BankConflict>,
    /// The operations that may trap or print; the code refers to them by their index.
    pub sites: Vec<Site>,
    /// The code for the target: PTX text, an ELF file, or the text form of the kernel.
    pub payload: Vec<u8>,
}

/// An access to shared memory that is serialized between lanes, because their words are in one bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankConflict {
    /// The location of the operation.
    pub loc: Loc,
    /// The degree of the conflict: how many times longer the access takes.
    pub degree: u32,
}

impl fmt::Display for BankConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-way bank conflicts in shared memory", self.degree)
    }
}

impl Variant {
    /// The number of threads of a program of the kernel that makes tables of tensor maps: one warp.
    pub const MAKER_THREADS: u32 = 32;

    /// Whether it assumes nothing of the arguments of a launch. The device may still have too little shared memory.
    #[must_use]
    pub fn takes_all_arguments(&self) -> bool {
        self.assumptions.iter().all(Assumption::is_of_device)
    }

    /// The name of the kernel in the code, from the entry `entry` of the configuration; empty if code of the target has no names.
    #[must_use]
    pub fn entry(&self) -> &str {
        self.config.iter().find(|(name, _)| name == "entry").map_or("", |(_, value)| value)
    }

    /// The name of the kernel in the code that makes the tables of tensor maps, from the entry `maps` of the configuration; it runs before each
    /// launch of the variant, with one program of [`Variant::MAKER_THREADS`] threads for each entry. `None` if there are no tables.
    #[must_use]
    pub fn maker(&self) -> Option<&str> {
        self.config.iter().find(|(name, _)| name == "maps").map(|(_, value)| value.as_str())
    }

    /// The tensor maps that the code has as parameters, in order: those of its assumptions.
    pub fn maps(&self) -> impl Iterator<Item = &MapParam> {
        self.assumptions.iter().filter_map(|assumption| match assumption {
            Assumption::TensorMap(map) => Some(map),
            Assumption::UnitStride { .. }
            | Assumption::Aligned { .. }
            | Assumption::StrideMultiple { .. }
            | Assumption::Divisible { .. }
            | Assumption::Index32
            | Assumption::Holds(_)
            | Assumption::Reach { .. }
            | Assumption::Apart { .. }
            | Assumption::SharedMemory { .. } => None,
        })
    }
}

impl Artifact {
    /// Encodes the artifact as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode::encode(self)
    }

    /// Decodes an artifact from all of these bytes.
    ///
    /// # Errors
    /// Returns an error if they are not a complete and undamaged artifact of this version.
    pub fn decode(bytes: &[u8]) -> Result<Artifact, ArtifactError> {
        decode::decode(bytes)
    }

    /// The artifacts that are embedded in a file, such as an executable, in the order of their places; and what is wrong with those that are damaged,
    /// cut or of another version.
    #[must_use]
    pub fn embedded(file: &[u8]) -> (Vec<Artifact>, Vec<ArtifactError>) {
        embedded::embedded(file)
    }

    /// The first variant of a target whose assumptions hold.
    #[must_use]
    pub fn choose(&self, target: &str, facts: &dyn TensorFacts) -> Option<&Variant> {
        self.variants.iter().find(|v| v.target == target && v.assumptions.iter().all(|a| a.holds(facts)))
    }
}

/// The reason why bytes are not a valid artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The magic number is missing.
    #[error("these bytes are not a TITAN artifact")]
    NotAnArtifact,
    /// The format is newer.
    #[error("made by a newer TITAN: format version {found}, this one reads version {VERSION}")]
    TooNew {
        /// The version of the bytes.
        found: u16,
    },
    /// The format is older.
    #[error(
        "made by an older TITAN: format version {found}, this one reads version {VERSION}; build the program again"
    )]
    TooOld {
        /// The version of the bytes.
        found: u16,
    },
    /// The number of bytes differs from that in the header.
    #[error("the artifact has {found} bytes, its header says {expected}: it was cut or something was appended")]
    Length {
        /// The number of bytes.
        found: usize,
        /// The number of bytes according to the header.
        expected: usize,
    },
    /// The checksum does not match the body.
    #[error("the artifact is damaged: its checksum does not agree")]
    Checksum,
    /// A part extends beyond its section.
    #[error("the artifact is malformed at byte {at}: {what} reaches past the end of its section")]
    Truncated {
        /// The name of the part.
        what: &'static str,
        /// The position at which it starts.
        at: usize,
    },
    /// A part does not conform to the format.
    #[error("the artifact is malformed at byte {at}: {what}")]
    Malformed {
        /// A description of the error.
        what: &'static str,
        /// The position in bytes.
        at: usize,
    },
}

impl ArtifactError {
    /// The code of the diagnostic.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::ArtifactFormat
    }
}
