//! Invisible groups: what a `macro_rules!` macro inserts for `$b:block`, `$s:stmt`, `$e:expr` and the like arrives as a group without delimiters.
//!
//! An expression in such a group is one operand, whatever is in it, and `syn` reads it as one. It also reads a group as an expression where
//! rustc reads a statement. So groups with statements are replaced by the statements before `syn` reads the tokens.
//!
//! # Which groups are statements
//!
//! A group at the start of a statement whose tokens are a `let`, an item, a semicolon, a call of a macro with braces, or an expression that ends a statement
//! without a semicolon: `{ .. }`, `if`, `for` and the like. For rustc, such an expression is a statement even if it comes from an `$e:expr`: after `$e`, which is
//! `{ 1 }`, `- 1` is the next statement.

#[cfg(test)]
mod tests;

use proc_macro2::{Delimiter, Group, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::Parser as _;

/// The tokens of a function as `syn` parses them.
pub(crate) fn function(item: &TokenStream) -> syn::Result<syn::ItemFn> {
    let item = statements(item.clone());
    let parsed = syn::parse2(item.clone());
    parsed.or_else(|e| with_plain_labels(item).and_then(|i| syn::parse2(i).ok()).ok_or(e))
}

/// The tokens of an expression as `syn` parses them.
pub(super) fn statements(tokens: TokenStream) -> TokenStream {
    plain(tokens.clone(), false).unwrap_or(tokens)
}

/// Tokens with the statements of invisible groups in place of these groups; `None` if there are none. Statements are in braces.
fn plain(tokens: TokenStream, in_braces: bool) -> Option<TokenStream> {
    let mut out = Out { tokens: Vec::new(), at_start: in_braces, found: false };
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        match token {
            TokenTree::Group(group) => {
                out.group(group, in_braces, rest.peek());
            }
            TokenTree::Punct(p) => {
                // The arm of a `match` is a statement too, for what follows a block.
                let ends_an_arrow = p.as_char() == '>' && out.ends_with('=');
                out.at_start = in_braces && (p.as_char() == ';' || ends_an_arrow);
                out.tokens.push(p.into());
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) => {
                out.at_start = false;
                out.tokens.push(token);
            }
        }
    }
    out.found.then(|| out.tokens.into_iter().collect())
}

struct Out {
    tokens: Vec<TokenTree>,
    /// Whether the next token begins a statement.
    at_start: bool,
    /// Whether the tokens are others than those that were given.
    found: bool,
}

impl Out {
    fn ends_with(&self, mark: char) -> bool {
        matches!(self.tokens.last(), Some(TokenTree::Punct(p)) if p.as_char() == mark && p.spacing() == Spacing::Joint)
    }

    /// Adds a group, before the `next` token.
    fn group(&mut self, group: Group, in_braces: bool, next: Option<&TokenTree>) {
        let delimiter = group.delimiter();
        let inner = plain(group.stream(), delimiter == Delimiter::Brace);
        let is_block = match delimiter {
            Delimiter::Brace => true,
            Delimiter::None => {
                let content = inner.clone().unwrap_or_else(|| group.stream());
                if (self.at_start || is_semicolon(&content))
                    && let Some(statement) = statement(&content, next)
                {
                    self.statement(statement);
                    return;
                }
                is_in_braces(content)
            }
            Delimiter::Parenthesis | Delimiter::Bracket => false,
        };
        self.at_start = in_braces && is_block;
        match inner {
            Some(stream) => {
                self.found = true;
                self.tokens.push(group_at(delimiter, stream, group.span()));
            }
            None => self.tokens.push(group.into()),
        }
    }

    /// Adds the statement of an invisible group.
    fn statement(&mut self, Statement { tokens, needs_semicolon }: Statement) {
        self.found = true;
        self.tokens.extend(tokens);
        if let Some(span) = needs_semicolon {
            let mut semicolon = Punct::new(';', Spacing::Alone);
            semicolon.set_span(span);
            self.tokens.push(semicolon.into());
        }
        self.at_start = true;
    }
}

/// The content of an invisible group that is a statement by itself.
struct Statement {
    tokens: TokenStream,
    /// Where a semicolon is missing.
    needs_semicolon: Option<Span>,
}

/// The statement in an invisible group at the start of a statement, before the `next` token; `None` if it is an operand, which may go on.
fn statement(content: &TokenStream, next: Option<&TokenTree>) -> Option<Statement> {
    let content = only_group(content.clone(), Delimiter::None).unwrap_or_else(|| content.clone());
    let ended = |tokens: TokenStream| Some(Statement { tokens, needs_semicolon: None });
    let last = content.clone().into_iter().last()?;
    if matches!(&last, TokenTree::Punct(p) if p.as_char() == ';') || is_in_braces(content.clone()) {
        return ended(content);
    }
    let keyword = content.clone().into_iter().find_map(|t| match t {
        // Attributes come first.
        TokenTree::Punct(p) if p.as_char() == '#' => None,
        TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket => None,
        other => Some(other.to_string()),
    });
    let is_ended = matches!(next, Some(TokenTree::Punct(p)) if p.as_char() == ';');
    if keyword.is_some_and(|word| word == "let") {
        return Some(Statement { tokens: content, needs_semicolon: (!is_ended).then(|| last.span()) });
    }
    let statements = syn::Block::parse_within.parse2(content.clone()).unwrap_or_default();
    match (&statements[..], next) {
        ([syn::Stmt::Item(_)], _) => ended(content),
        ([syn::Stmt::Macro(m)], _) if matches!(m.mac.delimiter, syn::MacroDelimiter::Brace(_)) => ended(content),
        ([syn::Stmt::Expr(e, None)], _) if ends_a_statement(e) => ended(content),
        // An `$s:stmt` is a statement without a semicolon.
        ([syn::Stmt::Expr(e, None)], Some(next)) if !is_ended && (is_unit(e) || !continues(next)) => {
            Some(Statement { tokens: content, needs_semicolon: Some(last.span()) })
        }
        _ => None,
    }
}

/// Whether an expression has no value, so that it is no operand.
fn is_unit(e: &syn::Expr) -> bool {
    match e {
        syn::Expr::Assign(_) | syn::Expr::Break(_) | syn::Expr::Continue(_) | syn::Expr::Return(_) => true,
        syn::Expr::Binary(b) => matches!(super::expr::operator(b.op), Some((_, true))),
        _ => false,
    }
}

/// Whether an expression ends a statement without a semicolon.
fn ends_a_statement(e: &syn::Expr) -> bool {
    match e {
        syn::Expr::Block(_)
        | syn::Expr::Unsafe(_)
        | syn::Expr::Const(_)
        | syn::Expr::TryBlock(_)
        | syn::Expr::If(_)
        | syn::Expr::Match(_)
        | syn::Expr::ForLoop(_)
        | syn::Expr::While(_)
        | syn::Expr::Loop(_) => true,
        syn::Expr::Group(g) => ends_a_statement(&g.expr),
        _ => false,
    }
}

/// Whether an expression may go on with this token.
fn continues(next: &TokenTree) -> bool {
    match next {
        TokenTree::Punct(_) => true,
        TokenTree::Ident(word) => word == "as",
        TokenTree::Group(g) => match g.delimiter() {
            Delimiter::Parenthesis | Delimiter::Bracket => true,
            Delimiter::Brace => false,
            // A semicolon, or the next statement.
            Delimiter::None => is_semicolon(&g.stream()),
        },
        TokenTree::Literal(_) => false,
    }
}

/// Whether tokens are a semicolon.
fn is_semicolon(tokens: &TokenStream) -> bool {
    let mut tokens = tokens.clone().into_iter();
    matches!((tokens.next(), tokens.next()), (Some(TokenTree::Punct(p)), None) if p.as_char() == ';')
}

/// Whether tokens are a block.
pub(crate) fn is_in_braces(tokens: TokenStream) -> bool {
    only_group(tokens.clone(), Delimiter::Brace).is_some()
        || only_group(tokens, Delimiter::None).is_some_and(is_in_braces)
}

/// The tokens in the only group of this kind, of several such groups in each other in the innermost.
fn only_group(tokens: TokenStream, delimiter: Delimiter) -> Option<TokenStream> {
    let mut tokens = tokens.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Group(g)), None) if g.delimiter() == delimiter => Some(match delimiter {
            Delimiter::None => only_group(g.stream(), delimiter).unwrap_or_else(|| g.stream()),
            Delimiter::Brace | Delimiter::Parenthesis | Delimiter::Bracket => g.stream(),
        }),
        _ => None,
    }
}

fn group_at(delimiter: Delimiter, stream: TokenStream, span: Span) -> TokenTree {
    let mut group = Group::new(delimiter, stream);
    group.set_span(span);
    group.into()
}

/// The tokens without the invisible groups around lifetimes, in which `syn` expects expressions: those around `$label` in a macro. `None` if there
/// are none.
fn with_plain_labels(tokens: TokenStream) -> Option<TokenStream> {
    let mut found = false;
    let mut out = Vec::new();
    for t in tokens {
        let TokenTree::Group(g) = t else {
            out.push(t);
            continue;
        };
        let inner: Vec<TokenTree> = g.stream().into_iter().collect();
        let is_label = matches!(&inner[..], [TokenTree::Punct(p), TokenTree::Ident(_)] if p.as_char() == '\'');
        if g.delimiter() == Delimiter::None && is_label {
            found = true;
            out.extend(inner);
        } else if let Some(stream) = with_plain_labels(g.stream()) {
            found = true;
            out.push(group_at(g.delimiter(), stream, g.span()));
        } else {
            out.push(g.into());
        }
    }
    found.then(|| out.into_iter().collect())
}

/// Tokens with parentheses in place of the invisible groups around fragments of `macro_rules!` macros; `None` if there are none. rustc
/// ignores such groups in what a procedural macro returns, so that `$a * 2` would be `1 + 2 * 2` where `$a` is `1 + 2`.
pub(crate) fn with_parentheses(tokens: TokenStream) -> Option<TokenStream> {
    let is_path = |t: &TokenTree| match t {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(p) => p.as_char() == ':',
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    };
    let mut found = false;
    let mut out = Vec::new();
    for t in tokens {
        let TokenTree::Group(g) = t else {
            out.push(t);
            continue;
        };
        let inner: Vec<TokenTree> = g.stream().into_iter().collect();
        let is_operand = inner.len() < 2 || inner.iter().all(is_path);
        let (delimiter, changes) = match g.delimiter() {
            Delimiter::None if !is_operand => (Delimiter::Parenthesis, true),
            other => (other, false),
        };
        let changed = with_parentheses(g.stream());
        if !changes && changed.is_none() {
            out.push(g.into());
            continue;
        }
        found = true;
        out.push(group_at(delimiter, changed.unwrap_or_else(|| g.stream()), g.span()));
    }
    found.then(|| out.into_iter().collect())
}

/// Tokens as written, for rustc.
pub(super) fn as_written(written: impl ToTokens) -> TokenStream {
    let tokens = written.to_token_stream();
    with_parentheses(tokens.clone()).unwrap_or(tokens)
}
