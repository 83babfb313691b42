mod carried_stage;
mod large_ring;
mod none;
mod too_much_memory;
mod twice;
mod unknown;
