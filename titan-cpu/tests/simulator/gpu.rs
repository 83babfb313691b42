//! The code of a kernel for sm_80, in the emulator.

use titan_core::artifact::Variant;
use titan_core::lane::Func;
use titan_core::launch::abi::{self, GpuArg, MapParam};
use titan_core::launch::report;
use titan_core::verify::Verified;
use titan_nv::emu::{Launch, Memory, Module, Options, Param};
use titan_nv::tma::TensorMap;
use titan_nv::{Machine, emit};
use titan_sim::engine::{Completion, Schedule};
use titan_sim::sim;

/// The machine whose code is run.
pub(super) fn machine() -> &'static Machine {
    Machine::from_name("sm_80").unwrap()
}

/// The machine with bulk copies and MMAs of warpgroups.
pub(super) fn hopper() -> &'static Machine {
    Machine::from_name("sm_90a").unwrap()
}

/// A machine with bulk copies, whose MMAs are of warps.
pub(super) fn blackwell() -> &'static Machine {
    Machine::from_name("sm_100a").unwrap()
}

/// How the reason begins why another variant would run these arguments.
pub(super) const NO_MAP: &str = "no tensor map";

/// What is loaded and launched.
pub(super) struct Code {
    pub(super) text: String,
    module: Module,
    entry: String,
    /// The kernel that makes tables of tensor maps, if there are any.
    maker: Option<String>,
    threads: u32,
    shared: u32,
    maps: Vec<MapParam>,
}

impl Code {
    /// The code of lanes.
    pub(super) fn of(lanes: &Func, machine: &Machine) -> Result<Code, String> {
        let ptx = emit(lanes, machine, None).map_err(|e| format!("{e}\n{lanes}"))?;
        let module = Module::parse(&ptx.text).map_err(|e| format!("{e}\n{}", ptx.text))?;
        Ok(Code {
            module,
            entry: ptx.entry,
            maker: ptx.maker,
            threads: lanes.threads,
            shared: lanes.shared_bytes,
            maps: lanes.maps.clone(),
            text: ptx.text,
        })
    }

    /// The same with another text.
    pub(super) fn changed(self, text: String) -> Result<Code, String> {
        Ok(Code { module: Module::parse(&text).map_err(|e| e.to_string())?, text, ..self })
    }

    /// What a launch makes of its arguments.
    pub(super) fn run(
        &self,
        kernel: &Verified,
        args: &[sim::Arg],
        grid: [u32; 3],
        completion: Completion,
    ) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut memory = Memory::new();
        let mut places = Vec::new();
        let mut packed = Vec::new();
        for arg in args {
            let (place, gpu) = match arg {
                sim::Arg::Scalar(c) => (None, GpuArg::Scalar(*c)),
                sim::Arg::Absent => (None, GpuArg::Absent),
                sim::Arg::Tensor { shape, strides, bytes, .. } => {
                    let mut padded = bytes.clone();
                    padded.resize(bytes.len().max(16), 0);
                    let at = memory.upload("tensor", &padded);
                    let extents = shape.iter().map(|n| i32::try_from(*n).unwrap()).collect();
                    let gpu = GpuArg::Tensor { address: at.address(), extents, strides: strides.clone() };
                    (Some((at, bytes.len())), gpu)
                }
            };
            places.push(place);
            packed.push(gpu);
        }
        let told = memory.upload("report", &vec![0; 4 * (report::RECORDS + 256)]);
        let slots = abi::slots(&kernel.sig);
        let block = abi::pack(&slots, &packed, told.address());
        let (at, _) = abi::offsets(&slots);
        let mut params: Vec<Param> =
            slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec())).collect();
        for map in &self.maps {
            let of = packed.get(map.param as usize).ok_or("a tensor map of no argument")?;
            let map = TensorMap::of_argument(map, of).map_err(|e| format!("{NO_MAP}: {e}"))?;
            params.push(Param::Bytes(map.to_bytes().to_vec()));
        }
        let entries: Vec<u32> = self.maps.iter().filter_map(|map| map.entries(&packed)).collect();
        for entries in &entries {
            let table = memory.alloc_named("tensor maps", (entries * MapParam::BYTES) as usize);
            params.push(Param::Bytes(table.address().to_le_bytes().to_vec()));
        }
        let launch =
            Launch { grid, block: [self.threads, 1, 1], dynamic_shared: self.shared, cluster: None, params: &params };
        let schedule = if completion == Completion::Late { Schedule::InTurn } else { Schedule::Seeded(3) };
        let options = Options {
            completion,
            schedule,
            sanitize: completion == Completion::Early,
            max_steps: 1 << 22,
            ..Options::default()
        };
        let mut run =
            |entry: &str, launch: &Launch<'_>| self.module.entry(entry)?.run(launch, &mut memory, &options).map(drop);
        if let Some(maker) = &self.maker {
            let programs = entries.iter().copied().max().unwrap_or(0);
            let threads = Variant::MAKER_THREADS;
            let makes = Launch { grid: [programs, 1, 1], block: [threads, 1, 1], dynamic_shared: 0, ..launch };
            run(maker, &makes).map_err(|e| format!("tensor maps: {e}"))?;
        }
        run(&self.entry, &launch).map_err(|e| e.to_string())?;
        let read =
            |place: Option<_>| place.map(|(at, len)| memory.read(at, len).map_err(|e| e.to_string())).transpose();
        places.into_iter().map(read).collect()
    }
}
