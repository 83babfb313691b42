//! Nothing but functions are kernels; the imports are not to blame.
use titan::prelude::*;

#[titan::kernel]
struct K;

fn main() {}
