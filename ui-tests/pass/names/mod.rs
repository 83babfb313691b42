mod unknown_variable;
mod unknown_method;
mod unmarked_function;
mod unmarked_constant;
mod unknown_type;
mod argument_count;
mod own_intrinsic;
mod assigned_without_mut;
