//! Roles in the reference: the whole body is executed once for each role of a program, and `match role()` selects the arm. Roles that
//! fill rings are executed before those that read them.
//!
//! Statements before `match role()` are executed once on a device. So here they have effects in the first execution only, and later
//! ones take the values that the first one read from a log, even if roles have stored since.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    static STATE: RefCell<RoleState> = const { RefCell::new(RoleState::new()) };
}

/// The roles of a kernel: an enum of the expansion.
pub trait Roles: Copy + 'static {
    /// All roles, in the order of the kernel's attribute.
    const ALL: &'static [Self];
}

/// The roles of a kernel without roles.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum NoRoles {}

impl Roles for NoRoles {
    const ALL: &'static [Self] = &[];
}

/// The state that the executions of a program's roles share.
pub(in crate::lang) struct RoleState {
    role: usize,
    /// Whether execution is before the `match role()` of a kernel with roles.
    before: bool,
    /// Whether this is the first execution.
    first: bool,
    log: Log,
    rings: Log,
}

/// The logged values, in program order.
struct Log {
    values: Vec<Rc<dyn Any>>,
    next: usize,
}

impl Log {
    const fn new() -> Self {
        Log { values: Vec::new(), next: 0 }
    }

    /// The value that an earlier execution logged here.
    fn known<R: Clone + 'static>(&mut self) -> Option<R> {
        let value = self.values.get(self.next)?.downcast_ref::<R>()?.clone();
        self.next += 1;
        Some(value)
    }

    fn keep<R: Clone + 'static>(&mut self, value: &R) {
        self.values.push(Rc::new(value.clone()));
        self.next = self.values.len();
    }
}

impl RoleState {
    pub(in crate::lang) const fn new() -> Self {
        RoleState { role: 0, before: false, first: true, log: Log::new(), rings: Log::new() }
    }
}

/// Starts a program; returns the state of the enclosing one, to restore it.
pub(in crate::lang) fn begin_program(state: RoleState) -> RoleState {
    STATE.replace(state)
}

/// Starts the execution of a role.
pub(in crate::lang) fn begin_role(role: usize, many: bool, first: bool) {
    STATE.with_borrow_mut(|s| {
        (s.role, s.before, s.first) = (role, many, first);
        (s.log.next, s.rings.next) = (0, 0);
    });
}

/// The role that is executed.
#[must_use]
pub fn role<R: Roles>() -> R {
    let nth = STATE.with_borrow_mut(|s| {
        s.before = false;
        s.role
    });
    R::ALL[nth]
}

/// The number of the role that is executed.
pub(super) fn current() -> usize {
    STATE.with_borrow(|s| s.role)
}

/// Performs an action once in a program, although several executions reach it.
pub(in crate::lang) fn once<R: Clone + 'static>(action: impl FnOnce() -> R) -> R {
    let (before, first) = STATE.with_borrow(|s| (s.before, s.first));
    if before
        && !first
        && let Some(known) = STATE.with_borrow_mut(|s| s.log.known())
    {
        return known;
    }
    let value = action();
    if before {
        STATE.with_borrow_mut(|s| s.log.keep(&value));
    }
    value
}

/// A value that all executions of a program share: created by the first one that reaches it.
pub(super) fn shared<R: 'static>(make: impl FnOnce() -> R) -> Rc<R> {
    if let Some(known) = STATE.with_borrow_mut(|s| s.rings.known()) {
        return known;
    }
    let value = Rc::new(make());
    STATE.with_borrow_mut(|s| s.rings.keep(&value));
    value
}
