//! The ways in which the stages of a ring between roles are filled: by bulk copies, by the threads of a role, or by both.
//!
//! A tile is copied in bulk if a tensor map can describe it at every place where the ring is filled. If this holds for all tiles of a ring,
//! and its role does nothing else, one thread executes the role. Otherwise all threads execute it: one of them also starts the bulk copies,
//! and arrives with their bytes; each thread copies its part of the other tiles, and arrives when these copies are complete. The barrier of
//! a slot then counts one more arrival than the role has threads.
//!
//! ```text
//! ttg.nv.mbarrier.arrive_expect_tx %full {bytes = 16384}                     one thread, for the tile of b
//! ttg.nv.cp_async_bulk_tensor.load %b, %tile_of_b, %full {bytes = 16384}
//! ttg.local.copy_async %a, %tile_of_a                                        all threads
//! ttg.nv.cp_async.mbarrier_arrive %full {arrivals = 32, noinc = true}
//! ```
//!
//! Deliberately absent: bulk copies with a condition, and bulk copies beside stages that are filled without copies; threads fill such
//! rings.

use super::Expand;
use crate::analysis::one_thread;
use crate::collections::SortedSet;
use crate::ir::{Block, FreeBy, Kernel, NvOp, OpKind, Pipe, Token, TtgOp, Ty, Value};

/// The way in which the stages of a ring are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// By the threads of a role.
    Threads,
    /// By bulk copies alone, which one thread starts.
    Bulk,
    /// By both: for each tile of the stage, whether it is copied in bulk.
    Mixed(Vec<bool>),
}

impl Filling {
    /// Whether some of its tiles are copied in bulk.
    pub(super) fn has_boxes(&self) -> bool {
        *self != Filling::Threads
    }

    /// Whether a tile is copied in bulk.
    pub(super) fn is_box(&self, field: usize) -> bool {
        match self {
            Filling::Threads => false,
            Filling::Bulk => true,
            Filling::Mixed(boxes) => boxes.get(field) == Some(&true),
        }
    }
}

impl Expand<'_> {
    /// The way in which the stages of a ring are filled.
    pub(super) fn filling(&self, pipe: Pipe) -> Filling {
        match self.boxes(pipe).filter(|boxes| self.target.box_copies().is_some() && boxes.contains(&true)) {
            None => Filling::Threads,
            Some(_) if self.is_filled_by_one_thread(pipe) => Filling::Bulk,
            Some(boxes) => Filling::Mixed(boxes),
        }
    }

    /// Whether bulk copies fill the stages of this ring and of all others that the role fills, so that one thread executes the role.
    fn is_filled_by_one_thread(&self, pipe: Pipe) -> bool {
        let mut roles = Vec::new();
        self.k.walk(&mut |_, op| {
            if op.kind == OpKind::Ttg(TtgOp::Roles) {
                roles.extend(op.regions.iter().copied());
            }
        });
        let filled = |block: Block| {
            let mut pipes = SortedSet::new();
            self.k.walk_block(block, &mut |_, op| {
                if let OpKind::Ttg(TtgOp::Acquire(pipe)) = op.kind {
                    pipes.insert(pipe);
                }
            });
            pipes
        };
        roles.into_iter().map(|block| (block, filled(block))).filter(|(_, pipes)| pipes.contains(&pipe)).all(
            |(block, pipes)| {
                one_thread::executes(self.k, block, true)
                    && pipes.iter().all(|pipe| self.boxes(*pipe).is_some_and(|boxes| !boxes.contains(&false)))
            },
        )
    }

    /// For each tile of a ring, whether it is copied in bulk wherever the ring is filled; `None` if a stage is filled without copies, or
    /// with a condition.
    fn boxes(&self, pipe: Pipe) -> Option<Vec<bool>> {
        let encodings = self.laid.stages.get(pipe.index()).map_or(&[][..], Vec::as_slice);
        let (mut boxes, mut copies, mut only) = (vec![true; encodings.len()], false, true);
        self.k.walk(&mut |_, op| {
            let of_ring = op.args.first().is_some_and(|v| self.k.ty(*v) == Ty::Token(Token::Slot, pipe));
            if !of_ring {
                return;
            }
            let OpKind::Ttg(TtgOp::AsyncProduce { skipped: None, .. }) = op.kind else {
                only = false;
                return;
            };
            copies = true;
            for ((source, id), is_box) in op.args[1..].iter().zip(encodings).zip(&mut boxes) {
                let encoding = self.laid.encodings.get(id.index());
                *is_box &= encoding.is_some_and(|e| crate::lay_out::by_map(self.k, *source, e).is_ok());
            }
        });
        (copies && only).then_some(boxes)
    }

    /// Whether some copies to a ring are for all programs of the cluster.
    pub(super) fn is_shared(&self, pipe: Pipe) -> bool {
        if self.laid.cluster == 1 || self.laid.free != FreeBy::Mbarrier {
            return false;
        }
        let encodings = self.laid.stages.get(pipe.index()).map_or(&[][..], Vec::as_slice);
        let mut shared = false;
        self.k.walk(&mut |_, op| {
            if op.args.first().is_some_and(|v| self.k.ty(*v) == Ty::Token(Token::Slot, pipe)) {
                shared |= op.args[1..].iter().zip(encodings).any(|(source, id)| {
                    let encoding = self.laid.encodings.get(id.index());
                    encoding.is_some_and(|e| crate::lay_out::parts(self.k, &self.differing, *source, e) > 1)
                });
            }
        });
        shared
    }
}

/// Whether threads load from the stages of a ring; MMAs of warpgroups do not count.
pub(super) fn is_loaded(kernel: &Kernel, pipe: usize) -> bool {
    let mut tiles: SortedSet<Value> = SortedSet::new();
    let mut loaded = false;
    kernel.walk(&mut |_, op| {
        let of_ring = |v: &Value| {
            tiles.contains(v) || matches!(kernel.ty(*v), Ty::Token(Token::Rperm | Token::Part, p) if p.index() == pipe)
        };
        if !op.args.iter().any(of_ring) {
            return;
        }
        let views = op.results.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..)));
        let views: Vec<Value> = views.copied().collect();
        let token = matches!(op.kind, OpKind::Ttg(_)) || op.kind.is_loop() || op.kind.is_terminator();
        loaded |= views.is_empty() && !token && op.kind != OpKind::Nv(NvOp::Wgmma);
        tiles.extend(views);
    });
    loaded
}
