//! The model of bulk tensor copies: the reference function, the theorems as properties of random schedules, the decision of
//! when strong correctness is impossible against brute force, what schedules are lowered to, and which tensors have maps.
//!
//! What holds is checked by brute force that shares nothing with the model: elements are sent forwards through the steps of a schedule,
//! where the model follows them backwards, and copies are made by the reference function.

mod brute;
mod edit;
mod fit;
mod fttc;
mod index;
mod kinds;
mod known;
mod limits;
mod map;
mod param;
mod parts;
mod protect;
mod reference;
mod theorems;
