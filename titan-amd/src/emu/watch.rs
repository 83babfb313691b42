//! The observer of a workgroup: the sanitizer, with each wave as a partition of its own.
//!
//! Operations on the local data share are asynchronous work of their wave, which completes in order; so are loads from
//! memory into it, in an order of their own. What a wave has not waited for is not visible.

use super::error::ErrorCode;
use super::fail::Fail;
use super::group::{Group, LDS, SMEM, VM};
use super::launch::Env;
use titan_sim::engine::{Agent, BarrierId, Class, Event, Observer, Place, SpaceId, Stop, Wait};
use titan_sim::sanitize::{Config, Deed, Finding, Names, Sanitizer, Side, Unit, Work};

/// The class of operations on the local data share.
const LDS_WORK: Work = Work { name: "LDS access", unit: Unit::Tma, ordered: true, must_end: false };
/// The class of loads from memory to the local data share; hardware waits for them when the wave ends.
const COPY_WORK: Work = Work { must_end: false, ..Work::AMD_COPY };
/// The class of scalar loads, which complete in any order and access no local data share.
const SCALAR_WORK: Work = Work { name: "scalar load", unit: Unit::Base, ordered: false, must_end: false };

/// The observer of one workgroup.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    sanitizer: Option<Sanitizer>,
    /// The waves that have ended.
    ended: Vec<Agent>,
}

impl Observer for Watch {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        match *event {
            // A barrier waits for a wave until it has ended, so that what the wave did is over for those that pass.
            Event::Meet { rendezvous, waited, passed } if !self.ended.is_empty() => {
                let passed = [passed, &self.ended].concat();
                self.sanitizer.event(&Event::Meet { rendezvous, waited, passed: &passed })
            }
            _ => self.sanitizer.event(event),
        }
    }
}

impl Watch {
    pub(crate) fn new(env: &Env<'_>) -> Watch {
        let sanitizer = env.options.sanitize.then(|| config(env.waves())).flatten().map(Sanitizer::new);
        Watch { sanitizer, ended: Vec::new() }
    }

    pub(crate) const fn is_off(&self) -> bool {
        self.sanitizer.is_none()
    }

    /// Records that a wave ends.
    pub(crate) fn ends(&mut self, agent: Agent) {
        self.ended.push(agent);
    }

    /// Records the place of a wave, for events that do not carry it.
    pub(crate) fn at(&mut self, agent: Agent, place: Place) -> Result<(), Stop> {
        self.sanitizer.event(&Event::At { agent, place, tag: 0 })
    }
}

fn config(waves: usize) -> Option<Config> {
    let mut config = Config::one_each(waves).ok()?;
    config.home(SpaceId::new(0), 0).class(VM, COPY_WORK).class(LDS, LDS_WORK).class(SMEM, SCALAR_WORK);
    Some(config)
}

/// The emulator's names for the numbers in a finding.
struct Words;

impl Names for Words {
    fn agent(&self, agent: Agent) -> String {
        format!("wave {}", agent.index())
    }
    fn place(&self, place: Place, _: u64) -> String {
        format!("{:#x}", place.index() * 4)
    }
    fn bytes(&self, _: SpaceId, address: u64, len: u64) -> String {
        format!("bytes {address}..{} of the local data share", address + len)
    }
    fn barrier(&self, _: BarrierId) -> String {
        "`s_barrier`".to_owned()
    }
    fn class(&self, class: Class) -> String {
        match class {
            VM => "a load into the local data share".to_owned(),
            LDS => "an access to the local data share".to_owned(),
            _ => "a scalar load".to_owned(),
        }
    }
    fn wait(&self, _: Wait) -> String {
        "`s_barrier`".to_owned()
    }
}

impl Group<'_> {
    /// The error for the finding because of which the sanitizer stopped the run.
    pub(crate) fn finding(&self, watch: &Watch) -> Option<Fail> {
        let finding = watch.sanitizer.as_ref()?.findings().first()?;
        let message = format!("{} [sanitizer: {}]", finding.headline(&Words), finding.rule.code());
        let at = |s: &Side| (self.env.base + s.place.index() as u64 * 4, s.agent.index());
        let (address, wave) = at(&finding.now);
        let mut fail = Fail::new(ErrorCode::Race, message).or_at(address, wave);
        if let Some(other) = finding.others.first() {
            fail = fail.against(at(other).0, format!("{} of wave {}", what(other), other.agent.index()));
        }
        Some(fail.help(help(finding)))
    }
}

const fn what(side: &Side) -> &'static str {
    match side.deed {
        Deed::Read => "a read",
        Deed::Write | Deed::Atomic => "a write",
        Deed::Init | Deed::Invalidate | Deed::Arrive | Deed::Wait | Deed::Signal | Deed::Exit => "an event",
    }
}

const fn help(_: &Finding) -> &'static str {
    "an access is over for its wave after `s_waitcnt`, and for other waves after an `s_barrier` that follows it"
}
