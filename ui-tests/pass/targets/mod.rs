mod unknown;
mod none;
mod twice;
mod too_much_memory;
mod carried_stage;
mod large_ring;
