mod another_rank;
mod another_shape;
mod stored_and_staged;
mod stored_twice;
mod to_an_input;
mod waited_twice;
mod work_walked_twice;
mod written_twice;
