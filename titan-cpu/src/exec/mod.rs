//! Runs a plan, one program at a time.
//!
//! * [`pool`]: buffers. [`tile`]: what tile slots hold.
//! * [`control`]: blocks, loops, branches, moves. [`tiles`], [`matrix`], [`product_loop`], [`edge`],
//!   [`fold`]: tile steps.
//! * [`elements`], [`operands`], [`target`]: groups of elementwise steps.
//! * [`memory`], [`rows`], [`ragged`]: loads, stores, gathers, views. [`print`]: text.
//! * [`rings`]: stages. [`roles`]: who goes on when. [`staged`]: loops over stages that are one product.

mod control;
mod edge;
mod elements;
mod fold;
mod matrix;
mod memory;
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
use crate::runtime::view::{View, ViewKey};
use crate::simd::Isa;
use pool::{Buffer, Pool};
use std::sync::atomic::AtomicBool;
use tile::Tile;
use titan_core::ir::Loc;

/// A program stopped because of what it was asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Trap {
    pub(crate) message: String,
    pub(crate) loc: Loc,
}

/// The result of a step that may trap. Traps are rare, so they are boxed.
pub(crate) type Outcome<T> = Result<T, Box<Trap>>;

/// What a thread keeps from program to program and from launch to launch.
#[derive(Debug)]
pub(crate) struct Work {
    pool: Pool,
    scalars: Vec<u64>,
    bank: Option<Box<elements::Bank>>,
    /// Operands of products that were converted, and products that were converted back.
    factors: [Buffer; 3],
    moved: Vec<u64>,
    kept: product_loop::Kept,
}

impl Work {
    pub(crate) fn new(plan: &Plan) -> Self {
        Work {
            pool: Pool::new(&plan.classes),
            scalars: plan.scalars.clone(),
            bank: None,
            factors: [Buffer::new(), Buffer::new(), Buffer::new()],
            moved: Vec::new(),
            kept: product_loop::Kept::default(),
        }
    }
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
    /// Programs that this thread is to run from this one on, one after the other.
    following: usize,
    /// Set when a program of the launch has trapped.
    stop: &'p AtomicBool,
    lazy: bool,
    /// The last offsets that were looked at, and whether they are in order.
    ordered: Option<(ViewKey, bool)>,
}

impl<'p, 'm> Machine<'p, 'm> {
    /// A machine for a launch: `views` are those of the parameters, `scalars` their slots and values.
    pub(crate) fn new(launch: &'p crate::program::Launch<'_>, work: &'p mut Work, views: Vec<View<'m>>) -> Self {
        for (slot, bits) in &launch.scalars {
            work.scalars[*slot as usize] = *bits;
        }
        let mut machine = Machine {
            plan: launch.plan,
            work,
            isa: launch.isa,
            views,
            tiles: vec![Tile::default(); launch.plan.tiles.len()],
            rings: launch.plan.rings.iter().map(|ring| rings::Ring::new(*ring)).collect(),
            grid: launch.grid,
            program: [0; 3],
            following: 1,
            stop: &launch.stop,
            lazy: launch.lazy,
            ordered: None,
        };
        machine.forget_products();
        // Nothing in it can trap.
        let _ = machine.block(machine.plan.prologue);
        machine
    }

    /// Runs one program; it is the first of `following` that this thread runs in the order of the grid.
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

    /// Gives every buffer back.
    pub(crate) fn finish(mut self) {
        for slot in 0..self.tiles.len() {
            self.kill(u32::try_from(slot).unwrap_or(u32::MAX));
        }
    }

    fn scalar(&self, slot: ScalarSlot) -> u64 {
        self.work.scalars[slot as usize]
    }

    /// A scalar that is an `i32`.
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
    Err(Box::new(Trap { message, loc }))
}
