//! Imports of names that a kernel or device function uses are not reported as unused.
#![deny(unused_imports)]
#![expect(dead_code, reason = "nothing is launched: rustc reads the imports")]

mod only_numbers {
    use titan::prelude::*;

    #[titan::device]
    pub(crate) fn twice(x: f32) -> f32 {
        x * 2.0
    }
}

mod only_a_constant {
    use titan::prelude::*;

    #[titan::constant]
    pub(crate) const WIDTH: i32 = 8;
}

mod functions_by_name {
    use titan::prelude::{cdiv, iota, select};

    #[titan::device]
    pub(crate) fn halves(x: i32) -> i32 {
        let t = iota::<8>();
        cdiv(x + select(t < 3, t, t + 1).reduce_sum::<0>(), 2)
    }
}

mod types_by_name {
    use titan::prelude::{D2, Float, Shape, Tensor, Tile};

    #[titan::device]
    pub(crate) fn square<T: Float, S: Shape>(x: Tile<T, S>) -> Tile<T, S> {
        x * x
    }

    #[titan::device]
    pub(crate) fn sum(x: Tile<f32, D2<2, 4>>, t: &Tensor<f32, 1>) -> f32 {
        x.reshape::<8>().reduce_sum::<0>() + t.get([0])
    }
}

mod macros_by_name {
    use titan::prelude::{Tensor, program_id, static_assert, tassert, tprint};

    #[titan::kernel]
    pub(crate) fn checked(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
        static_assert!(1 < 2);
        let p = program_id(0);
        tassert!(p >= 0);
        tprint!("{}", p);
        y.set([p], x.get([p]));
    }
}

/// What there is to test happened when this program was compiled.
#[test]
fn every_import_is_used() {}
