//! The kernels of the filetests, and which cases of many the quick depth runs: kernels in which every operation is met, mistakes of every
//! kind, and one order of three for each program, in turn.

use super::mutants::live;
use super::uses_tensor_memory;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{GridSpec, Kernel, OpId, ParamKind};
use titan_core::verify::{Verified, verify};
use titan_sim::engine::Completion;

/// When copies complete, and by which seed roles and warps take turns.
pub(super) type Order = (Completion, Option<u64>);

pub(super) const ORDERS: [Order; 3] =
    [(Completion::Late, None), (Completion::Early, Some(1)), (Completion::Seeded(7), Some(2))];

/// The orders of a case of many: in the quick depth one of them, in turn.
pub(super) fn orders_of(number: usize) -> Vec<Order> {
    if test_depth::is_full() { ORDERS.to_vec() } else { vec![ORDERS[number % ORDERS.len()]] }
}

/// Some of a few alternatives: in the quick depth one of them, in turn.
pub(super) fn in_turn<T: Clone>(all: &[T], number: usize) -> Vec<T> {
    if test_depth::is_full() { all.to_vec() } else { vec![all[number % all.len()].clone()] }
}

/// A folder of the filetests, and its kernels that are accepted, by name.
type Folder = (&'static str, Vec<(String, Verified)>);

fn folders() -> &'static [Folder] {
    static ALL: OnceLock<Vec<Folder>> = OnceLock::new();
    ALL.get_or_init(|| ["text", "verify"].map(|folder| (folder, read(folder))).into())
}

fn read(folder: &str) -> Vec<(String, Verified)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../titan-core/filetests").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let kernels = titan_core::text::parse_located(&std::fs::read_to_string(&path).unwrap()).unwrap_or_default();
        let verified = kernels.into_iter().filter_map(|k| verify(k.kernel).ok());
        for kernel in verified.filter(|k| !uses_tensor_memory(k)) {
            all.push((format!("{} @{}", path.file_stem().unwrap().to_string_lossy(), kernel.sig.name), kernel));
        }
    }
    all
}

/// Every kernel of these folders of the filetests that is accepted, by name.
pub(super) fn each_kernel(of: &[&str], each: &mut dyn FnMut(&str, &Verified)) {
    for (_, kernels) in folders().iter().filter(|(folder, _)| of.contains(folder)) {
        kernels.iter().for_each(|(name, kernel)| each(name, kernel));
    }
}

/// The same; in the quick depth a few kernels that together have every operation, element, kind of grid and number of rings and roles.
pub(super) fn each_chosen_kernel(of: &[&str], each: &mut dyn FnMut(&str, &Verified)) {
    static NAMES: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let all = folders().iter().flat_map(|(_, kernels)| kernels);
        test_depth::covering(all, |(_, kernel)| traits(kernel)).into_iter().map(|(name, _)| name.as_str()).collect()
    });
    each_kernel(of, &mut |name, kernel| {
        if names.contains(name) {
            each(name, kernel);
        }
    });
}

fn traits(kernel: &Kernel) -> Vec<String> {
    let elem = |kind: &ParamKind| match kind {
        ParamKind::Scalar(elem) => format!("argument {elem}"),
        ParamKind::Tensor { elem, .. } => format!("tensor of {elem}"),
    };
    let ops = kernel.ops.iter().map(|op| mnemonic(&op.kind).to_owned());
    let params = kernel.sig.params.iter().map(|p| elem(&p.kind));
    let persistent = matches!(kernel.sig.grid, GridSpec::Persistent);
    let shape = format!("{} rings, {} roles, {persistent}", kernel.pipes.len(), kernel.roles.len());
    ops.chain(params).chain([shape]).collect()
}

/// The mutants at an operation, by kind.
pub(super) type Make = fn(&Kernel, OpId) -> Vec<(&'static str, Kernel)>;

/// A mistake in one of some programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mistake {
    program: usize,
    pub(super) kind: &'static str,
    pub(super) at: OpId,
    /// Its number among those at its operation.
    nth: usize,
}

/// All mistakes in a program, which is the `number`-th of some, in their order.
pub(super) fn mistakes(number: usize, program: &Kernel, make: Make) -> Vec<Mistake> {
    let mut all = Vec::new();
    for at in live(program) {
        let kinds = make(program, at).into_iter().enumerate();
        all.extend(kinds.map(|(nth, (kind, _))| Mistake { program: number, kind, at, nth }));
    }
    all
}

/// The mistakes that are made: all of them, in the quick depth so many of each kind.
pub(super) struct Chosen(BTreeSet<(usize, OpId, usize)>);

impl Chosen {
    pub(super) fn of(all: impl IntoIterator<Item = Mistake>, quick: usize) -> Chosen {
        let some = test_depth::sample_each(all, quick, |mistake| mistake.kind);
        Chosen(some.into_iter().map(|mistake| (mistake.program, mistake.at, mistake.nth)).collect())
    }

    /// The mutants of a program, with the operation at which the mistake is made and its kind.
    pub(super) fn mutants(
        &self,
        number: usize,
        program: &Kernel,
        make: Make,
    ) -> impl Iterator<Item = (OpId, &'static str, Kernel)> {
        let in_program = self.0.iter().filter(move |(of, ..)| *of == number);
        let places: BTreeSet<(OpId, usize)> = in_program.map(|(_, at, nth)| (*at, *nth)).collect();
        let ops: BTreeSet<OpId> = places.iter().map(|(at, _)| *at).collect();
        let at_one =
            move |at: OpId| make(program, at).into_iter().enumerate().map(move |(nth, mutant)| ((at, nth), mutant));
        let all = ops.into_iter().flat_map(at_one).filter(move |(place, _)| places.contains(place));
        all.map(|((at, _), (kind, mutant))| (at, kind, mutant))
    }

    /// Whether a program is looked at: every one, in the quick depth those with mistakes.
    pub(super) fn has(&self, number: usize) -> bool {
        test_depth::is_full() || self.0.iter().any(|(of, ..)| *of == number)
    }
}
