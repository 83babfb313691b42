mod large_ring;
mod none;
mod three_warps;
mod too_much_memory;
mod twice;
mod unknown;
