mod accumulator_element;
mod accumulator_shape;
mod elements;
mod inner_extents;
mod many_instances;
mod mixed_halves;
mod rank;
mod square_instance;
