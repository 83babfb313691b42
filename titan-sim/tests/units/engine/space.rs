//! Bounds, poison and names.

use titan_sim::engine::space::POISON;
use titan_sim::engine::{AllocationId, Fault, Space, StateHasher};

fn two() -> (Space, AllocationId, AllocationId) {
    let mut space = Space::new("global");
    let b = space.allocate("b", 0x2000, 100).unwrap();
    let a = space.allocate("a", 0x1000, 16).unwrap();
    (space, a, b)
}

#[test]
fn what_is_written_is_read() {
    let (mut space, a, _) = two();
    space.write(0x2003, &[1, 2, 3]).unwrap();
    let mut out = [0; 3];
    space.read(0x2003, &mut out).unwrap();
    assert_eq!(out, [1, 2, 3]);
    assert_eq!(space.describe(a), Some(("a", 0x1000, 16)));
    assert_eq!(space.check(0x2063, 1).map(|id| space.describe(id).unwrap().0.to_owned()), Ok("b".to_owned()));
}

#[test]
fn bounds_are_of_the_allocation_not_of_the_memory() {
    let (mut space, a, b) = two();
    for (address, len, near) in [(0xFFF, 1, a), (0x1010, 1, a), (0x100F, 2, a), (0x1FFF, 2, b), (0x2064, 4, b)] {
        let fault = Fault::OutOfBounds { address, len, near: Some(near) };
        assert_eq!(space.write(address, &vec![0; len as usize]), Err(fault), "{address:#x}");
        assert_eq!(space.read_any(address, &mut vec![0; len as usize]), Err(fault));
    }
    let said = space.explain(&space.check(0x1014, 4).unwrap_err());
    assert_eq!(
        said,
        "4 bytes at 0x1014 of global memory are not all inside an allocation: they begin 4 bytes after the end of `a` of 16 bytes"
    );
    assert!(space.check(u64::MAX, 16).is_err(), "the end of the access is past the end of the addresses");
}

#[test]
fn undefined_bytes_are_faults_or_told() {
    let (mut space, _, b) = two();
    space.write(0x2000, &[7; 8]).unwrap();
    space.write(0x2009, &[7; 80]).unwrap();
    let fault = Fault::Undefined { address: 0x2008, allocation: b };
    assert_eq!(space.read(0x2000, &mut [0; 70]), Err(fault));
    assert_eq!(space.explain(&fault), "byte 8 of `b` (global memory) was never written");
    let mut out = [0; 2];
    assert_eq!(space.read_any(0x2008, &mut out), Ok(false));
    assert_eq!(out, [POISON, 7]);
    space.poison_range(0x2000, 2).unwrap();
    assert!(space.read(0x2001, &mut [0]).is_err() && space.read(0x2002, &mut [0]).is_ok());
    space.poison();
    assert!(space.read(0x2002, &mut [0]).is_err());
}

#[test]
fn freed_and_read_only_allocations_say_so() {
    let (mut space, a, b) = two();
    space.free(a);
    assert_eq!(space.write(0x1000, &[0]), Err(Fault::Freed { address: 0x1000, allocation: a }));
    space.set_writable(b, false);
    assert_eq!(space.write(0x2000, &[0]), Err(Fault::ReadOnly { address: 0x2000, allocation: b }));
    assert_eq!(space.read_any(0x2000, &mut [0]), Ok(false));
}

#[test]
fn allocations_do_not_overlap() {
    let (mut space, ..) = two();
    assert_eq!(space.allocate("c", 0x100F, 1), None);
    assert_eq!(space.allocate("c", 0x0FFF, 2), None);
    assert_eq!(space.allocate("c", u64::MAX, 2), None);
    assert!(space.allocate("c", 0x1010, 1).is_some());
}

#[test]
fn equal_contents_hash_equally() {
    let (mut s, ..) = two();
    let before = StateHasher::of(&s);
    let copy = s.clone();
    s.write(0x1000, &[POISON]).unwrap();
    assert_ne!(StateHasher::of(&s), before, "the same byte, but defined");
    assert_eq!(StateHasher::of(&copy), before);
}

#[test]
fn a_forgotten_place_is_free_and_other_ids_stay() {
    let (mut space, a, b) = two();
    space.free(a);
    assert_eq!(space.allocate("c", 0x1000, 4), None);
    assert_eq!((space.bytes(a), space.describe(a)), (Some(&[][..]), Some(("a", 0x1000, 16))));
    space.forget(a);
    space.forget(a);
    assert_eq!(space.describe(a), None);
    let c = space.allocate("c", 0x1000, 4).unwrap();
    assert_eq!([b, c].map(|id| space.describe(id).unwrap().0), ["b", "c"]);
    assert_eq!((space.check(0x1003, 1), space.check(0x2000, 100)), (Ok(c), Ok(b)));
}

#[test]
fn copies_carry_what_is_undefined() {
    let (mut space, a, b) = two();
    space.write(0x1000, &[1, 2, 3]).unwrap();
    space.write(0x2000, &[9; 8]).unwrap();
    space.copy(0x1001, 0x2000, 4).unwrap();
    let mut out = [0; 2];
    space.read(0x2000, &mut out).unwrap();
    assert_eq!(out, [2, 3]);
    assert_eq!(space.read(0x2002, &mut out), Err(Fault::Undefined { address: 0x2002, allocation: b }));
    assert_eq!(space.extract(0x2002, 3), Ok((vec![POISON, POISON, 9], vec![false, false, true])));
    assert_eq!(space.copy(0x100F, 0x2000, 2), Err(Fault::OutOfBounds { address: 0x100F, len: 2, near: Some(a) }));
}
