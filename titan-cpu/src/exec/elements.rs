//! Groups of elementwise operations, block by block.

use super::Machine;
use super::pool::{Buffer, bytes, bytes_mut, reserve};
use super::tile::Data;
use crate::ops::words::{self, Strided};
use crate::plan::group::{Group, Leaf, Micro, Operand};

/// How an operand is read in each block.
enum Source<'a> {
    /// Right there.
    Dense(&'a [u8]),
    /// From its register, which was filled before.
    Filled,
    /// Into its register, block by block.
    Strided(Strided<'a>),
}

impl Machine<'_, '_> {
    pub(super) fn elements(&mut self, group: &Group) {
        let mut outs = std::mem::take(&mut self.work.outs);
        let first_out = outs.len();
        for tile in &group.outs {
            let id = self.fresh(*tile);
            outs.push(self.work.pool.lend(id));
        }
        let mut registers = std::mem::take(&mut self.work.registers);
        let leaves = group.leaves.len();
        if registers.len() < leaves + group.regs {
            registers.resize(leaves + group.regs, Buffer::new());
        }
        registers[..leaves + group.regs].iter_mut().for_each(|r| reserve(r, group.block * 8));
        let sources: Vec<Source<'_>> = group
            .leaves
            .iter()
            .zip(&mut registers)
            .map(|((leaf, size), register)| self.source(*leaf, *size, group, register))
            .collect();
        let mut start = 0;
        while start < group.len {
            let n = group.block.min(group.len - start);
            for ((source, register), (_, size)) in sources.iter().zip(&mut registers).zip(&group.leaves) {
                if let Source::Strided(tile) = source {
                    words::gather_run(bytes_mut(register, n * size), tile, start);
                }
            }
            for op in &group.ops {
                self.micro(group, op, &sources, &mut registers, &mut outs[first_out..], (start, n));
            }
            start += n;
        }
        drop(sources);
        self.work.registers = registers;
        for tile in group.outs.iter().rev() {
            if let (Data::Buffer(id), Some(buffer)) = (self.tiles[*tile as usize].data, outs.pop()) {
                self.work.pool.give_back(id, buffer);
            }
        }
        self.work.outs = outs;
    }

    fn source(&self, leaf: Leaf, size: usize, group: &Group, register: &mut Buffer) -> Source<'_> {
        let n = group.block.min(group.len);
        let bits = match leaf {
            Leaf::Scalar(slot) => self.scalar(slot),
            Leaf::Tile(slot) => match (self.tiles[slot as usize].data, self.strided(slot)) {
                (Data::Splat(bits), _) => bits,
                (Data::Buffer(_) | Data::Memory(_), Some(_)) if self.tiles[slot as usize].dense => {
                    return Source::Dense(self.dense(slot));
                }
                (Data::Buffer(_) | Data::Memory(_) | Data::Nothing, Some(tile)) => return Source::Strided(tile),
                (Data::Buffer(_) | Data::Memory(_) | Data::Nothing, None) => 0,
            },
        };
        words::fill(bytes_mut(register, n * size), size, bits);
        Source::Filled
    }

    fn micro(
        &self,
        group: &Group,
        op: &Micro,
        sources: &[Source<'_>],
        registers: &mut [Buffer],
        outs: &mut [Buffer],
        (start, n): (usize, usize),
    ) {
        let leaves = group.leaves.len();
        // The destination is taken out, so that the operands can be borrowed beside it.
        let (mut to, skip) = match op.to {
            Operand::Reg(r) => (std::mem::take(&mut registers[leaves + r]), 0),
            Operand::Out(o) => (std::mem::take(&mut outs[o]), start * op.size),
            Operand::Leaf(_) => return,
        };
        let args = op.args.map(|arg| match arg {
            None => &[][..],
            Some((Operand::Leaf(i), size)) => match &sources[i] {
                Source::Dense(data) => &data[start * size..(start + n) * size],
                Source::Filled | Source::Strided(_) => bytes(&registers[i], n * size),
            },
            Some((Operand::Reg(r), size)) => bytes(&registers[leaves + r], n * size),
            Some((Operand::Out(o), size)) => &bytemuck::cast_slice(&outs[o])[start * size..(start + n) * size],
        });
        let dst = &mut bytemuck::cast_slice_mut(&mut to)[skip..skip + n * op.size];
        (op.f)(self.isa, dst, args);
        match op.to {
            Operand::Reg(r) => registers[leaves + r] = to,
            Operand::Out(o) => outs[o] = to,
            Operand::Leaf(_) => {}
        }
    }
}
