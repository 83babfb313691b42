//! Rule 65, for memory: shared memory that several roles access belongs to a ring, and nothing else overlaps it.
//!
//! All other memory of a role is private to it, and so are its named barriers. Deliberately absent: which role holds a slot at a time,
//! which the co-execution of the claims checks, and barriers between the warps of one role.

use super::{Check, wrong};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{NvOp, OpKind, Pipe, TtgOp, Value};
use crate::verify::coexecution::rings::find::{Claims, is_opaque, is_view, places, region_of};
use crate::verify::roles::threads;

/// An access of a role to a region.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Touched {
    region: Value,
    /// The first byte of the region, and its end.
    bytes: (u64, u64),
    role: usize,
    /// Whether it accesses tiles of slots only.
    of_slots: bool,
}

impl Check<'_> {
    /// Checks that memory that several roles access is a ring, or a barrier or counter of its slots.
    pub(super) fn between_roles(&mut self, joined: &SortedSet<Pipe>, claims: &Claims) {
        let kernel = self.kernel;
        let words: SortedSet<Value> = self.rings.values().flat_map(|ring| ring.words(kernel)).collect();
        let places = places(kernel);
        // `apart` checks what overlaps these.
        // Two roles that access tiles of slots of one ring are compared by the times of the slots. Anything else that
        // both access has no order.
        let is_joined = |region: &Value| claims.ring_of.get(region).is_some_and(|pipe| joined.contains(pipe));
        let mut seen: SortedSet<Touched> = SortedSet::new();
        let mut wrong = SortedMap::new();
        for (role, (_, block)) in threads(kernel).iter().enumerate() {
            kernel.walk_block(*block, &mut |id, op| {
                let opaque = is_opaque(&op.kind);
                let names = matches!(op.kind, OpKind::Region(_) | OpKind::Ttg(_)) && !opaque;
                if names || is_view(kernel, op) {
                    return;
                }
                // Other roles may use the ring at any time.
                if opaque && !kernel.roles.is_empty() && claims.under.contains_key(&id) {
                    wrong.insert(id, "this accesses the memory of a ring as a whole, which no claim covers");
                }
                let of_slots = claims.accesses.contains_key(&id);
                for region in op.args.iter().filter_map(|v| region_of(kernel, *v)).filter(|r| !words.contains(r)) {
                    let Some(bytes) = places.get(&region).copied() else { continue };
                    // Accesses to slots are checked against the role that holds them.
                    let meets = |other: &Touched| {
                        let overlaps = other.bytes.0 < bytes.1 && bytes.0 < other.bytes.1;
                        // Of one region, slots against slots are ordered by the ring. Of different regions that
                        // overlap, a ring is the business of `apart`.
                        let unordered = if other.region == region {
                            !other.of_slots || !of_slots
                        } else {
                            !is_joined(&region) && !is_joined(&other.region)
                        };
                        other.role != role && overlaps && unordered
                    };
                    if seen.iter().any(meets) {
                        wrong.entry(id).or_insert("two roles access this memory, and no ring orders the accesses");
                    }
                    // Each pair of roles is compared when the later one is looked at.
                    seen.insert(Touched { region, bytes, role, of_slots });
                }
            });
        }
        for (id, title) in wrong {
            self.error(id, title);
        }
    }

    /// Checks that no ring is used outside of the roles, where no claim is checked.
    pub(super) fn outside_of_roles(&mut self, claims: &Claims) {
        let kernel = self.kernel;
        if kernel.roles.is_empty() {
            return;
        }
        let mut inside = SortedSet::new();
        for (_, block) in threads(kernel) {
            kernel.walk_block(block, &mut |id, _| inside.extend([id]));
        }
        let of_ring = |v: &Value| region_of(kernel, *v).is_some_and(|region| claims.ring_of.contains_key(&region));
        let mut wrong = Vec::new();
        kernel.walk(&mut |id, op| {
            let claim = matches!(op.kind, OpKind::Ttg(TtgOp::Claim(..)));
            let names = is_view(kernel, op) || matches!(op.kind, OpKind::Region(_) | OpKind::Ttg(_));
            // Slots of regions are compared with each other in the co-execution, which begins with the roles.
            let of_slots = claims.accesses.contains_key(&id);
            if !inside.contains(&id) && (claim || of_slots || !names && op.args.iter().any(of_ring)) {
                wrong.push(id);
            }
        });
        for id in wrong {
            self.error(id, "this uses a ring outside of the roles");
        }
    }

    /// Checks that a named barrier belongs to one role, and barrier 0 to the whole program.
    pub(super) fn named_barriers(&mut self) {
        let kernel = self.kernel;
        let mut of: SortedMap<u8, usize> = SortedMap::new();
        let mut wrong = Vec::new();
        for (role, (_, block)) in threads(kernel).iter().enumerate().filter(|_| !kernel.roles.is_empty()) {
            kernel.walk_block(*block, &mut |id, op| {
                let OpKind::Nv(NvOp::BarrierSync { id: named, .. }) = op.kind else { return };
                // Threads of two roles that arrive at one named barrier would complete it for each other.
                if named == 0 || *of.entry(named).or_insert(role) != role {
                    wrong.push(id);
                }
            });
        }
        for id in wrong {
            self.error(id, "this barrier is also used outside this role");
        }
    }

    /// Checks that no other memory that is used in the roles overlaps the rings between roles, or their barriers and counters.
    pub(super) fn apart(&mut self, joined: &SortedSet<Pipe>, claims: &Claims) {
        let kernel = self.kernel;
        let places = places(kernel);
        let slots: SortedSet<Value> =
            claims.ring_of.iter().filter(|(_, pipe)| joined.contains(pipe)).map(|(region, _)| *region).collect();
        let words: SortedSet<Value> =
            joined.iter().filter_map(|pipe| self.rings.get(pipe)).flat_map(|ring| ring.words(kernel)).collect();
        // Memory that only the operations before the roles access may overlap: the program's barrier before the roles orders these accesses
        // before those to slots. The words of barriers are initialised there.
        // The barrier before the roles orders everything before it with everything in the roles: memory that is used
        // only before may have the same bytes.
        let mut later: SortedSet<Value> = SortedSet::new();
        for (_, block) in threads(kernel) {
            kernel.walk_block(block, &mut |_, op| later.extend(op.args.iter().filter_map(|v| region_of(kernel, *v))));
        }
        for (region, (first, end)) in &places {
            let meets = |(other, (f, e)): (&Value, &(u64, u64))| {
                other != region && f < end && first < e && (words.contains(region) || later.contains(other))
            };
            let other = places.iter().find(|place| meets(*place));
            if let Some((other, _)) = other.filter(|_| slots.contains(region) || words.contains(region)) {
                let at = |region: Value| kernel.def_op(region).map(|op| op.loc).unwrap_or_default();
                let (name, with) = (kernel.display_name(*region), kernel.display_name(*other));
                let title = format!("`{with}` overlaps `{name}`, which is shared between roles");
                self.errors.push(wrong(at(*other), title).related(at(*region), format!("`{name}`")));
            }
        }
    }
}
