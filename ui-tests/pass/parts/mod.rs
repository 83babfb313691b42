//! Parts of tiles, tuples, atomics that return a value, optional outputs.

mod at_in_a_closure;
mod element_outside;
mod fetch_in_a_closure;
mod fetch_of_mixed_updates;
mod fetch_of_small_integers;
mod grid_of_an_optional_output;
mod not_joined;
mod optional_output_unguarded;
mod part_at_run_time;
mod part_outside;
mod stored_by_no_instance;
mod tuple_of_shapes;
mod tuple_with_neutral;
