//! Roles: `roles(producer: 1 warp, consumer: 2 warpgroups)`, with several instances `roles(.., consumer: [1 warpgroup; 2])`, and
//! `match role() { Role::Producer => .., .. }`.

use super::{Parser, first_span, ungrouped};
use crate::ast::{Expr, ExprKind, RoleArm, RoleAttr};
use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{Token, parse::ParseStream};
use titan_core::diag::{Code, counted};
use titan_core::ir::RoleDecl;

/// The number of warps of a warpgroup.
const WARPGROUP: u32 = 4;
/// The largest number of warps of a program: 1024 threads.
const MAX_WARPS: u32 = 32;
/// An example of the attribute.
const EXAMPLE: &str = "as in `roles(producer: 1 warp, consumer: 2 warpgroups)`";

/// `producer: 1 warp` or `consumer: [1 warpgroup; 2]`; whether the unit exists is checked later.
pub(super) struct Entry {
    name: Ident,
    count: syn::LitInt,
    /// `None` if it was forgotten.
    unit: Option<Ident>,
    instances: Option<syn::LitInt>,
}

impl syn::parse::Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        if !input.peek(syn::token::Bracket) {
            return Ok(Entry { name, count: input.parse()?, unit: unit(input)?, instances: None });
        }
        let inner;
        syn::bracketed!(inner in input);
        let (count, unit) = (inner.parse()?, unit(&inner)?);
        inner.parse::<Token![;]>()?;
        let instances = Some(inner.parse()?);
        if inner.is_empty() { Ok(Entry { name, count, unit, instances }) } else { Err(inner.error("expected `]`")) }
    }
}

/// The unit of the size of a role, unless the size ends before it.
fn unit(input: ParseStream<'_>) -> syn::Result<Option<Ident>> {
    let ends = input.is_empty() || input.peek(Token![,]) || input.peek(Token![;]);
    if ends { Ok(None) } else { input.parse().map(Some) }
}

impl Parser<'_> {
    /// The roles of the attribute.
    pub(super) fn role_list(&self, key: Span, entries: &[Entry]) -> Vec<RoleAttr> {
        let mut roles: Vec<RoleAttr> = Vec::new();
        for entry in entries {
            let role =
                RoleAttr { name: entry.name.clone(), warps: self.warps(entry), instances: self.instances(entry) };
            if roles.iter().any(|r| r.arm() == role.arm()) {
                self.cx.error_help(
                    Code::RolesAttr,
                    role.name.span(),
                    format!("two roles have the name `Role::{}`", role.arm()),
                    "give each role a different name",
                );
            } else {
                roles.push(role);
            }
        }
        let warps = roles.iter().fold(0u32, |sum, r| sum.saturating_add(r.warps.saturating_mul(r.instances)));
        if roles.is_empty() {
            self.cx.error_help(Code::RolesAttr, key, "`roles(..)` is empty", EXAMPLE);
        } else if warps > MAX_WARPS {
            let title = format!("the roles have {warps} warps in total; a program has at most {MAX_WARPS}");
            self.cx.error_help(Code::RolesAttr, key, title, "a warp is 32 threads, a warpgroup 4 warps");
        }
        roles
    }

    fn instances(&self, entry: &Entry) -> u32 {
        let Some(instances) = &entry.instances else { return 1 };
        match instances.base10_parse::<u32>() {
            Ok(n @ 1..=RoleDecl::MAX_INSTANCES) => n,
            _ => {
                let title = format!("role `{}` cannot have {instances} instances", entry.name);
                let help = format!("a role has 1 to {} instances", RoleDecl::MAX_INSTANCES);
                self.cx.error_help(Code::RolesAttr, instances.span(), title, help);
                1
            }
        }
    }

    fn warps(&self, entry: &Entry) -> u32 {
        let Some(unit) = &entry.unit else {
            self.without_a_unit(entry);
            return 1;
        };
        let each = match unit.to_string().as_str() {
            "warp" | "warps" => 1,
            "warpgroup" | "warpgroups" => WARPGROUP,
            other => {
                let title = format!("the size of a role is given in warps or warpgroups, not `{other}`");
                let help = match entry.count.base10_parse::<u32>() {
                    Ok(n) if other.starts_with("thread") => {
                        format!("a warp is 32 threads: `{}`", counted(n.div_ceil(32), "warp"))
                    }
                    _ => EXAMPLE.to_owned(),
                };
                self.cx.error_help(Code::RolesAttr, unit.span(), title, help);
                return 1;
            }
        };
        match entry.count.base10_parse::<u32>() {
            Ok(n @ 1..) => n.saturating_mul(each),
            _ => {
                let title = format!("role `{}` cannot have {} {}", entry.name, entry.count, unit);
                self.cx.error_help(Code::RolesAttr, entry.count.span(), title, "a role has at least one warp");
                1
            }
        }
    }

    fn without_a_unit(&self, entry: &Entry) {
        let title = format!("the size of role `{}` has no unit", entry.name);
        let groups = |n| if n == 1 { "1 warpgroup".to_owned() } else { format!("{n} warpgroups") };
        let help = match entry.count.base10_parse::<u32>() {
            Ok(n @ 1..) if n % WARPGROUP == 0 => {
                format!("write `{}` or `{}`, which is the same", counted(n, "warp"), groups(n / WARPGROUP))
            }
            Ok(n @ 1..) => format!("write `{}`, or `{}` of {WARPGROUP} warps each", counted(n, "warp"), groups(n)),
            _ => EXAMPLE.to_owned(),
        };
        self.cx.error_help(Code::RolesAttr, entry.count.span(), title, help);
    }

    /// Reports a syntax error in `roles(..)`.
    pub(super) fn roles_syntax(&self, error: &syn::Error) {
        self.cx.error_help(Code::RolesAttr, error.span(), format!("this is not a list of roles: {error}"), EXAMPLE);
    }

    /// Parses `match role() { .. }`; any other `match` is not supported in kernels.
    pub(super) fn roles(&mut self, m: &syn::ExprMatch) -> Expr {
        let syn::Expr::Call(call) = ungrouped(&m.expr) else { return self.unsupported(&syn::Expr::Match(m.clone())) };
        let syn::Expr::Path(function) = ungrouped(&call.func) else {
            return self.unsupported(&syn::Expr::Match(m.clone()));
        };
        if function.path.segments.last().is_none_or(|s| s.ident != "role") || !call.args.is_empty() {
            return self.unsupported(&syn::Expr::Match(m.clone()));
        }
        let path = self.path(&function.path);
        let arms = m.arms.iter().filter_map(|a| self.role_arm(a)).collect();
        self.make(m.match_token.span, ExprKind::Roles { path, arms })
    }

    fn role_arm(&mut self, arm: &syn::Arm) -> Option<RoleArm> {
        self.no_attrs(&arm.attrs);
        if let Some((guard, _)) = &arm.guard {
            let help = "a role always executes its arm; write an `if` inside the arm";
            self.cx.error_help(Code::RolesAttr, guard.span, "an arm of `match role()` cannot have a guard", help);
        }
        let body = self.expr(&arm.body);
        if let syn::Pat::Path(p) = &arm.pat
            && let [of, name] = &p.path.segments.iter().collect::<Vec<_>>()[..]
            && of.ident == "Role"
            && p.path.leading_colon.is_none()
        {
            return Some(RoleArm { path: [of.ident.clone(), name.ident.clone()], body });
        }
        let span = first_span(arm.pat.to_token_stream());
        let (title, help) = match &arm.pat {
            syn::Pat::Wild(_) => {
                ("`match role()` cannot have a wildcard arm", "write one arm for each role of the attribute")
            }
            syn::Pat::Or(_) => (
                "an arm of `match role()` cannot be for several roles",
                "write one arm for each role: the roles run concurrently, each on its own warps",
            ),
            _ => (
                "this arm of `match role()` names no role",
                "the arm of a role `producer` of the attribute is `Role::Producer => ..`",
            ),
        };
        self.cx.error_help(Code::RolesAttr, span, title, help);
        None
    }
}
