//! Vector clocks of agents and their helpers.
//!
//! A component's clock numbers its stretches between releases. An agent's view of the others is a vector that
//! agents share as long as their views are equal: after a barrier of a thousand agents there is one vector, not a thousand.
//! An agent's view of itself and of its own helpers is kept beside the vector, because it changes all the time.

use crate::engine::agent::Agent;
use crate::engine::event::Helper;
use crate::engine::pending::{Class, OpId};
use crate::engine::phase::BarrierId;
use crate::engine::space::SpaceId;
use std::collections::BTreeMap;
use std::sync::Arc;

type Vector = Arc<Vec<u32>>;

/// A word of a memory.
type Word = (SpaceId, u64);

/// The clocks that a barrier has released.
#[derive(Clone, Debug, Default)]
struct Publication {
    gathering: Vector,
    /// The vector that was merged last: most agents arrive with the same one.
    last: Vector,
    complete: Vector,
}

/// The clocks of a helper: one at each commit of its agent, and the one up to which its agent has waited.
#[derive(Clone, Debug, Default)]
struct HelperClock {
    commits: Vec<u32>,
    waited: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Clocks {
    agents: usize,
    classes: Vec<Class>,
    /// The clock of each component: the agents, then the helpers of the first class, and so on.
    own: Vec<u32>,
    known: Vec<Vector>,
    helpers: Vec<HelperClock>,
    barriers: BTreeMap<BarrierId, Publication>,
    words: BTreeMap<Word, Vector>,
    /// The clocks of agents at their last fences of initialised barriers.
    inits: BTreeMap<usize, Vector>,
    /// The clock at which each operation that signals a barrier was issued.
    issued: BTreeMap<OpId, u32>,
    /// The last merge of vectors: the vector before it, the vector that was acquired, and the result.
    learned: (Vector, Vector, Vector),
}

/// The view of an agent: the data that decides whether an epoch is ordered before its current event.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    agent: u32,
    agents: u32,
    vector: &'a [u32],
    helpers: &'a [HelperClock],
}

impl<'a> Known<'a> {
    /// A view of others alone, in which nothing is ordered because it was the agent itself.
    pub(super) const fn of_others(vector: &'a [u32]) -> Known<'a> {
        Known { agent: u32::MAX, agents: u32::MAX, vector, helpers: &[] }
    }

    /// Whether the events of these components from `first` on, up to `clock`, are known to happen before, without the agent's view of itself.
    #[inline]
    pub(super) fn covers_all(&self, first: u32, lanes: u32, clock: u32) -> bool {
        let mut rest = lanes;
        while rest != 0 {
            let at = first.saturating_add(rest.trailing_zeros());
            if self.vector.get(at as usize).is_none_or(|known| *known < clock) {
                return false;
            }
            rest &= rest - 1;
        }
        true
    }

    /// Whether the events of `component` up to `clock` happen before the agent's current event.
    #[inline]
    pub(super) fn covers(&self, component: u32, clock: u32) -> bool {
        if component == self.agent || self.vector.get(component as usize).is_some_and(|known| *known >= clock) {
            return true;
        }
        let own_helper = component >= self.agents && component % self.agents == self.agent;
        own_helper && self.helpers.get((component - self.agents) as usize).is_some_and(|h| h.waited >= clock)
    }
}

pub(super) fn component(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn raise(vector: &mut Vec<u32>, at: usize, to: u32) {
    if vector.len() <= at {
        vector.resize(at + 1, 0);
    }
    vector[at] = vector[at].max(to);
}

fn join(into: &mut Vector, other: &Vector) {
    if Arc::ptr_eq(into, other) || other.is_empty() {
        return;
    }
    if into.is_empty() {
        *into = Arc::clone(other);
        return;
    }
    let vector = Arc::make_mut(into);
    if vector.len() < other.len() {
        vector.resize(other.len(), 0);
    }
    for (mine, theirs) in vector.iter_mut().zip(other.iter()) {
        *mine = (*mine).max(*theirs);
    }
}

impl Clocks {
    pub(super) fn new(agents: usize) -> Clocks {
        Clocks {
            agents,
            classes: Vec::new(),
            own: vec![1; agents],
            known: vec![Vector::default(); agents],
            helpers: Vec::new(),
            barriers: BTreeMap::new(),
            words: BTreeMap::new(),
            inits: BTreeMap::new(),
            issued: BTreeMap::new(),
            learned: Default::default(),
        }
    }

    pub(super) fn of_helper(&mut self, agent: Agent, class: Class) -> u32 {
        let index = self.classes.iter().position(|c| *c == class).unwrap_or_else(|| {
            self.classes.push(class);
            self.own.resize(self.own.len() + self.agents, 1);
            self.helpers.resize(self.helpers.len() + self.agents, HelperClock::default());
            self.classes.len() - 1
        });
        component((index + 1) * self.agents + agent.index())
    }

    /// The agent to which a component of the clocks belongs, and for a helper its class.
    pub(super) fn owner(&self, component: u32) -> (Agent, Option<Class>) {
        let (class, agent) = (component as usize / self.agents.max(1), component as usize % self.agents.max(1));
        let helper = class.checked_sub(1).and_then(|c| self.classes.get(c)).copied();
        (Agent::new(agent), helper)
    }

    pub(super) fn own(&self, component: u32) -> u32 {
        self.own.get(component as usize).copied().unwrap_or(0)
    }

    /// The positions in `own` and `helpers` of an agent's helpers.
    fn helpers_of(&self, agent: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n = self.agents;
        (0..self.classes.len()).map(move |c| ((c + 1) * n + agent, c * n + agent))
    }

    pub(super) fn known(&self, agent: Agent) -> Known<'_> {
        let vector = self.known.get(agent.index()).map_or(&[][..], |v| v.as_slice());
        Known { agent: component(agent.index()), agents: component(self.agents), vector, helpers: &self.helpers }
    }

    /// The view of the others that agents share, and the clock that they have, if these are the same for all.
    pub(super) fn together(&self, first: usize, lanes: u32) -> Option<(&[u32], u32)> {
        let (vector, clock) = (self.known.get(first)?, *self.own.get(first)?);
        let mut others = (0..u32::BITS as usize).filter(|lane| lanes >> lane & 1 == 1).map(|lane| first + lane);
        let same = |at: usize| {
            at < self.agents
                && self.own[at] == clock
                && self.known.get(at).is_some_and(|known| Arc::ptr_eq(known, vector))
        };
        others.all(same).then_some((vector, clock))
    }

    /// Adds an agent's view of itself to a vector with its view of the others, and starts its next stretch.
    fn publish_own(&mut self, agent: Agent, into: &mut Vec<u32>) {
        let a = agent.index();
        if a >= self.agents {
            return;
        }
        for (own, h) in self.helpers_of(a) {
            raise(into, own, self.helpers[h].waited);
        }
        raise(into, a, self.own[a]);
        self.own[a] += 1;
    }

    fn vector(&self, agent: Agent) -> Vector {
        self.known.get(agent.index()).map(Arc::clone).unwrap_or_default()
    }

    /// Lets an agent acquire a vector. Agents whose earlier views were equal share the result.
    fn learn(&mut self, agent: Agent, what: &Vector) {
        let Some(known) = self.known.get_mut(agent.index()) else { return };
        let (before, published, after) = &self.learned;
        if Arc::ptr_eq(before, known) && Arc::ptr_eq(published, what) {
            *known = Arc::clone(after);
            return;
        }
        let before = Arc::clone(known);
        join(known, what);
        self.learned = (before, Arc::clone(what), Arc::clone(known));
    }

    pub(super) fn meet(&mut self, waited: &[Agent], passed: &[Agent]) {
        let mut joined = Vector::default();
        for agent in waited.iter().chain(passed) {
            join(&mut joined, &self.vector(*agent));
        }
        let vector = Arc::make_mut(&mut joined);
        for agent in waited.iter().chain(passed) {
            self.publish_own(*agent, vector);
        }
        for agent in waited {
            if let Some(known) = self.known.get_mut(agent.index()) {
                *known = Arc::clone(&joined);
            }
        }
    }

    /// The vector that an agent releases. Also starts the agent's next stretch.
    fn published(&mut self, agent: Agent) -> Vector {
        let mut all = self.vector(agent);
        self.publish_own(agent, Arc::make_mut(&mut all));
        all
    }

    pub(super) fn fork(&mut self, agent: Agent, into: &[Agent]) {
        let all = self.published(agent);
        into.iter().for_each(|other| self.learn(*other, &all));
    }

    pub(super) fn join_into(&mut self, agents: &[Agent], into: Agent) {
        for agent in agents {
            let all = self.published(*agent);
            self.learn(into, &all);
        }
    }

    pub(super) fn join_all(&mut self) {
        let joined: Vector = Arc::new(self.own.clone());
        self.own.iter_mut().for_each(|c| *c += 1);
        self.known.iter_mut().for_each(|k| *k = Arc::clone(&joined));
        self.helpers.fill(HelperClock::default());
        self.barriers.clear();
        self.words.clear();
        self.inits.clear();
        self.issued.clear();
    }

    pub(super) fn issue(&mut self, agent: Agent, class: Class, op: OpId) {
        let at = self.of_helper(agent, class);
        if let Some(clock) = self.own.get_mut(at as usize) {
            *clock += 1;
            self.issued.insert(op, *clock);
        }
    }

    pub(super) fn forget(&mut self, op: OpId) {
        self.issued.remove(&op);
    }

    pub(super) fn commit(&mut self, agent: Agent, class: Class) {
        let at = self.of_helper(agent, class) as usize;
        let (clock, helper) = (self.own[at], &mut self.helpers[at - self.agents]);
        helper.commits.push(clock);
        self.own[at] += 1;
    }

    pub(super) fn group_wait(&mut self, agent: Agent, class: Class, complete: u32) {
        let at = self.of_helper(agent, class) as usize;
        let helper = &mut self.helpers[at - self.agents];
        let clock = (complete as usize).checked_sub(1).and_then(|i| helper.commits.get(i));
        helper.waited = helper.waited.max(clock.copied().unwrap_or(0));
    }

    pub(super) fn arrive(&mut self, agent: Agent, barrier: BarrierId) {
        let known = self.vector(agent);
        let mut publication = self.barriers.remove(&barrier).unwrap_or_default();
        if !Arc::ptr_eq(&publication.last, &known) || publication.gathering.is_empty() {
            join(&mut publication.gathering, &known);
            publication.last = known;
        }
        self.publish_own(agent, Arc::make_mut(&mut publication.gathering));
        self.barriers.insert(barrier, publication);
    }

    /// A fence of the barriers that an agent has initialised. Clocks do not distinguish addresses: the agent's later relaxed arrivals release
    /// all that came before it. (The sanitizer does distinguish them.)
    pub(super) fn fence_inits(&mut self, agent: Agent) {
        let all = self.published(agent);
        self.inits.insert(agent.index(), all);
    }

    /// A relaxed arrival, which releases what was released through the word of the agent's fences, and the barriers that it has fenced.
    pub(super) fn arrive_relaxed(&mut self, agent: Agent, fences: Word, barrier: BarrierId) {
        for released in [self.words.get(&fences), self.inits.get(&agent.index())].into_iter().flatten() {
            join(&mut self.barriers.entry(barrier).or_default().gathering, released);
        }
    }

    pub(super) fn helper_arrives(&mut self, agent: Agent, helper: Helper, barrier: BarrierId) {
        let at = self.of_helper(agent, helper.class);
        let clock = self.issued.get(&helper.op).copied().unwrap_or(0);
        let gathering = &mut self.barriers.entry(barrier).or_default().gathering;
        raise(Arc::make_mut(gathering), at as usize, clock);
    }

    pub(super) fn flip(&mut self, barrier: BarrierId) {
        let publication = self.barriers.entry(barrier).or_default();
        let gathered = std::mem::take(&mut publication.gathering);
        publication.last = Vector::default();
        join(&mut publication.complete, &gathered);
    }

    pub(super) fn observe(&mut self, agent: Agent, barrier: BarrierId) {
        let complete = self.barriers.get(&barrier).map(|p| Arc::clone(&p.complete)).unwrap_or_default();
        self.learn(agent, &complete);
    }

    /// A wait that passes what it acquires to a word.
    pub(super) fn observe_relaxed(&mut self, observed: Word, barrier: BarrierId) {
        if let Some(publication) = self.barriers.get(&barrier) {
            join(self.words.entry(observed).or_default(), &publication.complete);
        }
    }

    pub(super) fn reset(&mut self, barrier: BarrierId) {
        self.barriers.remove(&barrier);
    }

    pub(super) fn overwrite(&mut self, word: Word) {
        self.words.remove(&word);
    }

    pub(super) fn release(&mut self, agent: Agent, word: Word) {
        let mut published = self.words.remove(&word).unwrap_or_default();
        join(&mut published, &self.vector(agent));
        self.publish_own(agent, Arc::make_mut(&mut published));
        self.words.insert(word, published);
    }

    pub(super) fn acquire(&mut self, agent: Agent, word: Word) {
        let published = self.words.get(&word).map(Arc::clone).unwrap_or_default();
        self.learn(agent, &published);
    }

    pub(super) fn forward(&mut self, from: Word, to: Word) {
        if let Some(published) = self.words.get(&from).map(Arc::clone) {
            join(self.words.entry(to).or_default(), &published);
        }
    }
}
