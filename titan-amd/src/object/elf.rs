//! tidy: table
//! Numbers of the ELF format that code objects use.
//!
//! Source: the ELF specification (generic ABI); LLVM, "ELF Code Object", for AMD's extensions.

/// The first bytes of an ELF file: 64 bits, little-endian, version 1.
pub(super) const MAGIC: [u8; 7] = [0x7F, b'E', b'L', b'F', 2, 1, 1];
/// `ELFOSABI_AMDGPU_HSA`.
pub(super) const OSABI: u8 = 64;
/// `ELFABIVERSION_AMDGPU_HSA_V5`.
pub(super) const ABI_VERSION: u8 = 3;
/// `EM_AMDGPU`.
pub(super) const MACHINE: u16 = 224;
/// `ET_DYN`.
pub(super) const TYPE_DYN: u16 = 3;

/// `EF_AMDGPU_MACH`: the processor.
pub(super) const FLAG_MACH: u32 = 0xFF;
/// `EF_AMDGPU_MACH_AMDGCN_GFX942`.
pub(super) const MACH_GFX942: u32 = 0x4C;
/// `EF_AMDGPU_FEATURE_XNACK_ANY_V4`.
pub(super) const XNACK_ANY: u32 = 0x100;
/// `EF_AMDGPU_FEATURE_SRAMECC_ANY_V4`.
pub(super) const SRAMECC_ANY: u32 = 0x400;
/// All defined bits of `e_flags`.
pub(super) const FLAGS: u32 = 0xFFF;

/// The processors of code objects, for messages.
pub(super) const MACHS: &[(u32, &str)] = &[
    (0x2C, "gfx900"),
    (0x2F, "gfx906"),
    (0x30, "gfx908"),
    (0x33, "gfx1010"),
    (0x36, "gfx1030"),
    (0x3F, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x48, "gfx1200"),
    (0x4B, "gfx941"),
    (0x4C, "gfx942"),
    (0x4E, "gfx1201"),
    (0x4F, "gfx950"),
];

/// The sizes of the file header, of a program header, of a section header, of a symbol, in bytes.
pub(super) const EHDR: u64 = 64;
pub(super) const PHDR: u64 = 56;
pub(super) const SHDR: u64 = 64;
pub(super) const SYM: u64 = 24;

pub(super) const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(super) const PT_NOTE: u32 = 4;
pub(super) const PT_PHDR: u32 = 6;
pub(super) const PT_GNU_STACK: u32 = 0x6474_E551;

pub(super) const PF_X: u32 = 1;
pub(super) const PF_W: u32 = 2;
pub(super) const PF_R: u32 = 4;

pub(super) const SHT_NULL: u32 = 0;
pub(super) const SHT_PROGBITS: u32 = 1;
pub(super) const SHT_SYMTAB: u32 = 2;
pub(super) const SHT_STRTAB: u32 = 3;
pub(super) const SHT_RELA: u32 = 4;
pub(super) const SHT_HASH: u32 = 5;
pub(super) const SHT_DYNAMIC: u32 = 6;
pub(super) const SHT_NOTE: u32 = 7;
pub(super) const SHT_NOBITS: u32 = 8;
pub(super) const SHT_DYNSYM: u32 = 11;
pub(super) const SHT_GNU_HASH: u32 = 0x6FFF_FFF6;

pub(super) const SHF_WRITE: u64 = 1;
pub(super) const SHF_ALLOC: u64 = 2;
pub(super) const SHF_EXECINSTR: u64 = 4;

pub(super) const STT_OBJECT: u8 = 1;
pub(super) const STT_FUNC: u8 = 2;
pub(super) const STB_LOCAL: u8 = 0;
pub(super) const STB_GLOBAL: u8 = 1;
pub(super) const STV_PROTECTED: u8 = 3;

pub(super) const DT_NULL: u64 = 0;
pub(super) const DT_HASH: u64 = 4;
pub(super) const DT_STRTAB: u64 = 5;
pub(super) const DT_SYMTAB: u64 = 6;
pub(super) const DT_STRSZ: u64 = 10;
pub(super) const DT_SYMENT: u64 = 11;
pub(super) const DT_GNU_HASH: u64 = 0x6FFF_FEF5;

/// `R_AMDGPU_RELATIVE64`.
pub(super) const RELATIVE64: u64 = 13;

/// `NT_AMDGPU_METADATA`, of the owner "AMDGPU".
pub(super) const NT_METADATA: u32 = 32;
pub(super) const NOTE_OWNER: &[u8; 8] = b"AMDGPU\0\0";

/// The classic hash of a symbol's name.
pub(super) fn sysv_hash(name: &str) -> u32 {
    name.bytes().fold(0, |h: u32, c| {
        let h = (h << 4).wrapping_add(c.into());
        let high = h & 0xF000_0000;
        (h ^ high >> 24) & !high
    })
}

/// The hash of a symbol's name in `.gnu.hash`.
pub(super) fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |h: u32, c| h.wrapping_mul(33).wrapping_add(c.into()))
}
