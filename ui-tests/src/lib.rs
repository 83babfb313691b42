//! Nothing here: the cases are under `ui/`.
