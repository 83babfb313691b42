mod no_code;
mod none;
mod quoted;
mod require_tma;
mod three_warps;
mod too_much_memory;
mod twice;
mod unknown;
