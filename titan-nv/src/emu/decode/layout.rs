//! Addresses of variables.
//!
//! Shared variables have addresses from [`SHARED_BASE`] on, so that address 0 belongs to no variable, with a gap after each, so that an
//! access beyond one does not reach the next. The array that the launch sizes is last. Local variables are placed likewise, and so are
//! arguments and results of calls. Variables in global and constant memory get their addresses when a kernel runs.

use crate::emu::ast::{Ast, Entry, Name, Var};
use crate::emu::error::{EmuError, ErrorCode};
use crate::emu::ty::Space;

/// The lowest address of a variable in shared memory.
pub(crate) const SHARED_BASE: u32 = 1024;
/// The unused bytes between variables.
const GAP: u32 = 64;

/// The largest size of a kernel's shared memory, and of each thread's local memory: 512 KiB of local memory (CUDA C++
/// Programming Guide, technical specifications), and any target's shared memory.
const MOST: u32 = 600 * 1024;

fn too_much(space: &str) -> EmuError {
    EmuError::new(ErrorCode::Symbol, format!("the variables do not fit {space} memory"))
}

pub(super) struct Layout {
    pub(super) shared: Vec<(String, u32, Option<u32>)>,
    pub(super) shared_end: u32,
    pub(super) local: Vec<(String, u32, u32)>,
    pub(super) symbols: Vec<String>,
    addresses: Vec<(Name, u32)>,
}

/// The variables of a kernel and its module in a space.
fn variables<'a>(ast: &'a Ast, entry: &'a Entry, space: Space) -> impl Iterator<Item = (Name, &'a Var)> {
    let globals = ast.vars.iter().enumerate().map(|(i, v)| (Name::Global(i), v));
    let locals = entry.vars.iter().enumerate().map(|(i, v)| (Name::Local(i), v));
    globals.chain(locals).filter(move |(_, v)| v.space == space)
}

impl Layout {
    pub(super) fn new(ast: &Ast, entry: &Entry) -> Result<Layout, EmuError> {
        let mut layout =
            Layout { shared: vec![], shared_end: SHARED_BASE, local: vec![], symbols: vec![], addresses: vec![] };
        let too_large = |v: &Var| EmuError::new(ErrorCode::Symbol, format!("`{}` does not fit its memory", v.name));
        let mut end = SHARED_BASE;
        for (name, v) in variables(ast, entry, Space::Shared) {
            let Some(size) = v.size else { continue };
            let at = end.checked_next_multiple_of(v.align).ok_or_else(|| too_large(v))?;
            end = at.checked_add(size).and_then(|e| e.checked_add(GAP)).ok_or_else(|| too_large(v))?;
            layout.addresses.push((name, at));
            layout.shared.push((v.name.clone(), at, Some(size)));
        }
        // All arrays that the launch sizes share one address.
        let open: Vec<_> = variables(ast, entry, Space::Shared).filter(|(_, v)| v.size.is_none()).collect();
        let align = open.iter().map(|(_, v)| v.align).max().unwrap_or(16);
        let fits = end.checked_next_multiple_of(align.max(16)).filter(|e| *e < MOST);
        layout.shared_end = fits.ok_or_else(|| too_much("shared"))?;
        for (name, v) in open {
            layout.addresses.push((name, layout.shared_end));
            if layout.shared.last().is_none_or(|s| s.2.is_some()) {
                layout.shared.push((v.name.clone(), layout.shared_end, None));
            }
        }
        let mut end = GAP;
        for (name, v) in variables(ast, entry, Space::Local).chain(variables(ast, entry, Space::Param)) {
            let size = v.size.unwrap_or(0);
            let at = end.checked_next_multiple_of(v.align).ok_or_else(|| too_large(v))?;
            end = at.checked_add(size).and_then(|e| e.checked_add(GAP)).ok_or_else(|| too_large(v))?;
            layout.addresses.push((name, at));
            layout.local.push((v.name.clone(), at, size));
        }
        if end >= MOST {
            return Err(too_much("local"));
        }
        let far = variables(ast, entry, Space::Global).chain(variables(ast, entry, Space::Const));
        layout.symbols = far.map(|(_, v)| v.name.clone()).collect();
        Ok(layout)
    }

    /// The address of a shared or local variable.
    pub(super) fn fixed(&self, name: Name) -> Option<u32> {
        self.addresses.iter().find(|(n, _)| *n == name).map(|(_, a)| *a)
    }

    /// The index of a global or constant variable among those whose address the launch decides.
    pub(super) fn symbol(&self, ast: &Ast, entry: &Entry, name: Name) -> Option<u32> {
        let far = variables(ast, entry, Space::Global).chain(variables(ast, entry, Space::Const));
        let index = far.map(|(n, _)| n).position(|n| n == name)?;
        u32::try_from(index).ok()
    }
}
