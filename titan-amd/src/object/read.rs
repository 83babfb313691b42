//! The reader of code objects: everything is checked before it is used, and nothing panics.
//!
//! The result has what a loader would create: an image of the segments, kernels with their descriptors, code and
//! metadata. Parts that no loader uses are checked as well (overlapping sections, inconsistent tables), because a file with
//! such errors was made by a faulty program.

use super::descriptor::{Descriptor, ENTRY_ALIGN, SIZE};
use super::elf::*;
use super::error::ObjectError;
use super::metadata::{KernelArg, KernelMetadata, Metadata};
use super::msgpack::Value;

/// The largest accepted size of an image, in bytes.
const MAX_IMAGE: u64 = 1 << 30;
/// The largest workgroup, for kernels of which nothing less is said.
const MAX_WORKGROUP: u32 = 1024;

/// A code object, loaded from address 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject {
    /// The contents of its memory.
    pub image: Vec<u8>,
    /// The ranges of the image that contain code.
    pub code: Vec<std::ops::Range<u64>>,
    /// The ranges of the image that kernels may write.
    pub writable: Vec<std::ops::Range<u64>>,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The variables: name, address and size.
    pub variables: Vec<(String, u64, u64)>,
    /// The functions, kernels among them, by address: name, address and size.
    pub functions: Vec<(String, u64, u64)>,
    /// The addresses of 64-bit words that contain addresses of the image, relative to its start.
    pub relative: Vec<u64>,
}

/// A kernel of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of the kernel.
    pub name: String,
    /// The address of its descriptor.
    pub descriptor_address: u64,
    /// The descriptor.
    pub descriptor: Descriptor,
    /// The address of its first instruction.
    pub entry: u64,
    /// The metadata, if there are any for it. AMD's loader takes kernels without; HIP finds none of them.
    pub metadata: Option<KernelMetadata>,
}

impl Kernel {
    /// The largest number of work items of a workgroup.
    #[must_use]
    pub fn max_workgroup_size(&self) -> u32 {
        self.metadata.as_ref().map_or(MAX_WORKGROUP, |m| m.max_workgroup_size)
    }

    /// The required extents of a workgroup, if there are any.
    #[must_use]
    pub fn required_workgroup(&self) -> Option<[u32; 3]> {
        self.metadata.as_ref().and_then(|m| m.required_workgroup)
    }

    /// The arguments, including hidden ones; none are known without metadata.
    #[must_use]
    pub fn args(&self) -> &[KernelArg] {
        self.metadata.as_ref().map_or(&[], |m| &m.args)
    }

    /// Whether the kernel needs private memory of a size that the compiler does not know: by recursion, calls through pointers, or
    /// arrays of variable size.
    #[must_use]
    pub fn dynamic_stack(&self) -> bool {
        self.descriptor.dynamic_stack() || self.metadata.as_ref().is_some_and(|m| m.dynamic_stack)
    }
}

/// Bytes that are read with checks of bounds.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    bytes: &'a [u8],
}

impl<'a> Bytes<'a> {
    fn slice(self, what: &'static str, at: u64, len: u64) -> Result<&'a [u8], ObjectError> {
        let cut = ObjectError::Cut { what, at, len, have: self.bytes.len() as u64 };
        let start = usize::try_from(at).ok();
        let end = at.checked_add(len).and_then(|end| usize::try_from(end).ok());
        start.zip(end).and_then(|(s, e)| self.bytes.get(s..e)).ok_or(cut)
    }

    fn number(self, what: &'static str, at: u64, len: u64) -> Result<u64, ObjectError> {
        Ok(self.slice(what, at, len)?.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
    }

    #[expect(clippy::cast_possible_truncation, reason = "four bytes")]
    fn word(self, what: &'static str, at: u64) -> Result<u32, ObjectError> {
        self.number(what, at, 4).map(|v| v as u32)
    }

    /// A name in a string table.
    fn name(self, table: &Section, offset: u32) -> Result<String, ObjectError> {
        let strings = self.slice("a table of names", table.offset, table.size)?;
        let tail =
            strings.get(offset as usize..).and_then(|t| t.split(|b| *b == 0).next().filter(|n| n.len() < t.len()));
        let text = tail.and_then(|t| std::str::from_utf8(t).ok()).map(str::to_owned);
        text.ok_or_else(|| layout("a name lies outside of its table, or is no text"))
    }
}

fn layout(why: &str) -> ObjectError {
    ObjectError::Layout { why: why.to_owned() }
}

fn refused(name: &str, why: &str) -> ObjectError {
    ObjectError::Kernel { name: name.to_owned(), why: why.to_owned() }
}

/// The end of the name of a kernel's descriptor.
const DESCRIPTOR_SUFFIX: &str = ".kd";

struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    size: u64,
}

struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
}

struct Symbol {
    name: String,
    kind: u8,
    section: u64,
    value: u64,
    size: u64,
}

impl CodeObject {
    /// Reads a code object for gfx942.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn read(bytes: &[u8]) -> Result<CodeObject, ObjectError> {
        let file = Bytes { bytes };
        header(file)?;
        let segments = segments(file)?;
        let sections = sections(file)?;
        check_sections(file, &sections)?;
        let mut object = load(file, &segments)?;
        object.relocate(file, &sections)?;
        let symbols = symbols(file, &sections)?;
        let metadata = metadata(file, &segments)?;
        object.described(&symbols, metadata)?;
        object.undescribed(&symbols)?;
        object.names(symbols)?;
        Ok(object)
    }

    /// The kernel with this name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// A range of bytes of the image.
    #[must_use]
    pub fn bytes(&self, address: u64, len: u64) -> Option<&[u8]> {
        Bytes { bytes: &self.image }.slice("", address, len).ok()
    }

    fn relocate(&mut self, file: Bytes<'_>, sections: &[Section]) -> Result<(), ObjectError> {
        for section in sections.iter().filter(|s| s.kind == SHT_RELA) {
            for i in 0..section.size / 24 {
                let at = |field| file.number("a relocation", section.offset + i * 24 + field, 8);
                let (place, info, addend) = (at(0)?, at(8)?, at(16)?);
                if info & 0xFFFF_FFFF != RELATIVE64 {
                    return Err(layout("a relocation is of another kind than relative"));
                }
                let inside = self.bytes(place, 8).is_some() && self.bytes(addend, 0).is_some();
                let start = usize::try_from(place).ok().filter(|_| inside);
                let start = start.ok_or_else(|| layout("a relocation lies outside of the image"))?;
                self.image[start..start + 8].copy_from_slice(&addend.to_le_bytes());
                self.relative.push(place);
            }
        }
        Ok(())
    }

    /// The kernels that metadata describe.
    fn described(&mut self, symbols: &[Symbol], metadata: Option<Metadata>) -> Result<(), ObjectError> {
        let Some(metadata) = metadata else { return Ok(()) };
        if metadata.processor() != Some("gfx942") {
            let found = metadata.processor().unwrap_or(&metadata.target).to_owned();
            return Err(ObjectError::Machine { found, wanted: "gfx942" });
        }
        for kernel in metadata.kernels {
            let symbol = symbols.iter().find(|s| s.name == kernel.symbol);
            let missing = || refused(&kernel.name, "the symbol of its descriptor is missing");
            let made = self.kernel_of(symbol.ok_or_else(missing)?, &kernel.name)?;
            kernel.check(&made.descriptor)?;
            if self.kernels.iter().any(|k| k.name == kernel.name) {
                return Err(refused(&kernel.name, "its name is there twice"));
            }
            self.kernels.push(Kernel { metadata: Some(kernel), ..made });
        }
        Ok(())
    }

    /// The kernels that only symbols name: AMD's loader takes every object whose name ends so for a descriptor.
    fn undescribed(&mut self, symbols: &[Symbol]) -> Result<(), ObjectError> {
        for symbol in symbols.iter().filter(|s| s.kind == STT_OBJECT && s.section != 0) {
            let Some(name) = symbol.name.strip_suffix(DESCRIPTOR_SUFFIX) else { continue };
            let known = |k: &Kernel| k.name == name || k.descriptor_address == symbol.value;
            if !self.kernels.iter().any(known) {
                let made = self.kernel_of(symbol, name)?;
                self.kernels.push(made);
            }
        }
        Ok(())
    }

    /// The kernel whose descriptor a symbol names, without metadata.
    fn kernel_of(&self, symbol: &Symbol, name: &str) -> Result<Kernel, ObjectError> {
        if symbol.kind != STT_OBJECT || symbol.size != SIZE as u64 || !symbol.value.is_multiple_of(64) {
            return Err(refused(name, "the symbol of its descriptor is not that of 64 aligned bytes"));
        }
        let bytes = self.bytes(symbol.value, SIZE as u64).and_then(|b| <&[u8; SIZE]>::try_from(b).ok());
        let bytes = bytes.ok_or_else(|| refused(name, "its descriptor lies outside of the image"))?;
        let descriptor = Descriptor::from_bytes(name, bytes)?;
        let entry = symbol.value.wrapping_add_signed(descriptor.entry_offset);
        if entry % ENTRY_ALIGN != 0 || !self.code.iter().any(|c| c.contains(&entry)) {
            return Err(refused(
                name,
                "its first instruction is not aligned to 256 bytes, or lies outside of the code",
            ));
        }
        let (name, descriptor_address) = (name.to_owned(), symbol.value);
        Ok(Kernel { name, descriptor_address, descriptor, entry, metadata: None })
    }

    /// The names of variables and functions.
    fn names(&mut self, symbols: Vec<Symbol>) -> Result<(), ObjectError> {
        for symbol in symbols.into_iter().filter(|s| s.section != 0) {
            match symbol.kind {
                STT_OBJECT if !symbol.name.ends_with(DESCRIPTOR_SUFFIX) => {
                    if self.bytes(symbol.value, symbol.size).is_none() {
                        return Err(layout(&format!("the variable `{}` lies outside of the image", symbol.name)));
                    }
                    self.variables.push((symbol.name, symbol.value, symbol.size));
                }
                STT_FUNC => self.functions.push((symbol.name, symbol.value, symbol.size)),
                _ => {}
            }
        }
        self.functions.sort_by_key(|(_, address, size)| (*address, *size));
        Ok(())
    }

    /// The function that contains an address, and the offset of the address in it. Between functions, it is the one before: code that
    /// compilers put behind a function (islands of branches, padding) belongs to it.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        let before = self.functions.partition_point(|(_, start, _)| *start <= address);
        let (name, start, _) = self.functions.get(..before)?.last()?;
        Some((name, address - start))
    }
}

fn header(file: Bytes<'_>) -> Result<(), ObjectError> {
    let ident = file.slice("the header", 0, EHDR)?;
    let wrong = |what, found, wanted| Err(ObjectError::Header { what, found, wanted });
    if ident[..7] != MAGIC {
        return wrong("its beginning", file.number("the header", 0, 7)?, "that of an ELF file of 64 bits");
    }
    if ident[7] != OSABI {
        return wrong("its ABI", ident[7].into(), "that of AMD's HSA, 0x40");
    }
    let machine = file.number("the header", 18, 2)?;
    if machine != MACHINE.into() {
        return wrong("its machine", machine, "AMD's GPUs, 0xe0");
    }
    if ident[8] != ABI_VERSION {
        return wrong("its version", ident[8].into(), "0x3, which stands for version 5");
    }
    let kind = file.number("the header", 16, 2)?;
    if kind != TYPE_DYN.into() {
        return wrong("its type", kind, "a shared object, 0x3: it has not been linked");
    }
    let flags = file.word("the header", 48)?;
    let mach = flags & FLAG_MACH;
    if mach != MACH_GFX942 {
        let known = MACHS.iter().find(|(m, _)| *m == mach).map(|(_, name)| (*name).to_owned());
        let found = known.unwrap_or_else(|| format!("an unknown processor ({mach:#x})"));
        return Err(ObjectError::Machine { found, wanted: "gfx942" });
    }
    if flags & !FLAGS != 0 {
        return wrong("its flags", flags.into(), "a processor and its features");
    }
    Ok(())
}

fn segments(file: Bytes<'_>) -> Result<Vec<Segment>, ObjectError> {
    let (at, size) = (file.number("the header", 32, 8)?, file.number("the header", 54, 2)?);
    let count = file.number("the header", 56, 2)?;
    if count > 0 && size != PHDR {
        return Err(layout("its program headers have another size"));
    }
    let mut all = Vec::new();
    for i in 0..count {
        let entry = Bytes { bytes: file.slice("a program header", at.saturating_add(i * PHDR), PHDR)? };
        let n = |at| entry.number("a program header", at, 8);
        let segment = Segment {
            kind: entry.word("a program header", 0)?,
            flags: entry.word("a program header", 4)?,
            offset: n(8)?,
            address: n(16)?,
            file_size: n(32)?,
            size: n(40)?,
        };
        file.slice("a segment", segment.offset, segment.file_size)?;
        all.push(segment);
    }
    Ok(all)
}

fn sections(file: Bytes<'_>) -> Result<Vec<Section>, ObjectError> {
    let (at, size) = (file.number("the header", 40, 8)?, file.number("the header", 58, 2)?);
    let count = file.number("the header", 60, 2)?;
    if count == 0 || size != SHDR {
        return Err(layout("it has no section headers, without which loaders find no kernels"));
    }
    let mut all = Vec::new();
    for i in 0..count {
        let entry = Bytes { bytes: file.slice("a section header", at.saturating_add(i * SHDR), SHDR)? };
        let n = |at| entry.number("a section header", at, 8);
        let section = Section {
            name: entry.word("a section header", 0)?,
            kind: entry.word("a section header", 4)?,
            flags: n(8)?,
            address: n(16)?,
            offset: n(24)?,
            size: n(32)?,
            link: entry.word("a section header", 40)?,
        };
        if !matches!(section.kind, SHT_NULL | SHT_NOBITS) {
            file.slice("a section", section.offset, section.size)?;
        }
        all.push(section);
    }
    Ok(all)
}

/// Checks that section names exist and that no two sections share bytes of the file.
fn check_sections(file: Bytes<'_>, sections: &[Section]) -> Result<(), ObjectError> {
    let index = file.number("the header", 62, 2)?;
    let names = usize::try_from(index).ok().and_then(|i| sections.get(i)).filter(|s| s.kind == SHT_STRTAB);
    let names = names.ok_or_else(|| layout("the names of its sections are missing"))?;
    let mut ranges = Vec::new();
    for section in sections {
        let name = file.name(names, section.name)?;
        if section.size > 0 && !matches!(section.kind, SHT_NULL | SHT_NOBITS) {
            ranges.push((section.offset, section.offset + section.size, name));
        }
    }
    ranges.sort();
    for pair in ranges.windows(2) {
        let [(_, end, first), (start, _, second)] = pair else { continue };
        if start < end {
            let quoted = |n: &str| format!("section `{n}`");
            return Err(ObjectError::Overlap { first: quoted(first), second: quoted(second) });
        }
    }
    Ok(())
}

/// Copies the segments that are loaded.
fn load(file: Bytes<'_>, segments: &[Segment]) -> Result<CodeObject, ObjectError> {
    let (mut code, mut writable, mut end) = (Vec::new(), Vec::new(), 0);
    let loaded = || segments.iter().filter(|s| s.kind == PT_LOAD);
    for segment in loaded() {
        if segment.address < end {
            let at = |a: u64| format!("the segment at {a:#x}");
            return Err(ObjectError::Overlap { first: at(segment.address), second: "the one before".to_owned() });
        }
        if segment.file_size > segment.size {
            return Err(layout("a segment has more bytes in the file than in memory"));
        }
        end = segment.address.saturating_add(segment.size);
        if segment.flags & PF_X != 0 {
            if segment.file_size != segment.size {
                return Err(layout("a segment with code has more bytes in memory than in the file"));
            }
            code.push(segment.address..end);
        }
        if segment.flags & PF_W != 0 {
            writable.push(segment.address..end);
        }
    }
    let len = usize::try_from(end).ok().filter(|_| end <= MAX_IMAGE);
    let len = len.ok_or_else(|| layout("its image would have more than 1 GiB"))?;
    // Asked first, because memory that begins as zeros, of which only what is written is touched, cannot be asked for with an error.
    Vec::<u8>::new().try_reserve_exact(len).map_err(|_| layout("there is not enough memory for its image"))?;
    let mut image = vec![0; len];
    for segment in loaded() {
        let bytes = file.slice("a segment", segment.offset, segment.file_size)?;
        #[expect(clippy::cast_possible_truncation, reason = "below MAX_IMAGE")]
        let start = segment.address as usize;
        image[start..start + bytes.len()].copy_from_slice(bytes);
    }
    let (kernels, variables, functions, relative) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Ok(CodeObject { image, code, writable, kernels, variables, functions, relative })
}

/// The symbols of `.symtab`, from which AMD's loader takes kernels.
fn symbols(file: Bytes<'_>, sections: &[Section]) -> Result<Vec<Symbol>, ObjectError> {
    let Some(table) = sections.iter().find(|s| s.kind == SHT_SYMTAB) else {
        return Err(layout("it has no `.symtab`, without which loaders find no kernels"));
    };
    let names = sections.get(table.link as usize).filter(|s| s.kind == SHT_STRTAB);
    let names = names.ok_or_else(|| layout("the names of its symbols are missing"))?;
    let mut all = Vec::new();
    for i in 1..table.size / SYM {
        let entry = Bytes { bytes: file.slice("a symbol", table.offset + i * SYM, SYM)? };
        all.push(Symbol {
            name: file.name(names, entry.word("a symbol", 0)?)?,
            kind: entry.slice("a symbol", 4, 1)?.first().map_or(0, |b| b & 15),
            section: entry.number("a symbol", 6, 2)?,
            value: entry.number("a symbol", 8, 8)?,
            size: entry.number("a symbol", 16, 8)?,
        });
    }
    let dead = |s: &Symbol| {
        let index = usize::try_from(s.section).unwrap_or(usize::MAX);
        // Section indices from 0xff00 on are reserved.
        s.section < 0xFF00 && sections.get(index).is_none()
    };
    if all.iter().any(dead) {
        return Err(layout("a symbol is of a section that is not there"));
    }
    let text = sections.iter().filter(|s| s.flags & SHF_EXECINSTR != 0);
    let inside = |v: u64| text.clone().any(|t| (t.address..=t.address.saturating_add(t.size)).contains(&v));
    if all.iter().any(|s| s.kind == STT_FUNC && s.section != 0 && !inside(s.value)) {
        return Err(layout("a function's symbol lies outside of the code"));
    }
    Ok(all)
}

/// The metadata in the first note of the owner "AMDGPU", if there is one.
fn metadata(file: Bytes<'_>, segments: &[Segment]) -> Result<Option<Metadata>, ObjectError> {
    for segment in segments.iter().filter(|s| s.kind == PT_NOTE) {
        let notes = Bytes { bytes: file.slice("the notes", segment.offset, segment.file_size)? };
        let (mut at, end) = (0_u64, segment.file_size);
        while at + 12 <= end {
            let n = |offset| notes.word("a note", at + offset).map(u64::from);
            let (owner, len, kind) = (n(0)?, n(4)?, n(8)?);
            let name = notes.slice("the owner of a note", at + 12, owner)?;
            let start = (at + 12).saturating_add(owner.next_multiple_of(4));
            let bytes = notes.slice("a note", start, len)?;
            if kind == u64::from(NT_METADATA) && name.strip_suffix(b"\0") == Some(b"AMDGPU") {
                return Metadata::from_value(&Value::from_bytes(bytes)?).map(Some);
            }
            at = start.saturating_add(len.next_multiple_of(4));
        }
    }
    Ok(None)
}
