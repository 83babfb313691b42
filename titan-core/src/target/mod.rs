//! The model of a machine: all that plans, schedules and lowering know of it. Back ends fill it in from their tables, with the sources of the
//! numbers; nothing else in the compiler names a machine.
//!
//! * [`Atom`]: matrix instructions, with the layouts of their operands.
//! * [`CopyEngine`]: what copies tiles between global and shared memory, in which granules, by whom, and how one learns that it is done.
//! * [`MatrixMove`]: instructions that move fragments between registers and shared memory.
//! * [`Native`]: element types for which there are instructions.
//! * [`Banks`]: the banks of shared memory, and which lanes they serve together.
//! * [`Timing`]: units, their rates and latencies.
//! * The rest are limits: warps, registers and their granule, shared memory.
//!
//! A machine may also run the code for an older one ([`Target::base`]). Then there is code of its own only for kernels that gain from what the
//! older machine lacks.
//!
//! Deliberately absent: instructions, which the back ends choose.

mod copies;
mod timing;

pub use crate::lane::banks::Banks;
pub use copies::{By, Completion, CopyEngine, MatrixMove, Place};
pub use timing::Timing;

use crate::ir::Elem;
use crate::layout::atoms::Atom;

/// The properties of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name in artifacts: `sm_80`, `gfx942`.
    pub name: &'static str,
    /// The target whose code this machine runs too, if there is one.
    pub base: Option<&'static str>,
    /// The number of lanes of a warp: 32 or 64.
    pub lanes: u32,
    /// The maximum number of warps of a program.
    pub max_warps: u32,
    /// Whether some warps of a program can wait for each other and for others without the rest: roles with warps of their own need that.
    pub named_barriers: bool,
    /// The number of warps of a role must be a multiple of this: registers are given and taken by so many warps together.
    pub role_warps: u32,
    /// Whether programs can be launched in clusters, and copies of boxes to several of them are as fast as to one.
    pub clusters: bool,
    /// The number of dies of a device, each with a second-level cache of its own, to which it deals programs in turn; 1 if all programs share one
    /// cache.
    pub dies: u32,
    /// The maximum number of 32-bit registers of a thread.
    pub registers: u32,
    /// The unit in which registers are allocated to a thread.
    pub register_granule: u32,
    /// The number of 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// The maximum number of resident warps of a multiprocessor.
    pub warps_per_sm: u32,
    /// The maximum shared memory of a program in bytes.
    pub shared_bytes: u32,
    /// The limits of shared memory, in bytes and ascending, of devices that execute this target's code. There may be a variant for each.
    pub shared_classes: Vec<u32>,
    /// The shared memory of a multiprocessor that the system reserves for each program, in bytes.
    pub shared_reserved: u32,
    /// The banks of shared memory.
    pub banks: Banks,
    /// The matrix instructions of a warp; for equal element types, the preferred one comes first. A later one is used where it computes less
    /// padding, or where its operands are in registers already.
    pub atoms: Vec<Atom>,
    /// The matrix instructions of a warpgroup, with the maximum N, and the fragments of one of its warps; empty if there are none.
    pub group_atoms: Vec<Atom>,
    /// What copies between global and shared memory without passing through registers.
    pub copies: Vec<CopyEngine>,
    /// Whether threads hold tiles in registers that are needed in the next iteration of a loop: where no engine copies them meanwhile, and a
    /// thread goes on while its loads are in flight.
    pub fetches: bool,
    /// Whether there are loads by offsets of 32 bits that give zeros outside of a buffer: operations of AMD's dialect of the lane IR.
    pub bounded_loads: bool,
    /// Whether instructions are executed in the order in which the lane IR has them: no assembler orders them.
    pub keeps_order: bool,
    /// The instructions that move fragments of matrix instructions between registers and shared memory.
    pub matrix_moves: Vec<MatrixMove>,
    /// The element types for which there are instructions where others are computed by several.
    pub native: Native,
    /// How fast it executes instructions.
    pub timing: Timing,
}

/// Element types for which a machine has instructions of its own; for others, sequences of instructions compute the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Native {
    /// Narrow types with sums and products; `f16`, `f32` and `f64` always have them.
    pub arithmetic: Vec<Elem>,
    /// Types of 8 bits with conversions to and from wider ones.
    pub conversions: Vec<Elem>,
}

impl Target {
    /// A machine with nothing that a machine may lack, for tests and as a beginning.
    #[must_use]
    pub fn plain(name: &'static str, lanes: u32) -> Target {
        Target {
            name,
            base: None,
            lanes,
            max_warps: 1024 / lanes.max(1),
            named_barriers: true,
            role_warps: 1,
            clusters: false,
            dies: 1,
            registers: 255,
            register_granule: 8,
            registers_per_sm: 64 * 1024,
            warps_per_sm: 48,
            shared_bytes: 99 * 1024,
            shared_classes: Vec::new(),
            shared_reserved: 1024,
            banks: Banks::default(),
            atoms: Vec::new(),
            group_atoms: Vec::new(),
            copies: Vec::new(),
            fetches: false,
            bounded_loads: false,
            keeps_order: false,
            matrix_moves: Vec::new(),
            native: Native::default(),
            timing: Timing::default(),
        }
    }

    /// The same machine without what its base lacks: copies of boxes, clusters, and matrix instructions of warpgroups.
    #[must_use]
    pub(crate) fn like_its_base(mut self) -> Target {
        self.base = None;
        self.clusters = false;
        self.role_warps = 1;
        self.group_atoms.clear();
        self.copies.retain(|engine| engine.by != By::Box);
        self
    }

    /// The matrix instructions of a warp for these elements of A, B and D, the preferred one first.
    pub(crate) fn atoms_of(&self, elems: [Elem; 3]) -> impl Iterator<Item = &Atom> {
        of_elements(&self.atoms, elems)
    }

    /// The matrix instruction of a warpgroup for these elements of A, B and D, if there is one.
    pub(crate) fn group_atom(&self, elems: [Elem; 3]) -> Option<&Atom> {
        of_elements(&self.group_atoms, elems).next()
    }

    /// The engine by which lanes copy to shared memory, each its granules.
    #[must_use]
    pub fn lane_copies(&self) -> Option<&CopyEngine> {
        self.copies.iter().find(|engine| engine.by == By::Lane && engine.to == Place::Shared)
    }

    /// The engine that copies boxes of tensors to shared memory.
    #[must_use]
    pub fn box_copies(&self) -> Option<&CopyEngine> {
        self.copies.iter().find(|engine| engine.by == By::Box && engine.to == Place::Shared)
    }

    /// Where stages of rings begin in shared memory: at multiples of what any engine needs, in bytes.
    pub(crate) fn stage_alignment(&self) -> u32 {
        self.copies.iter().map(|engine| engine.alignment).fold(16, u32::max)
    }

    /// The instruction that moves fragments to this place from the other one.
    pub(crate) fn matrix_move(&self, to: Place) -> Option<&MatrixMove> {
        self.matrix_moves.iter().find(|one| one.to == to)
    }

    /// Whether there are instructions for sums and products of a type.
    pub(crate) fn computes(&self, elem: Elem) -> bool {
        self.native.arithmetic.contains(&elem)
    }

    /// Whether there are instructions for conversions of a type.
    pub(crate) fn converts(&self, elem: Elem) -> bool {
        self.native.conversions.contains(&elem)
    }

    /// The number of registers of each thread if so many threads share those of a multiprocessor equally.
    pub(crate) fn equal_registers(&self, threads: u32) -> u32 {
        let granule = self.register_granule.max(1);
        self.registers_per_sm / threads.max(1) / granule * granule
    }

    /// Checks that the matrix instructions have the fragments that they say.
    ///
    /// # Errors
    /// What is wrong with the first one of them: elements that no lane holds, that two registers hold, or another number of lanes than a
    /// warp has.
    pub fn check(&self) -> Result<(), String> {
        let all = self.atoms.iter().chain(&self.group_atoms);
        all.clone()
            .try_for_each(|atom| atom.check(self.lanes).map_err(|why| format!("{}: {:?}: {why}", self.name, atom.mma)))
    }
}

fn of_elements(atoms: &[Atom], elems: [Elem; 3]) -> impl Iterator<Item = &Atom> {
    atoms.iter().filter(move |atom| [atom.mma.a, atom.mma.b, atom.mma.acc] == elems)
}
