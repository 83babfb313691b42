//! Kernels that Triton compiles, with their memory and launches.

use super::make::make;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use titan_core::num;
use titan_nv::emu::{DevicePtr, EmuError, Launch, Memory, Module, Options, Param, Stats};

/// The folder with the compiled kernels, made once.
pub(crate) fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(|| make("kernels of another compiler", "triton", "tests/triton/kernels.py")).as_deref()
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum El {
    F16,
    Bf16,
    F32,
    F64,
    I8,
    I32,
    E4m3,
    E5m2,
}

impl El {
    pub(crate) fn encode(self, x: f32) -> Vec<u8> {
        match self {
            El::F16 => num::f16_from_f32(x).to_le_bytes().to_vec(),
            El::Bf16 => num::bf16_from_f32(x).to_le_bytes().to_vec(),
            El::F32 => x.to_le_bytes().to_vec(),
            El::F64 => f64::from(x).to_le_bytes().to_vec(),
            El::I8 => ((x * 127.0) as i8).to_le_bytes().to_vec(),
            El::I32 => (x as i32).to_le_bytes().to_vec(),
            El::E4m3 => vec![num::e4m3_from_f32(x)],
            El::E5m2 => vec![num::e5m2_from_f32(x)],
        }
    }
    pub(crate) fn size(self) -> usize {
        self.encode(0.0).len()
    }
    pub(crate) fn decode(self, b: &[u8]) -> f64 {
        let h = || u16::from_le_bytes([b[0], b[1]]);
        match self {
            El::F16 => num::f16_to_f64(h()),
            El::Bf16 => num::bf16_to_f64(h()),
            El::F32 => f32::from_le_bytes(b.try_into().unwrap()).into(),
            El::F64 => f64::from_le_bytes(b.try_into().unwrap()),
            El::I8 => f64::from(b[0] as i8),
            El::I32 => i32::from_le_bytes(b.try_into().unwrap()).into(),
            El::E4m3 => num::e4m3_to_f64(b[0]),
            El::E5m2 => num::e5m2_to_f64(b[0]),
        }
    }
}

pub(crate) struct Bench {
    pub(crate) module: Module,
    pub(crate) name: String,
    shared: u32,
    warps: u32,
    /// The bytes of global memory that each program needs for itself.
    scratch: usize,
    pub(crate) memory: Memory,
}

impl Bench {
    pub(crate) fn new(file: &str) -> Option<Bench> {
        let text = std::fs::read_to_string(folder()?.join(format!("{file}.ptx"))).unwrap();
        Bench::of(file, &text)
    }

    /// As [`new`](Self::new), with another text.
    pub(crate) fn of(file: &str, text: &str) -> Option<Bench> {
        let folder = folder()?;
        let meta = std::fs::read_to_string(folder.join(format!("{file}.txt"))).unwrap();
        let meta: Vec<&str> = meta.split_whitespace().collect();
        let module = Module::parse(text).unwrap_or_else(|e| panic!("{file}: {e}"));
        let memory = Memory::new();
        let (shared, warps) = (meta[1].parse().unwrap(), meta[2].parse().unwrap());
        let scratch = meta[3].parse().unwrap();
        Some(Bench { module, name: meta[0].to_owned(), shared, warps, scratch, memory })
    }

    /// Uploads values; what the kernel then sees of them.
    pub(crate) fn input(&mut self, name: &str, el: El, values: &[f32]) -> (DevicePtr, Vec<f64>) {
        let bytes: Vec<u8> = values.iter().flat_map(|x| el.encode(*x)).collect();
        let seen = bytes.chunks(el.size()).map(|b| el.decode(b)).collect();
        (self.memory.upload(name, &bytes), seen)
    }

    pub(crate) fn output(&mut self, el: El, n: usize) -> DevicePtr {
        self.memory.alloc_named("out", n * el.size())
    }

    pub(crate) fn values(&self, ptr: DevicePtr, el: El, n: usize) -> Vec<f64> {
        let bytes = self.memory.read(ptr, n * el.size()).unwrap();
        bytes.chunks(el.size()).map(|b| el.decode(b)).collect()
    }

    /// As [`values`](Self::values); bytes that were never written are all set.
    pub(crate) fn values_any(&self, ptr: DevicePtr, el: El, n: usize) -> Vec<f64> {
        let bytes = self.memory.read_any(ptr, n * el.size()).unwrap();
        bytes.chunks(el.size()).map(|b| el.decode(b)).collect()
    }

    pub(crate) fn run(&mut self, grid: [u32; 3], params: &[Param], options: &Options) -> Stats {
        self.try_run(grid, params, options).unwrap_or_else(|e| panic!("{e}"))
    }

    pub(crate) fn try_run(&mut self, grid: [u32; 3], params: &[Param], options: &Options) -> Result<Stats, EmuError> {
        let kernel = self.module.entry(&self.name).unwrap();
        let mut params = params.to_vec();
        // Triton adds pointers to memory of the programs, the second for profiles.
        let (n, programs) = (kernel.param_sizes().count(), grid.iter().product::<u32>() as usize);
        params.resize(n, Param::Ptr(DevicePtr::NULL));
        if self.scratch > 0 {
            params[n - 2] = Param::Ptr(self.memory.alloc_named("scratch", self.scratch * programs));
        }
        let launch = Launch {
            grid,
            block: [self.warps * 32, 1, 1],
            dynamic_shared: self.shared,
            cluster: None,
            params: &params,
        };
        kernel.run(&launch, &mut self.memory, options)
    }
}
