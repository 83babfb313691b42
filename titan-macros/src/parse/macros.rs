//! The macros of kernels: `tprint!`, `tassert!`, `static_assert!`.

use super::{Parser, ungrouped};
use crate::ast::{Expr, ExprKind};
use proc_macro2::{Span, TokenStream};
use syn::Token;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use titan_core::diag::{Code, counted};

impl Parser<'_> {
    pub(super) fn mac(&mut self, m: &syn::Macro) -> Expr {
        let span = m.path.segments.last().map_or_else(Span::call_site, |s| s.ident.span());
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let (format, args) = match name.as_str() {
            "tprint" => self.format_args(m.tokens.clone()),
            "tassert" | "static_assert" => self.assert_args(m.tokens.clone()),
            _ => {
                let help = match name.as_str() {
                    "print" | "println" | "eprint" | "eprintln" | "dbg" => {
                        "`tprint!(\"{} {}\", a, b)` prints from a kernel"
                    }
                    "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "panic" | "unreachable" | "todo" => {
                        "`tassert!(condition, \"message\")` stops the launch, `static_assert!` the compilation"
                    }
                    "vec" => "`Tile::<T, N>::full(value)` is a tile, `[a, b]` an array",
                    _ => "the macros of kernels are `tprint!`, `tassert!` and `static_assert!`",
                };
                self.cx.error_help(Code::ForeignMacro, span, format!("`{name}!` is not supported in kernels"), help);
                return self.bad(span);
            }
        };
        self.mention(&m.path, false);
        let name = proc_macro2::Ident::new(&name, span);
        let kind = ExprKind::Macro { name, format, args, tokens: m.tokens.clone() };
        self.make(span, kind)
    }

    /// `"format {}", a, b`
    pub(super) fn format_args(&mut self, tokens: TokenStream) -> (Option<String>, Vec<Expr>) {
        let parser = |input: syn::parse::ParseStream<'_>| {
            let format: syn::LitStr = input.parse()?;
            let mut args = Vec::new();
            while !input.is_empty() {
                input.parse::<Token![,]>()?;
                if !input.is_empty() {
                    args.push(input.parse::<syn::Expr>()?);
                }
            }
            Ok((format, args))
        };
        match parser.parse2(tokens) {
            Ok((format, args)) => {
                let args: Vec<Expr> = args.iter().map(|a| self.expr(a)).collect();
                self.check_format(&format, args.len());
                (Some(format.value()), args)
            }
            Err(e) => {
                self.syn_error(Code::Syntax, &e);
                (None, Vec::new())
            }
        }
    }

    pub(super) fn check_format(&self, format: &syn::LitStr, n_args: usize) {
        let text = format.value().replace("{{", "").replace("}}", "");
        let holes = text.matches("{}").count();
        if text.matches('{').count() != holes || text.matches('}').count() != holes {
            let help = "`{}` prints the next value; write `{{` for a brace";
            self.cx.error_help(Code::Syntax, format.span(), "this placeholder is not supported by `tprint!`", help);
        } else if holes != n_args {
            let title = format!("{} for {}", counted(holes, "placeholder"), counted(n_args, "value"));
            self.cx.error(Code::Syntax, format.span(), title);
        }
    }

    /// `condition` or `condition, "message"`
    pub(super) fn assert_args(&mut self, tokens: TokenStream) -> (Option<String>, Vec<Expr>) {
        let text = tokens.to_string();
        match Punctuated::<syn::Expr, Token![,]>::parse_terminated.parse2(tokens) {
            Ok(list) => {
                let message = match list.iter().nth(1).map(ungrouped) {
                    Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. })) => s.value(),
                    _ => text,
                };
                let cond: Vec<Expr> = list.iter().take(1).map(|e| self.expr(e)).collect();
                (Some(message), cond)
            }
            Err(e) => {
                self.syn_error(Code::Syntax, &e);
                (None, Vec::new())
            }
        }
    }
}
