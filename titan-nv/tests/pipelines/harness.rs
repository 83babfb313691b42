//! Kernels from text to results.

use titan_core::artifact::{Assumption, GridRule, Variant};
use titan_core::driver::{compile, lower, stages};
use titan_core::ir::Scheduler;
use titan_core::launch::abi::{self, GpuArg};
use titan_core::launch::report;
use titan_core::num::Format;
use titan_core::plan::{FreeBy, plan};
use titan_core::verify::{Verified, verify};
use titan_nv::emu::{EmuError, Launch, Memory, Module, Options, Param};
use titan_nv::target;
use titan_nv::{Machine, emit};
use titan_sim::engine::{Completion, Schedule};

/// A kernel ready to run: its code, and how it is launched.
pub(crate) struct Code {
    kernel: Verified,
    module: Module,
    entry: String,
    threads: u32,
    shared: u32,
    rule: GridRule,
    /// The notes of the plan.
    pub(crate) notes: Vec<String>,
}

pub(crate) fn machine(name: &str) -> &'static Machine {
    Machine::from_name(name).unwrap()
}

pub(crate) fn verified(text: &str) -> Verified {
    let kernel = titan_core::text::parse_one(text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
    verify(kernel).unwrap_or_else(|e| panic!("{e:#?}\n{text}"))
}

/// As a program embeds it for every device: the variant for aligned arguments, or the other one.
pub(crate) fn embedded(text: &str, aligned: bool) -> Code {
    let kernel = verified(text);
    let variants = compile(&kernel, machine("sm_80"), None).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let for_all = |v: &&Variant| !v.assumptions.iter().any(|a| matches!(a, Assumption::SharedMemory { .. }));
    let mut for_all = variants.iter().filter(for_all);
    let variant = if aligned { for_all.next() } else { for_all.next_back() }.unwrap();
    let source = String::from_utf8(variant.payload.clone()).unwrap();
    let module = Module::parse(&source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let (threads, shared) = (variant.threads, variant.shared_bytes);
    let (entry, rule, notes) = (variant.entry().to_owned(), variant.grid, variant.notes.clone());
    Code { kernel, module, entry, threads, shared, rule, notes }
}

/// For all devices, with loops as the modulo scheduler places them; and whether that differs from the rule's schedule.
pub(crate) fn by_swing(text: &str) -> (Code, bool) {
    let machine = machine("sm_80");
    let of = |scheduler| {
        let mut kernel = titan_core::text::parse_one(text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
        kernel.sig.scheduler = Some(scheduler);
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
        let stages = stages(&kernel, machine, true, None).unwrap_or_else(|e| panic!("{e}\n{text}"));
        (kernel, stages)
    };
    let (_, rule) = of(Scheduler::Rule);
    let (kernel, made) = of(Scheduler::Swing);
    let source = String::from_utf8(made.code.payload.clone()).unwrap();
    let module = Module::parse(&source).unwrap_or_else(|e| panic!("{e}\n{source}"));
    let entry = made.code.config.iter().find(|(name, _)| name == "entry").map(|(_, value)| value.clone()).unwrap();
    let (threads, shared) = (made.lanes.threads, made.lanes.shared_bytes);
    let differs = made.schedule != rule.schedule;
    // How programs are numbered does not depend on the order in a loop.
    (Code { kernel, module, entry, threads, shared, rule: embedded(text, true).rule, notes: Vec::new() }, differs)
}

/// With slots of rings between roles released like this.
pub(crate) fn with_free(text: &str, free: FreeBy, aligned: bool) -> Code {
    let kernel = verified(text);
    let machine = machine("sm_80");
    let mut plan = plan(&kernel, &target(machine), aligned);
    plan.free = free;
    let lowered = lower(&kernel, &plan).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let ptx = emit(&lowered.func, machine, None).unwrap_or_else(|e| panic!("{e}\n{}", lowered.func));
    let module = Module::parse(&ptx.text).unwrap_or_else(|e| panic!("{e}\n{}", ptx.text));
    let (threads, shared) = (lowered.func.threads, lowered.func.shared_bytes);
    Code { kernel, module, entry: ptx.entry, threads, shared, rule: GridRule::Declared, notes: plan.notes }
}

/// Orders in which copies complete and warps run; the sanitizer watches one of them.
pub(crate) fn modes() -> Vec<Options> {
    let ways = [
        (Completion::Late, Schedule::InTurn),
        (Completion::Early, Schedule::InTurn),
        (Completion::Late, Schedule::Seeded(3)),
        (Completion::Seeded(1), Schedule::Seeded(5)),
    ];
    let of = |(completion, schedule)| {
        let sanitize = schedule == Schedule::Seeded(3);
        Options { completion, schedule, sanitize, max_steps: 1 << 24, ..Options::default() }
    };
    ways.map(of).to_vec()
}

/// A tensor of small whole numbers, which halves hold exactly.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) extents: Vec<i32>,
    pub(crate) values: Vec<f32>,
    half: bool,
}

impl Tensor {
    pub(crate) fn new(extents: &[i32], half: bool, value: impl Fn(usize) -> f32) -> Tensor {
        let n: i32 = extents.iter().product();
        Tensor { extents: extents.to_vec(), values: (0..n.max(0) as usize).map(value).collect(), half }
    }

    /// Whole numbers from −3 to 3, different from one to the next.
    pub(crate) fn whole(extents: &[i32], half: bool, seed: usize) -> Tensor {
        Tensor::new(extents, half, |i| ((i * 7 + seed * 13 + i / 5) % 7) as f32 - 3.0)
    }

    fn bytes(&self) -> Vec<u8> {
        if self.half {
            self.values.iter().flat_map(|v| (Format::F16.from_f64(f64::from(*v)) as u16).to_le_bytes()).collect()
        } else {
            self.values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.values = if self.half {
            bytes
                .chunks_exact(2)
                .map(|b| Format::F16.to_f64(u32::from(u16::from_le_bytes([b[0], b[1]]))) as f32)
                .collect()
        } else {
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
        };
    }
}

/// An argument; the last tensor is what the kernel writes.
pub(crate) enum Arg {
    In(Tensor),
    Out(Tensor),
}

impl Code {
    /// Runs a grid and gives the output.
    pub(crate) fn run(&self, args: &[Arg], grid: [u32; 3], options: &Options) -> Result<Vec<f32>, EmuError> {
        let grid = match self.rule {
            GridRule::Declared | GridRule::Persistent => grid,
            GridRule::Flat => [grid.iter().product(), 1, 1],
        };
        let mut memory = Memory::new();
        let mut packed = Vec::new();
        let mut outputs = Vec::new();
        for arg in args {
            packed.push(match arg {
                Arg::In(t) | Arg::Out(t) => {
                    let mut bytes = t.bytes();
                    bytes.resize(bytes.len().max(16), 0);
                    let at = memory.upload("tensor", &bytes);
                    if let Arg::Out(t) = arg {
                        outputs.push((at, t.clone()));
                    }
                    let stride = |axis: usize| t.extents[axis + 1..].iter().map(|e| i64::from(*e)).product();
                    let strides = (0..t.extents.len()).map(stride).collect();
                    GpuArg::Tensor { address: at.address(), extents: t.extents.clone(), strides }
                }
            });
        }
        let words = vec![0u8; 4 * (report::RECORDS + 256)];
        let told = memory.upload("report", &words);
        let slots = abi::slots(&self.kernel.sig);
        let block = abi::pack(&slots, &packed, told.address());
        let (at, _) = abi::offsets(&slots);
        let params: Vec<Param> =
            slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec())).collect();
        let launch =
            Launch { grid, block: [self.threads, 1, 1], dynamic_shared: self.shared, cluster: None, params: &params };
        self.module.entry(&self.entry)?.run(&launch, &mut memory, options)?;
        let (at, mut tensor) = outputs.pop().expect("an output");
        let size = tensor.bytes().len();
        tensor.read(&memory.read(at, size)?);
        Ok(tensor.values)
    }
}
