mod axis_at_run_time;
mod axis_beyond;
mod four_axes;
mod no_extents;
mod not_inferred;
mod of_a_tensor;
mod program_id_three;
