//! The plan of MMAs: the instruction, the distribution over warps, and the source of each operand.
use super::Plan;
use super::classes::Classes;
use super::no_group::NoGroup;
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Elem, Kernel, Op, OpId, OpKind, Pipe, Token, TtgOp, Ty, Value};
use crate::lane::{GroupMma, MmaAtom};
use crate::layout::atoms::{Atom, WarpGrid};
use crate::layout::convert::in_registers;
use crate::layout::{Encoding, Layout, Swizzle};
use crate::target::{Place, Target};

/// The method of an MMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Matrix instructions of a warp.
    Atom(MmaAtom),
    /// Matrix instructions of a warpgroup, which are asynchronous. They read B from shared memory, and A too unless it is in registers.
    Group(MmaAtom),
    /// Multiply-adds of each thread: no matrix instruction supports these element types.
    MulAdd,
}

/// The source of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Shared memory, with this encoding.
    Shared(Encoding),
    /// Registers: each thread already holds its fragments, up to the order of its registers.
    Registers,
}

/// The plan of an MMA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MmaPlan {
    /// The method by which it is computed.
    pub method: Method,
    /// The element types to which the operands are converted first.
    pub staged: (Elem, Elem),
    /// The extents M, N and K.
    pub extents: [u32; 3],
    /// The batch size: 1 without a batch axis.
    pub batch: u32,
    /// The layout of the accumulator: `[M, N]`, or `[batch, M, N]`.
    pub acc: Layout,
    /// The layout of the fragments of A, `[M, K]`, without the batch axis.
    pub a: Layout,
    /// The layout of the fragments of B, `[N, K]`, without the batch axis.
    pub b: Layout,
    /// The source of A; its encoding has the extents `[M, K]`.
    pub a_source: Source,
    /// The source of B; its encoding has the extents `[K, N]`.
    pub b_source: Source,
    /// Why its instructions are not those of warpgroups.
    pub(crate) no_group: Option<NoGroup>,
}

impl MmaPlan {
    /// Whether its instructions are those of warpgroups.
    pub(crate) const fn is_of_groups(&self) -> bool {
        matches!(self.method, Method::Group(_))
    }
}

/// Chooses methods and layouts. Sources are chosen by `settle` once the layouts of the operands are known.
pub(super) fn choose(kernel: &Kernel, target: &Target, warps: u32, classes: &Classes) -> SortedMap<OpId, MmaPlan> {
    let mut mmas = SortedMap::new();
    let (whole_rows, chained) = whole_rows(kernel, classes);
    kernel.walk(&mut |id, op| {
        if let Some(args) = operands(op)
            && let Some(mma) = one(kernel, target, warps, (args, whole_rows.contains(&id), chained.contains(&id)))
        {
            mmas.insert(id, mma);
        }
    });
    mmas
}

/// The notes about MMAs, one for each kind.
pub(super) fn notes<'a>(mmas: impl Iterator<Item = &'a MmaPlan>) -> Vec<String> {
    let note = |mma: &MmaPlan| {
        let name = match mma.method {
            Method::Atom(a) => format!("m{}n{}k{} of {}", a.m, a.n, a.k, a.a),
            Method::Group(a) => format!("m{}n{}k{} of {}, by warpgroups", a.m, a.n, a.k, a.a),
            Method::MulAdd => "multiply-adds: no matrix instruction takes these elements".to_owned(),
        };
        let [m, n, k] = mma.extents;
        format!("mma {m}x{n}x{k} by {name}")
    };
    let mut notes: Vec<String> = mmas.map(note).collect();
    notes.dedup();
    notes
}

/// A, B and the accumulator of an MMA; `None` for other operations.
#[must_use]
pub fn operands(op: &Op) -> Option<[Value; 3]> {
    match (&op.kind, &op.args[..]) {
        (OpKind::Mma | OpKind::Ttg(TtgOp::ComputeIssue), [a, b, acc])
        | (OpKind::Ttg(TtgOp::AccMma), [acc, _, a, b]) => Some([*a, *b, *acc]),
        (_, _) => None,
    }
}

/// The MMAs for which each warp should compute whole rows: those whose rows are reduced, or whose result is operand A of another MMA, and
/// the latter MMA. Reductions then stay within a warp, and accumulators become operands in registers. Also the MMAs of which operand A is
/// such a result.
fn whole_rows(kernel: &Kernel, classes: &Classes) -> (SortedSet<OpId>, SortedSet<OpId>) {
    let (mut made, mut reduced, mut multiplied) = (SortedSet::new(), SortedSet::new(), SortedMap::new());
    kernel.walk(&mut |id, op| {
        if let Some([a, ..]) = operands(op) {
            made.insert(classes.class(op.results[0]));
            multiplied.insert(id, classes.has_layout(kernel, a).then(|| classes.class(a)));
        }
        let (OpKind::Reduce(_, axis)
        | OpKind::ArgReduce(_, axis)
        | OpKind::ReduceWith(axis)
        | OpKind::Scan(_, axis)
        | OpKind::ScanWith(axis)) = op.kind
        else {
            return;
        };
        let rank = kernel.ty(op.args[0]).tile_shape().map_or(0, |s| s.rank());
        if usize::from(axis) + 1 == rank {
            reduced.extend(op.args.iter().filter(|v| classes.has_layout(kernel, **v)).map(|v| classes.class(*v)));
        }
    });
    reduced.extend(multiplied.values().flatten().copied());
    let is_chained = |(_, a): &(&OpId, &Option<usize>)| a.is_some_and(|a| made.contains(&a));
    let is_reduced = |(id, _): &(&OpId, &Option<usize>)| {
        let own = kernel.op(**id).results.first().map(|v| classes.class(*v));
        own.is_some_and(|own| reduced.contains(&own))
    };
    let chained: SortedSet<OpId> = multiplied.iter().filter(is_chained).map(|(id, _)| *id).collect();
    let mut rows: SortedSet<OpId> = multiplied.iter().filter(is_reduced).map(|(id, _)| *id).collect();
    rows.extend(&chained);
    (rows, chained)
}

fn one(
    kernel: &Kernel,
    target: &Target,
    warps: u32,
    (args, whole_rows, chained): ([Value; 3], bool, bool),
) -> Option<MmaPlan> {
    let [(a, a_shape), (b, b_shape), (acc, _)] = args.map(|v| (kernel.ty(v).elem(), kernel.ty(v).tile_shape()));
    let (a_shape, b_shape) = (a_shape?, b_shape?);
    let (a_shape, b_shape): (Vec<u32>, Vec<u32>) = (a_shape.into(), b_shape.into());
    let rank = a_shape.len();
    let batch = if rank == 3 { a_shape[0] } else { 1 };
    let extents = [a_shape[rank - 2], b_shape[rank - 1], a_shape[rank - 1]];
    let [m, n, k] = extents;
    let flat = |grouped| if batch == 1 && rank == 2 { Ok(grouped) } else { Err(NoGroup::Batched) };
    let (grouped, no_group) = match group(kernel, target, warps, args).and_then(flat) {
        Ok(grouped) => (Some(grouped), None),
        Err(why) => (None, Some(why)),
    };
    let operands = |atom: &Atom, grid| (atom.operand_a(&[m, k], grid), atom.operand_b(&[n, k], grid));
    let (method, staged, acc, (a, b)) = if let Some(Grouped { atom, mma, grid }) = grouped {
        (Method::Group(mma), (a, b), atom.group_accumulator(&[m, n], grid), operands(atom, grid))
    } else {
        let (atom, staged) = of_warps(target, [a, b, acc], extents, chained);
        match atom {
            Some(atom) => {
                let rows = WarpGrid { m: warps, n: 1, all: warps };
                let fits = whole_rows && m.is_multiple_of(atom.mma.m * warps);
                let grid = if fits { rows } else { split(m, n, &atom.mma, warps) };
                (Method::Atom(atom.mma), staged, atom.accumulator(&[m, n], grid), operands(atom, grid))
            }
            None => {
                let (acc, a, b) = simple(target, warps, [m, n, k]);
                (Method::MulAdd, staged, acc, (a, b))
            }
        }
    };
    let acc = if rank == 3 { acc.batched(batch) } else { acc };
    let source = Source::Registers;
    Some(MmaPlan { method, staged, extents, batch, acc, a, b, a_source: source.clone(), b_source: source, no_group })
}

/// The instruction of warpgroups for an MMA, in the width that divides its columns, and its distribution over the warps.
struct Grouped<'t> {
    atom: &'t Atom,
    mma: MmaAtom,
    grid: WarpGrid,
}

/// The instruction of warpgroups for an MMA, and its distribution over them: first along M, in whole instructions, then along N. Or the
/// reason why there is none for these element types, extents or orders in memory.
fn group<'t>(kernel: &Kernel, target: &'t Target, warps: u32, [a, b, acc]: [Value; 3]) -> Result<Grouped<'t>, NoGroup> {
    if target.group_atoms.is_empty() {
        return Err(NoGroup::Machine);
    }
    let elems @ [a_elem, b_elem, acc_elem] = [a, b, acc].map(|v| kernel.ty(v).elem());
    let of_groups = target.group_atom(elems).ok_or(NoGroup::Elements(elems))?;
    let atom = of_groups.mma;
    let extents = |v: Value| kernel.ty(v).tile_shape().map_or_else(Vec::new, Vec::<u32>::from);
    let ([m, k], [_, n]) = (&extents(a)[..], &extents(b)[..]) else { return Err(NoGroup::Batched) };
    // The instruction transposes only 16-bit elements.
    let turned = |v: Value, straight: bool| root(kernel, v).is_some_and(|(_, transposed)| transposed == straight);
    for (operand, turned, elem) in [('A', turned(a, true), a_elem), ('B', turned(b, false), b_elem)] {
        if turned && elem.bits() != 16 {
            return Err(NoGroup::Major { operand, elem });
        }
    }
    let groups = warps.checked_div(GroupMma::WARPS).filter(|n| n * GroupMma::WARPS == warps && n.is_power_of_two());
    let groups = groups.ok_or(NoGroup::Warps(warps))?;
    let along_m = (0..=groups.trailing_zeros()).rev().map(|i| 1 << i).find(|g| m.is_multiple_of(atom.m * g));
    let along_m = along_m.ok_or(NoGroup::Rows(*m, atom.m))?;
    let along_n = groups / along_m;
    let own = n / along_n;
    if !k.is_multiple_of(atom.k) {
        return Err(NoGroup::Depth(*k, atom.k));
    }
    // The columns of a warpgroup are contiguous; with several warpgroups along N, the columns of each must be a power of two.
    let fits = n.is_multiple_of(8 * along_n) && (along_n == 1 || own.is_power_of_two());
    let parts = own.div_ceil(atom.n);
    let width = own / parts.max(1);
    if !fits || width * parts != own || !width.is_multiple_of(8) {
        return Err(NoGroup::Columns(*n, along_n));
    }
    // For integers, not every N exists (PTX ISA, "Matrix shapes" of `wgmma`).
    if acc_elem == Elem::I32 && !width.is_multiple_of(16) && !matches!(width, 8 | 24) {
        return Err(NoGroup::Integers(*n));
    }
    let grid = WarpGrid { m: along_m * GroupMma::WARPS, n: along_n, all: warps };
    Ok(Grouped { atom: of_groups, mma: MmaAtom { n: width, ..atom }, grid })
}

/// The matrix instruction of a warp for these elements, if there is one, and the elements to which the operands are converted first.
fn of_warps(
    target: &Target,
    [a, b, acc]: [Elem; 3],
    extents: [u32; 3],
    chained: bool,
) -> (Option<&Atom>, (Elem, Elem)) {
    let find = |a: Elem, b: Elem| best(target.atoms_of([a, b, acc]), extents, chained);
    if let Some(atom) = find(a, b) {
        return (Some(atom), (a, b));
    }
    // Every `e4m3` and `e5m2` value is an `f16` value, so that the products, and with them the sums, are the same.
    let fp8 = |e| matches!(e, Elem::E4m3 | Elem::E5m2);
    if fp8(a) && fp8(b) {
        if let Some(atom) = find(Elem::F16, Elem::F16) {
            return (Some(atom), (Elem::F16, Elem::F16));
        }
        return (None, (Elem::F32, Elem::F32));
    }
    let staged = if matches!(acc, Elem::F32 | Elem::I32) { (acc, acc) } else { (a, b) };
    (None, staged)
}

/// The instruction that computes the least padding; among equals, one that takes an accumulator as its operand A if A is one, else the
/// first one.
fn best<'t>(atoms: impl Iterator<Item = &'t Atom>, [m, n, k]: [u32; 3], chained: bool) -> Option<&'t Atom> {
    let cost = |atom: &&Atom| {
        let all = [(m, atom.rows), (n, atom.columns), (k, atom.k)];
        let computed: u64 = all.into_iter().map(|(n, by)| u64::from(n.next_multiple_of(by.max(1)))).product();
        (computed, chained && !atom.takes_accumulators())
    };
    atoms.min_by_key(cost)
}

/// The numbers of warps along M and N: with the least work for each warp, then the fewest operands to read, then the most warps along M.
fn split(m: u32, n: u32, atom: &MmaAtom, warps: u32) -> WarpGrid {
    let grids = (0..=warps.trailing_zeros())
        .flat_map(|i| (0..=warps.trailing_zeros() - i).map(move |j| WarpGrid { m: 1 << i, n: 1 << j, all: warps }));
    let cost = |g: &WarpGrid| {
        let rows = m.div_ceil(atom.m * g.m) * atom.m;
        let columns = n.div_ceil(atom.n * g.n) * atom.n;
        (rows * columns, rows + columns, std::cmp::Reverse(g.m))
    };
    grids.min_by_key(cost).unwrap_or(WarpGrid { m: 1, n: 1, all: warps })
}

/// The layouts of an MMA by multiply-adds: the accumulator has up to 4×4 elements per thread, and its operands have all of K in registers.
fn simple(target: &Target, warps: u32, [m, n, k]: [u32; 3]) -> (Layout, Layout, Layout) {
    let pow2 = |x: u32, most: u32| x.next_power_of_two().min(most);
    let (tm, tn) = (pow2(m / 4, 4).max(1), pow2(n / 4, 4).max(1));
    let lanes_n = pow2(n.div_ceil(tn), 8);
    let lanes_m = target.lanes / lanes_n;
    let warps_m = pow2(m.div_ceil(tm * lanes_m), warps);
    let acc = Layout::blocked(&[m, n], &[tm, tn], &[lanes_m, lanes_n], &[warps_m, warps / warps_m], &[1, 0]);
    let along = |axis: usize, extent: u32| {
        // The layout of the accumulator along one axis, with all of K in registers along the other.
        acc.without(1 - axis).with_axis_in_registers(&[extent, k])
    };
    let (a, b) = (along(0, m), along(1, n));
    (acc, a, b)
}

/// Chooses the sources of operands, and the loaded tiles that go directly to shared memory.
pub(super) fn settle(kernel: &Kernel, plan: &mut Plan) {
    let ids: Vec<OpId> = plan.mmas.keys().copied().collect();
    for id in ids {
        let (Some(args), Some(mma)) = (operands(kernel.op(id)), plan.mmas.get(&id)) else { continue };
        let a = source(kernel, plan, mma, args[0], true);
        let b = source(kernel, plan, mma, args[1], false);
        if let Some(mma) = plan.mmas.get_mut(&id) {
            (mma.a_source, mma.b_source) = (a, b);
        }
    }
    let tree = Tree::new(kernel);
    plan.stages = stages(kernel, plan, &tree);
    kernel.walk(&mut |_, op| {
        if let OpKind::Load(..) | OpKind::GatherRows { .. } = op.kind
            && let Some(encoding) = smem_resident(kernel, plan, &tree, op.results[0])
            && (matches!(op.kind, OpKind::Load(..)) || is_whole(kernel, op.results[0], &encoding))
        {
            plan.layouts[op.results[0].index()] = None;
            plan.smem_resident[op.results[0].index()] = Some(encoding);
        }
    });
}

fn source(kernel: &Kernel, plan: &Plan, mma: &MmaPlan, arg: Value, is_a: bool) -> Source {
    let [m, n, k] = mma.extents;
    let want = if is_a { mma.a.clone() } else { mma.b.permuted(&[1, 0]) };
    let loaded = root(kernel, arg).is_some();
    let grouped = mma.is_of_groups();
    // Beyond the tile, registers have unspecified values, but elements beyond K must be zero.
    let padded = want.is_padded(usize::from(is_a));
    if let (Some(layout), false, 1, false) = (plan.layout(arg), loaded, mma.batch, padded)
        && (is_a || !grouped)
        && in_registers(layout, &want).is_some()
    {
        return Source::Registers;
    }
    // Where threads read fragments element by element, and write tiles to shared memory themselves, adjacent elements along K are adjacent there.
    let along_k = if is_a { [0, 1] } else { [1, 0] };
    let read_singly = plan.target.matrix_move(Place::Registers).is_none() && plan.target.lane_copies().is_none();
    // Otherwise the order of axes is that of the load, or has the axis along which threads hold adjacent elements last.
    let order = match (root(kernel, arg), plan.layout(arg)) {
        (_, _) if read_singly && matches!(mma.method, Method::Atom(_)) => along_k,
        (Some((_, transposed)), _) => {
            if transposed {
                [1, 0]
            } else {
                [0, 1]
            }
        }
        (None, Some(layout)) if mma.batch == 1 && !(grouped && mma.staged.0.bits() != 16) => {
            if layout.vector(0) > layout.vector(1) { [1, 0] } else { [0, 1] }
        }
        (None, _) => along_k,
    };
    let (elem, rows, columns) = if is_a { (mma.staged.0, m, k) } else { (mma.staged.1, k, n) };
    let cover = |layout: &Layout, axis: usize| layout.repetitions()[axis] * layout.atom()[axis];
    let extents = if is_a {
        [cover(&mma.a, 0).max(rows), cover(&mma.a, 1).max(columns)]
    } else {
        [cover(&mma.b, 1).max(rows), cover(&mma.b, 0).max(columns)]
    };
    Source::Shared(match mma.method {
        Method::Group(atom) if !is_a && order == [0, 1] => rows_of_columns(&extents, elem.bits(), atom.n),
        Method::Group(_) | Method::Atom(_) | Method::MulAdd => Encoding::swizzled(&extents, elem.bits(), &order),
    })
}

/// The encoding of an operand B of warpgroups whose rows in memory are along N. An instruction finds its `n` columns in whole panels or within
/// one; where a swizzle has other panels, there is none, and the panels are core matrices.
fn rows_of_columns(extents: &[u32], bits: u32, n: u32) -> Encoding {
    let swizzled = Encoding::swizzled(extents, bits, &[0, 1]);
    let fits = swizzled.swizzle != Swizzle::None && (n.is_multiple_of(swizzled.row) || swizzled.row.is_multiple_of(n));
    if fits { swizzled } else { Encoding::core_matrices(extents, bits, &[0, 1]) }
}

/// The load that defines an operand, through transposes, and whether it is transposed an odd number of times.
fn root(kernel: &Kernel, value: Value) -> Option<(Value, bool)> {
    let op = kernel.def_op(value)?;
    if let OpKind::Load(..) | OpKind::GatherRows { .. } | OpKind::Ttg(TtgOp::View { .. }) = op.kind {
        return Some((value, false));
    }
    let OpKind::Permute(perm) = op.kind else { return None };
    kernel.ty(value).tile_shape().filter(|s| s.rank() == 2)?;
    let (load, transposed) = root(kernel, op.args[0])?;
    Some((load, transposed != (perm[..2] == [1, 0])))
}

/// The encodings of the tiles of stages, by ring and field: in the order of their sources, and large enough for what instructions read. Where
/// threads read fragments element by element and fetch the tiles themselves, they are as MMAs request them, if nothing else reads them.
fn stages(kernel: &Kernel, plan: &Plan, tree: &Tree) -> Vec<Vec<Encoding>> {
    let mut extents: Vec<Vec<(Vec<u32>, bool)>> =
        kernel.pipes.iter().map(|p| p.fields.iter().map(|f| (Vec::from(f.shape), false)).collect()).collect();
    let mut wanted: SortedMap<(usize, usize), Vec<Option<Encoding>>> = SortedMap::new();
    kernel.walk(&mut |_, op| {
        let (OpKind::Ttg(TtgOp::View { field, .. }), Some(Ty::Token(Token::Rperm | Token::Part, pipe))) =
            (&op.kind, op.args.first().map(|v| kernel.ty(*v)))
        else {
            return;
        };
        let mut found = Vec::new();
        // Other operations may read the tile too; MMAs may read beyond its extents.
        let only = readers(kernel, plan, tree, (op.results[0], false), &mut found);
        let asked = wanted.entry((pipe.index(), usize::from(*field))).or_default();
        asked.extend(found.iter().cloned().map(Some));
        if !only || found.is_empty() {
            asked.push(None);
        }
        let Some((own, cores)) = extents.get_mut(pipe.index()).and_then(|p| p.get_mut(usize::from(*field))) else {
            return;
        };
        for encoding in found {
            *cores |= encoding.has_core_matrices();
            for (own, read) in own.iter_mut().zip(&encoding.extents) {
                *own = (*own).max(*read);
            }
        }
    });
    let asked = |field: (usize, usize)| {
        let (first, rest) = wanted.get(&field).filter(|_| plan.target.fetches)?.split_first()?;
        first.clone().filter(|_| rest.iter().all(|other| other == first))
    };
    let pipe = |(at, extents): (usize, Vec<(Vec<u32>, bool)>)| -> Vec<Encoding> {
        let fields = kernel.pipe(Pipe::new(at)).map_or(&[][..], |p| &p.fields);
        let order: Vec<usize> = (0..4).collect();
        let bits = |i: usize| fields.get(i).map_or(8, |f| f.elem.bits().max(8));
        let encoding = |cores: bool| if cores { Encoding::core_matrices } else { Encoding::swizzled };
        let in_order = |i: usize, e: &[u32], cores: bool| encoding(cores)(e, bits(i), &order[..e.len()]);
        let all = extents.iter().enumerate();
        all.map(|(i, (e, cores))| asked((at, i)).unwrap_or_else(|| in_order(i, e, *cores))).collect()
    };
    extents.into_iter().enumerate().map(pipe).collect()
}

/// The common encoding of a loaded tile, if only MMAs read it, from shared memory, and all request the same encoding.
fn smem_resident(kernel: &Kernel, plan: &Plan, tree: &Tree, load: Value) -> Option<Encoding> {
    kernel.ty(load).tile_shape().filter(|s| s.rank() == 2)?;
    let mut found = Vec::new();
    if !readers(kernel, plan, tree, (load, false), &mut found) {
        return None;
    }
    let first = found.first()?.clone();
    found.iter().all(|e| *e == first).then_some(first)
}

/// Whether an encoding has no elements beyond the tile: rows that are selected by indices are copied asynchronously only then.
fn is_whole(kernel: &Kernel, tile: Value, encoding: &Encoding) -> bool {
    kernel.ty(tile).tile_shape().is_some_and(|shape| Vec::<u32>::from(shape) == encoding.extents)
}

/// Collects the encodings that MMAs request for a tile, in terms of the load. Returns whether only MMAs read it.
fn readers(kernel: &Kernel, plan: &Plan, tree: &Tree, tile: (Value, bool), found: &mut Vec<Encoding>) -> bool {
    let (value, transposed) = tile;
    let mut only = true;
    for id in tree.users(value) {
        let op = kernel.op(*id);
        only &= if let OpKind::Permute(perm) = op.kind {
            let transposed = transposed != (perm[..2] == [1, 0]);
            readers(kernel, plan, tree, (op.results[0], transposed), found)
        } else {
            read_by_mma(kernel, plan, *id, tile, found)
        };
    }
    only
}

/// Collects the encodings that an MMA requests for a tile. Returns whether the operation is an MMA that reads all its operands that are the
/// tile from shared memory, without conversion.
fn read_by_mma(kernel: &Kernel, plan: &Plan, id: OpId, tile: (Value, bool), found: &mut Vec<Encoding>) -> bool {
    let (value, transposed) = tile;
    let (Some(args), Some(mma)) = (operands(kernel.op(id)), plan.mmas.get(&id).filter(|p| p.batch == 1)) else {
        return false;
    };
    let elem = kernel.ty(value).elem();
    let mut only = args[2] != value;
    for (arg, staged, source) in [(0, mma.staged.0, &mma.a_source), (1, mma.staged.1, &mma.b_source)] {
        match source {
            _ if args[arg] != value => {}
            Source::Shared(encoding) if staged == elem => {
                found.push(if transposed { encoding.permuted(&[1, 0]) } else { encoding.clone() });
            }
            Source::Shared(_) | Source::Registers => only = false,
        }
    }
    only
}
