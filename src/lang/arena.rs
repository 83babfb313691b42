//! The elements of tiles: tiles are `Copy` handles into an arena that is empty at the start of each program.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use super::elem::Elem;

thread_local! {
    static ARENA: RefCell<Arena> = const { RefCell::new(Arena { program: 0, tiles: Vec::new() }) };
}

/// The tiles of one program.
struct Arena {
    /// The number of programs so far on this thread, so that the use of a handle after the end of its program is detected.
    program: u32,
    tiles: Vec<Rc<dyn Any>>,
}

/// The position of a tile's elements in the arena.
#[derive(Clone, Copy)]
pub(crate) struct Handle {
    program: u32,
    index: usize,
}

/// Keeps the elements of a new tile until the program ends.
pub(crate) fn keep<T: Elem>(values: Vec<T>) -> Handle {
    ARENA.with_borrow_mut(|arena| {
        arena.tiles.push(Rc::new(values));
        Handle { program: arena.program, index: arena.tiles.len() - 1 }
    })
}

/// The elements of a tile.
pub(crate) fn values<T: Elem>(handle: Handle) -> Rc<Vec<T>> {
    let kept = ARENA.with_borrow(|arena| {
        assert!(handle.program == arena.program, "a tile was used after the program that made it had ended");
        Rc::clone(&arena.tiles[handle.index])
    });
    kept.downcast().expect("a tile's handle has the element type it was made with")
}

/// Frees the tiles of the program that ended.
pub(crate) fn clear() {
    let tiles = ARENA.with_borrow_mut(|arena| {
        arena.program = arena.program.wrapping_add(1);
        std::mem::take(&mut arena.tiles)
    });
    drop(tiles);
}
