//! The graph that is scheduled: the operations of one iteration of a loop, and the dependences between them.
//!
//! A [`Draft`] is a graph as somebody wrote it, with names and with any numbers. [`Draft::check`] makes a [`Graph`] of it, or reports
//! everything that is wrong. Whoever has a [`Graph`] can rely on this:
//!
//! * Names are unique, and edges lead between operations that exist.
//! * No number is negative. An operation that holds a unit holds it for at least one cycle.
//! * The latencies and occupancies together are at most [`MOST_CYCLES`], the weights at most [`MOST_WEIGHT`] and the distances at
//!   most [`MOST_DISTANCE`]. So all sums over the graph, also those multiplied by an initiation interval, fit into an `i64`.
//! * An interval that is asked for is at most [`MOST_CYCLES`], too, and no operation holds its unit for longer.
//! * Every cycle of edges has a positive distance: no operation waits for itself within one iteration.
//!
//! Deliberately absent: what the operations are. The graph knows neither the IR nor a machine; units are only names.

use crate::collections::SortedMap;
use crate::diag::{Code, Diagnostic};

/// The greatest sum of all latencies and occupancies of a graph.
pub const MOST_CYCLES: i64 = 1 << 31;
/// The greatest sum of all weights of a graph.
pub const MOST_WEIGHT: i64 = 1 << 31;
/// The greatest sum of all distances of a graph.
pub const MOST_DISTANCE: i64 = 1 << 24;
/// The greatest number of operations, and sixteen times that of edges: the schedulers visit all edges for each operation.
pub const MOST_OPS: usize = 1 << 10;
const MOST_EDGES: usize = MOST_OPS << 4;

/// What an edge is about. Its arithmetic is the same for all kinds; the kind says which distances make sense, and what keeps a value
/// alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A result is used in the same iteration.
    Data,
    /// A result is used in a later iteration.
    Carried,
    /// A slot of a ring is released, and acquired again as many iterations later as the ring has slots.
    Ring,
    /// Two accesses to memory keep their order.
    Memory,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Data, Kind::Carried, Kind::Ring, Kind::Memory];

    /// The name in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Carried => "carried",
            Kind::Ring => "ring",
            Kind::Memory => "memory",
        }
    }

    /// Whether the value of the first operation is kept for the second one.
    #[must_use]
    pub const fn carries_value(self) -> bool {
        match self {
            Kind::Data | Kind::Carried => true,
            Kind::Ring | Kind::Memory => false,
        }
    }

    /// Why an edge of this kind cannot have a distance that is not negative.
    const fn refuses(self, distance: i64) -> Option<&'static str> {
        match (self, distance) {
            (Kind::Data, 1..) => Some("`data` stays in its iteration; write `carried` for a later one"),
            (Kind::Carried, 0) => Some("`carried` leads to a later iteration; write `data` for the same one"),
            (Kind::Ring, 0) => Some("the distance of `ring` is the number of slots, at least 1"),
            (Kind::Data | Kind::Carried | Kind::Ring | Kind::Memory, _) => None,
        }
    }
}

/// An operation, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftOp {
    /// Its name.
    pub name: String,
    /// The unit that it holds, and for how many cycles.
    pub unit: Option<(String, i64)>,
    /// Cycles from its issue to its result.
    pub latency: i64,
    /// Registers that its result takes while it is live.
    pub weight: i64,
}

/// An edge, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftEdge {
    /// What it is about.
    pub kind: Kind,
    /// The operation that comes first.
    pub from: String,
    /// The operation that waits for it.
    pub to: String,
    /// Cycles between the two issues; the latency of the first operation if it is not written.
    pub latency: Option<i64>,
    /// The number of iterations by which the second one is later.
    pub distance: i64,
}

/// A graph, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The name of the loop.
    pub name: String,
    /// The units of the machine. Each serves one operation at a time.
    pub units: Vec<String>,
    /// The operations, in the order of the program.
    pub ops: Vec<DraftOp>,
    /// The edges.
    pub edges: Vec<DraftEdge>,
    /// The initiation interval that is asked for, if one is: the search tries no other.
    pub ii: Option<i64>,
}

/// A part of an operation or of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The name of an operation.
    Name,
    /// The unit of an operation.
    Unit,
    /// Its occupancy.
    Occupancy,
    /// The latency of an operation or of an edge.
    Latency,
    /// The weight of an operation.
    Weight,
    /// The operation that comes first.
    From,
    /// The operation that waits for it.
    To,
    /// The distance of an edge.
    Distance,
    /// The stage of an operation in a schedule.
    Stage,
    /// Its cycle.
    Cycle,
    /// Its place in the body.
    Order,
}

/// Where an error is, by indices into the [`Draft`] or into the [`Schedule`](super::Schedule).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// The graph or the schedule as a whole.
    Whole,
    /// A unit.
    Unit(usize),
    /// A part of an operation.
    Op(usize, Field),
    /// A part of an edge.
    Edge(usize, Field),
    /// The initiation interval.
    Interval,
    /// The number of stages of a schedule.
    Stages,
    /// Its live weight.
    Live,
}

/// An operation of a valid graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Its name.
    pub name: String,
    /// The index of the unit that it holds, if any.
    pub unit: Option<usize>,
    /// The number of cycles for which it holds the unit: positive exactly if there is one.
    pub occupancy: i64,
    /// Cycles from its issue to its result.
    pub latency: i64,
    /// Registers that its result takes while it is live.
    pub weight: i64,
}

/// An edge of a valid graph: in every schedule, `cycle(to) + II · distance ≥ cycle(from) + latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What it is about.
    pub kind: Kind,
    /// The index of the operation that comes first.
    pub from: usize,
    /// The index of the operation that waits for it.
    pub to: usize,
    /// Cycles between the two issues.
    pub latency: i64,
    /// The number of iterations by which the second one is later.
    pub distance: i64,
}

/// A valid graph. The module's header says what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    name: String,
    units: Vec<String>,
    ops: Vec<Op>,
    edges: Vec<Edge>,
    ii: Option<i64>,
}

impl Graph {
    /// The name of the loop.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of the units.
    #[must_use]
    pub fn units(&self) -> &[String] {
        &self.units
    }

    /// The operations, in the order of the program.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The edges.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The initiation interval that is asked for, if one is: the search tries no other.
    #[must_use]
    pub const fn ii(&self) -> Option<i64> {
        self.ii
    }

    /// The graph as it would be written: its [`Draft::check`] gives an equal graph.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let op = |op: &Op| DraftOp {
            name: op.name.clone(),
            unit: op.unit.map(|unit| (self.units[unit].clone(), op.occupancy)),
            latency: op.latency,
            weight: op.weight,
        };
        let edge = |edge: &Edge| DraftEdge {
            kind: edge.kind,
            from: self.ops[edge.from].name.clone(),
            to: self.ops[edge.to].name.clone(),
            latency: (edge.latency != self.ops[edge.from].latency).then_some(edge.latency),
            distance: edge.distance,
        };
        Draft {
            name: self.name.clone(),
            units: self.units.clone(),
            ops: self.ops.iter().map(op).collect(),
            edges: self.edges.iter().map(edge).collect(),
            ii: self.ii,
        }
    }
}

type Errors = Vec<Diagnostic<Site>>;

impl Draft {
    /// The valid graph, or everything that is wrong.
    ///
    /// # Errors
    ///
    /// The codes T1002 to T1005; every error names a place of the draft.
    pub fn check(&self) -> Result<Graph, Errors> {
        let mut errors = Errors::new();
        if self.ops.is_empty() || self.ops.len() > MOST_OPS || self.edges.len() > MOST_EDGES {
            let counts = format!("{} operations and {} edges", self.ops.len(), self.edges.len());
            let help = format!("a graph has 1 to {MOST_OPS} operations and at most {MOST_EDGES} edges");
            return Err(vec![Diagnostic::new(Code::ScheduleNumber, Site::Whole, counts).help(help)]);
        }
        let units = names(self.units.iter(), Site::Unit, "unit", &mut errors);
        let ops = names(self.ops.iter().map(|op| &op.name), |i| Site::Op(i, Field::Name), "operation", &mut errors);
        let checked_ops: Vec<Op> =
            self.ops.iter().enumerate().map(|(i, op)| checked_op(i, op, &units, &mut errors)).collect();
        let checked_edges: Vec<Option<Edge>> = self
            .edges
            .iter()
            .enumerate()
            .map(|(i, edge)| checked_edge(i, edge, &ops, &checked_ops, &mut errors))
            .collect();
        let edges: Vec<Edge> = checked_edges.iter().flatten().copied().collect();
        // With numbers out of range, sums say nothing; with unknown names, edges are missing.
        if errors.is_empty() {
            sums(&checked_ops, &edges, &mut errors);
            errors.extend(circle(&checked_ops, &edges));
            errors.extend(self.ii.and_then(|ii| interval(ii, &checked_ops)));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Graph { name: self.name.clone(), units: self.units.clone(), ops: checked_ops, edges, ii: self.ii })
    }
}

/// The indices of names, each of which may occur once.
fn names<'d>(
    all: impl Iterator<Item = &'d String>,
    site: impl Fn(usize) -> Site,
    what: &str,
    errors: &mut Errors,
) -> SortedMap<&'d str, usize> {
    let mut known = SortedMap::new();
    for (i, name) in all.enumerate() {
        if let Some(&first) = known.get(name.as_str()) {
            let title = format!("two {what}s are called `{name}`");
            let error = Diagnostic::new(Code::ScheduleName, site(i), title).related(site(first), "the first one");
            errors.push(error.help("rename one of them"));
        } else {
            known.insert(name.as_str(), i);
        }
    }
    known
}

/// A number that may not be negative.
fn natural(value: i64, site: Site, what: &str, errors: &mut Errors) -> i64 {
    if value < 0 {
        let title = format!("{what} is {value}, which is negative");
        errors.push(Diagnostic::new(Code::ScheduleNumber, site, title).help("write 0 or a positive number"));
    }
    value
}

fn checked_op(i: usize, op: &DraftOp, units: &SortedMap<&str, usize>, errors: &mut Errors) -> Op {
    let name = &op.name;
    let (mut unit, mut occupancy) = (None, 0);
    if let Some((wanted, cycles)) = &op.unit {
        unit = units.get(wanted.as_str()).copied();
        if unit.is_none() {
            let title = format!("`{name}` holds the unit `{wanted}`, which the graph does not have");
            let error = Diagnostic::new(Code::ScheduleName, Site::Op(i, Field::Unit), title);
            errors.push(error.help(format!("declare it with `unit {wanted}`")));
        }
        occupancy = *cycles;
        if occupancy < 1 {
            let title = format!("`{name}` holds `{wanted}` for {occupancy} cycles");
            let error = Diagnostic::new(Code::ScheduleNumber, Site::Op(i, Field::Occupancy), title);
            errors.push(error.help("write a positive number, or no unit"));
        }
    }
    let latency = natural(op.latency, Site::Op(i, Field::Latency), &format!("the latency of `{name}`"), errors);
    let weight = natural(op.weight, Site::Op(i, Field::Weight), &format!("the weight of `{name}`"), errors);
    Op { name: name.clone(), unit, occupancy, latency, weight }
}

fn checked_edge(
    i: usize,
    edge: &DraftEdge,
    names: &SortedMap<&str, usize>,
    ops: &[Op],
    errors: &mut Errors,
) -> Option<Edge> {
    let mut end = |name: &str, field| {
        let found = names.get(name).copied();
        if found.is_none() {
            let title = format!("there is no operation `{name}`");
            let error = Diagnostic::new(Code::ScheduleName, Site::Edge(i, field), title);
            errors.push(error.help(format!("declare it with `op {name}`")));
        }
        found
    };
    let (from, to) = (end(&edge.from, Field::From), end(&edge.to, Field::To));
    let site = Site::Edge(i, Field::Distance);
    let distance = natural(edge.distance, site, "the distance", errors);
    if let Some(why) = edge.kind.refuses(distance) {
        let title = format!("an edge `{}` with distance {distance}", edge.kind.name());
        errors.push(Diagnostic::new(Code::ScheduleNumber, site, title).help(why));
    }
    let latency = edge
        .latency
        .map(|latency| natural(latency, Site::Edge(i, Field::Latency), "the latency of the edge", errors))
        .or_else(|| Some(ops[from?].latency))?;
    Some(Edge { kind: edge.kind, from: from?, to: to?, latency, distance })
}

/// Checks that the sums over the whole graph are small enough for the arithmetic of the schedulers.
fn sums(ops: &[Op], edges: &[Edge], errors: &mut Errors) {
    let mut total = |what: &str, most: i64, terms: &mut dyn Iterator<Item = (Site, i64)>| {
        let mut sum = 0_i64;
        for (site, term) in terms {
            // With these limits, every sum and product of the search fits in 64 bits (`Ratio::exceeds`), and in the
            // checker's 128 bits anyway.
            sum = match sum.checked_add(term).filter(|sum| *sum <= most) {
                Some(sum) => sum,
                None => {
                    let title = format!("the {what} of the graph exceed {most} together");
                    errors.push(Diagnostic::new(Code::ScheduleNumber, site, title).help("write smaller numbers"));
                    return;
                }
            };
        }
    };
    let of_ops = ops
        .iter()
        .enumerate()
        .flat_map(|(i, op)| [(Site::Op(i, Field::Latency), op.latency), (Site::Op(i, Field::Occupancy), op.occupancy)]);
    let of_edges = edges.iter().enumerate().map(|(i, edge)| (Site::Edge(i, Field::Latency), edge.latency));
    total("latencies and occupancies", MOST_CYCLES, &mut of_ops.chain(of_edges));
    total("weights", MOST_WEIGHT, &mut ops.iter().enumerate().map(|(i, op)| (Site::Op(i, Field::Weight), op.weight)));
    let distances = &mut edges.iter().enumerate().map(|(i, edge)| (Site::Edge(i, Field::Distance), edge.distance));
    total("distances", MOST_DISTANCE, distances);
}

/// A cycle of edges whose distances are all zero, if there is one: each of its operations would wait for itself.
///
/// Operations that wait for no other are removed until none is left, or until every remaining one waits for a remaining one. In the
/// second case, going from an operation to one that it waits for returns to an operation where it has been.
fn circle(ops: &[Op], edges: &[Edge]) -> Option<Diagnostic<Site>> {
    let mut waits = vec![0_usize; ops.len()];
    let same = || edges.iter().enumerate().filter(|(_, edge)| edge.distance == 0);
    same().for_each(|(_, edge)| waits[edge.to] += 1);
    let mut free: Vec<usize> = (0..ops.len()).filter(|op| waits[*op] == 0).collect();
    let mut is_left = vec![true; ops.len()];
    // Each operation becomes free once, when the last that it waits for is removed: this ends after as many rounds as
    // there are operations.
    while let Some(op) = free.pop() {
        is_left[op] = false;
        for (_, edge) in same().filter(|(_, edge)| edge.from == op) {
            waits[edge.to] -= 1;
            if waits[edge.to] == 0 {
                free.push(edge.to);
            }
        }
    }
    let mut at = is_left.iter().position(|left| *left)?;
    let mut path: Vec<(usize, usize)> = Vec::new();
    // Each round adds an operation that is not in the path yet, and every remaining one waits for a remaining one: so
    // the path returns to itself.
    let first = loop {
        if let Some(first) = path.iter().position(|(op, _)| *op == at) {
            break first;
        }
        let (index, edge) = same().find(|(_, edge)| edge.to == at && is_left[edge.from])?;
        path.push((at, index));
        at = edge.from;
    };
    // The path was found against the direction of the edges.
    let against = path[first + 1..].iter().rev();
    let names: Vec<String> =
        path[first..=first].iter().chain(against).map(|(op, _)| format!("`{}`", ops[*op].name)).collect();
    let title = match &names[..] {
        [one] => format!("{one} waits for itself in the same iteration"),
        _ => {
            format!("operations wait for each other in the same iteration: {} and again {}", names.join(", "), names[0])
        }
    };
    let site = Site::Edge(path[first].1, Field::From);
    Some(Diagnostic::new(Code::ScheduleCircle, site, title).help("give one of these edges a distance of at least 1"))
}

/// An operation may not hold its unit for longer than an iteration takes: it would still hold it when it is issued again.
fn interval(ii: i64, ops: &[Op]) -> Option<Diagnostic<Site>> {
    if !(1..=MOST_CYCLES).contains(&ii) {
        let title = format!("an initiation interval of {ii} cycles");
        let help = format!("write a number from 1 to {MOST_CYCLES}");
        return Some(Diagnostic::new(Code::ScheduleNumber, Site::Interval, title).help(help));
    }
    let (i, op) = ops.iter().enumerate().find(|(_, op)| op.occupancy > ii)?;
    let title = format!("`{}` holds its unit for {} cycles, longer than an iteration of {ii}", op.name, op.occupancy);
    let site = Site::Op(i, Field::Occupancy);
    let error = Diagnostic::new(Code::ScheduleSelfOverlap, site, title);
    Some(error.help("ask for a longer initiation interval, or divide the operation"))
}
