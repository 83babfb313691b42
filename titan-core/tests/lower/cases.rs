//! Kernels that once went wrong, or could.
