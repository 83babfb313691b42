//! Commit groups: the operations that are staged, committed, or waited for.
//!
//! | event | rule |
//! |---|---|
//! | operation of a group | *staged*: no thread sees its effects, not even the issuing one; an ordered unit sees its own |
//! | commit | the staged ones are the newest group |
//! | wait for at most N | the waiting partition and its units see the effects of all but the last N groups |
//! | any access | is checked against the visible effects, of any thread and any group, staged ones included |
//!
//! A group is kept as its number, which is the count of commits before it. It is staged while that is the number of
//! commits, and outstanding until a wait establishes that more groups than that are complete. Other sanitizers keep the counters
//! −1, 1, 2, … instead, which must be incremented at each commit.
//!
//! | kind | accesses | ordered among themselves |
//! |---|---|---|
//! | `cp.async` | writes shared memory | no |
//! | wgmma | reads shared memory | yes |
//! | TMA store | reads shared memory; reported by [`Event::Commit`] also where the commit is implicit | no |
//! | AMD's counters | both; each operation is a group | yes |
//!
//! An operation whose reads are known complete before its writes (`cp.async.bulk.wait_group.read`) is reported as two, of
//! two classes.
//!
//! Source: PTX ISA, `cp.async.wait_group`, `wgmma.wait_group`, `cp.async.bulk.wait_group`; Triton's sanitizer.
//!
//! [`Event::Commit`]: crate::engine::Event::Commit

use super::effect::Effect;
use super::lanes::{Memory, Span};
use super::mask::Partition;
use crate::engine::{Agent, Class};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The groups of one agent and class.
#[derive(Clone, Debug, Default)]
struct Groups {
    commits: u32,
    complete: u32,
    /// Accesses that were not waited for, with the numbers of their groups.
    accessed: VecDeque<(u32, Span)>,
    /// The bytes of accesses that may still be recorded: an arrival of all earlier operations publishes them.
    places: BTreeSet<Span>,
}

/// The groups of all agents.
#[derive(Clone, Debug, Default)]
pub(super) struct Commits {
    groups: BTreeMap<(Agent, Class), Groups>,
}

impl Commits {
    /// The number of the group that an operation issued now belongs to.
    pub(super) fn current(&self, agent: Agent, class: Class) -> u32 {
        self.groups.get(&(agent, class)).map_or(0, |g| g.commits)
    }

    /// The number of groups that are known to be complete.
    pub(super) fn complete(&self, agent: Agent, class: Class) -> u32 {
        self.groups.get(&(agent, class)).map_or(0, |g| g.complete)
    }

    /// For each agent and class with groups that are committed and not known to be complete, the number of these groups.
    pub(super) fn open_groups(&self) -> Vec<((Agent, Class), u32)> {
        let open = |g: &Groups| g.commits.saturating_sub(g.complete);
        self.groups.iter().map(|(key, g)| (*key, open(g))).filter(|(_, n)| *n > 0).collect()
    }

    /// Records an access of an operation in its group.
    pub(super) fn accessed(&mut self, agent: Agent, class: Class, group: Option<u32>, span: Span) {
        let groups = self.groups.entry((agent, class)).or_default();
        groups.accessed.extend(group.map(|group| (group, span)));
        groups.places.insert(span);
    }

    pub(super) fn commit(&mut self, agent: Agent, class: Class, commits: u32) {
        self.groups.entry((agent, class)).or_default().commits = commits;
    }

    /// Records that a wait has established the completion of this number of groups. Returns whether any access became visible.
    pub(super) fn wait(
        &mut self,
        agent: Agent,
        p: Partition,
        class: Class,
        complete: u32,
        memory: &mut Memory,
    ) -> bool {
        let Some(groups) = self.groups.get_mut(&(agent, class)) else { return false };
        groups.complete = groups.complete.max(complete);
        let n = groups.accessed.iter().take_while(|(g, _)| *g < complete).count();
        let spans: Vec<Span> = groups.accessed.drain(..n).map(|(_, span)| span).collect();
        let mut any = false;
        let over = |e: &Effect| {
            let own = e.side.agent == agent && e.side.class == Some(class);
            let is = own && e.group.is_some_and(|g| g < complete);
            any |= is;
            is
        };
        memory.each_in(&spans, over, |e| e.wait(p));
        any
    }

    /// The bytes that an agent's operations of a class have accessed.
    pub(super) fn places(&self, agent: Agent, class: Class) -> Vec<Span> {
        self.groups.get(&(agent, class)).map_or_else(Vec::new, |g| g.places.iter().copied().collect())
    }

    /// Keeps only those of these places where accesses of these operations are still recorded.
    pub(super) fn keep(&mut self, agent: Agent, class: Class, left: &[Span]) {
        if let Some(g) = self.groups.get_mut(&(agent, class)) {
            g.places = left.iter().copied().collect();
        }
    }
}
