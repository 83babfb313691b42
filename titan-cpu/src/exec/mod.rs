//! Runs a plan, one program at a time.
//!
//! * [`pool`]: buffers. [`tile`]: the contents of tile slots.
//! * [`control`]: blocks, loops, branches, moves. [`tiles`], [`matrix`], [`product_loop`], [`edge`],
//!   [`fold`]: tile steps.
//! * [`elements`], [`operands`], [`target`]: groups of elementwise steps.
//! * [`memory`], [`rows`], [`ragged`]: loads, stores, gathers, views. [`print`]: text.
//! * [`rings`]: stages. [`roles`]: the scheduling of roles. [`staged`]: loops over stages that are one product.

mod control;
mod edge;
mod elements;
mod fold;
mod matrix;
mod memory;
mod narrow;
mod operands;
pub(crate) mod pool;
mod print;
mod product_loop;
mod ragged;
mod rings;
mod roles;
mod rows;
mod staged;
mod target;
mod tile;
mod tiles;

pub use print::{PrintSink, print_line, set_print_sink};

use crate::plan::{Plan, ScalarSlot, ViewSlot};
use crate::program::Launch;
use crate::runtime::view::{View, ViewKey};
use crate::simd::Isa;
use pool::{Buffer, Pool};
use std::sync::atomic::AtomicBool;
use tile::Tile;
use titan_core::ir::Loc;

/// The reason why a program stopped before its end.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// A trap.
    Trap { message: String, loc: Loc },
    /// There is no memory for this number of bytes. The thread's state is incomplete.
    OutOfMemory { bytes: usize },
}

/// The result of a step that may fail. Failures are rare, so they are boxed.
pub(crate) type Outcome<T> = Result<T, Box<Failure>>;

/// The buffers that a thread keeps from program to program and from launch to launch.
#[derive(Debug)]
pub(crate) struct Work {
    pool: Pool,
    scalars: Vec<u64>,
    bank: Option<Box<elements::Bank>>,
    /// Operands of MMAs that were converted, and results that were converted back.
    factors: [Buffer; 3],
    /// Few rows of a product in `f32`, one of many rows, and their products.
    narrow: [Buffer; 3],
    moved: Vec<u64>,
    kept: product_loop::Kept,
    /// The allocations of the slots of views and tiles, which are empty between launches.
    slots: (Vec<View<'static>>, Vec<Tile<'static>>),
}

impl Work {
    pub(crate) fn new(plan: &Plan) -> Self {
        Work {
            pool: Pool::new(&plan.classes),
            scalars: plan.scalars.clone(),
            bank: None,
            factors: Default::default(),
            narrow: Default::default(),
            moved: Vec::new(),
            kept: product_loop::Kept::default(),
            slots: Default::default(),
        }
    }
}

/// The allocation of a vector, without its elements, for elements with other lifetimes.
fn emptied<A, B>(mut from: Vec<A>) -> Vec<B> {
    from.clear();
    // The standard library collects in place, so that this neither allocates nor frees.
    from.into_iter().filter_map(|_| None).collect()
}

/// Runs programs of one launch in one thread.
#[derive(Debug)]
pub(crate) struct Machine<'p, 'm> {
    plan: &'p Plan,
    work: &'p mut Work,
    isa: Isa,
    views: Vec<View<'m>>,
    tiles: Vec<Tile<'m>>,
    rings: Vec<rings::Ring<'m>>,
    grid: [u32; 3],
    program: [u32; 3],
    /// The number of programs that this thread will run consecutively, from this one on.
    following: usize,
    /// Set when a program of the launch has failed.
    stop: &'p AtomicBool,
    lazy: bool,
    /// The last offsets that were examined, and whether they are in order.
    ordered: Option<(ViewKey, bool)>,
}

impl<'p, 'm> Machine<'p, 'm> {
    /// Creates a machine for a launch.
    pub(crate) fn new(launch: &'p Launch, work: &'p mut Work) -> Outcome<Self>
    where
        'p: 'm,
    {
        for (slot, bits) in launch.scalars() {
            work.scalars[*slot as usize] = *bits;
        }
        let plan = launch.plan();
        let (views, tiles) = std::mem::take(&mut work.slots);
        let (mut views, mut tiles) = (emptied(views), emptied(tiles));
        launch.fill_views(&mut views);
        tiles.resize(plan.tiles.len(), Tile::default());
        let mut machine = Machine {
            plan,
            work,
            isa: launch.isa(),
            views,
            tiles,
            rings: plan.rings.iter().map(|ring| rings::Ring::new(*ring)).collect(),
            grid: launch.grid,
            program: [0; 3],
            following: 1,
            stop: &launch.stop,
            lazy: launch.is_lazy(),
            ordered: None,
        };
        machine.forget_products();
        machine.block(plan.prologue)?;
        Ok(machine)
    }

    /// Runs one program, the first of `following` programs that this thread runs in the order of the grid.
    pub(crate) fn run(&mut self, program: [u32; 3], following: u64) -> Outcome<()> {
        self.program = program;
        self.following = usize::try_from(following).unwrap_or(usize::MAX);
        self.rings.iter_mut().for_each(rings::Ring::reset);
        let done = self.block(self.plan.body);
        for slot in 0..self.tiles.len() {
            if !matches!(self.tiles[slot].data, tile::Data::Nothing) && !self.plan.kept[slot] {
                self.kill(u32::try_from(slot).unwrap_or(u32::MAX));
            }
        }
        done.map(drop)
    }

    /// Returns all buffers.
    pub(crate) fn finish(mut self) {
        for slot in 0..self.tiles.len() {
            self.kill(u32::try_from(slot).unwrap_or(u32::MAX));
        }
        self.work.slots = (emptied(self.views), emptied(self.tiles));
    }

    fn scalar(&self, slot: ScalarSlot) -> u64 {
        self.work.scalars[slot as usize]
    }

    /// The value of a scalar that is an `i32`.
    #[expect(clippy::cast_possible_truncation, reason = "a slot holds an i32 sign-extended")]
    fn int(&self, slot: ScalarSlot) -> i32 {
        self.work.scalars[slot as usize] as i32
    }

    fn set(&mut self, slot: ScalarSlot, bits: u64) {
        self.work.scalars[slot as usize] = bits;
    }

    fn set_int(&mut self, slot: ScalarSlot, value: i32) {
        self.set(slot, i64::from(value).cast_unsigned());
    }

    fn view(&self, slot: ViewSlot) -> View<'m> {
        self.views[slot as usize]
    }
}

fn trap<T>(loc: Loc, message: String) -> Outcome<T> {
    Err(Box::new(Failure::Trap { message, loc }))
}

fn out_of_memory(bytes: usize) -> Box<Failure> {
    Box::new(Failure::OutOfMemory { bytes })
}
