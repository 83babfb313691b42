//! A loaded code object: its kernels, and its instructions, which are decoded when they are first executed.

use super::absent;
use super::error::{EmuError, ErrorCode, Site};
use super::exec::Run;
use super::fail::Fail;
use super::memory::Memory;
use super::op::{Op, Refused, resolve};
use crate::isa::{IsaError, decode};
use crate::object::{CodeObject, Kernel as Entry};
use std::sync::OnceLock;
use titan_sim::engine::StateHasher;

/// A code object.
#[derive(Debug)]
pub struct Module {
    pub(super) object: CodeObject,
    /// The decoded instructions, by range of code and word in it.
    ops: Vec<Vec<OnceLock<Result<Op, Refused>>>>,
    pub(super) hash: u128,
    /// Whether its code compares and swaps in memory that may be the local data share.
    compares: OnceLock<bool>,
}

/// A kernel of a module.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    pub(super) module: &'a Module,
    pub(super) entry: &'a Entry,
}

impl Module {
    /// Reads a code object for gfx942.
    ///
    /// # Errors
    /// [`ErrorCode::Object`].
    pub fn load(bytes: &[u8]) -> Result<Module, EmuError> {
        let object = CodeObject::read(bytes).map_err(|e| EmuError::new(ErrorCode::Object, e.to_string()))?;
        // Code is in the file, so there are no more entries than bytes; the image may have much more.
        let words = |code: &std::ops::Range<u64>| usize::try_from((code.end - code.start) / 4 + 1).unwrap_or(0);
        let places = |code| std::iter::repeat_with(OnceLock::new).take(words(code)).collect();
        let ops = object.code.iter().map(places).collect();
        Ok(Module { object, ops, hash: StateHasher::of(&bytes), compares: OnceLock::new() })
    }

    /// The contents of the code object.
    #[must_use]
    pub const fn object(&self) -> &CodeObject {
        &self.object
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// [`ErrorCode::Launch`], if there is none.
    pub fn kernel(&self, name: &str) -> Result<Kernel<'_>, EmuError> {
        let names = || self.object.kernels.iter().map(|k| format!("`{}`", k.name)).collect::<Vec<_>>().join(", ");
        let missing =
            || EmuError::new(ErrorCode::Launch, format!("there is no kernel `{name}`; the module has {}", names()));
        Ok(Kernel { module: self, entry: self.object.kernel(name).ok_or_else(missing)? })
    }

    /// The address and size of a variable of the module, which is loaded into memory if necessary.
    ///
    /// # Errors
    /// [`ErrorCode::Object`], if there is no room for the module.
    pub fn variable(&self, name: &str, memory: &mut Memory) -> Result<Option<(u64, u64)>, EmuError> {
        let base = memory.load(self.hash, &self.object)?;
        let found = self.object.variables.iter().find(|(n, ..)| n == name);
        Ok(found.map(|(_, at, size)| (base + at, *size)))
    }

    /// Frees the module's memory, if it was loaded.
    pub fn unload(&self, memory: &mut Memory) {
        memory.unload(self.hash, &self.object);
    }

    /// The instruction at an address of the image.
    pub(super) fn fetch(&self, address: u64) -> Run<&Op> {
        let inside = self.object.code.iter().zip(&self.ops).find(|(c, _)| c.contains(&address));
        let Some((code, ops)) = inside.filter(|_| address.is_multiple_of(4)) else {
            let message = "the wave runs outside of the code";
            return Err(Fail::new(ErrorCode::Unknown, message).help("a kernel ends by `s_endpgm`"));
        };
        let slot = usize::try_from((address - code.start) / 4).ok().and_then(|i| ops.get(i));
        let Some(slot) = slot else { return Err(Fail::new(ErrorCode::Unknown, "the wave runs outside of the image")) };
        let op = slot.get_or_init(|| {
            let bytes = self.object.bytes(address, code.end - address).unwrap_or_default();
            let (inst, size) = decode(bytes).map_err(|e| undecoded(bytes, &e))?;
            resolve(inst, address, size as u64)
        });
        op.as_ref().map_err(|refused| refused.clone().into())
    }

    /// Whether its code compares and swaps in memory that may be the local data share.
    pub(super) fn compares(&self) -> bool {
        *self.compares.get_or_init(|| self.object.code.iter().any(|code| self.compares_in(code)))
    }

    fn compares_in(&self, code: &std::ops::Range<u64>) -> bool {
        let mut at = code.start;
        while at < code.end {
            let decoded = self.object.bytes(at, code.end - at).map(decode).and_then(Result::ok);
            // Data between functions are no instructions.
            let (name, size) = decoded.map_or(("", 4), |(inst, size)| (inst.row().name, size as u64));
            if name.starts_with("ds_cmpst") || name.starts_with("flat_atomic_cmpswap") {
                return true;
            }
            at += size;
        }
        false
    }

    /// The place of an address in messages.
    pub(super) fn site(&self, address: u64) -> Site {
        let function = self.object.function_at(address).map(|(name, offset)| (name.to_owned(), offset));
        let end = self.object.code.iter().find(|c| c.contains(&address)).map_or(address, |c| c.end);
        let decoded = self.object.bytes(address, end - address).map(decode);
        let instruction = decoded.and_then(Result::ok).map_or_else(String::new, |(inst, _)| inst.to_string());
        Site { address, function, instruction }
    }
}

/// The error for bytes that cannot be decoded.
fn undecoded(bytes: &[u8], error: &IsaError) -> Refused {
    let garbage = || Refused::unknown(format!("the wave runs into what is no instruction: {error}"));
    absent::undecoded(bytes).unwrap_or_else(garbage)
}

impl Kernel<'_> {
    /// The description of the kernel in the code object.
    #[must_use]
    pub const fn entry(&self) -> &Entry {
        self.entry
    }
}
