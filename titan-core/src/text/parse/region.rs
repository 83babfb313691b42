//! Parses operations with regions: `for`, `loop`, `if`, roles, and reductions and scans by a function.

use super::op::{Left, Tail};
use super::{Body, Name, Parse, Parser};
use crate::ir::op_table::syntax::Head;
use crate::ir::{Block, Def, ForKind, Op, OpKind, TtgOp, Ty, Typed, Value, op_table};

/// The header of an operation with regions.
struct Header {
    kind: OpKind,
    /// The operands; `None` if poisoned.
    args: Vec<Option<Value>>,
    written: Vec<Typed>,
    tail: Tail,
}

impl Header {
    /// The operation, unless an operand is poisoned.
    fn op(self, regions: Vec<Block>) -> Option<(Op, Vec<Typed>)> {
        let args = self.args.into_iter().collect::<Option<Vec<Value>>>()?;
        Some((self.tail.op(self.kind, args, regions), self.written))
    }
}

impl<'a> Parser<'a> {
    pub(super) fn region_op(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        match left.mnemonic {
            "for" => self.for_op(body, left),
            "loop" => self.loop_op(body, left),
            "if" => self.if_op(body, left),
            "ttg.roles" => self.roles_op(body, left),
            _ => self.combine_op(body, left),
        }
    }

    /// `for %k = %lo to %hi step %one pipelined carry(%acc = %acc0) : ty { .. }`
    fn for_op(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let index = self.value("the loop variable")?;
        let ty = self.annotation()?.unwrap_or(Ty::I32.into());
        self.expect("=")?;
        let lo = self.operand(body)?;
        self.expect_word("to")?;
        let hi = self.operand(body)?;
        self.expect_word("step")?;
        let step = self.operand(body)?;
        let kind = ForKind::ALL.iter().copied().find(|k| self.eat_word(k.name())).unwrap_or(ForKind::Sequential);
        let block = body.new_block();
        let arg = self.block_arg(body, block, index, Some(ty))?;
        let mut args = vec![lo, hi, step];
        let carried = self.carry(body, block, &mut args)?;
        debug_assert!(arg.is_some());
        let written = self.types()?;
        let tail = self.tail(left)?;
        self.loop_body(body, block)?;
        let types: Option<Vec<Typed>> = carried.iter().map(|v| v.map(|v| body.kernel.typed(v))).collect();
        match (Header { kind: OpKind::For(kind), args, written, tail }.op(vec![block]), types) {
            (Some((op, written)), Some(types)) => self.agreed(body, left, op, &written, &types),
            (None, _) | (_, None) => {
                self.poison(body, left);
                Ok(())
            }
        }
    }

    /// `loop carry(%x = %x0) : ty { .. }`
    fn loop_op(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let block = body.new_block();
        let mut args = Vec::new();
        self.carry(body, block, &mut args)?;
        let written = self.types()?;
        let tail = self.tail(left)?;
        let broken = self.loop_body(body, block)?;
        let types = if written.is_empty() { broken } else { written.clone() };
        match (Header { kind: OpKind::Loop, args, written, tail }).op(vec![block]) {
            Some((op, written)) => self.agreed(body, left, op, &written, &types),
            None => {
                self.poison(body, left);
                Ok(())
            }
        }
    }

    /// Parses the block of a loop; returns the types of the operands of `break`.
    fn loop_body(&mut self, body: &mut Body<'a>, block: Block) -> Parse<Vec<Typed>> {
        body.loops.push(None);
        body.open.push(block);
        self.block(body)?;
        body.open.pop();
        Ok(body.loops.pop().flatten().unwrap_or_default())
    }

    /// `if %c : ty { .. } else { .. }`
    fn if_op(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let cond = self.operand(body)?;
        let written = self.types()?;
        let tail = self.tail(left)?;
        let mut regions = vec![self.arm(body)?];
        if self.eat_word("else") {
            regions.push(self.arm(body)?);
        }
        let types = if written.is_empty() { body.yielded(&regions) } else { written.clone() };
        match (Header { kind: OpKind::If, args: vec![cond], written, tail }).op(regions) {
            Some((op, written)) => self.agreed(body, left, op, &written, &types),
            None => {
                self.poison(body, left);
                Ok(())
            }
        }
    }

    /// `ttg.roles producer { .. } consumer { .. }`, the roles in the order of their declarations.
    fn roles_op(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let mut regions = Vec::new();
        // Roles are in no loop. One may be called `stage`.
        let tail = Tail { loc: self.loc_of(left.start)?, ..Tail::default() };
        while !self.next.fresh {
            let at = self.next.at;
            let name = self.name("the name of a role")?;
            let declared = body.kernel.roles.get(regions.len()).map(|r| r.name.clone());
            if declared.as_deref() != Some(name.as_str()) {
                let role =
                    declared.map_or("there is no further role".to_owned(), |d| format!("the next role is `{d}`"));
                return self.fail(at, format!("{role}, not `{name}`"));
            }
            regions.push(self.arm(body)?);
        }
        let op = tail.op(OpKind::Ttg(TtgOp::Roles), vec![], regions);
        self.agreed(body, left, op, &[], &[])
    }

    fn arm(&mut self, body: &mut Body<'a>) -> Parse<Block> {
        let block = body.new_block();
        body.open.push(block);
        self.block(body)?;
        body.open.pop();
        Ok(block)
    }

    /// `reduce_with<1> %x, %init |%a, %b| : ty { .. }`
    fn combine_op(&mut self, body: &mut Body<'a>, left: &Left<'a>) -> Parse<()> {
        let attrs = self.attributes()?;
        let kind = match op_table::read(left.mnemonic, &Head { attrs: &attrs, ty: None, text: None, named: &[] }) {
            Ok(kind) => kind,
            Err(why) => return self.bad_head(left, &why),
        };
        let mut args = vec![self.operand(body)?];
        while self.eat(",") {
            args.push(self.operand(body)?);
        }
        let elem = args[0].map(|v| Typed::from(Ty::Scalar(body.kernel.ty(v).elem())));
        let block = body.new_block();
        self.expect("|")?;
        self.list("|", |p| {
            let name = p.value("a value")?;
            let ty = p.annotation()?.or(elem);
            p.block_arg(body, block, name, ty)
        })?;
        let written = self.types()?;
        let tail = self.tail(left)?;
        body.open.push(block);
        self.block(body)?;
        body.open.pop();
        match (Header { kind, args, written, tail }).op(vec![block]) {
            Some((op, written)) => self.typed(body, left, op, &written),
            None => {
                self.poison(body, left);
                Ok(())
            }
        }
    }

    /// Parses `carry(%acc = %acc0, ..)`, if it is present: appends the initial values and returns the carried ones.
    fn carry(&mut self, body: &mut Body<'a>, block: Block, args: &mut Vec<Option<Value>>) -> Parse<Vec<Option<Value>>> {
        if !self.eat_word("carry") {
            return Ok(Vec::new());
        }
        self.expect("(")?;
        self.list(")", |p| {
            let name = p.value("a carried value")?;
            let ty = p.annotation()?;
            p.expect("=")?;
            let init = p.operand(body)?;
            args.push(init);
            p.block_arg(body, block, name, ty.or(init.map(|v| body.kernel.typed(v))))
        })
    }

    fn annotation(&mut self) -> Parse<Option<Typed>> {
        if self.eat(":") { self.typed_ty().map(Some) } else { Ok(None) }
    }

    /// An argument of a block; poisoned if its type is unknown.
    fn block_arg(
        &mut self,
        body: &mut Body<'a>,
        block: Block,
        name: Name<'a>,
        ty: Option<Typed>,
    ) -> Parse<Option<Value>> {
        let Some(ty) = ty else {
            self.declare(body, name, None);
            return Ok(None);
        };
        let index = body.kernel.block(block).args.len();
        let value = self.define(body, name, ty, Def::BlockArg(block, index))?;
        body.kernel.blocks[block.index()].args.push(value);
        Ok(Some(value))
    }
}

impl Body<'_> {
    /// The types of the values that the first region with a `yield` yields.
    fn yielded(&self, regions: &[Block]) -> Vec<Typed> {
        let last = |b: &Block| self.kernel.block(*b).ops.last().map(|id| self.kernel.op(*id));
        let yields = regions.iter().filter_map(last).find(|op| op.kind == OpKind::Yield);
        yields.map_or(Vec::new(), |op| op.args.iter().map(|v| self.kernel.typed(*v)).collect())
    }
}
