//! Explains errors of the output rule: for an output that is not partitioned between programs, the most useful explanation.
//!
//! The search of [`super::partition`] only fails. Here the causes are tried in the order in which a user would fix them: an access that
//! does not depend on the axis; an index from memory; an overflow; one access whose parts overlap; two accesses that divide the output
//! differently.

mod parts;
mod ranges;

use super::access::{Access, Kind};
use super::affine::Term;
use super::forms::is_input;
use super::number::root;
use super::origin::{Origin, Origins};
use super::partition::{By, Output};
use super::uses::Tree;
use crate::diag::{Code, Diagnostic};
use crate::ir::op_table::mnemonic;
use crate::ir::{BinOp, Def, ForKind, GridSpec, Loc, OpKind, TileShape, Value};

/// A wider part comes from an index of unknown range; its width does not help the user.
const WIDEST: i64 = TileShape::MAX_LEN;

/// How deep an index is searched for a product.
const DEEP: u32 = 16;

/// T0401.
pub(super) fn never_stored(output: &Output<'_>) -> Diagnostic<Loc> {
    let name = output.name();
    Diagnostic::new(Code::NeverStored, Loc::default(), format!("`{name}` is `&mut`, but nothing is stored to it"))
        .help(format!("take `{name}` by `&` if it is an input"))
}

/// T0406: an access of one class and an access of another class.
pub(super) fn mixed(output: &Output<'_>, plain: &Access, defined: &Access) -> Diagnostic<Loc> {
    let name = output.name();
    let how = if defined.kind == Kind::Atomic { "updated atomically" } else { "scattered to" };
    let what = verb(output, plain);
    let title =
        format!("{what} `{name}`, which is also {how}: this is not ordered with the accesses of other programs");
    output
        .error(Code::SharedRead, plain, title)
        .related(output.kernel.op(defined.op).loc, format!("`{name}` is {how} here"))
        .help(format!("use another tensor, or `unsafe {{ {name}.shared() }}` if you order the accesses yourself"))
}

/// T0406: atomic updates by two operations.
pub(super) fn mixed_updates(output: &Output<'_>, one: &Access, other: &Access) -> Diagnostic<Loc> {
    let name = output.name();
    let called = |access: &Access| mnemonic(&output.kernel.op(access.op).kind);
    let (first, second) = (called(one), called(other));
    let title = format!(
        "this `{second}` of `{name}`, which is also updated by `{first}`: the result depends on which comes first, and programs are not ordered"
    );
    output
        .error(Code::SharedRead, other, title)
        .related(output.kernel.op(one.op).loc, format!("`{name}` is updated by `{first}` here"))
        .help(format!("use another tensor for one of the two, or let each program update its own part of `{name}`"))
        .help(format!("`unsafe {{ {name}.shared() }}` makes you responsible for the order of accesses"))
}

/// The reason why an access to a packed output may write half of a byte.
pub(super) fn halves(access: &Access) -> Option<String> {
    let claims = access.axes.last()?;
    let odd = claims.extent.filter(|n| n % 2 != 0);
    match odd {
        Some(1) => Some("writes one element of a pair".to_owned()),
        Some(n) => Some(format!("writes {n} columns, and {n} is odd")),
        None if claims.odd_cut => Some("goes through a slice that may cut a pair".to_owned()),
        None if !claims.even => Some("may start at an odd column".to_owned()),
        None => None,
    }
}

/// T0407: the parts of programs share bytes, although they share no element.
pub(super) fn half_bytes(output: &Output<'_>, accesses: &[&Access], axis: u8) -> Diagnostic<Loc> {
    let (name, who) = (output.name(), Context { output, axis, origins: Origins::new(output.kernel) }.programs());
    let written = || accesses.iter().filter(|a| a.kind == Kind::Write);
    let found = written()
        .find_map(|a| Some((*a, halves(a)?)))
        .or_else(|| Some((*written().next()?, "does not keep to whole bytes".to_owned())));
    let (site, why) = found.map_or((Loc::default(), String::new()), |(a, why)| (output.kernel.op(a.op).loc, why));
    let title =
        format!("{who} may write the same byte of `{name}`: it keeps two elements in a byte, and this store {why}");
    let error = Diagnostic::new(Code::PackedOutput, site, title);
    error
        .help("along the last axis, let each program begin at an even index and write an even number of elements")
        .help(format!("or divide `{name}` along another axis: rows do not share bytes"))
}

/// T0407: several lanes may write to the same byte.
pub(super) fn scattered_halves(output: &Output<'_>, access: &Access) -> Diagnostic<Loc> {
    let (name, why) = (output.name(), halves(access).unwrap_or_default());
    let title =
        format!("`{name}` keeps two elements in a byte, and this scatter {why}: rows that are one would share bytes");
    let error = output.error(Code::PackedOutput, access, title);
    error.help("scatter from an even column on, and an even number of columns")
}

/// T0402 for an axis of the grid.
pub(super) fn overlap(output: &Output<'_>, accesses: &[&Access], axis: u8) -> Diagnostic<Loc> {
    let context = Context { output, axis, origins: Origins::new(output.kernel) };
    context
        .forgotten(accesses)
        .or_else(|| accesses.iter().find_map(|a| context.alone(a)))
        .or_else(|| context.disagree(accesses))
        .unwrap_or_else(|| context.unprovable(accesses))
}

struct Context<'a> {
    output: &'a Output<'a>,
    axis: u8,
    origins: Origins,
}

impl Context<'_> {
    /// Accesses that do not depend on the axis.
    fn forgotten(&self, accesses: &[&Access]) -> Option<Diagnostic<Loc>> {
        let uses = |a: &&&Access| a.coordinates.iter().any(|(_, v)| self.origins.of(*v).of_axis(self.axis));
        let forgets = |a: &&&Access| !uses(a);
        let written = |a: &&&Access| a.kind != Kind::Read;
        let (name, who) = (self.output.name(), self.who());
        let it = if self.is_persistent() { who.as_str() } else { "it" };
        let Some(other) = accesses.iter().find(uses) else {
            let site = accesses.iter().find(written).or_else(|| accesses.first())?;
            let title = format!(
                "{} may write the same part of `{name}`: no store to `{name}` depends on {it}",
                self.programs()
            );
            return Some(self.advise(self.output.error(Code::Overlap, site, title), Some(site)));
        };
        let site = accesses.iter().filter(forgets).find(written).or_else(|| accesses.iter().find(forgets))?;
        let what = verb(self.output, site);
        let title = format!("{what} `{name}` reaches parts that other programs write: it does not depend on {who}");
        let error = self.output.error(Code::Overlap, site, title);
        let error = error.related(self.loc(other), format!("this access to `{name}` does"));
        Some(self.advise(error, Some(site)))
    }

    /// The error of a single access.
    fn alone(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        if self.output.tell_apart(&[access], self.axis).is_some() {
            return None;
        }
        let name = self.output.name();
        let by = |f: &dyn Fn(Origin) -> bool| access.coordinates.iter().find(|(_, v)| f(self.origins.of(*v)));
        let error = |title: String| self.output.error(Code::Overlap, access, title);
        let what = verb(self.output, access);
        if let Some((_, v)) = by(&|o| o.memory && (o.of_axis(self.axis) || !o.looped)) {
            let index = self.called(*v, "its index");
            let title = format!(
                "the part of `{name}` is not known to be this program's own: {index} is read from memory, so it may have any value"
            );
            return Some(self.chosen_by_data(error(title)));
        }
        if let Some((_, v)) = by(&|o| o.quotient && o.of_axis(self.axis)) {
            return Some(self.taken_apart(error, *v));
        }
        if let Some(error) = self.ranged(access).or_else(|| self.of_bits(access)) {
            return Some(error);
        }
        if let Some(v) = access.wraps.iter().find(|v| self.origins.of(**v).of_axis(self.axis)) {
            let index = self.called(*v, "its index");
            if let Some(factor) = self.distance(*v, DEEP) {
                let (who, factor) = (self.who(), self.called(factor, "a value"));
                let title = format!(
                    "{} are not known to write different parts of `{name}`: {index} multiplies {who} by {factor}, which is not a constant \
                     and may be 0",
                    self.programs()
                );
                return Some(error(title).help("multiply by a constant; or count in tiles: `store_tile`, `load_tile`"));
            }
            if let Some(error) = self.unbounded_part(access, *v) {
                return Some(error);
            }
            let title =
                format!("in a large grid {index} overflows `i32` and may wrap to another program's part of `{name}`");
            return Some(
                error(title).help("bound the grid: `grid(cdiv(N, BN))`; or count in tiles: `store_tile`, `load_tile`"),
            );
        }
        let found = self.segment(access).or_else(|| self.part(access)).or_else(|| self.mixture(access));
        found.or_else(|| self.narrow(access)).or_else(|| {
            let (d, v) = by(&|o| o.of_axis(self.axis))?;
            let (index, source) = (self.called(*v, "its index"), self.source());
            let title = format!("{what} `{name}` is not known to be disjoint between programs: along axis {d}, {index} is not `C * {source} + k`, with `k` in `0..C`");
            Some(self.advise(error(title), Some(access)))
        })
    }

    /// The factor that is not a constant by which an index multiplies what depends on the program.
    fn distance(&self, index: Value, deep: u32) -> Option<Value> {
        let op = self.output.kernel.def_op(index).filter(|_| deep > 0)?;
        let (OpKind::Binary(bin), [a, b]) = (&op.kind, &op.args[..]) else { return None };
        let (a, b) = (*a, *b);
        let of_program = |v: Value| self.origins.of(v).of_axis(self.axis);
        let is_known = |v: Value| of_program(v) || self.output.kernel.int_constant(v).is_some();
        match bin {
            BinOp::Mul if of_program(a) && !is_known(b) => Some(b),
            BinOp::Mul if of_program(b) && !is_known(a) => Some(a),
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl => {
                [a, b].into_iter().find_map(|v| self.distance(v, deep - 1))
            }
            BinOp::Div
            | BinOp::Rem
            | BinOp::Min
            | BinOp::Max
            | BinOp::And
            | BinOp::Or
            | BinOp::Xor
            | BinOp::Shr
            | BinOp::MulHi
            | BinOp::Powf => None,
        }
    }

    /// A segment that is not accepted as a key.
    fn segment(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        let (output, name) = (self.output, self.output.name());
        let kernel = output.kernel;
        let claimed = access.axes.iter().flat_map(|c| &c.segments).filter_map(|n| output.segments.get(*n));
        if let Some(s) = claimed.into_iter().find(|s| !s.checked) {
            let off = kernel.display_name(s.off);
            let title = format!(
                "the segments of `{name}` may overlap: a program may end, or not run, before it checks `{off}`"
            );
            let error = output
                .error(Code::Overlap, access, title)
                .related(kernel.op(s.op).loc, "this segment is not taken by every program");
            return Some(error.help(format!(
                "take a `segment({off}, ..)` before the first `return`, `if` and loop, by a plain `program_id`"
            )));
        }
        // A segment whose offsets may change has no number, so the views are searched.
        let mut at = *kernel.op(access.op).args.first()?;
        while let Def::Result(id, _) = kernel.value(at).def {
            let op = kernel.op(id);
            if let (OpKind::Segment, Some(off)) = (&op.kind, op.args.get(1))
                && let Some(param) = root(kernel, *off).filter(|p| !is_input(kernel, *p))
            {
                let off = kernel.display_name(kernel.param(param));
                let title =
                    format!("the segments of `{name}` may overlap: `{off}` is an output of this kernel and may change");
                return Some(output.error(Code::Overlap, access, title).help(format!("take `{off}` by `&`")));
            }
            at = *op.args.first()?;
        }
        None
    }

    /// A coordinate that is a sum over several program axes.
    fn mixture(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        let (d, v, other) = access.coordinates.iter().find_map(|(d, v)| {
            let terms = self.output.forms.of(*v).terms;
            let mut others = (0..3u8).filter(|a| *a != self.axis && terms.contains_key(&Term::Program(*a)));
            terms.contains_key(&Term::Program(self.axis)).then(|| others.next()).flatten().map(|o| (*d, *v, o))
        })?;
        let (name, who, index) = (self.output.name(), self.who(), self.called(v, "its index"));
        let apart = format!("{} are not known to write different parts of `{name}`", self.programs());
        let title = format!("{apart}: along axis {d}, {index} adds up {who} and `program_id({other})`");
        let error = self.output.error(Code::Overlap, access, title);
        Some(
            error.help(
                "launch one axis instead of two and decompose it: `let [i, j] = unflatten(program_id(0), [M, N])`",
            ),
        )
    }

    /// Parts that are wider than the distance between programs.
    fn narrow(&self, access: &Access) -> Option<Diagnostic<Loc>> {
        let name = self.output.name();
        let source = if self.axis == 0 { vec![Term::Program(0), Term::Work] } else { vec![Term::Program(self.axis)] };
        for (source, axis) in source.into_iter().flat_map(|s| (0..access.axes.len()).map(move |d| (s, d))) {
            for (step, _, rest) in self.output.seen(access, source, axis) {
                let width = rest.hi.checked_sub(rest.lo)?.checked_add(1)?;
                if width <= step.abs() || width > WIDEST {
                    continue;
                }
                let title = format!(
                    "neighbouring programs overlap: along axis {axis} of `{name}` they are {} apart, but each accesses {width} there",
                    count(step.abs())
                );
                let error = self.output.error(Code::Overlap, access, title);
                return Some(
                    error.help(format!("step by the width: `{width} * {}` in elements, or whole tiles", self.source())),
                );
            }
        }
        None
    }

    /// Two accesses that divide the output in different ways.
    fn disagree(&self, accesses: &[&Access]) -> Option<Diagnostic<Loc>> {
        let (first, others) = accesses.split_first()?;
        let other = others.iter().find(|o| self.output.tell_apart(&[first, o], self.axis).is_none())?;
        let (name, who) = (self.output.name(), self.who());
        let (here, there) = (self.division(other), self.division(first));
        let title = match (&here, &there) {
            (Some((d, a)), Some((e, b))) if d == e && a == b => {
                let both = format!("{} of axis {d} for each {who}", count(*a));
                self.overlapping([other, first], *d).unwrap_or_else(|| {
                    format!("two accesses to `{name}` are not one part of it: {both}, but they reach further together")
                })
            }
            (Some((d, a)), Some((e, b))) => format!(
                "two accesses divide `{name}` differently: {} of axis {d} for each {who} here, {} of axis {e} there",
                count(*a),
                count(*b)
            ),
            (_, _) => format!("two accesses divide `{name}` differently between {}", self.programs()),
        };
        let error = self.output.error(Code::Overlap, other, title).related(self.loc(first), "the other access");
        Some(error.help(format!("give each program one part of `{name}`, the same in all loads and stores")))
    }

    /// Two programs of which one accesses by `here` what the other one accesses by `there`, if both parts lie at constant distances from
    /// multiples of one step.
    fn overlapping(&self, [here, there]: [&Access; 2], axis: usize) -> Option<String> {
        let sources = if self.axis == 0 { vec![Term::Program(0), Term::Work] } else { vec![Term::Program(self.axis)] };
        let (step, own, others) = sources.into_iter().find_map(|source| {
            let part = |access| {
                let (step, base, range) = self.output.seen(access, source, axis).into_iter().next()?;
                let narrow = range.hi.checked_sub(range.lo)? < WIDEST && range.lo.abs() <= WIDEST;
                (step > 0 && base.is_empty() && narrow).then_some((step, range))
            };
            let ((step, own), (same, others)) = part(here).zip(part(there))?;
            (step == same).then_some((step, own, others))
        })?;
        // Programs whose numbers differ by `apart`, neighbours first.
        let meet = |apart: &i64| own.lo <= others.hi + apart * step && others.lo + apart * step <= own.hi;
        let apart = (1..=WIDEST / step).flat_map(|n| [n, -n]).find(meet)?;
        let mut number = 0.max(-apart);
        while own.lo + number * step < 0 || others.lo + (number + apart) * step < 0 {
            number += 1;
        }
        let reaches = |access: &Access, number: i64, [lo, hi]: [i64; 2]| {
            let (lo, hi) = (lo + number * step, hi + number * step);
            let noun = match access.kind {
                Kind::Read => "load",
                Kind::Write => "store",
                Kind::Scatter => "scatter",
                Kind::Atomic => "atomic update",
            };
            if lo == hi {
                format!("{noun} reaches element {lo}")
            } else {
                format!("{noun} reaches elements {lo} to {hi}")
            }
        };
        Some(format!(
            "programs overlap along axis {axis} of `{}`: where {} is {number}, this {}; where it is {}, the {}{}",
            self.output.name(),
            self.who(),
            reaches(here, number, [own.lo, own.hi]),
            number + apart,
            if here.kind == there.kind { "other " } else { "" },
            reaches(there, number + apart, [others.lo, others.hi]),
        ))
    }

    /// The axis and the size of the parts that an access implies by itself.
    fn division(&self, access: &Access) -> Option<(usize, i64)> {
        let keys = self.output.tell_apart(&[access], self.axis)?;
        keys.iter().rev().find_map(|k| match k.by {
            By::Stride { size, .. } => Some((k.axis, size.abs())),
            By::Segment { .. } => None,
        })
    }

    fn unprovable(&self, accesses: &[&Access]) -> Diagnostic<Loc> {
        let name = self.output.name();
        let title = format!("{} are not known to write different parts of `{name}`", self.programs());
        let site = accesses.first().map_or_else(Loc::default, |a| self.loc(a));
        self.advise(Diagnostic::new(Code::Overlap, site, title), accesses.first().copied())
    }

    fn advise(&self, error: Diagnostic<Loc>, access: Option<&Access>) -> Diagnostic<Loc> {
        let name = self.output.name();
        if let Some(access) = access.filter(|a| a.kind == Kind::Read) {
            let own = format!("a program reads only the part of `{name}` that it stores: ");
            let error = if is_of_offsets(self.output, access) {
                error.help(format!("{own}keep the offsets in an input, a parameter that is taken by `&`"))
            } else {
                error
                    .help(format!("{own}read `{name}` at the index of the store"))
                    .help("or read from an input: another parameter, taken by `&`")
            };
            return error.help(format!(
                "`unsafe {{ {name}.shared() }}` makes you responsible for disjoint accesses of programs"
            ));
        }
        let in_tiles = access.filter(|a| a.kind == Kind::Write && self.is_in_tiles(a));
        let index = if let Some(access) = in_tiles {
            let staged = matches!(self.output.kernel.op(access.op).kind, OpKind::Ttg(_));
            let store = if staged { "out.store_from(..)" } else { "out.store(..)" };
            format!("store to the tile `out` of this iteration, not to `{name}`: `{store}` in `for out in ..`")
        } else if self.is_persistent() {
            format!("store in the loop over the tiles of `{name}`: `for out in {name}.tiles::<..>()`")
        } else {
            format!(
                "index `{name}` by {}, or launch a grid without that axis, or walk `{name}.tiles::<..>()`",
                self.who()
            )
        };
        error
            .help(index)
            .help(format!("`unsafe {{ {name}.shared() }}` makes you responsible for disjoint accesses of programs"))
    }

    fn chosen_by_data(&self, error: Diagnostic<Loc>) -> Diagnostic<Loc> {
        let name = self.output.name();
        error
            .help(format!("parts chosen by data: `{name}.scatter_rows(..)`, `{name}.atomic_add(..)`, or `{name}.ragged::<..>(off)` for offsets in memory"))
            .help(format!("`unsafe {{ {name}.shared() }}` makes you responsible for disjoint accesses of programs"))
    }

    /// Whether an access is in a loop over tiles that are distributed over the programs.
    fn is_in_tiles(&self, access: &Access) -> bool {
        let kernel = self.output.kernel;
        Tree::new(kernel).around(access.op).any(|id| kernel.op(id).kind == OpKind::For(ForKind::Distributed))
    }

    fn is_persistent(&self) -> bool {
        self.output.kernel.sig.grid == GridSpec::Persistent
    }

    /// The programs whose parts should be disjoint, in words.
    fn programs(&self) -> String {
        if self.is_persistent() { "programs".to_owned() } else { format!("programs of different {}", self.who()) }
    }

    /// The index that distinguishes them, in words.
    fn who(&self) -> String {
        if self.is_persistent() { "the number of the tile".to_owned() } else { format!("`{}`", self.source()) }
    }

    /// The index that distinguishes them, in a formula.
    fn source(&self) -> String {
        if self.is_persistent() { "tile".to_owned() } else { format!("program_id({})", self.axis) }
    }

    fn called(&self, value: Value, otherwise: &str) -> String {
        match &self.output.kernel.value(value).name {
            Some(name) => format!("`{name}`"),
            None => otherwise.to_owned(),
        }
    }

    fn loc(&self, access: &Access) -> Loc {
        self.output.kernel.op(access.op).loc
    }
}

fn count(n: i64) -> String {
    if n == 1 { "1 element".to_owned() } else { format!("{n} elements") }
}

/// Whether an access reads a tensor as the offsets of segments.
fn is_of_offsets(output: &Output<'_>, access: &Access) -> bool {
    let kind = &output.kernel.op(access.op).kind;
    matches!(kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. })
}

/// The verb for an access in messages, before the name of the tensor.
fn verb(output: &Output<'_>, access: &Access) -> &'static str {
    match access.kind {
        Kind::Read if is_of_offsets(output, access) => "this use as offsets of",
        Kind::Read => "this load of",
        Kind::Write => "this store to",
        Kind::Scatter => "this scatter to",
        Kind::Atomic => "this atomic update of",
    }
}
