//! A description as programs: what each of them touches, and whether two touch one element.

use crate::describe::{Case, Expr, Mode, Touch, View};
use titan_core::ir::{BinOp, Unit};

/// A half-open interval.
type Span = (i64, i64);

struct Trap;

struct Run<'a> {
    case: &'a Case,
    program: [i32; 2],
    parts: Vec<i32>,
    looped: i32,
    boxes: Vec<[Span; 2]>,
}

fn divide(x: i32, y: i32) -> (i32, i32) {
    if y == 0 { (0, x) } else { (x.wrapping_div(y), x.wrapping_rem(y)) }
}

/// The place that comes as many places after the first as the row-major one, in groups of rows; only inside of the box.
fn in_groups(at: [i32; 2], [rows, columns]: [i32; 2], group: i32) -> [i32; 2] {
    if !(0..rows).contains(&at[0]) || !(0..columns).contains(&at[1]) {
        return at;
    }
    let places = (0..rows).step_by(group.unsigned_abs() as usize).flat_map(|first| {
        let last = rows.min(first + group);
        (0..columns).flat_map(move |c| (first..last).map(move |r| [r, c]))
    });
    places.into_iter().nth((at[0] * columns + at[1]) as usize).expect("as many places as the box has")
}

impl Run<'_> {
    fn eval(&self, e: &Expr) -> i32 {
        match e {
            Expr::Program(second) => self.program[usize::from(*second)],
            Expr::Part(i) => self.parts[i % self.parts.len()],
            Expr::Looped => self.looped,
            Expr::Scalar => self.case.scalar,
            Expr::Const(c) => *c,
            Expr::Select(x, y) => self.eval(if self.case.scalar > 0 { x } else { y }),
            Expr::Binary(op, x, y) => {
                let (x, y) = (self.eval(x), self.eval(y));
                match op {
                    BinOp::Add => x.wrapping_add(y),
                    BinOp::Sub => x.wrapping_sub(y),
                    BinOp::Mul => x.wrapping_mul(y),
                    BinOp::Div => divide(x, y).0,
                    BinOp::Rem => divide(x, y).1,
                    BinOp::And => x & y,
                    BinOp::Or => x | y,
                    BinOp::Xor => x ^ y,
                    BinOp::Min => x.min(y),
                    BinOp::Max => x.max(y),
                    BinOp::MulHi => ((i64::from(x) * i64::from(y)) >> 32) as i32,
                    BinOp::Powf => panic!("not of integers"),
                    BinOp::Shl if (0..32).contains(&y) => x.wrapping_shl(y.cast_unsigned()),
                    BinOp::Shr if (0..32).contains(&y) => x >> y,
                    BinOp::Shl | BinOp::Shr => 0,
                }
            }
        }
    }

    fn touch(&mut self, t: &Touch) -> Result<(), Trap> {
        let size = self.case.extents.map(i64::from);
        let mut window: [Span; 2] = [(0, size[0]), (0, size[1])];
        let mut fixed = false;
        match &t.view {
            View::Whole => {}
            View::Slice(lo, hi) => {
                let (lo, hi) = (i64::from(self.eval(lo)).max(0), i64::from(self.eval(hi)).min(size[0]));
                window[0] = (lo, hi.max(lo));
            }
            View::Segment(e) => window[0] = self.segment(self.eval(e))?,
            View::Index(i) => {
                let i = i64::from(self.eval(i));
                let inside = (0..size[0]).contains(&i);
                window[0] = if inside { (i, i + 1) } else { (0, 0) };
                fixed = true;
            }
        }
        let mut touched = window;
        for (d, slot) in touched.iter_mut().enumerate().skip(usize::from(fixed)) {
            let (at, extent) = (i64::from(self.eval(&t.at[d])), i64::from(t.extent[d]));
            let first = if t.unit == Unit::Tile { at * extent } else { at };
            let (from, to) = (first.max(0) + window[d].0, first + extent + window[d].0);
            *slot = (from, to.min(window[d].1));
        }
        if touched.iter().all(|(from, to)| from < to) {
            self.boxes.push(touched);
        }
        Ok(())
    }

    fn segment(&self, e: i32) -> Result<Span, Trap> {
        let get = |i: i32| usize::try_from(i).ok().and_then(|i| self.case.off.get(i)).copied().ok_or(Trap);
        let (lo, hi) = (get(e)?, get(e.wrapping_add(1))?);
        let legal = 0 <= lo && lo <= hi && hi <= self.case.extents[0];
        if legal { Ok((lo.into(), hi.into())) } else { Err(Trap) }
    }

    fn touches(&mut self) -> Result<(), Trap> {
        let case = self.case;
        let Some((lo, hi, step)) = &case.looped else { return case.touches.iter().try_for_each(|t| self.touch(t)) };
        // The bounds cannot name the variable: there it stands for 0.
        self.looped = 0;
        let (lo, hi) = (i64::from(self.eval(lo)), i64::from(self.eval(hi)));
        // Long loops are cut short: what they touch first is enough to find collisions.
        let mut at = lo;
        for _ in 0..12 {
            if at >= hi {
                break;
            }
            self.looped = i32::try_from(at).expect("below an i32");
            case.touches.iter().try_for_each(|t| self.touch(t))?;
            at += i64::from(*step);
        }
        Ok(())
    }

    fn unflatten(&mut self) {
        self.parts = vec![0];
        self.looped = 0;
        let (first, second) = divide(self.eval(&self.case.base), self.case.parts[1]);
        self.parts = match self.case.group {
            Some(group) => in_groups([first, second], self.case.parts, group).to_vec(),
            None => vec![first, second],
        };
    }

    /// The tile of number `j` of a ragged output; the offsets have been checked.
    fn ragged(&mut self, j: i64) -> bool {
        let (rows, cols) = (i64::from(self.case.parts[0]), i64::from(self.case.parts[1]));
        let across = (i64::from(self.case.extents[1]) + cols - 1) / cols;
        let mut first = 0;
        for (e, w) in self.case.off.windows(2).enumerate() {
            let tiles = (i64::from(w[1] - w[0]) + rows - 1) / rows * across;
            if j < first + tiles {
                let (m, n) = ((j - first) / across, (j - first) % across);
                self.parts =
                    [i64::try_from(e).expect("small"), m, n].map(|v| i32::try_from(v).expect("small")).to_vec();
                return true;
            }
            first += tiles;
        }
        false
    }
}

/// What one program touches.
fn program(case: &Case, at: [i64; 2]) -> Result<Vec<[Span; 2]>, Trap> {
    let ids = at.map(|p| i32::try_from(p).expect("an i32"));
    let mut run = Run { case, program: ids, parts: vec![0], looped: 0, boxes: Vec::new() };
    if case.exit.is_some_and(|limit| ids[0] > limit) {
        return Ok(run.boxes);
    }
    match case.mode {
        Mode::Grid => {
            run.unflatten();
            run.touches()?;
        }
        Mode::Deal => {
            for j in (at[0]..case.grid[1] * 4).step_by(usize::try_from(case.grid[0]).expect("small")) {
                run.program = [i32::try_from(j).expect("small"); 2];
                run.unflatten();
                run.touches()?;
            }
        }
        Mode::Ragged => {
            let legal =
                case.off.windows(2).all(|w| w[0] <= w[1]) && case.off.iter().all(|o| (0..=case.extents[0]).contains(o));
            if !legal {
                return Err(Trap);
            }
            let mut j = at[0];
            while run.ragged(j) {
                run.program = [i32::try_from(j).expect("small"); 2];
                run.touches()?;
                j += case.grid[0];
            }
        }
    }
    Ok(run.boxes)
}

/// All indices of a small extent, telling ones of a large.
fn indices(extent: i64) -> Vec<i64> {
    if extent <= 40 {
        return (0..extent).collect();
    }
    let powers = (0..31).map(|k| 1i64 << k).flat_map(|p| [p - 1, p, p + 1, extent - p]);
    let mut all: Vec<i64> = powers.chain([0, 2, 3, 5]).filter(|p| (0..extent).contains(p)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What each program touches, in a launch that does not trap.
fn launch(case: &Case) -> Option<Vec<([i64; 2], [Span; 2])>> {
    let first = match case.of_scalar {
        Some(by) => (i64::from(case.scalar) + i64::from(by) - 1) / i64::from(by),
        None => case.grid[0],
    };
    let second = if case.mode == Mode::Grid { case.grid[1] } else { 1 };
    let mut all: Vec<([i64; 2], [Span; 2])> = Vec::new();
    for p in indices(first) {
        for q in indices(second) {
            let boxes = program(case, [p, q]).ok()?;
            all.extend(boxes.into_iter().map(|b| ([p, q], b)));
        }
    }
    Some(all)
}

/// Whether some program stores to an element with these indices along these axes, in a launch that does not trap.
pub(crate) fn stores_to(case: &Case, places: &[(usize, i64)]) -> bool {
    let touches = case.touches.iter().filter(|t| t.store).cloned().collect();
    let all = launch(&Case { touches, ..case.clone() }).unwrap_or_default();
    all.iter().any(|(_, b)| places.iter().all(|(axis, index)| (b[*axis].0..b[*axis].1).contains(index)))
}

/// Two programs that touch one element, in a launch that does not trap.
pub(crate) fn collision(case: &Case) -> Option<String> {
    let mut all = launch(case)?;
    let meet = |a: Span, b: Span| a.0.max(b.0) < a.1.min(b.1);
    all.sort_unstable_by_key(|(_, b)| b[0]);
    for (i, (p, a)) in all.iter().enumerate() {
        for (q, b) in all[i + 1..].iter().take_while(|(_, b)| b[0].0 < a[0].1) {
            if p != q && meet(a[0], b[0]) && meet(a[1], b[1]) {
                return Some(format!("programs {p:?} and {q:?} touch {a:?} and {b:?}"));
            }
        }
    }
    None
}
