//! Operations of AMD GPUs. gfx942 has one proxy, so that no fences between proxies are needed.

use super::facts::{PURE, operation, synchronous};
use super::syntax::{Form, Head, HeadError, Written};
use super::*;
use crate::ir::Completion::{Immediate, Prefix};
use crate::ir::Effect::Pipeline;
use crate::ir::Proxy::Generic;
use crate::ir::Stated::{Copies, Nothing, Priority};
use crate::ir::traffic::On::{Regions, Tensor};
use crate::ir::traffic::Order::Synchronizes;
use crate::ir::traffic::{NO_TRAFFIC, one, order, reads, two, writes};
use crate::ir::{AmdOp, Class};

/// The values of counters that mean no wait.
const NO_WAIT: (u32, u32) = (63, 15);

table! {
    AmdOp, facts -> Facts;

    "ttg.amd.s_waitcnt" Waves [AmdOp::Waitcnt { vmcnt, lgkmcnt }] {vmcnt = 0 or NO_WAIT.0, lgkmcnt = 0 or NO_WAIT.1}
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "waits until the counters are at most these", [];
    "ttg.amd.buffer_load_lds" Waves [AmdOp::BufferLoadLds { bytes, n }] {bytes = 16384} : vtok(n)
        AtMany, operation(Pipeline, two(writes(Regions, Generic), reads(Tensor, Generic)), Prefix(Class::Vmcnt),
            Copies { bytes: *bytes, bulk: false }),
        "", "t: tensor, an i32 per axis, region" => "vtok", ANY, "starts a copy into local memory; counts in `vmcnt`", [InFlight InFlightAtEnd GroupOrder];
    "ttg.amd.ds_read" Waves [AmdOp::DsRead { n }] : vtok(n)
        Plain, operation(Pipeline, one(reads(Regions, Generic)), Prefix(Class::Lgkmcnt), Nothing),
        "", "region" => "vtok", NONE, "starts reading local memory; counts in `lgkmcnt`", [InFlight GroupOrder];
    "ttg.amd.ds_write" Waves [AmdOp::DsWrite { n }] : vtok(n)
        Plain, operation(Pipeline, one(writes(Regions, Generic)), Prefix(Class::Lgkmcnt), Nothing),
        "", "region" => "vtok", NONE, "starts writing local memory; counts in `lgkmcnt`", [InFlight GroupOrder];
    "ttg.amd.s_barrier" Waves [AmdOp::Barrier] Plain, synchronous(Pipeline, order(Synchronizes)),
        "", "" => "", NONE, "a barrier of all waves of the program; waits for no counter", [NeverCompletes];
    "ttg.amd.mfma" Waves [AmdOp::Mfma] Plain, PURE,
        "", "a, b, acc: tiles" => "as acc", TRIPLES, "a · b + acc", [MmaElements ShapeMismatch];
    "ttg.amd.s_setprio" Waves [AmdOp::SetPrio { level }] {level = 1}
        Plain, operation(Pipeline, NO_TRAFFIC, Immediate, Priority(*level)),
        "", "" => "", NONE, "the priority of the wave among those of its unit", [];
}
