mod unknown_key;
mod key_twice;
mod key_without_value;
mod malformed;
mod inside_the_body;
mod on_a_parameter;
mod not_a_function;
mod of_a_device_function;
