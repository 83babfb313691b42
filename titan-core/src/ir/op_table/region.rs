//! Operations on regions of shared memory.

use super::facts::{PURE, synchronous};
use super::syntax::{Form, Head, HeadError, Written};
use super::*;
use crate::ir::Effect::Pipeline;
use crate::ir::Proxy::{Async, Generic};
use crate::ir::traffic::On::Regions;
use crate::ir::traffic::Order::AwaitsToken;
use crate::ir::traffic::{NO_TRAFFIC, Traffic, one, order, reads, updates, writes};
use crate::ir::{Call, CallProxy, RegionOp};

/// The accesses of opaque code: the worst case for what is not declared.
const fn of_call(proxy: Option<CallProxy>) -> Traffic {
    match proxy {
        Some(CallProxy::Generic) | None => one(updates(Regions, Generic)),
        Some(CallProxy::Async) => one(updates(Regions, Async)),
        Some(CallProxy::None) => NO_TRAFFIC,
    }
}

table! {
    RegionOp, facts -> Facts;

    "ttg.region" Regions [RegionOp::Place { offset, bytes, parts }] {offset = 0, bytes = 16384, parts = 4 or 1}
        Plain, PURE,
        "", "" => "region", NONE, "bytes of shared memory, in equal parts; regions may overlap", [RegionMade];
    "ttg.region.at" Regions [RegionOp::At] Plain, PURE,
        "", "region, i: i32" => "region", NONE, "one of the parts", [RegionMade NotShown];
    "ttg.region.tile" Regions [RegionOp::Tile { offset, elem, shape }] {offset = 0} : smem(elem, shape) Plain, PURE,
        "", "region" => "smem", ANY, "a tile in a region, at a byte offset", [RegionMade];
    "ttg.region.read" Regions [RegionOp::Read] Plain, synchronous(Pipeline, one(reads(Regions, Generic))),
        "", "region" => "", NONE, "generic loads of all of it", [InFlight];
    "ttg.region.write" Regions [RegionOp::Write] Plain, synchronous(Pipeline, one(writes(Regions, Generic))),
        "", "region" => "", NONE, "generic stores to all of it", [InFlight];
    "ttg.region.call" Regions [RegionOp::Call(Call { name, access, proxy })]
        @text(name) {access = "r, w, rw" or None, proxy = generic or None} TextFirst, synchronous(Pipeline, of_call(*proxy)),
        "", "\"name\", regions" => "", NONE, "opaque code with the accesses of `access` to its regions, or reads and writes of all; through `proxy`, or the generic one", [InFlight Unfenced];
    "ttg.vtok.wait" Regions [RegionOp::Wait] Plain, synchronous(Pipeline, order(AwaitsToken)),
        "", "vtok" => "", NONE, "waits for a group, and so for all older ones of its class; for bulk stores, until they have read their regions", [GroupOrder NotShown];
}
