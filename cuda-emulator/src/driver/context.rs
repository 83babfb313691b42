//! Contexts: the current context of each thread, and the sticky error of each context.

use super::{Driver, Session, queue};
use crate::code::{Code, Done};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(super) device: usize,
    /// The number of times that a primary context is retained; 0 for others.
    retained: u32,
    /// The first error in the context, which later calls return.
    pub(super) sticky: Option<Code>,
    /// The legacy default stream of the context.
    pub(super) null: u64,
    /// The default streams of threads.
    pub(super) own: BTreeMap<u64, u64>,
}

thread_local! {
    /// The stack of contexts of this thread; the last one is current.
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The handle of the current context, alive or not.
pub(crate) fn current() -> Option<u64> {
    STACK.with_borrow(|s| s.last().copied()).filter(|c| *c != 0)
}

/// Replaces the current context; 0 is none.
pub(crate) fn set_current(context: u64) {
    STACK.with_borrow_mut(|s| {
        s.pop();
        if context != 0 {
            s.push(context);
        }
    });
}

/// Makes a context current until it is popped.
pub(crate) fn push(context: u64) {
    STACK.with_borrow_mut(|s| s.push(context));
}

/// Undoes [`push`].
pub(crate) fn pop() -> Option<u64> {
    STACK.with_borrow_mut(Vec::pop)
}

impl Driver {
    /// The handle of a device's primary context, whether it is alive or not.
    fn primary(device: usize) -> u64 {
        0x5F00_0000_0000 + 4096 * (device as u64 + 1)
    }

    /// Retains the primary context of a device.
    pub(crate) fn retain(&mut self, ordinal: i32) -> Done<u64> {
        self.device(ordinal)?;
        let device = ordinal.unsigned_abs() as usize;
        let handle = Driver::primary(device);
        if !self.contexts.contains_key(&handle) {
            self.make(handle, device);
        }
        if let Some(context) = self.contexts.get_mut(&handle) {
            context.retained += 1;
        }
        Ok(handle)
    }

    /// Creates a context that is not a primary one.
    pub(crate) fn create(&mut self, ordinal: i32) -> Done<u64> {
        self.device(ordinal)?;
        let handle = self.handle();
        self.make(handle, ordinal.unsigned_abs() as usize);
        Ok(handle)
    }

    fn make(&mut self, handle: u64, device: usize) {
        let context = Context { device, retained: 0, sticky: None, null: 0, own: BTreeMap::new() };
        self.contexts.insert(handle, context);
        let null = self.new_stream(handle, true);
        if let Some(context) = self.contexts.get_mut(&handle) {
            context.null = null;
        }
    }

    /// Whether a primary context is alive.
    pub(crate) fn is_active(&self, ordinal: i32) -> Done<bool> {
        self.device(ordinal)?;
        Ok(self.contexts.contains_key(&Driver::primary(ordinal.unsigned_abs() as usize)))
    }

    /// A live context, or the driver's error for it.
    pub(crate) fn context(&self, handle: u64) -> Done<&Context> {
        let was =
            handle > 0x5F00_0000_0000 && handle <= 0x6000_0000_0000 + 64 * self.handles && handle.is_multiple_of(64);
        self.contexts.get(&handle).ok_or(if was { Code::CONTEXT_IS_DESTROYED } else { Code::INVALID_CONTEXT })
    }

    /// The ordinal of a context's device.
    pub(crate) fn device_of(&self, context: u64) -> Done<usize> {
        self.context(context).map(|c| c.device)
    }

    /// The sticky error of a context, if there is one.
    pub(crate) fn sticky(&self, context: u64) -> Done {
        self.context(context)?.sticky.map_or(Ok(()), Err)
    }

    /// Records an error in a context: from now on every call in the context returns it.
    pub(super) fn fail(&mut self, context: u64, code: Code, report: &str) {
        crate::say(&format!("{report}\n  from now on the context answers {code}"));
        if let Some(c) = self.contexts.get_mut(&context) {
            c.sticky.get_or_insert(code);
        }
    }
}

/// Releases a primary context; the last release ends it.
pub(crate) fn release_primary(session: &mut Session, ordinal: i32) -> Done {
    session.device(ordinal)?;
    let handle = Driver::primary(ordinal.unsigned_abs() as usize);
    let context = session.contexts.get_mut(&handle).ok_or(Code::INVALID_CONTEXT)?;
    context.retained = context.retained.saturating_sub(1);
    if context.retained == 0 {
        end(session, handle);
    }
    Ok(())
}

/// Ends a primary context, however often it is retained.
pub(crate) fn reset_primary(session: &mut Session, ordinal: i32) -> Done {
    session.device(ordinal)?;
    end(session, Driver::primary(ordinal.unsigned_abs() as usize));
    Ok(())
}

/// Ends a context that is not a primary one.
pub(crate) fn destroy_context(session: &mut Session, handle: u64) -> Done {
    session.context(handle)?;
    if (0..session.devices.len()).any(|d| Driver::primary(d) == handle) {
        return Err(Code::INVALID_CONTEXT);
    }
    if current() == Some(handle) {
        pop();
    }
    end(session, handle);
    Ok(())
}

/// Runs pending operations, and frees everything that belongs to a context.
fn end(session: &mut Session, handle: u64) {
    let ops = session.queue.of_context(handle);
    // Errors are printed on stderr, because there is no caller to whom they could be returned.
    let _ = queue::force(session, handle, ops);
    let driver = &mut **session;
    driver.free_all(handle);
    let modules: Vec<u64> = driver.modules.iter().filter(|(_, m)| m.context == handle).map(|(h, _)| *h).collect();
    for module in modules {
        // The module exists, because it was just listed.
        let _ = driver.unload(module);
    }
    driver.streams.retain(|_, s| s.context != handle);
    driver.events.retain(|_, e| e.context != handle);
    driver.contexts.remove(&handle);
}
