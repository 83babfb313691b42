//! What one operation does.

use crate::run::{Access, Barrier, Fault, Flight, Run};
use std::collections::BTreeSet;
use titan_core::ir::{AmdOp, BinOp, Class, Const, NvOp, Op, OpKind, Pred, UnOp, Value};

impl Run<'_> {
    pub(crate) fn scalar(&mut self, thread: usize, op: &Op) -> Result<(), Fault> {
        let get = |i: usize| self.get(thread, op.args[i]);
        let value = match &op.kind {
            OpKind::Const(Const::Int(_, v)) => *v,
            OpKind::Binary(bin) => {
                let (a, b) = (get(0)?, get(1)?);
                match bin {
                    BinOp::Add => a + b,
                    BinOp::Sub => a - b,
                    BinOp::Mul => a * b,
                    BinOp::Div => a.checked_div(b).unwrap_or(0),
                    BinOp::Rem => a.checked_rem(b).unwrap_or(a),
                    BinOp::Xor => a ^ b,
                    BinOp::And => a & b,
                    _ => return Err("an operation that this machine lacks".to_owned()),
                }
            }
            OpKind::Cmp(pred) => {
                let (a, b) = (get(0)?, get(1)?);
                i64::from(match pred {
                    Pred::Eq => a == b,
                    Pred::Ne => a != b,
                    Pred::Lt => a < b,
                    Pred::Le => a <= b,
                    Pred::Gt => a > b,
                    Pred::Ge => a >= b,
                })
            }
            OpKind::Select => {
                if get(0)? != 0 {
                    get(1)?
                } else {
                    get(2)?
                }
            }
            OpKind::Cast(_) => get(0)?,
            OpKind::Unary(UnOp::Not) => 1 - get(0)?,
            OpKind::ProgramId(_) => 0,
            OpKind::Dim(_) => self.extent,
            OpKind::Get => (self.flags >> get(1)?.rem_euclid(64)) as i64 & 1,
            _ => return Ok(()),
        };
        if let Some(result) = op.results.first() {
            self.threads[thread].env.insert(*result, value);
        }
        Ok(())
    }

    pub(crate) fn nv(&mut self, thread: usize, op: &Op, nv: NvOp) -> Result<bool, Fault> {
        match nv {
            NvOp::MbarrierAlloc { n, .. } => {
                self.of_alloc.insert(op.results[0], self.barriers.len());
                let new = Barrier { phase: 0, count: 0, pending: 0, tx: 0, gone: true };
                self.barriers.extend((0..n).map(|_| new.clone()));
            }
            NvOp::MbarrierInit { count } => {
                for b in self.all_of(op.args[0])? {
                    self.barriers[b] =
                        Barrier { phase: 0, count: count.into(), pending: count.into(), tx: 0, gone: false };
                }
            }
            NvOp::MbarrierInval => {
                for b in self.all_of(op.args[0])? {
                    let brings = |f: &Flight| matches!(f, Flight::Tx { barrier, .. } | Flight::Arrivals { barrier, .. } if *barrier == b);
                    if self.barriers[b].gone || self.flights.iter().any(brings) {
                        return Err("a barrier that is invalidated in use".to_owned());
                    }
                    self.barriers[b].gone = true;
                }
            }
            NvOp::Arrive { arrivals } => self.counted(thread, op, i64::from(arrivals), 0)?,
            NvOp::ArriveCluster { .. } | NvOp::ClusterRank => {
                return Err("a cluster, which random programs do not have".to_owned());
            }
            NvOp::ArriveExpectTx { bytes } => self.counted(thread, op, 1, i64::from(bytes))?,
            NvOp::ExpectTx { bytes } => self.counted(thread, op, 0, i64::from(bytes))?,
            NvOp::MbarrierWait | NvOp::WaitParity => {
                let b = self.barrier(thread, op.args[0])?;
                let parity = self.get(thread, op.args[1])?;
                if self.barriers[b].gone || !(0..=1).contains(&(parity & 1)) {
                    return Err("a wait for a barrier that is gone".to_owned());
                }
                return Ok((self.barriers[b].phase & 1) != (parity & 1));
            }
            NvOp::TryWait | NvOp::TestWait => drop(self.threads[thread].env.insert(op.results[0], 0)),
            NvOp::BulkLoad { bytes, .. } => {
                let n = op.args.len();
                let barrier = self.barrier(thread, op.args[n - 1])?;
                let access = self.begin(thread, op.args[n - 2], true, None)?;
                self.flights.push(Flight::Tx { access, barrier, bytes: bytes.into() });
            }
            NvOp::BulkStore { .. } => self.start(thread, op, false, Class::BulkStore)?,
            NvOp::CpAsync { .. } => self.start(thread, op, true, Class::CpAsync)?,
            NvOp::Wgmma => {
                for region in &op.args {
                    let access = self.begin(thread, *region, false, Some(Class::Wgmma))?;
                    self.threads[thread].open.entry(Class::Wgmma).or_default().push(access);
                }
            }
            NvOp::CpAsyncArrive { noinc, arrivals } => {
                let barrier = self.barrier(thread, op.args[0])?;
                let mine =
                    |(id, a): (&usize, &Access)| (a.thread == thread && a.class == Some(Class::CpAsync)).then_some(*id);
                let of: BTreeSet<usize> = self.accesses.iter().filter_map(mine).collect();
                self.accesses.iter_mut().filter(|(id, _)| of.contains(id)).for_each(|(_, a)| a.told = true);
                if !noinc {
                    self.barriers[barrier].pending += i64::from(arrivals);
                }
                self.flights.push(Flight::Arrivals { of, barrier, n: arrivals.into() });
            }
            NvOp::Commit { group, .. } => self.commit(thread, op, group.class()),
            NvOp::WaitGroup { group, n, .. } => return Ok(self.in_flight(thread, group.class()) <= n as usize),
            NvOp::BarrierSync { id, threads } => return self.sync(thread, i64::from(id), i64::from(threads), true),
            NvOp::BarrierArrive { id, threads } => return self.sync(thread, i64::from(id), i64::from(threads), false),
            NvOp::ClusterArrive => return self.sync(thread, 100, 0, false),
            NvOp::ClusterWait => {
                let Some((b, phase)) = self.threads[thread].met else {
                    return Err("a wait without an arrival".to_owned());
                };
                return Ok(self.pass(thread, b, phase));
            }
            NvOp::SequenceInit | NvOp::SequenceStore | NvOp::SequenceWait => {
                return Err("a counter, which random programs do not have".to_owned());
            }
            NvOp::Tcgen05(tensor) => self.tensor(thread, op, tensor)?,
            NvOp::MbarrierAt
            | NvOp::FenceMbarrierInit
            | NvOp::WgmmaFence
            | NvOp::WarpSync
            | NvOp::SetMaxNReg { .. } => {}
        }
        Ok(true)
    }

    pub(crate) fn all_of(&self, alloc: Value) -> Result<std::ops::Range<usize>, Fault> {
        let first = *self.of_alloc.get(&alloc).ok_or("a barrier")?;
        let Some(OpKind::Nv(NvOp::MbarrierAlloc { n, .. })) = self.kernel.def_op(alloc).map(|o| o.kind.clone()) else {
            return Err("a barrier".to_owned());
        };
        Ok(first..first + n as usize)
    }

    pub(crate) fn counted(&mut self, thread: usize, op: &Op, n: i64, bytes: i64) -> Result<(), Fault> {
        let b = self.barrier(thread, op.args[0])?;
        if let Some(result) = op.results.first() {
            let phase = self.barriers[b].phase;
            self.threads[thread].env.insert(*result, phase);
        }
        self.barriers[b].tx += bytes;
        if n > 0 { self.arrive(b, n) } else { Ok(()) }
    }

    fn start(&mut self, thread: usize, op: &Op, write: bool, class: Class) -> Result<(), Fault> {
        let access = self.begin(thread, op.args[op.args.len() - 1], write, Some(class))?;
        self.threads[thread].open.entry(class).or_default().push(access);
        Ok(())
    }

    fn commit(&mut self, thread: usize, op: &Op, class: Class) {
        let t = &mut self.threads[thread];
        let mut group = t.open.remove(&class).unwrap_or_default();
        group.retain(|a| self.accesses.contains_key(a));
        let groups = t.groups.entry(class).or_default();
        groups.push(group);
        let id = groups.len() - 1;
        t.env.insert(op.results[0], id as i64);
    }

    fn in_flight(&self, thread: usize, class: Class) -> usize {
        let groups = self.threads[thread].groups.get(&class);
        groups.map_or(0, |g| g.iter().position(|g| !g.is_empty()).map_or(0, |first| g.len() - first))
    }

    /// Comes to a barrier without a word, and waits there if it should.
    fn sync(&mut self, thread: usize, id: i64, threads: i64, wait: bool) -> Result<bool, Fault> {
        if let (Some((b, phase)), true) = (self.threads[thread].met, wait) {
            return Ok(self.pass(thread, b, phase));
        }
        let everybody = self.threads.len() as i64;
        let count = if id >= 100 { everybody } else { threads };
        let b = *self.named.entry(id).or_insert_with(|| {
            self.barriers.push(Barrier { phase: 0, count, pending: count, tx: 0, gone: false });
            self.barriers.len() - 1
        });
        let own = self.kernel.roles.get(thread).map_or(count, |r| i64::from(r.warps) * 32);
        let phase = self.barriers[b].phase;
        self.arrive(b, if id >= 100 { 1 } else { own })?;
        if wait {
            self.threads[thread].met = Some((b, phase));
            return Ok(self.pass(thread, b, phase));
        }
        if id == 100 {
            self.threads[thread].met = Some((b, phase));
        }
        Ok(true)
    }

    fn pass(&mut self, thread: usize, barrier: usize, phase: i64) -> bool {
        let passed = self.barriers[barrier].phase > phase;
        if passed {
            self.threads[thread].met = None;
        }
        passed
    }

    pub(crate) fn amd(&mut self, thread: usize, op: &Op, amd: AmdOp) -> Result<bool, Fault> {
        match amd {
            AmdOp::Waitcnt { vmcnt, lgkmcnt } => {
                let low = |class, n: u32| self.in_flight(thread, class) <= n as usize;
                return Ok(low(Class::Vmcnt, vmcnt) && low(Class::Lgkmcnt, lgkmcnt));
            }
            AmdOp::BufferLoadLds { .. } => {
                self.start(thread, op, true, Class::Vmcnt)?;
                self.commit(thread, op, Class::Vmcnt);
            }
            AmdOp::DsRead { .. } | AmdOp::DsWrite { .. } => {
                self.start(thread, op, matches!(amd, AmdOp::DsWrite { .. }), Class::Lgkmcnt)?;
                self.commit(thread, op, Class::Lgkmcnt);
            }
            AmdOp::Barrier => return self.sync(thread, 101, 0, true),
            AmdOp::Mfma | AmdOp::SetPrio { .. } => {}
        }
        Ok(true)
    }
}
