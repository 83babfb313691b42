//! Roles in the reference: for each role of a program the whole body runs, and `match role()` picks its arm. Those that fill
//! rings run before those that read them.
//!
//! What stands before `match role()` happens once on a device. So here it has effects in the first run only, and what the
//! first run read is read again from a log, whatever roles have stored since.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

thread_local! {
    static STATE: RefCell<RoleState> = const { RefCell::new(RoleState::new()) };
}

/// The roles of a kernel: the expansion's enumeration.
pub trait Roles: Copy + 'static {
    /// Every role, in the order of the kernel's attribute.
    const ALL: &'static [Self];
}

/// The roles of no kernel.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Nobody {}

impl Roles for Nobody {
    const ALL: &'static [Self] = &[];
}

/// What a program's runs share.
pub(in crate::lang) struct RoleState {
    role: usize,
    /// Before `match role()` of a kernel with roles.
    before: bool,
    /// The first run of the program.
    first: bool,
    log: Log,
    rings: Log,
}

/// Values in the order in which every run comes by them.
struct Log {
    values: Vec<Rc<dyn Any>>,
    next: usize,
}

impl Log {
    const fn new() -> Self {
        Log { values: Vec::new(), next: 0 }
    }

    /// What an earlier run left here.
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

/// Starts a program; gives the state of the one around it, to put back.
pub(in crate::lang) fn begin_program(state: RoleState) -> RoleState {
    STATE.replace(state)
}

/// Starts the run of a role.
pub(in crate::lang) fn begin_role(role: usize, many: bool, first: bool) {
    STATE.with_borrow_mut(|s| {
        (s.role, s.before, s.first) = (role, many, first);
        (s.log.next, s.rings.next) = (0, 0);
    });
}

/// Which role runs.
#[must_use]
pub fn role<R: Roles>() -> R {
    let nth = STATE.with_borrow_mut(|s| {
        s.before = false;
        s.role
    });
    R::ALL[nth]
}

/// The number of the role that runs.
pub(super) fn current() -> usize {
    STATE.with_borrow(|s| s.role)
}

/// Does what happens once in a program, although several runs come by.
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

/// Something that all runs of a program share: made by the first that comes by.
pub(super) fn shared<R: 'static>(make: impl FnOnce() -> R) -> Rc<R> {
    if let Some(known) = STATE.with_borrow_mut(|s| s.rings.known()) {
        return known;
    }
    let value = Rc::new(make());
    STATE.with_borrow_mut(|s| s.rings.keep(&value));
    value
}
