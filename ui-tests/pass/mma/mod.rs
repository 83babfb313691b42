mod inner_extents;
mod square_instance;
mod elements;
mod mixed_halves;
mod accumulator_element;
mod accumulator_shape;
mod rank;
mod many_instances;
