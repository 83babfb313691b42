//! Artifacts: what a program embeds for each kernel instance.
//!
//! An [`Artifact`] is a list of [`Variant`]s of one kernel, best first: for each target the code, what it assumes of the
//! arguments, and what the launch must know. The first variant of the device's target whose [`Assumption`]s hold is
//! launched; the last one that a device runs assumes nothing. The payload is the target's affair: the text form of the kernel for
//! `cpu`, PTX for `sm_80`, an ELF file for `gfx942`. A device may run code for several targets: `sm_90a` for some arguments, and
//! `sm_80` for the others.
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
//! The bytes are a function of the artifact, and every artifact has exactly one encoding. Code without a zero byte is packed, see
//! `pack.rs`, unless an artifact has more than 64 MiB of it. There is no alignment.
//!
//! # Security
//!
//! [`Artifact::decode`] never panics, reads nothing outside of its argument and allocates at most 256 MiB and two hundred times
//! as much, whatever the bytes are. The checksum finds accidents, not attacks: an artifact is as trustworthy as the program that
//! embeds it. A payload is code. Whoever loads artifacts from elsewhere must trust their source; what is inside is checked
//! no further than the payload's own reader checks it (the text form is parsed and verified again).

mod assumption;
mod decode;
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
pub const VERSION: u16 = 6;

/// What is embedded for one kernel instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The kernel with its instance: `gemm::<f16, 128, 256, 64>`.
    pub kernel: String,
    /// The variants, best first.
    pub variants: Vec<Variant>,
    /// Targets that were asked for and have no variant, and why.
    pub refused: Vec<(String, String)>,
}

/// The grid with which a variant is launched, although the kernel may have another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridRule {
    /// The kernel's.
    #[default]
    Declared,
    /// The device determines it, as for a persistent kernel.
    Persistent,
    /// As many programs as the kernel's, along axis 0.
    Flat,
}

/// A kernel instance compiled for one target under some assumptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// For which target: `cpu`, `sm_80`, `gfx942`.
    pub target: String,
    /// What the compiler chose, for people: tile sizes, stages, warps.
    pub config: Vec<(String, String)>,
    /// What must hold of the arguments.
    pub assumptions: Vec<Assumption>,
    /// Shared memory of a program, in bytes.
    pub shared_bytes: u32,
    /// Threads of a program.
    pub threads: u32,
    /// Programs of a cluster, which are neighbours along axis 0 of the grid; 0 without clusters.
    pub cluster: u32,
    /// The grid of a launch.
    pub grid: GridRule,
    /// Why this variant was made, and others were not.
    pub notes: Vec<String>,
    /// The accesses to shared memory with bank conflicts, by line: those of the greatest degree.
    pub conflicts: Vec<BankConflict>,
    /// Where it may trap and what it prints; the code names them by their places here.
    pub sites: Vec<Site>,
    /// The code.
    pub payload: Vec<u8>,
}

/// An access to shared memory that several lanes make one after the other, because their words lie in one bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankConflict {
    /// The operation.
    pub loc: Loc,
    /// How many times longer the access takes.
    pub degree: u32,
}

impl fmt::Display for BankConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-way bank conflicts in shared memory", self.degree)
    }
}

impl Variant {
    /// The name of the kernel in the code, which the configuration has as `entry`; empty where code has no names.
    #[must_use]
    pub fn entry(&self) -> &str {
        self.config.iter().find(|(name, _)| name == "entry").map_or("", |(_, value)| value)
    }

    /// The tensor maps that the code takes, in the order in which it takes them: those that it assumes.
    pub fn maps(&self) -> impl Iterator<Item = &MapParam> {
        self.assumptions.iter().filter_map(|assumption| match assumption {
            Assumption::TensorMap(map) => Some(map),
            Assumption::UnitStride { .. }
            | Assumption::Aligned { .. }
            | Assumption::StrideMultiple { .. }
            | Assumption::Divisible { .. }
            | Assumption::Index32
            | Assumption::Holds(_)
            | Assumption::SharedMemory { .. } => None,
        })
    }
}

impl Artifact {
    /// The bytes of the artifact.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode::encode(self)
    }

    /// The artifact of these bytes, all of them.
    ///
    /// # Errors
    /// If they are not an artifact of this version, whole and undamaged.
    pub fn decode(bytes: &[u8]) -> Result<Artifact, ArtifactError> {
        decode::decode(bytes)
    }

    /// The first variant of a target whose assumptions hold.
    #[must_use]
    pub fn choose(&self, target: &str, facts: &dyn TensorFacts) -> Option<&Variant> {
        self.variants.iter().find(|v| v.target == target && v.assumptions.iter().all(|a| a.holds(facts)))
    }
}

/// Why bytes are not an artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The magic number is not there.
    #[error("these bytes are not a TITAN artifact")]
    NotAnArtifact,
    /// A later format.
    #[error("made by a newer TITAN: format version {found}, this one reads version {VERSION}")]
    TooNew {
        /// The version of the bytes.
        found: u16,
    },
    /// An earlier format.
    #[error(
        "made by an older TITAN: format version {found}, this one reads version {VERSION}; build the program again"
    )]
    TooOld {
        /// The version of the bytes.
        found: u16,
    },
    /// There are fewer or more bytes than the header says.
    #[error("the artifact has {found} bytes, its header says {expected}: it was cut or something was appended")]
    Length {
        /// Bytes there are.
        found: usize,
        /// Bytes there should be.
        expected: usize,
    },
    /// The body has changed since it was written.
    #[error("the artifact is damaged: its checksum does not agree")]
    Checksum,
    /// A part ends too early.
    #[error("the artifact is malformed at byte {at}: {what} reaches past the end of its section")]
    Truncated {
        /// The part.
        what: &'static str,
        /// Where it starts.
        at: usize,
    },
    /// A part is not what the format says.
    #[error("the artifact is malformed at byte {at}: {what}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where.
        at: usize,
    },
}

impl ArtifactError {
    /// The code of the rule that is broken.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::ArtifactFormat
    }
}
