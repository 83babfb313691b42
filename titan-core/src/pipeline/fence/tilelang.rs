//! The compatibility mode: fences at the places where TileLang's `InjectFenceProxy` inserts them
//! (`src/cuda/transform/inject_fence_proxy.cc`, as rewritten in February 2026).
//!
//! There is one state for the whole function: the set of proxies of which one was the last, among *none*, *generic* and *async*. Initially
//! it is none. An operation sets it to its side ([`crate::ir::traffic`]), a fence sets it to none, and a fence is inserted before an
//! asynchronous operation if the state may be generic. States are united at joins; loops are walked to a fixed point (at most eight times),
//! and may execute zero iterations. If both arms of a branch, or the body of a loop, are purely asynchronous, one fence before the branch
//! or loop suffices.
//!
//! It deliberately differs from the pass of this crate: generic reads are ignored, so that a bulk load may overtake them; accesses to
//! disjoint bytes count; arrivals of a role do not; and the roles are treated as the arms of one branch.
//!
//! Deliberately absent: predicated blocks, which are branches here, and the restriction to targets.

use crate::analysis::proxy::Overlay;
use crate::ir::traffic::{Order, Side, traffic};
use crate::ir::{Block, CallProxy, FenceSpace, Kernel, Op, OpKind, RegionOp, Scope, TtgOp};

/// The set of proxies of which one was the last, as bits.
type Last = u8;
const NONE: Last = 1;
const GENERIC: Last = 2;
const ASYNC: Last = 4;

/// The maximum number of walks of a loop.
const ROUNDS: usize = 8;

/// Adds the fences to the overlay.
pub(super) fn fences(kernel: &Kernel, overlay: &mut Overlay) {
    let mut walk = Walk { kernel, overlay, left: 0 };
    walk.block(kernel.body, NONE, true);
}

struct Walk<'k> {
    kernel: &'k Kernel,
    overlay: &'k mut Overlay,
    /// The state at the exits and back edges of loops.
    left: Last,
}

fn side(op: &Op) -> Side {
    // A call that only reads its regions does not change the state.
    if let OpKind::Region(RegionOp::Call(call)) = &op.kind
        && call.declared() == CallProxy::Generic
        && !(0..op.args.len()).any(|i| call.touch(i).writes())
    {
        return Side::None;
    }
    traffic(&op.kind).side()
}

impl Walk<'_> {
    /// Whether a block has asynchronous operations and no others that change the state.
    fn purely_async(&self, block: Block) -> bool {
        let (mut some, mut only) = (false, true);
        self.kernel.walk_block(block, &mut |_, op| match side(op) {
            Side::Async => some = true,
            Side::Generic => only = false,
            Side::None => only &= traffic(&op.kind).order != Order::Fences,
        });
        some && only
    }

    fn block(&mut self, block: Block, mut last: Last, place: bool) -> Last {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            let structured = !op.regions.is_empty() && op.kind != OpKind::Ttg(TtgOp::Roles);
            let whole = structured && op.regions.iter().all(|r| self.purely_async(*r));
            if last & GENERIC != 0 && (whole || side(op) == Side::Async) {
                if place {
                    self.overlay.fences.insert(*id, (Scope::Cta, FenceSpace::Shared));
                }
                last = NONE;
            }
            match side(op) {
                Side::Async => last = ASYNC,
                Side::Generic => last = GENERIC,
                Side::None if traffic(&op.kind).order == Order::Fences => last = NONE,
                Side::None => {}
            }
            if op.kind.is_loop() {
                last = self.looped(op, last, place);
            } else if !op.regions.is_empty() {
                let arms: Vec<Last> = op.regions.iter().map(|r| self.block(*r, last, place)).collect();
                last = arms.into_iter().fold(0, |all, arm| all | arm);
            }
            if matches!(op.kind, OpKind::Break(_) | OpKind::Continue(_)) {
                self.left |= last;
            }
        }
        last
    }

    fn looped(&mut self, op: &Op, entry: Last, place: bool) -> Last {
        let Some(body) = op.regions.first().copied() else { return entry };
        let outer = std::mem::replace(&mut self.left, 0);
        let mut head = entry;
        // The set only grows from round to round and has three bits, so three rounds reach the fixed point. The fences
        // are placed in one more walk, with the state that holds at the head in all iterations.
        for _ in 0..ROUNDS {
            let out = self.block(body, head, false);
            let next = head | out | self.left;
            if next == head {
                break;
            }
            head = next;
        }
        let out = self.block(body, head, place);
        let after = head | out | self.left;
        self.left |= outer;
        after
    }
}
