mod four_axes;
mod no_extents;
mod program_id_three;
mod axis_beyond;
mod axis_at_run_time;
mod not_inferred;
mod of_a_tensor;
