//! Checks the positions of rings and roles: rings at the top of a kernel, `match role()` as its last statement, with one arm
//! for each role of the attribute.
//!
//! The use of tokens is not checked here: that is done by rustc (moves, borrows, types) and by the verifier.

use crate::ast::{Block, Builtin, Callee, Expr, ExprKind, Function, KernelItem, RoleArm, RoleAttr, Stmt};
use crate::ctxt::Ctxt;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};

/// Checks a kernel.
pub(crate) fn check(cx: &Ctxt, item: &KernelItem) {
    let roles = item.config.roles.as_ref();
    let checker = Checker { cx, place: "inside a loop, a branch, a role or an expression" };
    let matched = checker.top(&item.func.body);
    match (roles, matched) {
        (Some((_, roles)), Some((span, arms))) => checker.arms(roles, span, arms),
        (Some((key, _)), None) if !checker.has_roles(&item.func.body) => {
            let help = "end the kernel with `match role() { Role::Producer => .., .. }`";
            cx.error_help(Code::RolesAttr, *key, "the kernel has roles, but no `match role()`", help);
        }
        (None, Some((span, _))) => {
            let help = "declare them: `#[titan::kernel(roles(producer: 1 warp, consumer: 2 warpgroups))]`";
            cx.error_help(Code::RolesAttr, span, "`match role()` in a kernel without roles", help);
        }
        (_, None) => {}
    }
}

/// Checks a device function: it has neither rings nor roles.
pub(crate) fn check_device(cx: &Ctxt, func: &Function) {
    let checker = Checker { cx, place: "in a device function" };
    func.body.exprs(&mut |e| checker.inside(e));
}

struct Checker<'a> {
    cx: &'a Ctxt,
    /// The place in which rings and roles are not allowed, for messages.
    place: &'static str,
}

impl Checker<'_> {
    /// Checks the statements of a kernel; returns its `match role()`.
    fn top<'b>(&self, body: &'b Block) -> Option<(Span, &'b [RoleArm])> {
        let mut found = None;
        for (i, stmt) in body.stmts.iter().enumerate() {
            match stmt {
                Stmt::Let { init, .. } => init.iter().for_each(|e| self.made(e)),
                Stmt::Expr { expr: Expr { kind: ExprKind::Roles { arms, .. }, span, .. }, .. } => {
                    if i + 1 < body.stmts.len() {
                        let help = "move the statements after it in front of it, or into the arm of one role";
                        let title = "`match role()` must be the last statement of the kernel";
                        self.cx.error_help(Code::RolesAttr, *span, title, help);
                    }
                    arms.iter().for_each(|a| self.role(&a.body));
                    found = found.or(Some((*span, &arms[..])));
                }
                Stmt::Expr { expr, .. } => self.inside(expr),
            }
        }
        found
    }

    /// Checks the initial value of a variable at the top of the kernel, the only place where rings may be created.
    fn made(&self, e: &Expr) {
        match &e.kind {
            ExprKind::Call { callee: Callee::Builtin(Builtin::RingNew | Builtin::StagingNew), .. } => {}
            ExprKind::Tuple(list, _) => list.iter().for_each(|e| self.made(e)),
            ExprKind::Paren(e, _) => self.made(e),
            _ => self.inside(e),
        }
    }

    /// Checks an expression anywhere else: it contains no ring and no `match role()`.
    fn inside(&self, e: &Expr) {
        match &e.kind {
            ExprKind::Call { callee: Callee::Builtin(Builtin::RingNew | Builtin::StagingNew), path, .. } => {
                let name = path.segments.iter().rev().nth(1).map_or_else(|| "Ring".to_owned(), ToString::to_string);
                let help = format!(
                    "its slots exist for the whole kernel: write `let name = {name}::<..>::new();` at the top of the kernel"
                );
                let at = path.segments.first().map_or(e.span, proc_macro2::Ident::span);
                self.cx.error_help(Code::RingMade, at, format!("a ring cannot be created {}", self.place), help);
            }
            ExprKind::Call { callee: Callee::Builtin(Builtin::Role), .. } => {
                let help = "end the kernel with `match role() { Role::Producer => .., .. }`";
                self.cx.error_help(Code::RolesAttr, e.span, "`role()` can only be used in `match role()`", help);
            }
            ExprKind::Roles { .. } => {
                let help =
                    "write it once, as the last statement of the kernel, with the loops and branches inside the arms";
                let title = format!("`match role()` is not allowed {}", self.place);
                self.cx.error_help(Code::RolesAttr, e.span, title, help);
                return;
            }
            _ => {}
        }
        e.children(&mut |c| self.inside(c));
    }

    /// Checks the arm of a role.
    fn role(&self, e: &Expr) {
        self.inside(e);
        self.returns(e);
    }

    fn returns(&self, e: &Expr) {
        if matches!(e.kind, ExprKind::Return(_)) {
            let help = "let the loops of all roles run the same number of iterations, and skip work inside them by `if` or `select`";
            let title = "`return` in a role: the other roles would wait for it";
            self.cx.error_help(Code::EarlyExit, e.span, title, help);
        }
        if !matches!(e.kind, ExprKind::Closure { .. }) {
            e.children(&mut |c| self.returns(c));
        }
    }

    fn has_roles(&self, body: &Block) -> bool {
        fn found(e: &Expr, yes: &mut bool) {
            *yes |= matches!(e.kind, ExprKind::Roles { .. });
            e.children(&mut |c| found(c, yes));
        }
        let mut yes = false;
        body.exprs(&mut |e| found(e, &mut yes));
        yes
    }

    /// Checks that there is exactly one arm for each role.
    fn arms(&self, roles: &[RoleAttr], span: Span, arms: &[RoleArm]) {
        for (i, arm) in arms.iter().enumerate() {
            let name = arm.path[1].to_string();
            if !roles.iter().any(|r| r.arm() == name) {
                let list: Vec<String> = roles.iter().map(|r| format!("`Role::{}`", r.arm())).collect();
                let names: Vec<String> = roles.iter().map(RoleAttr::arm).collect();
                let title = format!("the kernel has no role `Role::{name}`");
                let help = match titan_core::text::closest(&name, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `Role::{near}`?"),
                    None => format!("its roles are {}", list.join(", ")),
                };
                self.cx.error_help(Code::RolesAttr, arm.path[1].span(), title, help);
            }
            if let Some(first) = arms[..i].iter().find(|a| a.path[1] == arm.path[1]) {
                let diag = Diagnostic::new(Code::RolesAttr, arm.path[1].span(), format!("`Role::{name}` has two arms"));
                self.cx.push(
                    diag.related(first.path[1].span(), "the first arm")
                        .help("write everything that the role does in one arm"),
                );
            }
        }
        // An arm whose role does not exist has been reported: the missing arm may be the same mistake.
        if self.cx.has(Code::RolesAttr) {
            return;
        }
        for role in roles.iter().filter(|r| !arms.iter().any(|a| a.path[1] == r.arm().as_str())) {
            let title = format!("role `{}` has no arm in `match role()`", role.name);
            self.cx.error_help(
                Code::RolesAttr,
                span,
                title,
                format!("add `Role::{} => ..`, or remove the role from the attribute", role.arm()),
            );
        }
    }
}
