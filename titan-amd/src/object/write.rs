//! The writer of code objects.
//!
//! ```text
//! offset = address      headers .note .dynsym .gnu.hash .hash .dynstr .rodata (descriptors)      read
//! address + 0x1000      .text (kernels, 256 bytes aligned, then idle instructions)               read, execute
//! address + 0x2000      .dynamic                                                                 read, write
//! not loaded            .symtab .strtab .shstrtab, section headers
//! ```
//!
//! AMD's loader finds kernels through `.symtab`, other loaders through `.dynsym`, so both are written. Loaders copy segments in order into
//! one allocation, so addresses begin at 0 and ascend; no relocations are needed.

use super::descriptor::{Descriptor, ENTRY_ALIGN, Resources, SIZE};
use super::elf::*;
use super::error::ObjectError;
use super::metadata::{KernelArg, KernelMetadata, Metadata};
use std::collections::BTreeSet;

/// The target of all written code objects.
pub const TARGET: &str = "amdgcn-amd-amdhsa--gfx942";

/// A kernel to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCode {
    /// The name of the kernel.
    pub name: String,
    /// The bytes of its instructions.
    pub code: Vec<u8>,
    /// The resources that it needs.
    pub resources: Resources,
    /// The arguments of the kernel.
    pub args: Vec<KernelArg>,
    /// The largest number of work items of a workgroup.
    pub max_workgroup_size: u32,
}

/// The kernels of one code object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The kernels, in the order in which they are written.
    pub kernels: Vec<KernelCode>,
}

/// The size of the idle instructions after the code, in bytes (LLVM, `AMDGPUTargetStreamer`: 16 cache lines of them for gfx90a).
const PADDING: usize = 16 * 64;
/// `s_nop 0`.
const NOP: [u8; 4] = 0xBF80_0000_u32.to_le_bytes();
const PAGE: u64 = 0x1000;

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    align: u64,
    entry: u64,
}

/// A symbol, in the order of `.dynsym`, which groups them by bucket.
struct Symbol {
    name: String,
    value: u64,
    size: u64,
    kind: u8,
    /// The index of its section: `.rodata` or `.text`.
    section: u16,
    other: u8,
}

#[derive(Default)]
struct File {
    bytes: Vec<u8>,
    sections: Vec<Section>,
}

impl File {
    fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn align(&mut self, align: u64) {
        let to = self.at().next_multiple_of(align);
        #[expect(clippy::cast_possible_truncation, reason = "a length in memory")]
        self.bytes.resize(to as usize, 0);
    }

    /// Adds a section, with its flags and the distance from offset to address; returns the offset of its bytes.
    fn section(&mut self, name: &'static str, kind: u32, place: (u64, u64), align: u64, bytes: &[u8]) -> u64 {
        let (flags, shift) = place;
        self.align(align);
        let offset = self.at();
        let address = if flags & SHF_ALLOC == 0 { 0 } else { offset + shift };
        let size = bytes.len() as u64;
        self.bytes.extend(bytes);
        let (link, info, entry) = (0, 0, 0);
        self.sections.push(Section { name, kind, flags, address, offset, size, link, info, align, entry });
        offset
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        #[expect(clippy::cast_possible_truncation, reason = "a length in memory")]
        let at = at as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// A string table: names one after the other, each terminated by a zero; the first is empty.
fn strings<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut offsets) = (vec![0], Vec::new());
    for name in names {
        #[expect(clippy::cast_possible_truncation, reason = "names are short")]
        offsets.push(bytes.len() as u32);
        bytes.extend(name.as_bytes());
        bytes.push(0);
    }
    (bytes, offsets)
}

fn symbols(list: &[Symbol], names: &[u32]) -> Vec<u8> {
    #[expect(clippy::cast_possible_truncation, reason = "the size of a symbol")]
    let mut out = vec![0; SYM as usize];
    for (symbol, name) in list.iter().zip(names) {
        out.extend(name.to_le_bytes());
        out.extend([STB_GLOBAL << 4 | symbol.kind, symbol.other]);
        out.extend(symbol.section.to_le_bytes());
        out.extend(symbol.value.to_le_bytes());
        out.extend(symbol.size.to_le_bytes());
    }
    out
}

fn words(values: impl IntoIterator<Item = u32>) -> Vec<u8> {
    values.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// The section `.hash`: buckets and chains over all symbols, including the empty one.
fn hash_table(list: &[Symbol]) -> Vec<u8> {
    #[expect(clippy::cast_possible_truncation, reason = "few symbols")]
    let count = list.len() as u32 + 1;
    let (mut buckets, mut chains) = (vec![0; count as usize], vec![0; count as usize]);
    for (i, symbol) in (1..).zip(list) {
        let bucket = (sysv_hash(&symbol.name) % count) as usize;
        chains[i as usize] = buckets[bucket];
        buckets[bucket] = i;
    }
    words([count, count].into_iter().chain(buckets).chain(chains))
}

/// The number of buckets of `.gnu.hash`.
fn gnu_buckets(symbols: usize) -> u32 {
    u32::try_from(symbols).unwrap_or(u32::MAX).max(1)
}

/// The section `.gnu.hash`: a filter of one word and chains over symbols that are sorted by bucket.
fn gnu_hash_table(list: &[Symbol]) -> Vec<u8> {
    let buckets = gnu_buckets(list.len());
    let hashes: Vec<u32> = list.iter().map(|s| gnu_hash(&s.name)).collect();
    // The shift is LLVM's; the filter has one word of 64 bits.
    let shift = 26;
    let filter = hashes.iter().fold(0_u64, |all, h| all | 1 << (h % 64) | 1 << ((h >> shift) % 64));
    let first = |b: u32| hashes.iter().position(|h| h % buckets == b).and_then(|i| u32::try_from(i + 1).ok());
    let chains = hashes.iter().enumerate().map(|(i, h)| {
        let ends = hashes.get(i + 1).is_none_or(|next| next % buckets != h % buckets);
        h & !1 | u32::from(ends)
    });
    let mut out = words([buckets, 1, 1, shift]);
    out.extend(filter.to_le_bytes());
    out.extend(words((0..buckets).map(|b| first(b).unwrap_or(0))));
    out.extend(words(chains));
    out
}

impl Program {
    /// The bytes of the code object.
    ///
    /// # Errors
    /// [`ObjectError::Kernel`], if hardware has less than a kernel requires, code is not a whole number of words, arguments
    /// overlap, or a name occurs twice.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ObjectError> {
        let descriptors = self.check()?;
        let metadata = self.metadata();
        let text = self.text();
        let mut file = File { bytes: Vec::new(), sections: vec![null_section()] };
        #[expect(clippy::cast_possible_truncation, reason = "the size of the headers")]
        file.bytes.resize((EHDR + PHDRS * PHDR) as usize, 0);
        let note = file.section(".note", SHT_NOTE, (SHF_ALLOC, 0), 4, &note(&metadata));
        // The positions of the sections depend only on the sizes of symbols, so symbols are created twice: first to learn their sizes.
        let list = self.symbols(0, 0, &text.entries);
        let (names, offsets) = strings(list.iter().map(|s| s.name.as_str()));
        let dynsym = file.section(".dynsym", SHT_DYNSYM, (SHF_ALLOC, 0), 8, &symbols(&list, &offsets));
        let gnu = file.section(".gnu.hash", SHT_GNU_HASH, (SHF_ALLOC, 0), 8, &gnu_hash_table(&list));
        let hash = file.section(".hash", SHT_HASH, (SHF_ALLOC, 0), 4, &hash_table(&list));
        let dynstr = file.section(".dynstr", SHT_STRTAB, (SHF_ALLOC, 0), 1, &names);
        let rodata = file.section(".rodata", SHT_PROGBITS, (SHF_ALLOC, 0), 64, &vec![0; SIZE * self.kernels.len()]);
        let read_end = file.at();
        let code = file.section(".text", SHT_PROGBITS, (SHF_ALLOC | SHF_EXECINSTR, PAGE), ENTRY_ALIGN, &text.bytes);
        let entries = dynamic(&[
            (DT_SYMTAB, dynsym),
            (DT_SYMENT, SYM),
            (DT_STRTAB, dynstr),
            (DT_STRSZ, names.len() as u64),
            (DT_GNU_HASH, gnu),
            (DT_HASH, hash),
            (DT_NULL, 0),
        ]);
        let dynamic_at = file.section(".dynamic", SHT_DYNAMIC, (SHF_ALLOC | SHF_WRITE, 2 * PAGE), 8, &entries);
        let list = self.symbols(rodata, code + PAGE, &text.entries);
        file.put(dynsym, &symbols(&list, &offsets));
        for (i, (mut descriptor, entry)) in descriptors.into_iter().zip(&text.entries).enumerate() {
            let at = rodata + (i * SIZE) as u64;
            descriptor.entry_offset = (code + PAGE + entry).cast_signed() - at.cast_signed();
            file.put(at, &descriptor.to_bytes());
        }
        file.section(".symtab", SHT_SYMTAB, (0, 0), 8, &symbols(&list, &offsets));
        file.section(".strtab", SHT_STRTAB, (0, 0), 1, &names);
        let note_size = file.sections.iter().find(|s| s.name == ".note").map_or(0, |s| s.size);
        let segments = segments(&Layout {
            note: (note, note_size),
            read_end,
            text: (code, text.bytes.len() as u64),
            dynamic: (dynamic_at, entries.len() as u64),
        });
        file.put(EHDR, &segments);
        Ok(finish(file))
    }

    fn check(&self) -> Result<Vec<Descriptor>, ObjectError> {
        let mut names = BTreeSet::new();
        let mut all = Vec::new();
        for kernel in &self.kernels {
            let refuse = |why: &str| Err(ObjectError::Kernel { name: kernel.name.clone(), why: why.to_owned() });
            if kernel.name.is_empty() || kernel.name.contains('\0') || !names.insert(&kernel.name) {
                return refuse("its name is empty, or there twice");
            }
            if kernel.code.is_empty() || kernel.code.len() % 4 != 0 {
                return refuse("its code is no whole number of words");
            }
            let descriptor = Descriptor::new(&kernel.name, &kernel.resources)?;
            kernel.metadata().check(&descriptor)?;
            all.push(descriptor);
        }
        Ok(all)
    }

    fn metadata(&self) -> Vec<u8> {
        let kernels = self.kernels.iter().map(KernelCode::metadata).collect();
        Metadata { target: TARGET.to_owned(), kernels }.to_value().to_bytes()
    }

    fn text(&self) -> Text {
        let mut text = Text { bytes: Vec::new(), entries: Vec::new() };
        #[expect(clippy::cast_possible_truncation, reason = "256")]
        let align = ENTRY_ALIGN as usize;
        for kernel in &self.kernels {
            let to = text.bytes.len().next_multiple_of(align);
            text.pad(to);
            text.entries.push(to as u64);
            text.bytes.extend(&kernel.code);
        }
        let end = text.bytes.len() + PADDING;
        text.pad(end);
        text
    }

    /// Two symbols for each kernel, sorted as `.gnu.hash` requires.
    fn symbols(&self, rodata: u64, text: u64, entries: &[u64]) -> Vec<Symbol> {
        let mut all = Vec::new();
        for (i, (kernel, entry)) in self.kernels.iter().zip(entries).enumerate() {
            all.push(Symbol {
                name: kernel.name.clone(),
                value: text + entry,
                size: kernel.code.len() as u64,
                kind: STT_FUNC,
                section: TEXT,
                other: STV_PROTECTED,
            });
            all.push(Symbol {
                name: format!("{}.kd", kernel.name),
                value: rodata + (i * SIZE) as u64,
                size: SIZE as u64,
                kind: STT_OBJECT,
                section: RODATA,
                other: 0,
            });
        }
        let buckets = gnu_buckets(all.len());
        all.sort_by_key(|s| gnu_hash(&s.name) % buckets);
        all
    }
}

impl KernelCode {
    /// The metadata of the kernel in the code object.
    #[must_use]
    pub fn metadata(&self) -> KernelMetadata {
        KernelMetadata::new(&self.name, &self.resources, self.args.clone(), self.max_workgroup_size)
    }
}

struct Text {
    bytes: Vec<u8>,
    entries: Vec<u64>,
}

impl Text {
    fn pad(&mut self, to: usize) {
        while self.bytes.len() < to {
            self.bytes.extend(NOP);
        }
    }
}

/// The indices of sections, in the order in which they are added.
const DYNSYM: u32 = 2;
const DYNSTR: u32 = 5;
const RODATA: u16 = 6;
const TEXT: u16 = 7;
const STRTAB: u32 = 10;
/// The number of program headers.
const PHDRS: u64 = 7;

fn null_section() -> Section {
    let (flags, address, offset, size, align, entry) = (0, 0, 0, 0, 0, 0);
    Section { name: "", kind: SHT_NULL, flags, address, offset, size, link: 0, info: 0, align, entry }
}

#[expect(clippy::cast_possible_truncation, reason = "metadata are below 4 GiB")]
fn note(metadata: &[u8]) -> Vec<u8> {
    let mut out = words([7, metadata.len() as u32, NT_METADATA]);
    out.extend(NOTE_OWNER);
    out.extend(metadata);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn dynamic(entries: &[(u64, u64)]) -> Vec<u8> {
    entries.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat()).collect()
}

struct Layout {
    note: (u64, u64),
    read_end: u64,
    text: (u64, u64),
    dynamic: (u64, u64),
}

fn segments(l: &Layout) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |kind: u32, flags: u32, offset: u64, shift: u64, size: u64, align: u64| {
        out.extend(kind.to_le_bytes());
        out.extend(flags.to_le_bytes());
        for value in [offset, offset + shift, offset + shift, size, size, align] {
            out.extend(value.to_le_bytes());
        }
    };
    put(PT_PHDR, PF_R, EHDR, 0, PHDRS * PHDR, 8);
    put(PT_LOAD, PF_R, 0, 0, l.read_end, PAGE);
    put(PT_LOAD, PF_R | PF_X, l.text.0, PAGE, l.text.1, PAGE);
    put(PT_LOAD, PF_R | PF_W, l.dynamic.0, 2 * PAGE, l.dynamic.1, PAGE);
    put(PT_DYNAMIC, PF_R | PF_W, l.dynamic.0, 2 * PAGE, l.dynamic.1, 8);
    put(PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0);
    put(PT_NOTE, PF_R, l.note.0, 0, l.note.1, 4);
    out
}

/// Adds the names of sections, their headers, and the file header.
#[expect(clippy::cast_possible_truncation, reason = "few sections")]
fn finish(mut file: File) -> Vec<u8> {
    let all = file.sections.iter().map(|s| s.name).chain([".shstrtab"]).skip(1);
    let (names, offsets) = strings(all);
    file.section(".shstrtab", SHT_STRTAB, (0, 0), 1, &names);
    for section in &mut file.sections {
        let locals = 1 + u32::from(STB_LOCAL);
        (section.link, section.info, section.entry) = match section.kind {
            SHT_DYNSYM => (DYNSTR, locals, SYM),
            SHT_SYMTAB => (STRTAB, locals, SYM),
            SHT_HASH => (DYNSYM, 0, 4),
            SHT_GNU_HASH => (DYNSYM, 0, 0),
            SHT_DYNAMIC => (DYNSTR, 0, 16),
            _ => (0, 0, 0),
        };
    }
    file.align(8);
    let headers = file.at();
    for (section, name) in file.sections.iter().zip([0].into_iter().chain(offsets)) {
        file.bytes.extend(words([name, section.kind]));
        for value in [section.flags, section.address, section.offset, section.size] {
            file.bytes.extend(value.to_le_bytes());
        }
        file.bytes.extend(words([section.link, section.info]));
        file.bytes.extend(section.align.to_le_bytes());
        file.bytes.extend(section.entry.to_le_bytes());
    }
    let count = file.sections.len() as u16;
    let mut header = MAGIC.to_vec();
    header.extend([OSABI, ABI_VERSION, 0, 0, 0, 0, 0, 0, 0]);
    header.extend([TYPE_DYN.to_le_bytes(), MACHINE.to_le_bytes()].concat());
    header.extend(1_u32.to_le_bytes());
    header.extend([0_u64, EHDR, headers].map(u64::to_le_bytes).concat());
    header.extend((MACH_GFX942 | XNACK_ANY | SRAMECC_ANY).to_le_bytes());
    let sizes = [EHDR as u16, PHDR as u16, PHDRS as u16, SHDR as u16, count, count - 1];
    header.extend(sizes.map(u16::to_le_bytes).concat());
    file.put(0, &header);
    file.bytes
}
