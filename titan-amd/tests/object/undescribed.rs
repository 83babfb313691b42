//! Code objects without metadata, and kernels that metadata do not mention: AMD's loader takes both.

use crate::programs::{code, kernel, program};
use titan_amd::emu::{Arg, Args, Launch, Memory, Module, Options};
use titan_amd::object::{CodeObject, KernelCode, Program};

/// Makes the note with the metadata one of another kind.
fn without_metadata(mut bytes: Vec<u8>) -> Vec<u8> {
    let owner = bytes.windows(8).position(|w| w == b"AMDGPU\0\0").unwrap();
    bytes[owner - 4] ^= 1;
    bytes
}

#[test]
fn kernels_are_found_by_their_symbols() {
    let described = CodeObject::read(&program().to_bytes().unwrap()).unwrap();
    let object = CodeObject::read(&without_metadata(program().to_bytes().unwrap())).unwrap();
    assert_eq!(object.kernels.len(), described.kernels.len());
    for kernel in &described.kernels {
        let found = object.kernel(&kernel.name).unwrap();
        assert_eq!((&found.descriptor, found.entry), (&kernel.descriptor, kernel.entry));
        assert!(found.metadata.is_none() && found.args().is_empty());
        assert_eq!((found.max_workgroup_size(), found.required_workgroup()), (1024, None));
    }
    assert_eq!(object.variables, described.variables);
}

#[test]
fn kernels_that_metadata_leave_out_are_found_as_well() {
    // The metadata are those of an object with fewer kernels: padded with a byte string, which is a key that nobody knows.
    let all = program().to_bytes().unwrap();
    let mut fewer = program();
    fewer.kernels.truncate(2);
    let note = |bytes: &[u8]| {
        let start = bytes.windows(8).position(|w| w == b"AMDGPU\0\0").unwrap() + 8;
        (start, u32::from_le_bytes(bytes[start - 16..start - 12].try_into().unwrap()) as usize)
    };
    let short = fewer.to_bytes().unwrap();
    let ((from, len), (to, room)) = (note(&short), note(&all));
    let mut bytes = all.clone();
    // One more pair in the map, whose value fills the rest.
    bytes[to] = short[from] + 1;
    bytes[to + 1..to + len].copy_from_slice(&short[from + 1..from + len]);
    let rest = room - len - 2 - 3;
    bytes[to + len..to + len + 2].copy_from_slice(&[0xA1, b'x']);
    bytes[to + len + 2..to + len + 5].copy_from_slice(&[0xC5, (rest >> 8) as u8, rest as u8]);
    bytes[to + len + 5..to + room].fill(0);
    let object = CodeObject::read(&bytes).unwrap();
    assert_eq!(object.kernels.len(), 4);
    assert!(object.kernel("first").unwrap().metadata.is_some() && object.kernel("second").unwrap().metadata.is_some());
    assert!(object.kernel("third").unwrap().metadata.is_none());
}

#[test]
fn they_run_with_packed_arguments() {
    let text = [
        "s_load_dwordx2 s[8:9], s[0:1], 0x0",
        "s_load_dword s10, s[0:1], 0x10",
        "v_mov_b32_e32 v1, 0",
        "s_waitcnt lgkmcnt(0)",
        "v_mov_b32_e32 v2, s10",
        "global_store_dword v1, v2, s[8:9]",
        "s_endpgm",
    ];
    let program = Program { kernels: vec![KernelCode { code: code(&text), ..kernel("k") }] };
    let module = Module::load(&without_metadata(program.to_bytes().unwrap())).unwrap();
    let mut memory = Memory::new();
    let x = memory.alloc("x", 4).unwrap();
    let packed: Vec<u8> = [x.address().to_le_bytes(), [0; 8], 77_u64.to_le_bytes()].into_iter().flatten().collect();
    let launch = |args| Launch { grid: [1, 1, 1], block: [1024, 1, 1], dynamic_lds: 0, args };
    let kernel = module.kernel("k").unwrap();
    kernel.run(&launch(Args::Packed(&packed)), &mut memory, &Options::default()).unwrap();
    assert_eq!(memory.read(x, 4).unwrap(), 77_u32.to_le_bytes());
    // Where arguments lie is not known, but how many bytes there are.
    let args = [Arg::Ptr(x), Arg::Ptr(x), Arg::U32(77)];
    let error = kernel.run(&launch(Args::Each(&args)), &mut memory, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("no metadata for `k`") && error.contains("`Args::Packed`"), "{error}");
    let error = kernel.run(&launch(Args::Packed(&[0; 25])), &mut memory, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("takes 24 bytes of arguments, not 25"), "{error}");
}
