mod alias;
mod read_while_pending;
mod never_run;
mod wrong_element;
mod shared_output;
