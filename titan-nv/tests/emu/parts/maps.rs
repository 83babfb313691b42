//! Which bytes of a tensor map that device code changes a copy sees.

use titan_nv::emu::internals::MapScope::{Block, Cluster, Device};
use titan_nv::emu::internals::{MAP, MapScope, Maps, Party};
use titan_sim::engine::race::Races;
use titan_sim::engine::{Agent, Event, Observer as _, RendezvousId, SpaceId};

const AT: u64 = 0x1000;

fn party(thread: u64) -> Party {
    Party { thread, block: thread / 10, cluster: thread / 100 }
}

fn agent(thread: u64) -> Agent {
    Agent::new(usize::try_from(thread).unwrap())
}

/// The state of a map whose bytes are all equal.
struct World {
    maps: Maps,
    now: u8,
    races: Races,
}

impl World {
    fn new() -> World {
        World { maps: Maps::default(), now: 1, races: Races::new(200, SpaceId::new(0), 0, 0) }
    }

    fn store(&mut self, by: u64, value: u8) {
        self.maps.store(party(by), AT, (&[self.now; MAP], &[true; MAP]));
        self.now = value;
    }

    fn acquire(&mut self, by: u64, scope: MapScope) -> Option<u8> {
        let who = (party(by), agent(by), Some(&self.races));
        self.maps.acquire(who, scope, AT, (&[self.now; MAP], &[true; MAP]));
        self.seen(by).unwrap()
    }

    fn seen(&self, by: u64) -> Option<Option<u8>> {
        let seen = self.maps.seen(party(by).block, agent(by), Some(&self.races), AT)?;
        assert_eq!(seen, [seen[0]; MAP]);
        Some(seen[0])
    }
}

#[test]
fn a_store_is_seen_after_release_and_acquire_in_this_order() {
    let mut w = World::new();
    assert_eq!(w.seen(5), None);
    assert_eq!(w.acquire(5, Device), Some(1));
    w.store(6, 2);
    assert_eq!(w.seen(5), Some(Some(1)));
    assert_eq!(w.acquire(5, Device), Some(1), "not released");
    w.maps.release(6, Device);
    assert_eq!(w.seen(5), Some(Some(1)), "not acquired again");
    assert_eq!(w.acquire(5, Device), Some(2));
    assert_eq!(w.seen(6), None, "its own acquire is missing");
}

#[test]
fn a_thread_must_release_and_acquire_its_own_stores() {
    let mut w = World::new();
    w.store(6, 2);
    assert_eq!(w.acquire(6, Device), Some(1));
    w.maps.release(6, Block);
    assert_eq!(w.acquire(6, Block), Some(2));
}

#[test]
fn each_scope_must_include_the_other_thread() {
    for (writer, reader, least) in [(6, 7, Block), (6, 17, Cluster), (6, 106, Device)] {
        for release in [Block, Cluster, Device] {
            for acquire in [Block, Cluster, Device] {
                let mut w = World::new();
                w.store(writer, 2);
                w.maps.release(writer, release);
                let enough = release as u8 >= least as u8 && acquire as u8 >= least as u8;
                let other = (acquire == Device).then_some(1);
                let want = if enough { Some(2) } else { other };
                assert_eq!(w.acquire(reader, acquire), want, "{writer} {release:?}, {reader} {acquire:?}");
            }
        }
    }
}

#[test]
fn a_release_is_of_earlier_stores_of_the_thread_and_a_map_releases_itself_only() {
    let mut w = World::new();
    w.maps.release(6, Device);
    w.store(6, 2);
    w.maps.release(7, Device);
    assert_eq!(w.acquire(5, Device), Some(1));
    w.maps.release_map(6, AT + MAP as u64, Device);
    assert_eq!(w.acquire(5, Device), Some(1));
    w.maps.release_map(6, AT, Device);
    assert_eq!(w.acquire(5, Device), Some(2));
    w.store(7, 3);
    assert_eq!(w.acquire(5, Device), Some(2), "the one before it");
}

#[test]
fn an_acquire_is_for_the_threads_of_the_block_that_come_after_it() {
    let mut w = World::new();
    w.store(6, 2);
    w.maps.release(6, Device);
    w.acquire(5, Device);
    assert_eq!([3, 4, 15].map(|t| w.seen(t)), [None; 3]);
    let both = [agent(5), agent(3), agent(15)];
    w.races.event(&Event::Meet { rendezvous: RendezvousId::new(0), waited: &both, passed: &[] }).unwrap();
    assert_eq!([3, 4, 15].map(|t| w.seen(t)), [Some(Some(2)), None, None], "15 is in another block");
    w.store(6, 3);
    w.maps.release(6, Device);
    w.acquire(5, Device);
    assert_eq!(w.seen(5), Some(Some(3)));
    assert_eq!(w.seen(3), Some(Some(2)), "still that of before the meeting");
    w.acquire(3, Device);
    assert_eq!(w.seen(3), Some(Some(3)));
}

#[test]
fn a_narrow_acquire_takes_nothing_away() {
    let mut w = World::new();
    w.store(106, 2);
    w.maps.release(106, Device);
    assert_eq!(w.acquire(5, Block), None);
    assert_eq!(w.acquire(5, Device), Some(2));
    assert_eq!(w.acquire(5, Block), Some(2));
}
