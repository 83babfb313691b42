//! Tensors in memory of others, and tensors lent to others.
