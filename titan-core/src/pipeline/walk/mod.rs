//! The walk of programs over the tiles of a grid: which program computes which tiles, and in which order.
//!
//! A [`Walk`] describes it, as a part of a schedule. All of it is about one number, and what the coordinates of a tile are made of:
//!
//! | part | the number of a tile | its coordinates |
//! |---|---|---|
//! | [`Tiles::Declared`] | the kernel's own | the kernel's own |
//! | [`Tiles::Grouped`] | the program's index | in groups of rows |
//! | [`Tiles::Persistent`] | counted by a loop that is distributed to programs | in groups of rows |
//! | instances | those of such a loop, in turn | unchanged |
//! | cluster | of a pair of tiles, or of four, or eight | the first of them, and the rank of the program |
//! | dies, with [`Tiles::Grouped`] | such that the programs of a die have adjacent ones | unchanged |
//!
//! Worked example, tiles of 4 × 6 in groups of 2 rows, on 3 persistent programs with 2 instances: program 1 has the numbers 1, 4, 7, ..,
//! which are the tiles (1, 0), (0, 2), (1, 3), ..; its first instance computes the first and the third of them, its second one the second.
//!
//! [`Walk::applied`] carries out all but the cluster, before there are layouts, so that the kernel is verified with its walk.
//! [`Walk::to_clusters`] distributes the tiles to clusters behind laying out: a program asks for its rank in its cluster by an operation of
//! one vendor, which kernels of tiles do not have, and which cluster gains most depends on how tiles lie in memory.
//!
//! Numbers on dies are made when the kernel is lowered ([`crate::lower`]): the index of a program is one number for the tile IR, and another one for
//! the device.
//!
//! Deliberately absent: the choice of a walk, which is the driver's; walks that depend on the sizes of a launch, for which there are variants.

mod asks;
mod cluster;
mod instances;
mod numbered;

pub use self::cluster::extent;
use crate::ir::Kernel;
use std::fmt;

/// Which tiles of its grid a program computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// What numbers the tiles.
    pub tiles: Tiles,
    /// The number of instances of roles, which take tiles in turn: as many as a role declares, or this many of the computing role if the
    /// kernel was split. `None`: one.
    pub instances: Option<u32>,
    /// The cluster of programs that copy shared tiles together.
    pub cluster: Option<Cluster>,
    /// The number of dies to which the device deals programs in turn, and of which each computes adjacent tiles; `None` if there is one die.
    pub dies: Option<u32>,
}

/// What numbers the tiles of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tiles {
    /// The kernel: each program of its grid has the tiles that the kernel gives it.
    #[default]
    Declared,
    /// The index of the program, in groups of so many rows, along one axis.
    Grouped(i32),
    /// A loop of persistent programs with roles over all tiles, in groups of so many rows.
    Persistent(i32),
}

/// Programs that run concurrently, and copy shared tiles for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The number of programs: 2, 4 or 8.
    pub size: u32,
    /// The axis along which their tiles are adjacent, among the last two coordinates of tiles: 0 or 1.
    pub axis: usize,
}

impl Walk {
    /// Whether programs are persistent because of this walk.
    #[must_use]
    pub fn is_persistent(&self) -> bool {
        matches!(self.tiles, Tiles::Persistent(_))
    }

    /// The kernel with this walk but for its cluster. The caller verifies it.
    ///
    /// # Errors
    /// The reason why the kernel cannot have it.
    pub fn applied(&self, kernel: Kernel) -> Result<Kernel, NoWalk> {
        let made = match self.tiles {
            Tiles::Declared => kernel,
            Tiles::Grouped(rows) => numbered::grouped(&kernel, rows)?,
            Tiles::Persistent(rows) => numbered::persistent(&kernel, rows)?,
        };
        instances::with_instances(made).ok_or(NoWalk::Instances)
    }

    /// The laid-out kernel with its tiles distributed to the cluster of this walk.
    ///
    /// # Errors
    /// The reason why the kernel cannot have it.
    pub fn to_clusters(&self, laid_out: Kernel) -> Result<Kernel, NoWalk> {
        match self.cluster {
            Some(Cluster { size, axis }) => cluster::deal(&laid_out, size, axis),
            None => Ok(laid_out),
        }
    }
}

/// The reason why a kernel cannot have a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWalk {
    /// Its programs loop over tiles already.
    OwnGrid,
    /// It has no roles.
    NoRoles,
    /// Its programs do different amounts of work.
    Uneven,
    /// Operations around the roles depend on the program.
    OutsideRoles,
    /// The grid cannot be computed on the device.
    Grid,
    /// Programs share no tiles along two axes of the grid, or know of more than their place in it.
    NotShared,
    /// Programs do not walk over tiles, so that instances would have nothing to take in turn.
    OneTile,
    /// Instances hold more stages than rings have slots, or a role is more than a loop over tiles.
    Instances,
    /// There are no clusters of this size, or the kernel has one already.
    Size,
    /// Its programs do not loop over tiles.
    NoLoop,
    /// A value depends on the index or on the number of programs.
    AsksProgram,
    /// The coordinates of a tile depend on more than its number.
    Coordinates,
    /// Writes for a tile that does not exist may be inside of the tensor; or single elements are read for it.
    NotClipped,
    /// A tensor is written outside of the loop.
    Outside,
}

impl fmt::Display for NoWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoWalk::OwnGrid => "the kernel loops over tiles itself",
            NoWalk::NoRoles => "no role could copy for the next tile while another one stores",
            NoWalk::Uneven => "programs differ in how much they do, which the device balances",
            NoWalk::OutsideRoles => "code outside of the roles depends on the program",
            NoWalk::Grid => "the grid depends on more than extents and constants",
            NoWalk::NotShared => "programs share no tiles along two axes of the grid",
            NoWalk::OneTile => "each program has one tile",
            NoWalk::Instances => "several would need more slots than stages that each holds",
            NoWalk::Size => "a cluster has 2, 4 or 8 programs, and a kernel has one size of them",
            NoWalk::NoLoop => "programs do not loop over tiles",
            NoWalk::AsksProgram => "something depends on `program_id` or `num_programs`",
            NoWalk::Coordinates => "the coordinates of a tile do not follow from its number alone",
            NoWalk::NotClipped => {
                "with an odd number of tiles, something could be written or read for a tile that does not exist"
            }
            NoWalk::Outside => "something is written outside of the loop over tiles",
        })
    }
}
