//! The kernels' texts and what each needs; launches of them.

use crate::support::oracle;
use titan_amd::emu::{Arg, Args, Completion, DevicePtr, EmuError, Launch, Memory, Module, Options, Schedule, Stats};
use titan_amd::isa::asm::assemble;
use titan_amd::object::{ArgKind, KernelArg, KernelCode, Program, Resources};
use titan_sim::engine::Rng;

/// A kernel of a file.
#[derive(Clone, Copy)]
pub(crate) struct Hand {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// Vector registers and accumulators.
    vgprs: [u32; 2],
    lds_bytes: u32,
    /// Pointers, then numbers of 32 bits.
    args: [u32; 2],
    grid_axes: u32,
    items: u32,
}

pub(crate) const VECTOR_ADD: Hand = Hand {
    name: "vector_add",
    text: include_str!("vector_add.s"),
    vgprs: [3, 0],
    lds_bytes: 0,
    args: [3, 1],
    grid_axes: 1,
    items: 256,
};
pub(crate) const REDUCTION: Hand = Hand {
    name: "reduction",
    text: include_str!("reduction.s"),
    vgprs: [12, 0],
    lds_bytes: 16,
    args: [2, 1],
    grid_axes: 1,
    items: 256,
};
pub(crate) const STAGED: Hand = Hand {
    name: "gemm_staged",
    text: include_str!("gemm_staged.s"),
    vgprs: [64, 128],
    lds_bytes: 65536,
    args: [3, 3],
    grid_axes: 2,
    items: 512,
};
pub(crate) const DIRECT: Hand = Hand { name: "gemm_direct", text: include_str!("gemm_direct.s"), ..STAGED };
pub(crate) const ATTENTION: Hand = Hand {
    name: "attention",
    text: include_str!("attention.s"),
    vgprs: [64, 0],
    lds_bytes: 0,
    args: [4, 2],
    grid_axes: 1,
    items: 64,
};

pub(crate) const ALL: [Hand; 5] = [VECTOR_ADD, REDUCTION, STAGED, DIRECT, ATTENTION];

impl Hand {
    /// The code object of a text.
    pub(crate) fn object(&self, text: &str) -> Vec<u8> {
        let code = assemble(text).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let [pointers, numbers] = self.args;
        let pointer = |i| KernelArg { name: None, offset: 8 * i, size: 8, kind: ArgKind::GlobalBuffer };
        let number = |i| KernelArg { name: None, offset: 8 * pointers + 4 * i, size: 4, kind: ArgKind::ByValue };
        let kernel = KernelCode {
            name: self.name.to_owned(),
            code,
            args: (0..pointers).map(pointer).chain((0..numbers).map(number)).collect(),
            resources: Resources {
                vgprs: self.vgprs[0],
                agprs: self.vgprs[1],
                sgprs: 48,
                lds_bytes: self.lds_bytes,
                kernarg_bytes: (8 * pointers + 4 * numbers).next_multiple_of(8),
                grid_axes: self.grid_axes,
                item_axes: 1,
                ieee: true,
            },
            max_workgroup_size: self.items,
        };
        Program { kernels: vec![kernel] }.to_bytes().expect("the kernel can be written")
    }

    pub(crate) fn module(&self, text: &str) -> Module {
        Module::load(&self.object(text)).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    pub(crate) fn run(
        &self,
        module: &Module,
        grid: [u32; 2],
        args: &[Arg],
        memory: &mut Memory,
        options: &Options,
    ) -> Result<Stats, EmuError> {
        let grid = [grid[0], grid[1], 1];
        let launch = Launch { grid, block: [self.items, 1, 1], dynamic_lds: 0, args: Args::Each(args) };
        module.kernel(self.name).expect("the kernel is there").run(&launch, memory, options)
    }
}

/// Late, early, and at random.
pub(crate) fn orders() -> [Options; 3] {
    let random = (Completion::Seeded(5), Schedule::Seeded(6));
    [(Completion::Late, Schedule::InTurn), (Completion::Early, Schedule::InTurn), random]
        .map(|(completion, schedule)| Options { completion, schedule, ..Options::default() })
}

/// Numbers between -1 and 1 with seven bits of fraction: bf16 has them all.
pub(crate) fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| (rng.next_u64() % 255) as f32 / 128.0 - 127.0 / 128.0).collect()
}

pub(crate) fn put_f32(memory: &mut Memory, name: &str, x: &[f32]) -> DevicePtr {
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    memory.upload(name, &bytes).expect("there is room")
}

pub(crate) fn put_bf16(memory: &mut Memory, name: &str, x: &[f32]) -> DevicePtr {
    let bytes: Vec<u8> = x.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect();
    memory.upload(name, &bytes).expect("there is room")
}

pub(crate) fn get(memory: &Memory, ptr: DevicePtr, n: usize) -> Vec<f32> {
    let bytes = memory.read(ptr, 4 * n).unwrap_or_else(|e| panic!("{e}"));
    bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
}

#[test]
fn the_assembler_of_llvm_makes_the_same_bytes() {
    let (Some(mc), Some(objcopy)) = (oracle::program("llvm-mc"), oracle::program("llvm-objcopy")) else {
        return oracle::skipped("bytes of the kernels written by hand against llvm-mc");
    };
    let folder = std::env::temp_dir().join(format!("titan-amd-hand-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for object files");
    for hand in ALL {
        let path = |end: &str| folder.join(format!("{}.{end}", hand.name)).to_str().expect("a path in text").to_owned();
        let (object, code) = (path("o"), path("bin"));
        let args = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-filetype=obj", "-o", &object];
        let (_, err) = oracle::run(&mc, &args, hand.text);
        assert!(err.is_empty(), "{}: {err}", hand.name);
        let (_, err) = oracle::run(&objcopy, &["-O", "binary", "-j", ".text", &object, &code], "");
        assert!(err.is_empty(), "{}: {err}", hand.name);
        let theirs = std::fs::read(&code).expect("the code is written");
        assert_eq!(assemble(hand.text).expect("it is read"), theirs, "{}", hand.name);
    }
    std::fs::remove_dir_all(&folder).expect("the folder is still there");
}
