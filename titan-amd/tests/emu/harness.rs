//! Kernels of a few lines, run on a few values.

use titan_amd::emu::{Arg, Args, DevicePtr, EmuError, Launch, Memory, Module, Options, Stats};
use titan_amd::isa::asm::assemble;
use titan_amd::object::{ArgKind, CodeObject, KernelArg, KernelCode, Program, Resources};

/// What a kernel in text needs.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) resources: Resources,
    pub(crate) kinds: Vec<(u32, ArgKind)>,
    pub(crate) max: u32,
    /// Bytes of private memory, and whether the compiler does not know how many are needed.
    pub(crate) private: u32,
    pub(crate) dynamic_stack: bool,
}

impl Bench {
    /// Pointers only, so many; 32 registers of each kind.
    pub(crate) fn pointers(n: u32) -> Bench {
        let resources = Resources {
            vgprs: 64,
            agprs: 64,
            sgprs: 64,
            lds_bytes: 4096,
            kernarg_bytes: 8 * n,
            grid_axes: 3,
            item_axes: 3,
            ieee: true,
        };
        let kinds = vec![(8, ArgKind::GlobalBuffer); n as usize];
        Bench { resources, kinds, max: 1024, private: 0, dynamic_stack: false }
    }

    pub(crate) fn module(&self, text: &str) -> Module {
        let code = assemble(text).unwrap_or_else(|e| panic!("{e}"));
        let mut offset = 0;
        let args = self.kinds.iter().map(|(size, kind)| {
            let at = offset;
            offset += size;
            KernelArg { name: None, offset: at, size: *size, kind: *kind }
        });
        let kernel = KernelCode {
            name: "k".to_owned(),
            code,
            args: args.collect(),
            resources: self.resources.clone(),
            max_workgroup_size: self.max,
        };
        let mut bytes = Program { kernels: vec![kernel] }.to_bytes().unwrap();
        if self.has_stack() {
            bytes = with_stack(bytes, self.private, self.dynamic_stack);
        }
        Module::load(&bytes).unwrap()
    }

    const fn has_stack(&self) -> bool {
        self.private > 0 || self.dynamic_stack
    }

    pub(crate) fn run(
        &self,
        text: &str,
        (grid, block): (u32, u32),
        args: &[Arg],
        memory: &mut Memory,
        options: &Options,
    ) -> Result<Stats, EmuError> {
        let module = self.module(text);
        let packed: Vec<u8> = args.iter().flat_map(pointer).collect();
        let args = if self.has_stack() { Args::Packed(&packed) } else { Args::Each(args) };
        let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], dynamic_lds: 0, args };
        module.kernel("k").unwrap().run(&launch, memory, options)
    }
}

/// The bytes of a pointer among arguments; others are not packed.
fn pointer(arg: &Arg) -> Vec<u8> {
    if let Arg::Ptr(ptr) = arg { ptr.address().to_le_bytes().to_vec() } else { Vec::new() }
}

/// A code object without metadata, which the writer does not write.
pub(crate) fn without_metadata(mut bytes: Vec<u8>) -> Vec<u8> {
    let owner = bytes.windows(8).position(|w| w == b"AMDGPU\0\0").unwrap();
    // A note of another kind.
    bytes[owner - 4] ^= 1;
    bytes
}

/// The same code object with private memory, which the writer does not have. Its metadata would not agree, and are made unreadable.
fn with_stack(bytes: Vec<u8>, private: u32, dynamic: bool) -> Vec<u8> {
    let at = CodeObject::read(&bytes).unwrap().kernels[0].descriptor_address as usize;
    let mut bytes = without_metadata(bytes);
    // The first segment lies at the same place in the file as in memory.
    bytes[at + 4..at + 8].copy_from_slice(&private.to_le_bytes());
    bytes[at + 52] |= 1;
    bytes[at + 57] |= u8::from(dynamic) << 3;
    bytes
}

/// A line for each thing that every kernel does first: arguments of one pointer in `s[2:3]`, the address of the lane's own
/// word of it in `v[0:1]`, the lane's number in `v2`.
pub(crate) const ONE_POINTER: &str = "
    s_load_dwordx2 s[8:9], s[0:1], 0x0
    v_and_b32_e32 v2, 0x3ff, v0
    v_lshlrev_b32_e32 v3, 2, v2
    s_waitcnt lgkmcnt(0)
    v_mov_b32_e32 v1, s9
    v_add_co_u32_e32 v0, vcc, s8, v3
    s_nop 1
    v_addc_co_u32_e32 v1, vcc, 0, v1, vcc
";

/// Runs one wave over words, which are replaced by what `body` leaves in `v4`; `v3` is the word.
pub(crate) fn over_words(body: &str, words: &[u32]) -> Result<Vec<u32>, EmuError> {
    over_words_with(body, words, &Options::default())
}

pub(crate) fn over_words_with(body: &str, words: &[u32], options: &Options) -> Result<Vec<u32>, EmuError> {
    let text = format!(
        "{ONE_POINTER}
    global_load_dword v3, v[0:1], off
    s_waitcnt vmcnt(0)
    {body}
    global_store_dword v[0:1], v4, off
    s_endpgm"
    );
    let mut memory = Memory::new();
    let ptr = upload(&mut memory, "x", words);
    let n = u32::try_from(words.len()).unwrap();
    Bench::pointers(1).run(&text, (1, n), &[Arg::Ptr(ptr)], &mut memory, options)?;
    download(&memory, ptr, words.len())
}

pub(crate) fn upload(memory: &mut Memory, name: &str, words: &[u32]) -> DevicePtr {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    memory.upload(name, &bytes).unwrap()
}

pub(crate) fn download(memory: &Memory, ptr: DevicePtr, n: usize) -> Result<Vec<u32>, EmuError> {
    let bytes = memory.read(ptr, 4 * n)?;
    Ok(bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect())
}

/// Runs waves whose lanes each have `inputs` words, which `body` finds in `v8` and on; `outputs` words from `v8 + inputs`
/// on come back. Words lie lane by lane. Registers up to `v247` and as many accumulators are there, and four KiB of the
/// local data share. There is at least one wave, and one workgroup for each 64 records.
pub(crate) fn records(
    body: &str,
    (inputs, outputs): (usize, usize),
    words: &[u32],
    options: &Options,
) -> Result<Vec<u32>, EmuError> {
    let stride = inputs.max(outputs).max(1);
    let groups = words.len().div_ceil(64 * inputs.max(1)).max(1);
    let mut text = format!(
        "s_load_dwordx2 s[8:9], s[0:1], 0x0
        v_and_b32_e32 v2, 0x3ff, v0
        s_lshl_b32 s2, s2, 6
        v_add_u32_e32 v3, s2, v2
        v_mul_u32_u24_e32 v3, {}, v3
        s_waitcnt lgkmcnt(0)
        v_mov_b32_e32 v1, s9
        v_add_co_u32_e32 v0, vcc, s8, v3
        s_nop 1
        v_addc_co_u32_e32 v1, vcc, 0, v1, vcc\n",
        // More than a constant within the instruction can be.
        if stride * 4 > 64 { format!("{:#x}", stride * 4) } else { (stride * 4).to_string() }
    );
    (0..inputs).for_each(|i| text.push_str(&format!("global_load_dword v{}, v[0:1], off offset:{}\n", 8 + i, 4 * i)));
    text.push_str(&format!("s_waitcnt vmcnt(0)\n{body}\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_nop 15\ns_nop 7\n"));
    for i in 0..outputs {
        text.push_str(&format!("global_store_dword v[0:1], v{}, off offset:{}\n", 8 + inputs + i, 4 * i));
    }
    text.push_str("s_endpgm");
    let mut memory = Memory::new();
    let mut all = vec![0; groups * 64 * stride];
    words.chunks(inputs.max(1)).enumerate().for_each(|(l, w)| all[l * stride..][..w.len()].copy_from_slice(w));
    let ptr = upload(&mut memory, "x", &all);
    let mut bench = Bench::pointers(1);
    bench.resources.vgprs = 248;
    bench.resources.agprs = 248;
    bench.run(&text, (u32::try_from(groups).unwrap(), 64), &[Arg::Ptr(ptr)], &mut memory, options)?;
    let all = download(&memory, ptr, all.len())?;
    Ok(all.chunks(stride).flat_map(|w| w[..outputs].to_vec()).collect())
}
