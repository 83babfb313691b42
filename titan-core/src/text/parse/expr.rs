//! Parses host expressions by precedence climbing, with Rust's precedences. Nothing is folded, so that an expression is kept as written.

use super::{MAX_DEPTH, Name, Parse, Parser};
use crate::diag::{Code, Diagnostic};
use crate::ir::{HostExpr, HostOp, Symbol};
use crate::text::lex::Tok;

/// An expression and the height of its tree.
struct Tree {
    expr: HostExpr,
    height: usize,
}

impl Tree {
    const fn leaf(expr: HostExpr) -> Tree {
        Tree { expr, height: 1 }
    }
}

/// The names of a signature while it is parsed. Parameters may be mentioned before they are declared; until the end of the signature, a
/// parameter is represented by its index in `mentioned`.
#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) symbols: Vec<String>,
    pub(super) mentioned: Vec<Name<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        let known = self.symbols.iter().position(|s| s == name);
        Symbol::new(known.unwrap_or_else(|| {
            self.symbols.push(name.to_owned());
            self.symbols.len() - 1
        }))
    }

    fn mention(&mut self, name: Name<'a>) -> usize {
        self.mentioned.push(name);
        self.mentioned.len() - 1
    }
}

impl<'a> Parser<'a> {
    pub(super) fn expr(&mut self, scope: &mut Scope<'a>) -> Parse<HostExpr> {
        self.tree(scope, 1, 0).map(|t| t.expr)
    }

    /// Parses operators that bind at least as tightly as `least`.
    fn tree(&mut self, scope: &mut Scope<'a>, least: u8, depth: usize) -> Parse<Tree> {
        let mut left = self.prefix(scope, depth)?;
        let mut compared = false;
        while let Some((op, binds)) = self.operator()?.filter(|(_, binds)| *binds >= least) {
            let at = self.bump().at;
            if op.is_comparison() && std::mem::replace(&mut compared, true) {
                let error = Diagnostic::new(Code::Text, at, "comparisons do not chain");
                return self.error(error.help("parentheses say which comes first"));
            }
            let right = self.tree(scope, binds + 1, depth + 1)?;
            let height = left.height.max(right.height) + 1;
            self.limit(height, at)?;
            left = Tree { expr: HostExpr::Binary(op, Box::new(left.expr), Box::new(right.expr)), height };
        }
        Ok(left)
    }

    fn limit(&mut self, height: usize, at: usize) -> Parse<()> {
        if height > MAX_DEPTH { self.fail(at, format!("expressions nest at most {MAX_DEPTH} deep")) } else { Ok(()) }
    }

    fn operator(&mut self) -> Parse<Option<(HostOp, u8)>> {
        if let (Tok::Value(v), false) = (self.next.tok, self.next.fresh) {
            let error = Diagnostic::new(Code::Text, self.next.at, format!("expected an operator, found `{v}`"));
            return self.error(error.help("the remainder sign has a space after it: `K % 4`"));
        }
        let Tok::Sign(sign) = self.next.tok else { return Ok(None) };
        let op = HostOp::ALL.iter().find(|(op, text)| *text == sign && !op.is_call());
        Ok(op.map(|(op, _)| (*op, op.binds())))
    }

    fn prefix(&mut self, scope: &mut Scope<'a>, depth: usize) -> Parse<Tree> {
        let at = self.next.at;
        self.limit(depth / 3, at)?;
        match self.next.tok {
            Tok::Sign("!") => {
                self.bump();
                let inner = self.prefix(scope, depth + 1)?;
                self.limit(inner.height + 1, at)?;
                Ok(Tree { expr: HostExpr::Not(Box::new(inner.expr)), height: inner.height + 1 })
            }
            Tok::Sign("(") => {
                self.bump();
                let inner = self.tree(scope, 1, depth + 1)?;
                self.expect(")")?;
                Ok(inner)
            }
            Tok::Sign("$") => {
                self.bump();
                let name = self.string("the name of a symbol, in quotes")?;
                Ok(Tree::leaf(HostExpr::Symbol(scope.symbol(&name))))
            }
            Tok::Sign("-") | Tok::Number(_) => self.int("an integer").map(|v| Tree::leaf(HostExpr::Const(v))),
            Tok::Value(_) => {
                let name = self.value("a parameter")?;
                Ok(Tree::leaf(HostExpr::Scalar(scope.mention(name))))
            }
            Tok::Word(word) => {
                self.bump();
                if self.eat("(") {
                    return self.call(word, at, scope, depth);
                }
                Ok(Tree::leaf(HostExpr::Symbol(scope.symbol(word))))
            }
            Tok::Text(_) | Tok::Sign(_) | Tok::Bad(_) | Tok::End => self.expected("an expression"),
        }
    }

    /// `cdiv(a, b)`, `min(a, b)`, `max(a, b)`, `dim(%t, axis)`, after the parenthesis.
    fn call(&mut self, word: &str, at: usize, scope: &mut Scope<'a>, depth: usize) -> Parse<Tree> {
        if word == "dim" {
            let tensor = self.value("a tensor parameter")?;
            self.expect(",")?;
            let axis = self.int::<u32>("an axis")?;
            self.expect(")")?;
            return Ok(Tree::leaf(HostExpr::Dim(scope.mention(tensor), axis as usize)));
        }
        let Some((op, _)) = HostOp::ALL.iter().find(|(op, text)| *text == word && op.is_call()) else {
            let error = Diagnostic::new(Code::Text, at, format!("there is no function `{word}`"));
            return self.error(
                error.help("host expressions have `cdiv(a, b)`, `min(a, b)`, `max(a, b)` and `dim(%tensor, axis)`"),
            );
        };
        let a = self.tree(scope, 1, depth + 1)?;
        self.expect(",")?;
        let b = self.tree(scope, 1, depth + 1)?;
        self.expect(")")?;
        let height = a.height.max(b.height) + 1;
        self.limit(height, at)?;
        Ok(Tree { expr: HostExpr::Binary(*op, Box::new(a.expr), Box::new(b.expr)), height })
    }
}
