//! The analysis of fences for one kernel with tentative changes, which remembers what it found.
//!
//! Placement asks about the same changes again and again: whether a fence covers a hazard, then which hazards are left with it, then whether it
//! can be removed. Each answer is found once.
//!
//! Deliberately absent: answers for similar changes, of which nothing follows.

use crate::analysis::proxy::{Found, Overlay, find};
use crate::ir::Kernel;
use std::cell::RefCell;
use std::rc::Rc;

/// A kernel about which the analysis is asked.
pub(super) struct Asked<'k> {
    pub(super) kernel: &'k Kernel,
    known: RefCell<Vec<(Overlay, Rc<Found>)>>,
}

impl<'k> Asked<'k> {
    pub(super) const fn new(kernel: &'k Kernel) -> Asked<'k> {
        Asked { kernel, known: RefCell::new(Vec::new()) }
    }

    /// What the analysis finds with these changes.
    pub(super) fn find(&self, overlay: &Overlay) -> Rc<Found> {
        let known = self.known.borrow().iter().find(|(asked, _)| asked == overlay).map(|(_, found)| Rc::clone(found));
        known.unwrap_or_else(|| {
            let found = Rc::new(find(self.kernel, overlay));
            self.known.borrow_mut().push((overlay.clone(), Rc::clone(&found)));
            found
        })
    }
}
