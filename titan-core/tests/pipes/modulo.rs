//! Modulo expansion: rewritten loops compute what the loops compute that they were made of, for every number of iterations.

use super::random::{Rng, below};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use titan_core::ir::{BinOp, Block, Kernel, OpId, OpKind, Pred, Value};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::{parse_one, print};

/// An interpreter of kernels of integers, which records what `set` writes, in order.
struct Run<'k> {
    kernel: &'k Kernel,
    n: i64,
    known: BTreeMap<Value, i64>,
    written: Vec<(i64, i64)>,
}

enum End {
    Yield(Vec<i64>),
    Continue(Vec<i64>),
    Return,
}

impl Run<'_> {
    fn get(&self, value: Value) -> i64 {
        *self.known.get(&value).unwrap_or_else(|| panic!("{value} is not defined yet:\n{}", print(self.kernel)))
    }

    fn all(&self, values: &[Value]) -> Vec<i64> {
        values.iter().map(|v| self.get(*v)).collect()
    }

    fn bind(&mut self, values: &[Value], to: &[i64]) {
        assert_eq!(values.len(), to.len());
        self.known.extend(values.iter().copied().zip(to.iter().copied()));
    }

    fn block(&mut self, block: Block) -> End {
        for id in &self.kernel.block(block).ops.clone() {
            if let Some(end) = self.op(*id) {
                return end;
            }
        }
        panic!("a block without an end");
    }

    fn op(&mut self, id: OpId) -> Option<End> {
        let op = self.kernel.op(id).clone();
        let result = match &op.kind {
            OpKind::Const(_) => self.kernel.int_constant(op.results[0]).expect("an integer"),
            OpKind::Dim(_) => self.n,
            OpKind::Binary(binary) => {
                let [a, b] = self.all(&op.args)[..] else { panic!("two operands") };
                match binary {
                    BinOp::Add => i64::from((a as i32).wrapping_add(b as i32)),
                    BinOp::Sub => i64::from((a as i32).wrapping_sub(b as i32)),
                    BinOp::Mul => i64::from((a as i32).wrapping_mul(b as i32)),
                    BinOp::Xor => a ^ b,
                    _ => panic!("no such operation here"),
                }
            }
            OpKind::Cmp(Pred::Lt) => i64::from(self.get(op.args[0]) < self.get(op.args[1])),
            OpKind::Set => {
                let [_, at, value] = op.args[..] else { panic!("three operands") };
                self.written.push((self.get(at), self.get(value)));
                return None;
            }
            OpKind::If => {
                let arm = op.regions[usize::from(self.get(op.args[0]) == 0)];
                let End::Yield(out) = self.block(arm) else { panic!("an arm without `yield`") };
                self.bind(&op.results, &out);
                return None;
            }
            OpKind::For(_) => {
                let [lo, hi, step] = self.all(&op.args[..3])[..] else { panic!("three bounds") };
                let mut carried = self.all(&op.args[3..]);
                let args = self.kernel.block(op.regions[0]).args.clone();
                let mut at = lo;
                while at < hi {
                    self.bind(&args, &[&[at], &carried[..]].concat());
                    let End::Continue(next) = self.block(op.regions[0]) else { panic!("a body without `continue`") };
                    (carried, at) = (next, at + step);
                }
                self.bind(&op.results, &carried);
                return None;
            }
            OpKind::Yield => return Some(End::Yield(self.all(&op.args))),
            OpKind::Continue(0) => return Some(End::Continue(self.all(&op.args))),
            OpKind::Return => return Some(End::Return),
            other => panic!("{other:?} is not interpreted"),
        };
        self.known.insert(op.results[0], result);
        None
    }
}

/// What a kernel writes if the loop is executed `n` times.
pub(super) fn written(kernel: &Kernel, n: i64) -> Vec<(i64, i64)> {
    let mut run = Run { kernel, n, known: BTreeMap::new(), written: Vec::new() };
    assert!(matches!(run.block(kernel.body), End::Return));
    run.written
}

/// A random loop: its operations, each with what it uses, and the schedule.
pub(super) struct Loop {
    /// The number of values that are passed on.
    carried: usize,
    ops: Vec<Operation>,
    /// The values that are passed on, by their operations.
    next: Vec<usize>,
    pub(super) stages: u64,
    /// Whether its first and its last iteration stand apart.
    peeled: bool,
}

#[derive(Clone)]
struct Operation {
    kind: Kind,
    uses: [Use; 2],
    stage: u64,
    order: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Plain(&'static str),
    /// A branch with this operation in one arm.
    Branch,
    /// A nested loop.
    Nested,
    /// A write of the first operand, which phantoms must not execute.
    Write,
}

#[derive(Clone, Copy)]
enum Use {
    Counter,
    Carried(usize),
    Op(usize),
    Outside,
}

/// A loop with a legal schedule: every operation comes after those whose results it uses, in their iteration. An operation is executed, on
/// the clock of steady iterations, at (iteration + stage, order).
pub(super) fn random(rng: &mut Rng) -> Loop {
    let stages = 1 + below(rng, 5) as u64;
    random_of(rng, stages, false)
}

/// The same for a loop of two stages whose first and last iteration stand apart: writes may be in either stage.
pub(super) fn random_peeled(rng: &mut Rng) -> Loop {
    random_of(rng, 2, true)
}

fn random_of(rng: &mut Rng, stages: u64, peeled: bool) -> Loop {
    let carried = 1 + below(rng, 3);
    let number = 3 + below(rng, 8);
    let mut ops: Vec<Operation> = Vec::new();
    for at in 0..number {
        let pick = |rng: &mut Rng| match below(rng, 6) {
            0 => Use::Counter,
            1 | 2 => Use::Carried(below(rng, carried)),
            3 => Use::Outside,
            _ if at > 0 => Use::Op(below(rng, at)),
            _ => Use::Outside,
        };
        let uses = [pick(rng), pick(rng)];
        let kind = match below(rng, 8) {
            0 => Kind::Branch,
            1 => Kind::Nested,
            2 => Kind::Write,
            _ => Kind::Plain(["add", "mul", "sub", "xor"][below(rng, 4)]),
        };
        ops.push(Operation { kind, uses, stage: below(rng, stages as usize) as u64, order: 0 });
    }
    let values: Vec<usize> = (0..number).filter(|at| !matches!(ops[*at].kind, Kind::Write)).collect();
    let next: Vec<usize> =
        if values.is_empty() { Vec::new() } else { (0..carried).map(|_| values[below(rng, values.len())]).collect() };
    let mut made = Loop { carried: next.len(), ops, next, stages, peeled };
    made.legalize(rng);
    made
}

impl Loop {
    /// Whether there are operations of both stages of a peeled loop.
    pub(super) fn has_two_stages(&self) -> bool {
        (0..2).all(|stage| self.ops.iter().any(|op| op.stage == stage))
    }

    /// Whether a write runs ahead.
    pub(super) fn writes_early(&self) -> bool {
        self.ops.iter().any(|op| matches!(op.kind, Kind::Write) && op.stage == 0)
    }

    /// The operation, and the iterations before, whose result a use names.
    fn source(&self, used: Use) -> Option<(usize, u64)> {
        match used {
            Use::Op(at) => Some((at, 0)),
            Use::Carried(at) => self.next.get(at).map(|next| (*next, 1)),
            Use::Counter | Use::Outside => None,
        }
    }

    /// Moves stages until the schedule is legal, and draws an order that respects what is in one steady iteration.
    fn legalize(&mut self, rng: &mut Rng) {
        // Phantoms write nothing; without phantoms, writes may be early, but they keep their order.
        let of_writes = if self.peeled { below(rng, 2) as u64 } else { self.stages - 1 };
        for at in 0..self.ops.len() {
            for side in 0..2 {
                // Writes have no result; and what is not passed on does not exist.
                let bad = match self.ops[at].uses[side] {
                    Use::Op(of) => matches!(self.ops[of].kind, Kind::Write),
                    Use::Carried(of) => of >= self.carried,
                    Use::Counter | Use::Outside => false,
                };
                if bad {
                    self.ops[at].uses[side] = Use::Outside;
                }
            }
            if matches!(self.ops[at].kind, Kind::Write) {
                self.ops[at].stage = of_writes;
            }
        }
        // Each round raises a stage; where that does not end, all operations are in the last stage, in program order.
        for _ in 0..200 {
            let mut moved = false;
            for at in 0..self.ops.len() {
                for used in self.ops[at].uses {
                    let Some((of, before)) = self.source(used) else { continue };
                    if self.ops[of].stage > self.ops[at].stage + before {
                        self.ops[at].stage = self.ops[of].stage - before;
                        moved = true;
                    }
                }
            }
            if !moved {
                break;
            }
        }
        // A write that uses results of the second stage has been moved to it, and all others with it.
        let writes = || self.ops.iter().filter(|op| matches!(op.kind, Kind::Write));
        if let Some(latest) = writes().map(|op| op.stage).max() {
            self.ops.iter_mut().filter(|op| matches!(op.kind, Kind::Write)).for_each(|op| op.stage = latest);
        }
        if !self.draw_order(rng) {
            self.ops.iter_mut().for_each(|op| op.stage = self.stages - 1);
            assert!(self.draw_order(rng), "program order is legal in one stage");
        }
    }

    fn draw_order(&mut self, rng: &mut Rng) -> bool {
        let number = self.ops.len();
        let mut placed: Vec<usize> = Vec::new();
        while placed.len() < number {
            let ready: Vec<usize> = (0..number)
                .filter(|at| !placed.contains(at))
                .filter(|at| {
                    self.ops[*at].uses.iter().all(|used| {
                        let source = self.source(*used);
                        // In one steady iteration, the operation it comes from is executed first; else in an earlier one.
                        source.is_none_or(|(of, before)| {
                            self.ops[of].stage != self.ops[*at].stage + before || placed.contains(&of)
                        })
                    })
                })
                // Writes keep their order, which is not a dependence of values.
                .filter(|at| {
                    !matches!(self.ops[*at].kind, Kind::Write)
                        || (0..*at).all(|other| !matches!(self.ops[other].kind, Kind::Write) || placed.contains(&other))
                })
                .collect();
            if ready.is_empty() {
                return false;
            }
            placed.push(ready[below(rng, ready.len())]);
        }
        for (order, at) in placed.into_iter().enumerate() {
            self.ops[at].order = order as u64;
        }
        true
    }

    pub(super) fn text(&self) -> String {
        let name = |used: Use| match used {
            Use::Counter => "%i".to_owned(),
            Use::Carried(at) => format!("%c{at}"),
            Use::Op(at) => format!("%v{at}"),
            Use::Outside => "%seven".to_owned(),
        };
        let carry: Vec<String> = (0..self.carried).map(|at| format!("%c{at} = %start{at}")).collect();
        let carry = if carry.is_empty() { String::new() } else { format!(" carry({})", carry.join(", ")) };
        let out: Vec<String> = (0..self.carried).map(|at| format!("%r{at}")).collect();
        let out = if out.is_empty() { String::new() } else { format!("{} = ", out.join(", ")) };
        let types =
            if self.carried == 0 { String::new() } else { format!(" : {}", vec!["i32"; self.carried].join(", ")) };
        let mut text = "kernel @k(%a: in tensor<f32>[N], %o: mut tensor<i32>[M]) grid(1) {\n%n = dim<0> %a\n\
                        %zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n%seven = const 7 : i32\n%start0 = const 3 : i32\n\
                        %start1 = const 11 : i32\n%start2 = const -5 : i32\n"
            .to_owned();
        let peeled = if self.peeled { " peeled" } else { "" };
        let _ = writeln!(text, "{out}for %i = %zero to %n step %one{carry}{types}{peeled} {{");
        for (at, op) in self.ops.iter().enumerate() {
            let place = format!("stage({}, {})", op.stage, op.order);
            let [a, b] = op.uses.map(name);
            let _ = match op.kind {
                Kind::Plain(kind) => writeln!(text, "%v{at} = {kind} {a}, {b} : i32 {place}"),
                Kind::Write => writeln!(text, "set %o[{a}], {b} {place}"),
                Kind::Nested => writeln!(
                    text,
                    "%v{at} = for %j{at} = %zero to %two step %one carry(%k{at} = {a}) : i32 {place} {{\n\
                     %l{at} = add %k{at}, {b} : i32\ncontinue %l{at}\n}}"
                ),
                // The condition is computed in the branch's own place, since a comparison is an operation too.
                Kind::Branch => writeln!(
                    text,
                    "%v{at} = for %j{at} = %zero to %one step %one carry(%k{at} = {a}) : i32 {place} {{\n%l{at} = lt %k{at}, {b} : bool\n\
                     %m{at} = if %l{at} : i32 {{\n%p{at} = mul %k{at}, {b} : i32\nyield %p{at}\n}} else {{\nyield {b}\n}}\ncontinue %m{at}\n}}"
                ),
            };
        }
        let next: Vec<String> = self.next.iter().map(|at| format!("%v{at}")).collect();
        let _ = writeln!(text, "continue {}\n}}", next.join(", "));
        for at in 0..self.carried {
            let _ = writeln!(text, "set %o[%seven], %r{at}");
        }
        text + "return\n}\n"
    }
}

pub(super) fn kernel(text: &str) -> Kernel {
    parse_one(text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// The kernel without its schedule, from which phantoms are told: they write nothing.
pub(super) fn plain(text: &str) -> Kernel {
    let mut kernel = kernel(text);
    for op in &mut kernel.ops {
        (op.planned, op.peeled) = (None, false);
    }
    kernel
}

#[test]
fn loops_with_legal_schedules_compute_the_same_in_any_number_of_iterations() {
    let mut rng = Rng(0x0bad_cafe_1234_5678);
    let mut several = 0;
    for _ in 0..test_depth::cases(2000, 300) {
        let made = random(&mut rng);
        let text = made.text();
        let expanded = expand(&kernel(&text)).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
        check(&kernel(&text), &expanded).unwrap_or_else(|why| panic!("{why:?}\n{text}\n{}", print(&expanded)));
        several += usize::from(made.ops.iter().any(|op| op.stage + 1 < made.stages));
        // What is printed is read back.
        let expanded = kernel(&print(&expanded));
        for n in 0..=2 * made.stages as i64 + 3 {
            let (right, found) = (written(&plain(&text), n), written(&expanded, n));
            assert_eq!(right, found, "{n} iterations\n{text}\n{}", print(&expanded));
        }
    }
    println!("{several} loops with several stages");
    assert!(several > test_depth::cases(1000, 150));
}

/// One operation is moved to a random stage and place: the schedule is refused, or the loop still computes the same.
#[test]
fn a_schedule_that_violates_a_dependence_of_values_is_refused() {
    let mut rng = Rng(0x5eed_0001_feed_0003);
    let (mut refused, mut accepted) = (0, 0);
    for _ in 0..test_depth::cases(4000, 500) {
        let mut made = random(&mut rng);
        let (at, other) = (below(&mut rng, made.ops.len()), below(&mut rng, made.ops.len()));
        if matches!(made.ops[at].kind, Kind::Write) || matches!(made.ops[other].kind, Kind::Write) {
            continue;
        }
        made.ops[at].stage = below(&mut rng, made.stages as usize) as u64;
        let (a, b) = (made.ops[at].order, made.ops[other].order);
        (made.ops[at].order, made.ops[other].order) = (b, a);
        let text = made.text();
        let Ok(expanded) = expand(&kernel(&text)) else {
            refused += 1;
            continue;
        };
        let checked = check(&kernel(&text), &expanded);
        assert_eq!(checked, Ok(()), "{text}\n{}", print(&expanded));
        accepted += 1;
        for n in 0..=2 * made.stages as i64 + 3 {
            assert_eq!(
                written(&plain(&text), n),
                written(&expanded, n),
                "{n} iterations\n{text}\n{}",
                print(&expanded)
            );
        }
    }
    println!("{refused} refused, {accepted} legal");
    assert!(refused > test_depth::cases(800, 100) && accepted > test_depth::cases(400, 50));
}

fn refused(body: &str) -> String {
    refused_of("for %i = %zero to %n step %one", body)
}

pub(super) fn refused_of(looped: &str, body: &str) -> String {
    let text = format!(
        "kernel @k(%a: in tensor<f32>[N], %o: mut tensor<i32>[M]) grid(1) {{\n%n = dim<0> %a\n%zero = const 0 : i32\n%one = const 1 : i32\n\
         %two = const 2 : i32\n{looped} {{\n{body}\n}}\nreturn\n}}\n"
    );
    expand(&kernel(&text)).expect_err("it is wrong").message
}

#[test]
fn schedules_that_cannot_be_carried_out_are_refused_in_words() {
    let cases = [
        ("%x = add %i, %one : i32 stage(0, 0)\n%y = add %x, %one : i32\ncontinue", "no place for this operation"),
        (
            "%x = add %i, %one : i32 stage(0, 0)\n%y = add %x, %one : i32 stage(0, 0)\ncontinue",
            "two operations at this place",
        ),
        ("%x = add %i, %one : i32 stage(64, 0)\ncontinue", "too many stages"),
        (
            "%x = add %i, %one : i32 stage(0, 0)\n%y = lt %x, %one : bool stage(1, 1)\nif %y stage(1, 2) {\nbreak\n} else {\nyield\n}\ncontinue",
            "several stages for a loop that is left early",
        ),
        (
            "set %o[%i], %one stage(0, 0)\n%y = add %i, %one : i32 stage(1, 1)\ncontinue",
            "for iterations that do not exist",
        ),
        (
            "print \"{}\", %i stage(0, 0)\n%y = add %i, %one : i32 stage(1, 1)\ncontinue",
            "for iterations that do not exist",
        ),
        (
            "%x = loop carry(%k = %i) : i32 stage(0, 0) {\nbreak %k\n}\nset %o[%x], %one stage(1, 1)\ncontinue",
            "for iterations that do not exist",
        ),
        (
            "%x = for %j = %zero to %one step %one carry(%k = %i) : i32 stage(1, 0) {\ncontinue %k\n}\n\
             %y = for %l = %zero to %one step %one carry(%m = %x) : i32 stage(0, 1) {\ncontinue %m\n}\nset %o[%y], %one stage(1, 2)\ncontinue",
            "before one whose result it uses",
        ),
    ];
    for (body, expected) in cases {
        let message = refused(body);
        assert!(message.contains(expected), "{message}\n{body}");
    }
}

/// A loop that is left early may have another order in its one stage.
#[test]
fn the_order_in_one_stage_changes_in_loops_that_are_left() {
    let text = "kernel @k(%a: in tensor<f32>[N], %o: mut tensor<i32>[M]) grid(1) {\n%n = dim<0> %a\n%zero = const 0 : i32\n\
                %one = const 1 : i32\nfor %i = %zero to %n step %one {\n%x = add %i, %one : i32 stage(0, 1)\n\
                %y = lt %i, %one : bool stage(0, 0)\nif %y stage(0, 2) {\nbreak\n} else {\nyield\n}\nset %o[%x], %one stage(0, 3)\ncontinue\n}\n\
                return\n}\n";
    let expanded = print(&expand(&kernel(text)).expect("it is right"));
    assert!(expanded.find("lt %i").expect("a comparison") < expanded.find("add %i").expect("a sum"), "{expanded}");
    assert!(!expanded.contains("stage("), "{expanded}");
}

/// An inner loop whose prologue is in the body of an outer loop with a schedule: the prologue is executed where the inner loop is.
#[test]
fn loops_in_loops_may_both_have_schedules() {
    let text = "kernel @k(%a: in tensor<f32>[N], %o: mut tensor<i32>[M]) grid(1) {\n%n = dim<0> %a\n%zero = const 0 : i32\n\
                %one = const 1 : i32\n%r = for %i = %zero to %n step %one carry(%c = %one) : i32 {\n%x = mul %i, %c : i32 stage(0, 0)\n\
                %s = for %j = %zero to %n step %one carry(%k = %x) : i32 stage(1, 1) {\n%y = mul %j, %j : i32 stage(0, 1)\n\
                %z = add %y, %k : i32 stage(1, 0)\nset %o[%j], %z stage(1, 2)\ncontinue %z\n}\n%d = add %c, %one : i32 stage(0, 2)\n\
                set %o[%i], %s stage(1, 3)\ncontinue %d\n}\nset %o[%zero], %r\nreturn\n}\n";
    let expanded = expand(&kernel(text)).unwrap_or_else(|why| panic!("{why:?}"));
    for n in 0..6 {
        assert_eq!(written(&plain(text), n), written(&expanded, n), "{n} iterations\n{}", print(&expanded));
    }
}

/// A constant of an earlier stage than what uses it is made again: as a number that the loop carries, it would not be known any more.
#[test]
fn constants_are_not_carried() {
    let text = "kernel @k(%a: in tensor<f32>[N], %o: mut tensor<i32>[M]) grid(1) {\n%n = dim<0> %a\n%zero = const 0 : i32\n\
                %one = const 1 : i32\n%r = for %i = %zero to %n step %one carry(%k = %one) : i32 {\n%c = const 3 : i32 stage(0, 0)\n\
                %x = mul %i, %i : i32 stage(0, 1)\n%y = mul %x, %c : i32 stage(1, 2)\n%z = add %y, %k : i32 stage(2, 3)\n\
                set %o[%i], %z stage(2, 4)\ncontinue %c\n}\nreturn\n}\n";
    let before = kernel(text);
    let made = expand(&before).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(check(&before, &made), Ok(()), "{}", print(&made));
    // What is carried is what the loop before carries, and the results of the first two stages.
    let carried = |looped: &titan_core::ir::Op| looped.args.len() - 3;
    let steady = made.ops.iter().filter(|op| matches!(op.kind, OpKind::For(_))).map(carried).max();
    assert_eq!(steady, Some(3), "{}", print(&made));
    for n in 0..6 {
        assert_eq!(written(&plain(text), n), written(&made, n), "{n} iterations\n{}", print(&made));
    }
}
