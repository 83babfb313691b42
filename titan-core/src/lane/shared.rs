//! Allocation of shared memory: buffers that are not needed at the same time lie in the same place.
//!
//! A buffer is needed from the first mark ([`OpKind::Access`]) to the last, in program order; if marks stand inside of a loop
//! and outside of it, in the whole loop; if it is copied to asynchronously, at least to the next wait. Inside of one iteration a
//! buffer is written before it is read, because what the lowering puts there is a value of that iteration. A ring
//! ([`Region::Ring`]) is not: it is needed in all of the loops around its marks, and copies into it have arrived by its last
//! mark.
//!
//! Roles run at the same time, and program order says nothing of them: buffers that are marked in different roles, or one in
//! several roles and the other in one of these, are needed at the same time. Those of one role alone may take each other's
//! place.
//!
//! Places are first fit, the largest buffers first.

use super::func::{Block, Func, Op, OpId, Value};
use super::op::{IntBin, OpKind, Region, Ty};
use super::{Def, ValueData};
use std::collections::BTreeSet;

/// When a buffer is needed: positions in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u32,
    last: u32,
}

impl Span {
    const fn meets(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Gives every buffer its place, replaces [`OpKind::Buffer`] and sets the size of the shared memory.
pub fn allocate(func: &mut Func) {
    let n = func.buffers.len();
    let mut walk = Walk {
        func,
        clock: 0,
        spans: vec![None; n],
        rings: vec![false; n],
        codes: vec![BTreeSet::new(); n],
        role: None,
        marked: None,
        flying: Vec::new(),
    };
    walk.block(func.body);
    // What nobody waits for is under way to the end.
    walk.arrive();
    let Walk { spans, codes, .. } = walk;
    let mut order: Vec<usize> = (0..func.buffers.len()).filter(|b| spans[*b].is_some()).collect();
    order.sort_by_key(|b| (std::cmp::Reverse(func.buffers[*b].bytes), *b));
    let mut placed: Vec<usize> = Vec::new();
    let mut size = 0;
    for buffer in order {
        let Some(span) = spans[buffer] else { continue };
        let (bytes, align) = (func.buffers[buffer].bytes, func.buffers[buffer].align.max(16));
        let mut taken: Vec<(u32, u32)> = placed
            .iter()
            .filter(|p| spans[**p].is_some_and(|s| s.meets(span)) || at_once(&codes[**p], &codes[buffer]))
            .map(|p| (func.buffers[*p].offset, func.buffers[*p].offset + func.buffers[*p].bytes))
            .collect();
        taken.sort_unstable();
        let mut at = 0u32;
        for (start, end) in taken {
            if at + bytes > start {
                at = at.max(end.next_multiple_of(align));
            } else {
                break;
            }
        }
        func.buffers[buffer].offset = at;
        size = size.max(at + bytes);
        placed.push(buffer);
    }
    func.shared_bytes = size;
    place(func);
}

/// The code of a role: which roles, and which of them.
type Code = (OpId, usize);

/// Whether there are different roles of the same program in one of which is one buffer, and in the other the other.
fn at_once(a: &BTreeSet<Code>, b: &BTreeSet<Code>) -> bool {
    a.iter().any(|(split, role)| b.iter().any(|(other, also)| split == other && role != also))
}

struct Walk<'a> {
    func: &'a Func,
    clock: u32,
    spans: Vec<Option<Span>>,
    /// Which buffers are rings somewhere.
    rings: Vec<bool>,
    /// In the code of which roles buffers are marked.
    codes: Vec<BTreeSet<Code>>,
    role: Option<Code>,
    /// The buffer that was marked last, if it is not a ring.
    marked: Option<u32>,
    /// Buffers to which copies are under way.
    flying: Vec<u32>,
}

impl Walk<'_> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only marks and copies say how long a buffer is needed")]
    fn block(&mut self, block: Block) {
        let func = self.func;
        for id in &func.block(block).ops {
            let op = func.op(*id);
            self.clock += 1;
            match op.kind {
                OpKind::Access { region: Region::Buffer(buffer), .. } => {
                    self.mark(buffer as usize);
                    self.marked = Some(buffer);
                }
                OpKind::Access { region: Region::Ring(buffer), .. } => {
                    self.mark(buffer as usize);
                    self.rings[buffer as usize] = true;
                    self.marked = None;
                }
                OpKind::CopyAsync { .. } => self.flying.extend(self.marked),
                OpKind::CopyWait(0) => self.arrive(),
                _ => {}
            }
            let before = self.clock;
            for (i, region) in op.regions.iter().enumerate() {
                if matches!(op.kind, OpKind::Roles(_)) {
                    self.role = Some((*id, i));
                    self.marked = None;
                }
                self.block(*region);
            }
            if matches!(op.kind, OpKind::Roles(_)) {
                self.role = None;
                self.marked = None;
            }
            if matches!(op.kind, OpKind::For | OpKind::Loop) {
                self.stretch(Span { first: before, last: self.clock });
            }
        }
    }

    fn mark(&mut self, buffer: usize) {
        let now = Span { first: self.clock, last: self.clock };
        let slot = &mut self.spans[buffer];
        *slot = Some(slot.map_or(now, |s| Span { first: s.first, last: now.last }));
        self.codes[buffer].extend(self.role);
    }

    /// Copies have arrived.
    fn arrive(&mut self) {
        for buffer in std::mem::take(&mut self.flying) {
            if let Some(span) = &mut self.spans[buffer as usize] {
                span.last = span.last.max(self.clock);
            }
        }
    }

    /// A buffer that is used in a loop and before it, or a ring that is used in it, is needed in all of it. (If it is used after it, its last mark says so,
    /// and its first one in the loop is not the first of all; the same holds then.)
    fn stretch(&mut self, around: Span) {
        for (span, ring) in self.spans.iter_mut().zip(&self.rings) {
            let Some(span) = span else { continue };
            if span.last > around.first && (*ring || span.first <= around.first) {
                *span = Span { first: span.first.min(around.first), last: span.last.max(around.last) };
            }
        }
    }
}

/// `buffer` becomes `shared_base + offset`, both at the start of the function.
fn place(func: &mut Func) {
    let offsets: Vec<u32> = func.buffers.iter().map(|b| b.offset).collect();
    let base = prepend(func, OpKind::SharedBase);
    for i in 0..func.ops.len() {
        let OpKind::Buffer(buffer) = func.ops[i].kind else { continue };
        let offset = prepend(func, OpKind::Const(Ty::B32, u64::from(offsets[buffer as usize])));
        func.ops[i].kind = OpKind::Int(IntBin::Add);
        func.ops[i].args = vec![base, offset];
    }
}

fn prepend(func: &mut Func, kind: OpKind) -> Value {
    let id = OpId::new(func.ops.len());
    let value = Value::new(func.values.len());
    func.values.push(ValueData { ty: Ty::B32, def: Def::Result(id, 0) });
    func.ops.push(Op {
        kind,
        args: Vec::new(),
        results: vec![value],
        regions: Vec::new(),
        loc: crate::ir::Loc::default(),
    });
    let body = func.body;
    func.blocks[body.index()].ops.insert(0, id);
    value
}
