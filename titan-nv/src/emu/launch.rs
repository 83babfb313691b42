//! Launches: the arguments of a kernel, and the execution of its blocks.
//!
//! Clusters run in order, each to its end; a cluster that only polls yields to the next, so that blocks that wait for each
//! other make progress, with up to [`Options::resident`] blocks at a time. There is one thread of execution: the same
//! launch gives the same result and the same first error on every machine.

use super::ast::{Ast, Entry};
use super::cluster::{Cluster, Turn};
use super::decode;
use super::error::{EmuError, ErrorCode, Site, ThreadId};
use super::exec::{Fail, World};
use super::maps::Maps;
use super::memory::{DevicePtr, Memory};
use super::op::Program;
use super::proxy::Stores;
use super::watch::Watch;
use titan_sim::engine::{Completion, Schedule, StateHasher};

/// A parsed module.
#[derive(Clone, Debug)]
pub struct Module {
    pub(super) ast: Ast,
    programs: Vec<Program>,
    pub(super) hash: u128,
}

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    module: &'a Module,
    index: usize,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Param {
    /// An address of device memory.
    Ptr(DevicePtr),
    /// An 8-bit value.
    U8(u8),
    /// A 16-bit value.
    U16(u16),
    /// A 32-bit value.
    U32(u32),
    /// A 32-bit value.
    I32(i32),
    /// A 64-bit value.
    U64(u64),
    /// A 64-bit value.
    I64(i64),
    /// A 32-bit value.
    F32(f32),
    /// A 64-bit value.
    F64(f64),
    /// The bytes of a structure.
    Bytes(Vec<u8>),
}

impl Param {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Param::Ptr(p) => p.address().to_le_bytes().to_vec(),
            Param::U8(x) => vec![*x],
            Param::U16(x) => x.to_le_bytes().to_vec(),
            Param::U32(x) => x.to_le_bytes().to_vec(),
            Param::I32(x) => x.to_le_bytes().to_vec(),
            Param::U64(x) => x.to_le_bytes().to_vec(),
            Param::I64(x) => x.to_le_bytes().to_vec(),
            Param::F32(x) => x.to_le_bytes().to_vec(),
            Param::F64(x) => x.to_le_bytes().to_vec(),
            Param::Bytes(b) => b.clone(),
        }
    }
}

/// The configuration and the arguments of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch<'a> {
    /// The number of blocks, by axis.
    pub grid: [u32; 3],
    /// The number of threads of a block, by axis.
    pub block: [u32; 3],
    /// The size in bytes of the shared array that the launch sizes.
    pub dynamic_shared: u32,
    /// The extents of a cluster in blocks, if the kernel does not fix them by `.reqnctapercluster`.
    pub cluster: Option<[u32; 3]>,
    /// The arguments, one for each parameter.
    pub params: &'a [Param],
}

/// The treatment of reads of registers and memory that were never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uninitialised {
    /// The first such read is an error.
    #[default]
    Strict,
    /// The result is uninitialised too; it is an error where it matters: in an address, a branch, an exchange between
    /// threads, an MMA.
    Propagate,
}

/// The checks of the emulator, and the choices that the programming model leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy that decides when asynchronous operations have their effect.
    pub completion: Completion,
    /// The order in which warps run.
    pub schedule: Schedule,
    /// Whether unordered accesses to shared memory are errors.
    pub races: bool,
    /// Whether the sanitizer observes too, with each warp as one logical thread. It also checks the lifetime and storage of mbarriers,
    /// finds copies in flight when a block ends, and reports deadlocks as soon as they are certain.
    pub sanitize: bool,
    /// The treatment of reads of what was never written.
    pub uninitialised: Uninitialised,
    /// The largest number of warp instructions, of all warps together; the launch fails when it is reached.
    pub max_steps: u64,
    /// The number of blocks that run at a time; clusters run whole.
    pub resident: u32,
    /// The largest shared memory of a block, in bytes.
    pub max_shared: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            completion: Completion::Late,
            schedule: Schedule::InTurn,
            races: true,
            sanitize: false,
            uninitialised: Uninitialised::Strict,
            max_steps: 1 << 34,
            resident: 132,
            // 227 KiB, the largest of any target.
            max_shared: 227 * 1024,
        }
    }
}

impl Options {
    pub(crate) const fn strict(&self) -> bool {
        matches!(self.uninitialised, Uninitialised::Strict)
    }
}

/// The statistics of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of warp instructions.
    pub instructions: u64,
    /// The number of blocks.
    pub blocks: u64,
}

/// The data that the blocks of a launch share.
pub(crate) struct Env<'a> {
    pub(crate) ast: &'a Ast,
    pub(crate) entry: &'a Entry,
    pub(crate) program: &'a Program,
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) options: &'a Options,
    /// The number of threads of a block.
    pub(crate) threads: u32,
    /// The number of blocks of a cluster, by axis.
    pub(crate) cluster: [u32; 3],
    /// Whether the kernel or the launch requests clusters.
    pub(crate) is_clustered: bool,
    pub(crate) params: Vec<u8>,
    pub(crate) symbols: Vec<u64>,
}

impl Env<'_> {
    pub(crate) fn line(&self, pc: u32) -> u32 {
        self.entry.code.get(pc as usize).map_or(0, |i| i.line)
    }

    fn site(&self, pc: u32) -> Site {
        self.entry.code.get(pc as usize).map_or_else(Site::default, |i| self.ast.site(self.entry, i))
    }

    /// The number of blocks of a cluster.
    pub(crate) const fn cluster_size(&self) -> usize {
        (self.cluster[0] * self.cluster[1] * self.cluster[2]) as usize
    }

    /// The number of clusters of the grid, by axis.
    pub(crate) fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.launch.grid[i] / self.cluster[i].max(1))
    }

    /// `%clusterid` of a cluster, by its number.
    pub(crate) fn cluster_of(&self, number: u64) -> [u32; 3] {
        let part = |n: u64| u32::try_from(n).unwrap_or(0);
        let [x, y, _] = self.clusters().map(u64::from);
        [part(number % x), part(number / x % y), part(number / x / y)]
    }

    /// `%ctaid` of a block, by its cluster's number and its rank.
    pub(crate) fn block_of(&self, number: u64, rank: usize) -> [u32; 3] {
        let (id, [x, y, z]) = (self.cluster_of(number), self.cluster);
        let rank = u32::try_from(rank).unwrap_or(0);
        let at = [rank % x, rank / x % y, rank / x / y];
        let extents = [x, y, z];
        std::array::from_fn(|i| id[i] * extents[i] + at[i])
    }

    /// The registers of a thread when the kernel begins, as an assembler assigns them to a kernel with `setmaxnreg`: an equal part
    /// of the multiprocessor's 65,536 for each thread of whole warpgroups, in steps of 8.
    pub(crate) fn registers(&self) -> u32 {
        let part = (1 << 16) / self.threads.next_multiple_of(128).max(1) / 8 * 8;
        part.min(self.entry.max_registers.unwrap_or(u32::MAX) / 8 * 8).min(248)
    }

    fn thread(&self, cluster: u64, agent: titan_sim::engine::Agent) -> ThreadId {
        let [x, y, _] = self.launch.block.map(|n| n.max(1));
        let threads = (self.threads as usize).max(1);
        let block = self.block_of(cluster, agent.index() / threads);
        let linear = u32::try_from(agent.index() % threads).unwrap_or(0);
        ThreadId { block, thread: [linear % x, linear / x % y, linear / x / y] }
    }

    fn error(&self, fail: Fail, cluster: u64) -> EmuError {
        let agent = |a: titan_sim::engine::Agent| self.thread(cluster, a);
        let mut e = EmuError::new(fail.code, fail.message);
        if let Some((pc, thread)) = fail.at {
            e = e.with_site(self.site(pc)).with_thread(agent(thread));
        }
        if let Some((pc, thread, what)) = fail.other {
            e = e.with_other(self.site(pc), format!("{what} of {}", agent(thread)));
        }
        if let Some(help) = fail.help {
            e = e.with_help(help);
        }
        e
    }
}

impl Module {
    /// Parses and decodes a module.
    ///
    /// # Errors
    /// [`ErrorCode::Syntax`], [`ErrorCode::Symbol`], [`ErrorCode::Unknown`], [`ErrorCode::Target`], [`ErrorCode::Operand`], each with its
    /// line: anything that the emulator does not support is rejected here, whether or not it would be executed.
    pub fn parse(text: &str) -> Result<Module, EmuError> {
        let ast = super::parse::module(text)?;
        let programs = ast.entries.iter().map(|e| decode::program(&ast, e)).collect::<Result<_, _>>()?;
        Ok(Module { ast, programs, hash: StateHasher::of(&text) })
    }

    /// The names of the kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.ast.entries.iter().map(|e| e.name.as_str())
    }

    /// The target, as in the directive `.target`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.ast.target
    }

    /// The version, as in the directive `.version`: major and minor.
    #[must_use]
    pub const fn version(&self) -> (u32, u32) {
        self.ast.version
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// [`ErrorCode::Launch`], if there is no kernel with this name.
    pub fn entry(&self, name: &str) -> Result<Kernel<'_>, EmuError> {
        let index = self.ast.entries.iter().position(|e| e.name == name);
        let names = || self.kernels().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
        let missing =
            || EmuError::new(ErrorCode::Launch, format!("there is no kernel `{name}`; the module has {}", names()));
        Ok(Kernel { module: self, index: index.ok_or_else(missing)? })
    }
}

impl Kernel<'_> {
    /// The size of each parameter, in bytes.
    pub fn param_sizes(&self) -> impl Iterator<Item = u32> + '_ {
        self.module.ast.entries[self.index].params.iter().map(|p| p.size)
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.module.ast.entries[self.index]
    }

    pub(super) fn program(&self) -> &Program {
        &self.module.programs[self.index]
    }

    fn env<'b>(
        &'b self,
        launch: &'b Launch<'b>,
        options: &'b Options,
        memory: &mut Memory,
    ) -> Result<Env<'b>, EmuError> {
        let module = self.module;
        let (entry, program) = (&module.ast.entries[self.index], &module.programs[self.index]);
        let threads = check_extents(entry, launch)?;
        let (cluster, is_clustered) = check_cluster(entry, launch)?;
        check_shared(program, launch, options)?;
        let params = bind(entry, launch.params)?;
        let symbols = memory.load(module.hash, &module.ast, &program.symbols)?;
        Ok(Env { ast: &module.ast, entry, program, launch, options, threads, cluster, is_clustered, params, symbols })
    }

    /// Runs the kernel.
    ///
    /// # Errors
    /// [`ErrorCode::Launch`] before anything runs; the other codes for errors during the run.
    pub fn run(&self, launch: &Launch<'_>, memory: &mut Memory, options: &Options) -> Result<Stats, EmuError> {
        let env = self.env(launch, options, memory)?;
        let blocks = launch.grid.iter().map(|n| u64::from(*n)).product::<u64>();
        let size = env.cluster_size() as u64;
        let (total, room) = (blocks / size, (options.resident as usize / env.cluster_size()).max(1));
        let (mut next, mut resident): (u64, Vec<(Cluster<'_>, Watch)>) = (0, Vec::new());
        let (mut stats, mut turn, mut idle) = (Stats { instructions: 0, blocks }, 0, 0);
        let (mut stores, mut maps) = (Stores::default(), Maps::default());
        // The tables of the race detector are reused by the next cluster.
        let mut spare: Vec<Watch> = Vec::new();
        while next < total || !resident.is_empty() {
            if turn >= resident.len() {
                if next < total && resident.len() < room {
                    let mut watch = spare.pop().unwrap_or_else(|| Watch::new(&env));
                    let steps = &mut stats.instructions;
                    let (stores, maps) = (&mut stores, &mut maps);
                    let mut world = World { memory, watch: &mut watch, stores, maps, steps };
                    let cluster = Cluster::new(&env, next, &mut world).map_err(|fail| env.error(*fail, next))?;
                    resident.push((cluster, watch));
                    next += 1;
                } else {
                    turn = 0;
                }
            }
            let Some((cluster, watch)) = resident.get_mut(turn) else { continue };
            let progress = cluster.progress;
            let steps = &mut stats.instructions;
            let done = cluster.run(&mut World { memory, watch, stores: &mut stores, maps: &mut maps, steps });
            let number = cluster.number;
            let moved = cluster.progress != progress;
            if stats.instructions > options.max_steps {
                let message = format!("more than {} instructions", options.max_steps);
                return Err(EmuError::new(ErrorCode::Limit, message));
            }
            let done = done.map_err(|fail| cluster.finding(watch).unwrap_or(*fail));
            match done.map_err(|fail| env.error(fail, number))? {
                Turn::Done => {
                    let (_, mut watch) = resident.remove(turn);
                    watch.restart();
                    spare.push(watch);
                    idle = 0;
                }
                Turn::Spent => {
                    idle = 0;
                    turn += 1;
                }
                Turn::Idle => {
                    idle = if moved { 0 } else { idle + 1 };
                    if idle > 2 * resident.len() && (next == total || resident.len() >= room) {
                        let (cluster, _) = &resident[turn];
                        return Err(env.error(cluster.deadlock(), number));
                    }
                    turn += 1;
                }
            }
        }
        if let Some(address) = maps.unreleased() {
            let message = format!(
                "the tensor map at {address:#x} is changed and never released, so that no later launch need see it"
            );
            return Err(EmuError::new(ErrorCode::Race, message));
        }
        Ok(stats)
    }
}

/// The threads of a block, if the extents are allowed.
fn check_extents(entry: &Entry, launch: &Launch<'_>) -> Result<u32, EmuError> {
    let wrong = |message: String| Err(EmuError::new(ErrorCode::Launch, message));
    let [x, y, z] = launch.block;
    let threads = [x, y, z].iter().try_fold(1_u32, |n, e| n.checked_mul(*e)).filter(|n| (1..=1024).contains(n));
    let Some(threads) = threads.filter(|_| z <= 64) else {
        return wrong(format!("a block of {x} × {y} × {z} threads: 1 to 1024 are possible, at most 64 along z"));
    };
    if let Some(required) = entry.required.filter(|r| *r != launch.block) {
        let [a, b, c] = required;
        return wrong(format!("`{}` requires blocks of {a} × {b} × {c} threads, not {x} × {y} × {z}", entry.name));
    }
    let most = entry.max.and_then(|m| m.iter().try_fold(1_u32, |n, e| n.checked_mul(*e)));
    if let Some(most) = most.filter(|m| threads > *m) {
        return wrong(format!("`{}` allows blocks of at most {most} threads, not {threads}", entry.name));
    }
    let [gx, gy, gz] = launch.grid;
    if gx == 0 || gy == 0 || gz == 0 || gx > i32::MAX.cast_unsigned() || gy > 65535 || gz > 65535 {
        return wrong(format!("a grid of {gx} × {gy} × {gz} blocks is not possible"));
    }
    Ok(threads)
}

/// The extents of a cluster, and whether clusters were requested. At most 8 blocks, as every device has them, or 16.
fn check_cluster(entry: &Entry, launch: &Launch<'_>) -> Result<([u32; 3], bool), EmuError> {
    let wrong = |message: String| Err(EmuError::new(ErrorCode::Launch, message));
    if let (Some(required), Some(given)) = (entry.cluster, launch.cluster)
        && required != given
    {
        return wrong(format!("`{}` requires clusters of {required:?} blocks, not {given:?}", entry.name));
    }
    if entry.explicit_cluster && entry.cluster.or(launch.cluster).is_none() {
        return wrong(format!("`{}` is `.explicitcluster`: the launch must say how large a cluster is", entry.name));
    }
    let Some(cluster) = entry.cluster.or(launch.cluster) else { return Ok(([1; 3], false)) };
    let size = cluster.iter().try_fold(1_u32, |n, e| n.checked_mul(*e)).filter(|n| (1..=16).contains(n));
    if size.is_none() {
        return wrong(format!("a cluster of {cluster:?} blocks: 1 to 16 are possible"));
    }
    if launch.grid.iter().zip(cluster).any(|(blocks, n)| blocks % n != 0) {
        let grid = launch.grid;
        return wrong(format!("a grid of {grid:?} blocks does not consist of clusters of {cluster:?}"));
    }
    Ok((cluster, true))
}

fn check_shared(program: &Program, launch: &Launch<'_>, options: &Options) -> Result<(), EmuError> {
    let fixed: u64 = program.shared.iter().filter_map(|s| s.2).map(u64::from).sum();
    let total = fixed + u64::from(launch.dynamic_shared);
    if total > options.max_shared.into() {
        let message = format!("{total} bytes of shared memory, and a block may have {}", options.max_shared);
        return Err(EmuError::new(ErrorCode::Launch, message));
    }
    Ok(())
}

/// The bytes of all parameters.
fn bind(entry: &Entry, params: &[Param]) -> Result<Vec<u8>, EmuError> {
    if params.len() != entry.params.len() {
        let (wants, n) = (entry.params.len(), params.len());
        return Err(EmuError::new(ErrorCode::Launch, format!("`{}` takes {wants} parameters, not {n}", entry.name)));
    }
    let mut bytes = vec![0; entry.params.last().map_or(0, |p| (p.offset + p.size) as usize)];
    for (p, given) in entry.params.iter().zip(params) {
        let given = given.bytes();
        if given.len() != p.size as usize {
            let kind = if p.is_array { "an array of" } else { "a value of" };
            let message = format!("parameter `{}` is {kind} {} bytes, not {}", p.name, p.size, given.len());
            return Err(EmuError::new(ErrorCode::Launch, message));
        }
        bytes[p.offset as usize..(p.offset + p.size) as usize].copy_from_slice(&given);
    }
    Ok(bytes)
}
