mod written_twice;
mod stored_twice;
mod waited_twice;
mod another_shape;
mod another_rank;
mod to_an_input;
mod stored_and_staged;
mod work_walked_twice;
