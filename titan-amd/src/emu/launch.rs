//! Launches: the arguments of a kernel, the initial state of waves, and the execution of workgroups.
//!
//! Workgroups run in order, some at a time ([`Options::resident`]), so that workgroups that wait for each other make progress.
//! There is one thread of execution: the same launch gives the same result and the same first error on every machine.

mod initial;

use super::absent;
use super::error::{EmuError, ErrorCode, Report, WaveId};
use super::exec::{Run, World};
use super::fail::Fail;
use super::group::{Group, LocalAccess, Turn};
use super::memory::{DevicePtr, Memory, PRIVATE_APERTURE, SHARED_APERTURE};
use super::module::{Kernel, Module};
use super::private::Private;
use super::watch::Watch;
use super::wave::{Fill, Wave};
use crate::isa::operand::EXEC;
use crate::object::ArgKind;
use crate::object::descriptor::{MAX_PRIVATE, UserSgpr};
use titan_sim::engine::{Completion, Schedule};

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arg {
    /// An address of device memory.
    Ptr(DevicePtr),
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
    /// The bytes of any other type.
    Bytes(Vec<u8>),
}

impl Arg {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::Ptr(p) => p.address().to_le_bytes().to_vec(),
            Arg::U32(x) => x.to_le_bytes().to_vec(),
            Arg::I32(x) => x.to_le_bytes().to_vec(),
            Arg::U64(x) => x.to_le_bytes().to_vec(),
            Arg::I64(x) => x.to_le_bytes().to_vec(),
            Arg::F32(x) => x.to_le_bytes().to_vec(),
            Arg::F64(x) => x.to_le_bytes().to_vec(),
            Arg::Bytes(b) => b.clone(),
        }
    }
}

/// The arguments of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Args<'a> {
    /// The arguments that metadata list, without hidden ones.
    Each(&'a [Arg]),
    /// The bytes of all arguments that are not hidden, in the layout of memory.
    Packed(&'a [u8]),
}

/// The configuration and the arguments of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch<'a> {
    /// The number of workgroups, by axis.
    pub grid: [u32; 3],
    /// The number of work items of a workgroup, by axis.
    pub block: [u32; 3],
    /// The bytes of the local data share in addition to those that the kernel declares.
    pub dynamic_lds: u32,
    /// The arguments.
    pub args: Args<'a>,
}

/// The contents of registers, of private memory and of the local data share before they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Uninitialised {
    /// Undefined, bit by bit. They can be copied and computed with, and what depends on them is undefined as well; it is an error if an
    /// address, a branch or the mask of active lanes does, or if the host reads them from memory.
    #[default]
    Strict,
    /// Random bits from a seed, as on hardware.
    Random(u64),
}

/// The checks of the emulator, and the choices that the programming model leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy that decides when memory operations have their effect.
    pub completion: Completion,
    /// The order in which waves run.
    pub schedule: Schedule,
    /// Whether unordered accesses to the local data share are errors.
    pub sanitize: bool,
    /// Whether missing wait states between instructions are errors.
    pub hazards: bool,
    /// The contents of registers and on-chip memory before they are written.
    pub uninitialised: Uninitialised,
    /// The seed of the bits that undefined registers and private memory hold; 0 for zeros and ones. No result depends on them, which a run
    /// with another seed can show.
    pub undefined_seed: u64,
    /// The largest number of wave instructions, of all waves together; the launch fails when it is reached.
    pub max_steps: u64,
    /// The number of workgroups that run at a time.
    pub resident: u32,
    /// The private memory of a work item, in bytes, of a kernel whose need the compiler does not know, if it declares less: HIP's
    /// `hipLimitStackSize`, with its default.
    pub stack_bytes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            completion: Completion::Late,
            schedule: Schedule::InTurn,
            sanitize: true,
            hazards: true,
            uninitialised: Uninitialised::Strict,
            undefined_seed: 0,
            max_steps: 1 << 32,
            resident: 8,
            stack_bytes: 1024,
        }
    }
}

/// The statistics of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of wave instructions.
    pub instructions: u64,
    /// The number of workgroups.
    pub workgroups: u64,
    /// The clocks for which accesses to the local data share wait for banks, if lanes are served in order
    /// ([`crate::model::banks::IN_ORDER`]).
    pub bank_conflicts: u64,
}

/// The data that the workgroups of a launch share.
pub(crate) struct Env<'a> {
    pub(crate) module: &'a Module,
    pub(crate) kernel: Kernel<'a>,
    pub(crate) launch: &'a Launch<'a>,
    pub(crate) options: &'a Options,
    /// The address of the code object in memory.
    pub(crate) base: u64,
    pub(crate) lds_bytes: u32,
    kernarg: (u64, Vec<u8>),
    dispatch: u64,
    items: u32,
}

impl Kernel<'_> {
    /// Checks that a launch fits the kernel and the machine, without running anything.
    ///
    /// # Errors
    /// [`ErrorCode::Launch`], [`ErrorCode::Unsupported`].
    pub fn check_launch(&self, launch: &Launch<'_>) -> Result<(), EmuError> {
        self.check(launch)?;
        self.arguments(launch).map(drop)
    }

    /// Runs the kernel.
    ///
    /// # Errors
    /// [`ErrorCode::Launch`] and [`ErrorCode::Unsupported`] before anything runs; the other codes for errors during the run.
    pub fn run(&self, launch: &Launch<'_>, memory: &mut Memory, options: &Options) -> Result<Stats, EmuError> {
        self.run_recorded(launch, memory, options, None)
    }

    /// Runs the kernel, and records its accesses to the local data share in the order in which they are issued; those of a workgroup when it
    /// ends.
    ///
    /// # Errors
    /// As [`Kernel::run`].
    pub fn run_recorded(
        &self,
        launch: &Launch<'_>,
        memory: &mut Memory,
        options: &Options,
        record: Option<&mut Vec<LocalAccess>>,
    ) -> Result<Stats, EmuError> {
        let mut owned = Vec::new();
        let result = self.run_with(launch, memory, options, (&mut owned, record));
        let base = memory.load(self.module.hash, &self.module.object).unwrap_or(0);
        memory.keep_notes(|pc, origin| {
            let site = self.module.site(pc.wrapping_sub(base));
            (site, format!("the store of bits that depend on {}", origin.told().0))
        });
        for ptr in owned {
            memory.forget(ptr);
        }
        result
    }

    fn run_with(
        &self,
        launch: &Launch<'_>,
        memory: &mut Memory,
        options: &Options,
        (owned, mut record): (&mut Vec<DevicePtr>, Option<&mut Vec<LocalAccess>>),
    ) -> Result<Stats, EmuError> {
        let env = self.env(launch, memory, options, owned)?;
        let [nx, ny, nz] = launch.grid.map(u64::from);
        let total = nx * ny * nz;
        let part = |n: u64| u32::try_from(n).unwrap_or(0);
        let at = |i: u64| [part(i % nx), part(i / nx % ny), part(i / nx / ny)];
        let mut stats = Stats { workgroups: total, ..Stats::default() };
        let (mut next, mut turn, mut resident): (u64, usize, Vec<(Group<'_>, Watch)>) = (0, 0, Vec::new());
        while next < total || !resident.is_empty() {
            if turn >= resident.len() {
                if next < total && resident.len() < options.resident.max(1) as usize {
                    let mut group = Group::new(&env, at(next)).map_err(|f| env.error(f, at(next), None))?;
                    group.accesses = record.is_some().then(Vec::new);
                    resident.push((group, Watch::new(&env)));
                    next += 1;
                } else {
                    turn = 0;
                }
            }
            let Some((group, watch)) = resident.get_mut(turn) else { continue };
            let done = group.run(&mut World { memory, watch, steps: &mut stats.instructions });
            let id = group.id;
            match done {
                Ok(Turn::Done) => {
                    stats.bank_conflicts += group.conflicts;
                    if let (Some(record), Some(accesses)) = (&mut record, &mut group.accesses) {
                        record.append(accesses);
                    }
                    resident.remove(turn);
                }
                Ok(Turn::Spent) => turn += 1,
                Err(fail) => {
                    let fail = if fail.code == ErrorCode::Race { group.finding(watch).unwrap_or(fail) } else { fail };
                    return Err(env.error(fail, id, Some(group)));
                }
            }
            if stats.instructions > options.max_steps {
                let message = format!("more than {} instructions", options.max_steps);
                return Err(EmuError::new(ErrorCode::Limit, message));
            }
        }
        Ok(stats)
    }

    fn env<'b>(
        &'b self,
        launch: &'b Launch<'b>,
        memory: &mut Memory,
        options: &'b Options,
        owned: &mut Vec<DevicePtr>,
    ) -> Result<Env<'b>, EmuError> {
        let items = self.check(launch)?;
        let descriptor = &self.entry.descriptor;
        let kernarg = self.arguments(launch)?;
        let at = memory.upload("arguments", &kernarg)?;
        owned.push(at);
        memory.set_writable(at, false);
        let lds_bytes = descriptor.group_segment_bytes + launch.dynamic_lds;
        let dispatch = memory
            .upload("dispatch packet", &self.packet(launch, [lds_bytes, self.private_bytes(options)], at.address()))?;
        owned.push(dispatch);
        memory.set_writable(dispatch, false);
        let base = memory.load(self.module.hash, &self.module.object)?;
        let kernarg = (at.address(), kernarg);
        let (module, kernel, dispatch) = (self.module, *self, dispatch.address());
        Ok(Env { module, kernel, launch, options, base, lds_bytes, kernarg, dispatch, items })
    }

    /// The private memory of a work item, in bytes: HIP gives kernels that need an unknown size what its limit says.
    fn private_bytes(&self, options: &Options) -> u32 {
        let declared = self.entry.descriptor.private_segment_bytes;
        if self.entry.dynamic_stack() { declared.max(options.stack_bytes.min(MAX_PRIVATE)) } else { declared }
    }

    /// The number of work items of a workgroup, if the kernel allows the launch.
    fn check(&self, launch: &Launch<'_>) -> Result<u32, EmuError> {
        let name = &self.entry.name;
        if let Some((feature, what)) = absent::asked::by_descriptor(&self.entry.descriptor) {
            return Err(EmuError::new(ErrorCode::Unsupported, absent::refusal(feature, what)));
        }
        let wrong = |message: String| Err(EmuError::new(ErrorCode::Launch, message));
        let [x, y, z] = launch.block;
        let items = launch.block.iter().try_fold(1_u32, |n, e| n.checked_mul(*e)).filter(|n| (1..=1024).contains(n));
        let Some(items) = items else {
            return wrong(format!("a workgroup of {x} × {y} × {z} work items: 1 to 1024 are possible"));
        };
        let most = self.entry.max_workgroup_size();
        if items > most {
            return wrong(format!("`{name}` allows workgroups of at most {most} work items, not {items}"));
        }
        if let Some([a, b, c]) = self.entry.required_workgroup().filter(|r| *r != launch.block) {
            return wrong(format!("`{name}` requires workgroups of {a} × {b} × {c} work items, not {x} × {y} × {z}"));
        }
        let total = launch.grid.iter().zip(launch.block).map(|(g, b)| u64::from(*g) * u64::from(b));
        let groups = launch.grid.iter().try_fold(1_u64, |all, g| all.checked_mul(u64::from(*g)));
        if launch.grid.contains(&0) || total.max().unwrap_or(0) > u32::MAX.into() || groups.is_none() {
            let [gx, gy, gz] = launch.grid;
            return wrong(format!("a grid of {gx} × {gy} × {gz} workgroups is not possible"));
        }
        let fixed = self.entry.descriptor.group_segment_bytes;
        let lds = u64::from(fixed) + u64::from(launch.dynamic_lds);
        if lds > 64 * 1024 {
            return wrong(format!("{lds} bytes of the local data share: a workgroup can have 65536"));
        }
        Ok(items)
    }

    /// The bytes of all arguments, including hidden ones.
    fn arguments(&self, launch: &Launch<'_>) -> Result<Vec<u8>, EmuError> {
        let entry = self.entry;
        let wrong = |message: String| EmuError::new(ErrorCode::Launch, message);
        let mut bytes = vec![0; entry.descriptor.kernarg_bytes as usize];
        let mut put = |offset: u32, value: &[u8]| {
            let at = offset as usize..offset as usize + value.len();
            bytes.get_mut(at).map(|b| b.copy_from_slice(value))
        };
        let all = entry.args();
        for arg in all.iter().filter(|a| a.kind.is_hidden()) {
            let value = hidden(arg.kind, launch).to_le_bytes();
            put(arg.offset, &value[..(arg.size as usize).min(8)]);
        }
        let visible: Vec<_> = all.iter().filter(|a| !a.kind.is_hidden()).collect();
        match launch.args {
            Args::Packed(given) => {
                let most = visible.last().map_or(entry.descriptor.kernarg_bytes, |a| a.offset + a.size);
                if given.len() > most as usize
                    || (given.len() as u64) < visible.last().map_or(0, |a| u64::from(a.offset + a.size))
                {
                    let (name, len) = (&entry.name, given.len());
                    return Err(wrong(format!("`{name}` takes {most} bytes of arguments, not {len}")));
                }
                put(0, given);
            }
            Args::Each(_) if entry.metadata.is_none() => {
                let name = &entry.name;
                let why = "which say where arguments lie: pass their bytes as `Args::Packed`";
                return Err(wrong(format!("the code object has no metadata for `{name}`, {why}")));
            }
            Args::Each(given) => {
                if given.len() != visible.len() {
                    let (name, wants, got) = (&entry.name, visible.len(), given.len());
                    return Err(wrong(format!("`{name}` takes {wants} arguments, not {got}")));
                }
                for (i, (arg, value)) in visible.iter().zip(given).enumerate() {
                    let value = value.bytes();
                    if value.len() != arg.size as usize {
                        let (size, len) = (arg.size, value.len());
                        return Err(wrong(format!("argument {i} of `{}` has {size} bytes, not {len}", entry.name)));
                    }
                    put(arg.offset, &value);
                }
            }
        }
        Ok(bytes)
    }

    /// The dispatch packet: the HSA runtime's specification, §2.9 "Architected queuing language packets".
    fn packet(&self, launch: &Launch<'_>, [lds, private]: [u32; 2], kernarg: u64) -> Vec<u8> {
        let mut packet = vec![0; 64];
        let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &2_u16.to_le_bytes());
        put(2, &3_u16.to_le_bytes());
        for (i, (block, grid)) in launch.block.iter().zip(launch.grid).enumerate() {
            put(4 + 2 * i, &u16::try_from(*block).unwrap_or(0).to_le_bytes());
            put(12 + 4 * i, &(grid * block).to_le_bytes());
        }
        put(24, &private.to_le_bytes());
        put(28, &lds.to_le_bytes());
        put(40, &kernarg.to_le_bytes());
        packet
    }
}

/// The value of a hidden argument, which the runtime provides: LLVM, "Code Object V5 Metadata", hidden arguments.
fn hidden(kind: ArgKind, launch: &Launch<'_>) -> u64 {
    let [gx, gy, gz] = launch.grid.map(u64::from);
    let [bx, by, bz] = launch.block.map(u64::from);
    match kind {
        ArgKind::HiddenBlockCountX => gx,
        ArgKind::HiddenBlockCountY => gy,
        ArgKind::HiddenBlockCountZ => gz,
        ArgKind::HiddenGroupSizeX => bx,
        ArgKind::HiddenGroupSizeY => by,
        ArgKind::HiddenGroupSizeZ => bz,
        ArgKind::HiddenGridDims if launch.grid[2] > 1 || launch.block[2] > 1 => 3,
        ArgKind::HiddenGridDims if launch.grid[1] > 1 || launch.block[1] > 1 => 2,
        ArgKind::HiddenGridDims => 1,
        ArgKind::HiddenSharedBase => SHARED_APERTURE >> 32,
        ArgKind::HiddenPrivateBase => PRIVATE_APERTURE >> 32,
        ArgKind::HiddenDynamicLdsSize => launch.dynamic_lds.into(),
        // Workgroups are all full and begin at 0.
        ArgKind::HiddenGlobalOffsetX
        | ArgKind::HiddenGlobalOffsetY
        | ArgKind::HiddenGlobalOffsetZ
        | ArgKind::HiddenRemainderX
        | ArgKind::HiddenRemainderY
        | ArgKind::HiddenRemainderZ => 0,
        // There are no services of the host: a kernel that uses one reads from the null pointer.
        ArgKind::HiddenNone
        | ArgKind::HiddenPrintfBuffer
        | ArgKind::HiddenHostcallBuffer
        | ArgKind::HiddenDefaultQueue
        | ArgKind::HiddenCompletionAction
        | ArgKind::HiddenMultigridSync
        | ArgKind::HiddenHeap
        | ArgKind::HiddenQueuePtr => 0,
        // The caller provides these arguments.
        ArgKind::ByValue
        | ArgKind::GlobalBuffer
        | ArgKind::DynamicShared
        | ArgKind::Sampler
        | ArgKind::Image
        | ArgKind::Pipe
        | ArgKind::Queue => 0,
    }
}

impl Env<'_> {
    /// The number of waves of a workgroup.
    pub(crate) const fn waves(&self) -> usize {
        self.items.div_ceil(64) as usize
    }

    /// A wave as hardware starts it: ISA §3.13 "GPR Initialization"; LLVM, "Initial Kernel Execution State".
    pub(crate) fn start(&self, id: [u32; 3], wave: usize) -> Run<Wave> {
        let d = &self.kernel.entry.descriptor;
        let fill = self.fill(id).of(16 + wave as u64);
        let arch = d.arch_vgprs().min(d.vgprs());
        let registers = [arch, d.vgprs() - arch, d.general_sgprs()];
        let preloads = d.user_sgprs().iter().any(|u| matches!(u, UserSgpr::Preload(_)));
        // For hardware that does not load arguments itself, code that does so precedes the first instruction.
        let pc = self.code() + if preloads { 256 } else { 0 };
        let mut w = Wave::new(pc, d.float_mode(), registers, fill);
        #[expect(clippy::cast_possible_truncation, reason = "at most 16 waves")]
        let first = wave as u32 * 64;
        let lanes = (self.items - first).min(64);
        w.set_defined(EXEC, 2, u64::MAX >> (64 - lanes))?;
        self.user_registers(&mut w, id, wave)?;
        let [bx, by, _] = self.launch.block;
        let ids = w.v.write(0, u64::MAX)?;
        for (item, v) in (first..).zip(ids.iter_mut()) {
            *v = (item % bx) | (item / bx % by) << 10 | (item / bx / by) << 20;
        }
        let private = self.private_bytes() as usize;
        if private > 0 {
            w.private = (0..64).map(|lane| Private::new(private, fill.of(64 + lane))).collect();
        }
        Ok(w)
    }

    /// The contents of a workgroup's registers and on-chip memory before they are written.
    pub(crate) fn fill(&self, [x, y, z]: [u32; 3]) -> Fill {
        let (seed, defined) = match self.options.uninitialised {
            Uninitialised::Strict if self.options.undefined_seed == 0 => return Fill { seed: 0, defined: false },
            Uninitialised::Strict => (self.options.undefined_seed, false),
            Uninitialised::Random(seed) => (seed, true),
        };
        let group = u64::from(x) | u64::from(y) << 32 ^ u64::from(z) << 16;
        // Never 0, which stands for zeros.
        Fill { seed: seed ^ group << 8 | 1 << 63, defined }
    }

    /// The address of the first instruction of the kernel.
    pub(crate) const fn code(&self) -> u64 {
        self.base + self.kernel.entry.entry
    }

    /// The private memory of a work item, in bytes.
    pub(crate) fn private_bytes(&self) -> u32 {
        self.kernel.private_bytes(self.options)
    }

    /// Converts an error to the program's terms.
    pub(crate) fn error(&self, fail: Fail, workgroup: [u32; 3], group: Option<&Group<'_>>) -> EmuError {
        let Fail { code, message, at, lane, help, because, other } = fail;
        let site = |address: u64| self.module.site(address.wrapping_sub(self.base));
        let in_flight = because.zip(group).and_then(|(serial, g)| g.in_flight(serial));
        let other = match (other, in_flight) {
            // Addresses of instructions are relative to the code object, those of waves are in memory.
            (Some((address, what)), _) if address < self.base => Some((self.module.site(address), what)),
            (Some((address, what)), _) => Some((site(address), what)),
            (None, Some(op)) => Some((site(op.payload.pc), "the operation in flight".to_owned())),
            (None, None) => None,
        };
        let wave = at.map(|(_, wave)| WaveId { workgroup, wave: u32::try_from(wave).unwrap_or(0), lane });
        let help = help.map(str::to_owned);
        EmuError::from_report(Report { code, message, site: at.map(|(pc, _)| site(pc)), wave, other, help })
    }
}
