//! Control: threads that take different ways wait for each other where the ways meet.

use super::{Machine, Mask, STEPS, State, name};
use titan_core::lane::{Block, Op, OpKind, Role, Value};

impl Machine<'_> {
    fn running(&self, mask: &Mask) -> Mask {
        mask.iter().zip(&self.state).map(|(m, s)| *m && *s == State::Running).collect()
    }

    /// Runs a block for some threads; each ends it running (after a `yield`) or as its state says.
    pub(super) fn block(&mut self, block: Block, entry: &Mask) {
        let func = self.func;
        for id in &func.block(block).ops {
            let mask = self.running(entry);
            if !mask.contains(&true) || self.steps >= STEPS {
                return;
            }
            let op = func.op(*id);
            match &op.kind {
                OpKind::If => self.branch(op, &mask),
                OpKind::Roles(roles) => {
                    self.meet(*id, op, &mask);
                    self.split(roles, op, &mask);
                }
                OpKind::For | OpKind::Loop => self.repeat(op, &mask),
                OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return => self.leave(op, &mask),
                // Its values are taken by who ran the block.
                OpKind::Yield => return,
                _ => self.op(*id, op, &mask),
            }
        }
    }

    /// Gives values their place in other values, all at once, for some threads.
    fn assign(&mut self, to: &[Value], from: &[Value], mask: &Mask) {
        for t in (0..self.threads).filter(|t| mask[*t]) {
            let bits: Vec<u64> = from.iter().map(|v| self.get(*v, t)).collect();
            to.iter().zip(bits).for_each(|(v, b)| self.set(*v, t, b));
        }
        for (to, from) in to.iter().zip(from) {
            self.from[to.index()] = self.from[from.index()];
        }
    }

    fn branch(&mut self, op: &Op, mask: &Mask) {
        for (arm, taken) in op.regions.iter().zip([true, false]) {
            let own: Mask = (0..self.threads).map(|t| mask[t] && (self.get(op.args[0], t) != 0) == taken).collect();
            if !own.contains(&true) {
                continue;
            }
            self.block(*arm, &own);
            let rest = self.running(&own);
            let last = self.func.block(*arm).ops.last().map(|id| self.func.op(*id));
            if let Some(last) = last.filter(|o| o.kind == OpKind::Yield) {
                self.assign(&op.results, &last.args, &rest);
            }
        }
        let rest = self.running(mask);
        op.results.iter().for_each(|r| self.compare(*r, &rest));
    }

    /// Roles one after the other: for what each computes by itself that is as good as at the same time.
    fn split(&mut self, roles: &[Role], op: &Op, mask: &Mask) {
        let mut first = 0;
        for (role, code) in roles.iter().zip(&op.regions) {
            let end = first + (role.warps * self.func.lanes) as usize;
            let own: Mask = (0..self.threads).map(|t| mask[t] && (first..end).contains(&t)).collect();
            first = end;
            if !own.contains(&true) {
                continue;
            }
            self.block(*code, &own);
            let rest = self.running(&own);
            let last = self.func.block(*code).ops.last().map(|id| self.func.op(*id));
            if let Some(last) = last.filter(|o| o.kind == OpKind::Yield) {
                self.assign(&op.results, &last.args, &rest);
            }
        }
        let rest = self.running(mask);
        op.results.iter().for_each(|r| self.compare(*r, &rest));
    }

    fn repeat(&mut self, op: &Op, mask: &Mask) {
        let counted = op.kind == OpKind::For;
        let body = op.regions[0];
        let (bounds, init) = op.args.split_at(if counted { 3 } else { 0 });
        let args = self.func.block(body).args.clone();
        let (index, carried) = args.split_at(usize::from(counted));
        self.assign(carried, init, mask);
        let number = |m: &Self, v: Value, t: usize| i64::from((m.get(v, t) as u32).cast_signed());
        let mut at: Vec<i64> =
            bounds.first().map_or(vec![], |lo| (0..self.threads).map(|t| number(self, *lo, t)).collect());
        let mut inside = mask.clone();
        let own = self.loops;
        self.loops += 1;
        while inside.contains(&true) && self.steps < STEPS {
            self.steps += 1;
            if counted {
                for t in 0..self.threads {
                    inside[t] &= at[t] < number(self, bounds[1], t);
                    if inside[t] {
                        self.set(index[0], t, at[t].cast_unsigned());
                    }
                }
                if (0..self.threads).any(|t| inside[t] && number(self, bounds[2], t) <= 0) {
                    self.say(format!("{}: a step that is not positive", name(op)));
                    break;
                }
            }
            args.iter().for_each(|a| self.compare(*a, &inside));
            self.block(body, &inside);
            for t in 0..self.threads {
                if inside[t] && self.state[t] == State::Continued(own) {
                    self.state[t] = State::Running;
                    if counted {
                        at[t] += number(self, bounds[2], t);
                    }
                } else {
                    inside[t] = false;
                }
            }
        }
        self.loops -= 1;
        // Those that ran out of numbers give what they carry; those that broke have given their results.
        let done = self.running(mask);
        if counted {
            let ended: Mask = (0..self.threads).map(|t| done[t]).collect();
            self.assign(&op.results, carried, &ended);
        }
        for t in (0..self.threads).filter(|t| mask[*t]) {
            if self.state[t] == State::Broke(own) {
                self.state[t] = State::Running;
            }
        }
        let rest = self.running(mask);
        op.results.iter().for_each(|r| self.compare(*r, &rest));
    }

    fn leave(&mut self, op: &Op, mask: &Mask) {
        let target = |n: u32| self.loops - 1 - n as usize;
        let state = match op.kind {
            OpKind::Break(n) => State::Broke(target(n)),
            OpKind::Continue(n) => State::Continued(target(n)),
            _ => State::Returned,
        };
        if let State::Broke(at) | State::Continued(at) = state {
            let Some(around) = self.around(op, at) else {
                self.say("no such loop".to_owned());
                return;
            };
            let to: Vec<Value> = if matches!(state, State::Broke(_)) {
                around.results.clone()
            } else {
                self.func
                    .block(around.regions[0])
                    .args
                    .iter()
                    .skip(usize::from(around.kind == OpKind::For))
                    .copied()
                    .collect()
            };
            self.assign(&to, &op.args.clone(), mask);
        }
        for t in (0..self.threads).filter(|t| mask[*t]) {
            self.state[t] = state;
        }
    }

    /// The loop of this number around an operation.
    fn around(&self, op: &Op, number: usize) -> Option<&'_ Op> {
        fn find<'f>(m: &'f Machine<'_>, block: Block, wanted: *const Op, path: &mut Vec<&'f Op>) -> bool {
            m.func.block(block).ops.iter().any(|id| {
                let op = m.func.op(*id);
                if std::ptr::eq(op, wanted) {
                    return true;
                }
                let is_loop = matches!(op.kind, OpKind::For | OpKind::Loop);
                if is_loop {
                    path.push(op);
                }
                let found = op.regions.iter().any(|r| find(m, *r, wanted, path));
                if is_loop && !found {
                    path.pop();
                }
                found
            })
        }
        let mut path = Vec::new();
        find(self, self.func.body, op, &mut path);
        path.get(number).copied()
    }
}
