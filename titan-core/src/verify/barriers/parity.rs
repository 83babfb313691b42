//! Which phase a parity means.
//!
//! The stage `t mod n` of `n` barriers and the parity of `t div n` are those of time `t`, with the parity turned those of time
//! `t + n` or, what is the same parity, `t − n`. A role that knows the last complete phase waits for it or for the next one.

use super::super::pipes::joint::linear::Linear;
use super::super::pipes::joint::run::{Fault, On, Run, Wait};
use super::super::pipes::joint::state::State;
use super::event::{At, Waits, refuse};
use super::objects::Named;
use crate::diag::Code;
use crate::verify::Error;

fn wrong(at: At<'_>, title: String) -> Error {
    let help = "the parity of time `t` is `(t / n) % 2` for `n` barriers; whoever waits for the turn before takes the other one";
    Error::new(Code::WaitParity, at.op.loc, title).help(help)
}

impl<'k> Run<'k> {
    pub(super) fn lapped(&self, at: At<'_>, barrier: usize) -> Error {
        let (role, name) = (self.role_name(at.role), &self.objects.barriers[barrier].name);
        let title = format!(
            "{role} waits for a phase of {name} that may be over when it looks: it would wait for the next one of that parity"
        );
        Error::new(Code::PhaseMixed, at.op.loc, title)
            .help("wait for every phase, in order, and let nobody arrive for the next one before")
    }

    /// Nothing has completed when the role looks first, or one phase has: the parity means the one before that.
    fn before_the_first(&self, at: At<'_>, name: &str) -> Error {
        let role = self.role_name(at.role);
        let title = format!(
            "{role} waits first for the phase of {name} before the first: it waits for nothing or, if the first is complete, for the second"
        );
        Error::new(Code::WaitParity, at.op.loc, title)
            .help("whoever waits for what others bring starts with parity 0, whoever waits for a free slot with 1, and nobody frees it before")
    }

    pub(super) fn wait_parity(&mut self, state: &mut State, at: At<'k>) -> Waits {
        let Some(named) = at.op.args.first().and_then(|v| self.objects.barrier(*v)) else {
            return refuse(self.several(at));
        };
        let barrier = named.object;
        let (n, name) = (self.objects.barriers[barrier].n, self.objects.barriers[barrier].name.clone());
        self.alive(state, at, barrier)?;
        let slot = self.slot(state, at, (named, n), (barrier, &name))?;
        let wanted = self.wanted(state, at, (named, n), &name)?;
        let last = state.machine.last(barrier, slot, n);
        let known = state.machine.knows(at.role, barrier, last);
        let time = if (last - wanted).rem_euclid(2 * n) == 0 { last } else { last + n };
        // Of a phase that the role does not know it must know the one before: then it waits for this one.
        if !known && (time != last || !state.machine.knows(at.role, barrier, last - n)) {
            let first = last < n && time != last;
            return refuse(if first { self.before_the_first(at, &name) } else { self.lapped(at, barrier) });
        }
        if time > last {
            return Ok(Some(Wait { role: at.role, op: at.id, on: On::Phase(barrier, time) }));
        }
        self.pass(state, at, barrier, time);
        Ok(None)
    }

    /// The time that a parity means, modulo two turns, counted from where the barriers stand.
    fn wanted(&mut self, state: &mut State, at: At<'_>, (named, n): (Named, i64), name: &str) -> Result<i64, Fault> {
        let (time, still) = self.meant(state, at, (named, n), name)?;
        match time.minus(&state.machine.origins[named.object]).residue(2 * n) {
            Some(wanted) => Ok(wanted),
            None if still => refuse(wrong(at, format!("the parity stays the same while the phases of {name} go on"))),
            None => refuse(wrong(at, format!("the parity does not go with the phases of {name}"))),
        }
    }

    /// The time that a parity means, modulo two turns, and whether the parity is a constant.
    pub(super) fn meant(
        &mut self,
        state: &mut State,
        at: At<'_>,
        (named, n): (Named, i64),
        name: &str,
    ) -> Result<(Linear, bool), Fault> {
        let wrong = |title: String| wrong(at, title);
        let parity = self.symbols.int(at.op.args[1], &state.roles[at.role].env, &mut state.facts);
        let stage = self.counter(state, at, (named, n), name)?;
        let still = parity.as_constant();
        if let Some(c) = still.filter(|c| !(0..2).contains(c)) {
            return refuse(wrong(format!("{c} is not a parity")));
        }
        let turns = match still {
            Some(c) => Linear::constant(c),
            None => match self.symbols.cyclic(&parity) {
                Some((of, 2)) => of,
                Some(_) | None => {
                    return refuse(self.not_shown(
                        at,
                        format!("which phase of {name} is meant: the parity is not that of a counter"),
                    ));
                }
            },
        };
        let time = match &stage {
            None => turns,
            Some(stage) if stage.as_constant().is_some() => stage.plus(n, &turns),
            Some(_) if still.is_some() => {
                return refuse(wrong(format!("the parity stays the same while the phases of {name} go on")));
            }
            Some(stage) => {
                let Some((rest, by, whole)) = self.turns_of(&turns) else {
                    return refuse(wrong(format!(
                        "the parity does not turn when the {n} stages of {name} begin again"
                    )));
                };
                if by != n {
                    return refuse(wrong(format!("the parity turns every {by} stages, but {name} has {n}")));
                }
                let time = rest.plus(n, &whole);
                if time.minus(stage).residue(n) != Some(0) {
                    return refuse(wrong(format!(
                        "the parity is that of another stage of {name} than the one that is waited for"
                    )));
                }
                time
            }
        };
        Ok((time, still.is_some()))
    }

    /// `rest div by + whole`
    fn turns_of(&self, turns: &Linear) -> Option<(Linear, i64, Linear)> {
        turns.terms().find_map(|(atom, k)| {
            let (of, by) = self.symbols.quotient_of(atom).filter(|_| k == 1)?;
            Some((of.clone(), by, turns.minus(&Linear::atom(atom))))
        })
    }
}
