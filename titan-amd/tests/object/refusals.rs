//! Broken objects, each told in words that name what is broken.

use crate::programs::{kernel, program};
use titan_amd::object::msgpack::Value;
use titan_amd::object::{ArgKind, CodeObject, Descriptor, KernelCode, Metadata, Program, Resources};

fn refused(bytes: &[u8]) -> String {
    CodeObject::read(bytes).map(|o| format!("{} kernels", o.kernels.len())).unwrap_err().to_string()
}

fn ours() -> Vec<u8> {
    program().to_bytes().unwrap()
}

#[test]
fn what_is_written_is_read() {
    let object = CodeObject::read(&ours()).unwrap();
    let names: Vec<&str> = object.kernels.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names[..3], ["first", "second", "third"]);
    assert_eq!(object.code.len(), 1);
    for (kernel, written) in object.kernels.iter().zip(program().kernels) {
        assert_eq!(kernel.entry % 256, 0);
        assert_eq!(object.bytes(kernel.entry, written.code.len() as u64), Some(&written.code[..]));
        assert_eq!(kernel.metadata, Some(written.metadata()));
        assert_eq!((kernel.descriptor.arch_vgprs(), kernel.descriptor.vgprs()), (24, 40));
    }
    // 1 KiB of idle instructions follow the last kernel.
    let last = object.kernels.last().unwrap();
    assert_eq!(object.bytes(last.entry + 8, 1024).unwrap(), [0, 0, 0x80, 0xBF].repeat(256));
}

#[test]
fn headers_that_are_others() {
    let change = |at: usize, to: &[u8]| {
        let mut bytes = ours();
        bytes[at..at + to.len()].copy_from_slice(to);
        refused(&bytes)
    };
    assert!(change(0, b"MZ").contains("that of an ELF file"));
    assert!(change(4, &[1]).contains("that of an ELF file of 64 bits"));
    assert!(change(7, &[0]).contains("its ABI is 0x0"));
    assert!(change(8, &[2]).contains("its version is 0x2"));
    assert!(change(16, &[2]).contains("its type is 0x2"));
    assert!(change(18, &[62]).contains("its machine is 0x3e"));
    assert!(change(48, &[0x4F]).contains("for gfx950, not for gfx942"));
    assert!(change(48, &[0xEE]).contains("for an unknown processor (0xee)"));
    assert!(change(50, &[1]).contains("its flags are 0x1054c") || change(50, &[1]).contains("its flags is 0x1054c"));
    assert!(change(60, &[0, 0]).contains("no section headers"));
    assert!(change(62, &[1, 0]).contains("names of its sections"));
}

#[test]
fn every_prefix_is_refused() {
    let bytes = ours();
    for len in 0..bytes.len() {
        refused(&bytes[..len]);
    }
}

/// The place of a section's header, by its index in the file.
fn section(bytes: &[u8], index: usize) -> usize {
    u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize + 64 * index
}

#[test]
fn sections_over_each_other() {
    let mut bytes = ours();
    // `.hash` begins where `.gnu.hash` does.
    let (gnu, hash) = (section(&bytes, 3), section(&bytes, 4));
    bytes.copy_within(gnu + 24..gnu + 32, hash + 24);
    let error = refused(&bytes);
    assert!(error.contains("`.gnu.hash`") && error.contains("`.hash`") && error.contains("overlap"), "{error}");
}

#[test]
fn segments_over_each_other() {
    let mut bytes = ours();
    // The second segment that is loaded begins at 0.
    let header = 64 + 2 * 56;
    bytes[header + 16..header + 24].fill(0);
    assert!(refused(&bytes).contains("overlap"));
    // The third has more memory than there is.
    let mut bytes = ours();
    let header = 64 + 3 * 56;
    bytes[header + 40..header + 48].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    assert!(refused(&bytes).contains("more than 1 GiB"));
}

#[test]
fn without_symbols_there_are_no_kernels() {
    let mut bytes = ours();
    let symtab = section(&bytes, 9);
    bytes[symtab + 4..symtab + 8].copy_from_slice(&1_u32.to_le_bytes());
    assert!(refused(&bytes).contains("no `.symtab`"));
}

/// A program whose metadata say something else than its descriptor.
fn lying(lie: impl Fn(&mut Value)) -> String {
    let mut bytes = ours();
    let start = bytes.windows(8).position(|w| w == b"AMDGPU\0\0").unwrap() + 8;
    let len = u32::from_le_bytes(bytes[start - 16..start - 12].try_into().unwrap()) as usize;
    let mut value = Value::from_bytes(&bytes[start..start + len]).unwrap();
    lie(&mut value);
    let new = value.to_bytes();
    assert_eq!(new.len(), len, "the lie is as long as the truth");
    bytes[start..start + len].copy_from_slice(&new);
    refused(&bytes)
}

fn set(value: &mut Value, key: &str, to: Value) {
    let Value::Map(pairs) = value else { panic!("a map") };
    pairs.iter_mut().find(|(k, _)| k.as_str() == Some(key)).unwrap().1 = to;
}

fn first_kernel(value: &mut Value) -> &mut Value {
    let Value::Map(pairs) = value else { panic!("a map") };
    let Value::Array(kernels) = &mut pairs[0].1 else { panic!("kernels") };
    &mut kernels[0]
}

#[test]
fn metadata_that_lie() {
    for (key, to, want) in [
        (".kernarg_segment_size", Value::Int(25), "its metadata say 25 bytes of arguments, its descriptor 24"),
        (".group_segment_fixed_size", Value::Int(1025), "1025 bytes of the local data share"),
        (".private_segment_fixed_size", Value::Int(1), "1 bytes of private memory"),
        (".vgpr_count", Value::Int(41), "41 vector registers, its descriptor 40"),
        (".wavefront_size", Value::Int(32), "is not 64"),
        (".name", Value::text("secon"), "its name is there twice"),
        (".symbol", Value::text("first.xy"), "the symbol of its descriptor is missing"),
        (".symbol", Value::Bin(b"first.k".to_vec()), "`.symbol` is missing or no text"),
    ] {
        let error = lying(|v| match (key, &to) {
            // Two kernels of one name: the second takes the name of the first.
            (".name", _) => {
                let Value::Map(pairs) = v else { panic!("a map") };
                let Value::Array(kernels) = &mut pairs[0].1 else { panic!("kernels") };
                kernels[1] = kernels[0].clone();
                let third = kernels[2].clone();
                kernels[2] = third;
                let padding = Value::text("first.kd_");
                set(&mut kernels[1], ".symbol", Value::text("first.kd"));
                set(&mut kernels[2], ".symbol", padding);
                set(&mut kernels[2], ".name", Value::text("third_"));
            }
            _ => set(first_kernel(v), key, to.clone()),
        });
        assert!(error.contains(want), "{key}: {error}");
    }
    let error = lying(|v| set(v, "amdhsa.version", Value::Array(vec![Value::Int(1), Value::Int(1)])));
    assert!(error.contains("not 1.2"), "{error}");
    let error = lying(|v| set(v, "amdhsa.target", Value::text("amdgcn-amd-amdhsa--gfx950")));
    assert!(error.contains("for gfx950, not for gfx942"), "{error}");
    let error = lying(|v| {
        let Value::Map(pairs) = first_kernel(v) else { panic!("a map") };
        let args = pairs.iter_mut().find(|(k, _)| k.as_str() == Some(".args")).unwrap();
        let Value::Array(args) = &mut args.1 else { panic!("arguments") };
        set(&mut args[1], ".offset", Value::Int(20));
    });
    assert!(error.contains("ends behind the 24 bytes"), "{error}");
}

#[test]
fn targets_name_their_processor_in_every_spelling_of_llvm() {
    let processor = |target: &str| {
        let metadata = Metadata { target: target.to_owned(), kernels: Vec::new() };
        metadata.processor().map(str::to_owned)
    };
    for target in [
        "amdgcn-amd-amdhsa--gfx942",
        "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-",
        "amdgcn-amd-amdhsa-unknown-gfx942",
        "amdgpu9.42-amd-amdhsa-unknown-gfx942:xnack+",
    ] {
        assert_eq!(processor(target).as_deref(), Some("gfx942"), "{target}");
    }
    assert_eq!(processor("amdgcn-amd-amdhsa--gfx9-4-generic").as_deref(), Some("gfx9-4-generic"));
    for target in [
        "",
        "gfx942",
        "amdgcn-amd-amdhsa-",
        "amdgcn-amd-amdhsa--",
        "amdgcn-amd-amdpal--gfx942",
        "nvptx64-nvidia-cuda--gfx942",
    ] {
        assert_eq!(processor(target), None, "{target}");
    }
}

#[test]
fn code_that_is_not_in_the_file_is_refused() {
    // A small file could otherwise stand for a gigabyte of instructions.
    let mut bytes = ours();
    let header = 64 + 2 * 56;
    let size = u64::from_le_bytes(bytes[header + 40..header + 48].try_into().unwrap());
    bytes[header + 40..header + 48].copy_from_slice(&(size + 4).to_le_bytes());
    let error = refused(&bytes);
    assert!(error.contains("more bytes in memory than in the file"), "{error}");
}

#[test]
fn descriptors_that_lie() {
    let good = Descriptor::new("k", &kernel("k").resources).unwrap();
    let read = |change: &dyn Fn(&mut [u8; 64])| {
        let mut bytes = good.to_bytes();
        change(&mut bytes);
        Descriptor::from_bytes("k", &bytes).unwrap_err().to_string()
    };
    assert!(read(&|b| b[12] = 1).contains("must be zero"));
    assert!(read(&|b| b[2] = 2).contains("65536 bytes"));
    assert!(read(&|b| b[57] = 4).contains("waves of 32 lanes"));
    assert!(read(&|b| b[44] = 63).contains("begin beyond its registers"));
    assert!(read(&|b| b[46] = 1).contains("spread over compute units"));
    assert!(read(&|b| b[56] = 0x7F).contains("more user registers"));
    assert!(read(&|b| b[4] = 4).contains("does not have it set up"));
    // 512 GiB for the lanes of one wave.
    assert!(read(&|b| b[4..8].fill(0xFF)).contains("more private memory than a wave can have"));
    // Eight registers in all, of which two are `vcc`, and eight user registers.
    assert!(
        read(&|b| {
            (b[48], b[49]) = (b[48] & 0x3F, b[49] & !3);
            b[52] = b[52] & !0x3E | 8 << 1;
        })
        .contains("more scalar registers are filled")
    );
    // Seven words of 24 bytes of arguments.
    assert!(read(&|b| b[58] = 7).contains("loads more arguments into registers than there are"));
}

#[test]
fn programs_that_hardware_cannot_run_are_not_written() {
    let with = |change: &dyn Fn(&mut KernelCode)| {
        let mut kernel = kernel("k");
        change(&mut kernel);
        Program { kernels: vec![kernel] }.to_bytes().unwrap_err().to_string()
    };
    let resources = |change: &dyn Fn(&mut Resources)| with(&|k| change(&mut k.resources));
    assert!(resources(&|r| r.vgprs = 257).contains("257 vector"));
    assert!(resources(&|r| r.sgprs = 103).contains("103 scalar"));
    assert!(resources(&|r| r.lds_bytes = 65_537).contains("65537 bytes"));
    assert!(resources(&|r| r.grid_axes = 4).contains("one to three axes"));
    assert!(resources(&|r| r.kernarg_bytes = u32::MAX).contains("4294967295 bytes of arguments"));
    assert!(resources(&|r| r.kernarg_bytes = 19).contains("ends behind the 19 bytes"));
    assert!(with(&|k| k.code.truncate(6)).contains("whole number of words"));
    assert!(with(&|k| k.code.clear()).contains("whole number of words"));
    assert!(with(&|k| k.name.clear()).contains("empty"));
    assert!(with(&|k| k.max_workgroup_size = 1025).contains("1025 work items"));
    let twice = Program { kernels: vec![kernel("k"), kernel("k")] };
    assert!(twice.to_bytes().unwrap_err().to_string().contains("there twice"));
    assert_eq!(ArgKind::ALL.iter().filter(|k| ArgKind::from_text(k.text()) != Some(**k)).count(), 0);
}

#[test]
fn values_survive_their_bytes() {
    let text = |n: usize| Value::Str("x".repeat(n));
    for value in [
        Value::Nil,
        Value::Bool(true),
        Value::Int(-1),
        Value::Int(-32),
        Value::Int(-33),
        Value::Int(i64::MIN),
        Value::Int(127),
        Value::Int(128),
        Value::Int(65_535),
        Value::Int(1 << 40),
        Value::Uint(u64::MAX),
        Value::Float(-0.5),
        text(31),
        text(32),
        text(255),
        text(256),
        text(70_000),
        Value::Bin(vec![1; 300]),
        Value::Array(vec![Value::Int(3); 15]),
        Value::Array(vec![Value::Int(3); 16]),
        Value::Map((0..20).map(|i| (Value::Int(i), text(3))).collect()),
    ] {
        assert_eq!(Value::from_bytes(&value.to_bytes()).unwrap(), value);
    }
    let deep = vec![0x91; 100];
    assert!(Value::from_bytes(&deep).unwrap_err().to_string().contains("nested too deeply"));
    // A count of four thousand million values does not become an allocation.
    assert!(Value::from_bytes(&[0xDD, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap_err().to_string().contains("cut off"));
    let round = Metadata { target: "t".to_owned(), kernels: vec![kernel("k").metadata()] };
    assert_eq!(Metadata::from_value(&round.to_value()).unwrap(), round);
}
