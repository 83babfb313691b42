//! Which operations of a loop's body one branch guards.
//!
//! Fills that run ahead are executed only if their iteration exists. The operations of one ring become one branch, with what is computed for
//! them alone:
//!
//! ```text
//! %slot = acquire               stage(0, 0)        if %i + 2 < %n {
//! %page = get %table[%i]        stage(0, 1)            %slot = acquire
//! %from = source %k[%page]      stage(2, 0)            %page = get %table[%i + 2]
//! copy %from to %slot           stage(0, 2)            %from = source %k[%page]
//!                                                      copy %from to %slot
//!                                                  }
//! ```
//!
//! If two rings share such an operation, as the keys and the values of a page, one branch guards the fills of all rings.
//!
//! Deliberately absent: results that are used outside of the branch. These would have no value where the iteration does not exist.

use super::early::{Beyond, Early, HAS_EFFECT, early, may_be_guarded, of_ring};
use super::steady::{Made, Steady, is_renewable};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{OpId, Pipe, Value};

/// Operations that stand behind each other in the order of the schedule.
#[derive(Clone, Debug)]
pub(super) enum Run {
    /// One operation.
    One(OpId),
    /// Operations of one stage, which are executed if their iteration exists.
    Guarded(Vec<OpId>),
}

impl Run {
    /// All of them.
    pub(super) fn all(&self) -> Vec<OpId> {
        match self {
            Run::One(id) => vec![*id],
            Run::Guarded(ops) => ops.clone(),
        }
    }

    /// The first of the operations.
    pub(super) fn first(&self) -> OpId {
        match self {
            Run::One(id) => *id,
            Run::Guarded(ops) => ops.first().copied().unwrap_or(OpId::new(0)),
        }
    }
}

impl Steady {
    /// The operations of the body in order, those that one branch guards together.
    pub(super) fn runs(&self) -> Made<Vec<Run>> {
        let apart = self.guarded(|pipe| pipe)?;
        // One branch for each ring is preferred, since it keeps each fill at its place. If an operation that needs a
        // guard is used by the fills of two rings, it is in no group: its users are not all in one. A single group for
        // all rings has all of these users.
        let groups = match self.unguarded(&apart) {
            None => apart,
            Some(_) => self.guarded(|_| ())?,
        };
        if let Some(id) = self.unguarded(&groups) {
            return self.violation(id, HAS_EFFECT);
        }
        let mut runs = Vec::new();
        for id in &self.ops {
            match groups.iter().find(|group| group.contains(id)) {
                // All are executed at the place of the last one.
                // Moving the operations of a group to the place of the last one is later than scheduled for the others.
                // Nothing outside uses their results, and the checker shows that memory and rings are touched in a
                // legal order.
                Some(group) if group.last() == Some(id) => runs.push(Run::Guarded(group.clone())),
                Some(_) => {}
                None => runs.push(Run::One(*id)),
            }
        }
        Ok(runs)
    }

    /// Groups the operations that one branch guards: the acquisitions and fills of rings with the same key, with what nothing else uses. These
    /// are names and numbers that stand between them, and other operations that run as far ahead.
    fn guarded<K: Ord>(&self, key: impl Fn(Pipe) -> K) -> Made<Vec<Vec<OpId>>> {
        let kernel = &self.edit.kernel;
        let ring = |id: &OpId| match of_ring(kernel, *id) {
            Some(Early::Fills(pipe)) if self.beyond == Beyond::Guarded && self.lead(*id) > 0 => Some(pipe),
            Some(Early::Fills(_) | Early::Reads(_) | Early::Harmless | Early::Predicated | Early::Guarded) | None => {
                None
            }
        };
        let mut groups: SortedMap<K, Vec<OpId>> = SortedMap::new();
        for (pipe, id) in self.ops.iter().filter_map(|id| Some((ring(id)?, *id))) {
            groups.entry(key(pipe)).or_default().push(id);
        }
        for group in groups.values_mut() {
            let of_group = |id: &OpId| group.contains(id);
            let span = self.ops.iter().position(of_group).zip(self.ops.iter().rposition(of_group));
            let (Some((first, last)), Some(fill)) = (span, group.first().copied()) else { continue };
            // One branch has one condition, so all its operations belong to one iteration.
            if let Some(id) = group.iter().find(|id| self.lead(**id) != self.lead(fill)) {
                return self.violation(*id, "the schedule acquires a slot and fills it in different stages");
            }
            let guarded = self.that_need_guards(self.lead(fill));
            // From the last one on, so that what is used by what was added is known.
            let mut all = Vec::new();
            // Backwards, users come before what they use: when an operation is looked at, it is known of all its users
            // whether they are in the group. One pass suffices therefore.
            for (at, id) in self.ops.iter().enumerate().take(last + 1).rev() {
                let own = |user: &OpId| group.contains(user) || all.contains(user);
                let is_added = if is_renewable(kernel, *id, false) {
                    at >= first || guarded.contains(id)
                } else {
                    self.lead(*id) > 0 && may_be_guarded(kernel, *id)
                };
                let joins = is_added
                    && self.lead(*id) == self.lead(fill)
                    // A result with a user outside of the branch would have no value there if the iteration does not
                    // exist.
                    && self.users(*id).is_some_and(|users| users.iter().all(own));
                if group.contains(id) || joins {
                    all.push(*id);
                }
            }
            all.reverse();
            *group = all;
        }
        Ok(groups.values().cloned().collect())
    }

    /// The operations so far ahead that must not be executed for iterations that do not exist, and those that use their results.
    fn that_need_guards(&self, lead: u16) -> SortedSet<OpId> {
        let kernel = &self.edit.kernel;
        let (mut all, mut made) = (SortedSet::new(), SortedSet::<Value>::new());
        for id in self.ops.iter().filter(|id| lead > 0 && self.lead(**id) == lead) {
            let op = kernel.op(*id);
            // In the order of the schedule, so that what uses a result comes behind it and one pass finds the whole
            // chain: a load of a coordinate, the sum made of it, the name of the tile.
            if early(kernel, *id) == Some(Early::Guarded) || op.args.iter().any(|v| made.contains(v)) {
                all.insert(*id);
                made.extend(op.results.iter().copied());
            }
        }
        all
    }

    /// An operation that must not be executed for iterations that do not exist, runs ahead and is in none of these groups.
    fn unguarded(&self, groups: &[Vec<OpId>]) -> Option<OpId> {
        let kernel = &self.edit.kernel;
        // A peeled loop has only iterations that exist.
        let several = self.beyond != Beyond::Peeled;
        let ahead = |id: &OpId| several && self.lead(*id) > 0 && early(kernel, *id) == Some(Early::Guarded);
        self.ops.iter().copied().find(|id| ahead(id) && !groups.iter().any(|group| group.contains(id)))
    }

    /// The operations of the body that use what an operation computes, themselves or in those nested in them; `None` if it is passed on.
    fn users(&self, id: OpId) -> Option<Vec<OpId>> {
        let kernel = &self.edit.kernel;
        let results = &kernel.op(id).results;
        let uses = |args: &[Value]| args.iter().any(|v| results.contains(v));
        let is_user = |user: &OpId| uses(&kernel.operands_within(*user));
        (!uses(&self.next)).then(|| self.ops.iter().copied().filter(is_user).collect())
    }
}
