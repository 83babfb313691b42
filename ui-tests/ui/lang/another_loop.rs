//! A kernel whose labels are compared by their text alone: the loop that is left is another one for rustc than for TITAN.
use titan::prelude::*;

macro_rules! nested {
    ($name:ident, $l:lifetime, $leave:expr) => {
        titan::__private::step! { kernel { (::titan) () (
            fn $name(#[shape(N)] src: &Tensor<i32, 1>, #[shape(N)] dst: &mut Tensor<i32, 1>) {
                let p = program_id(0);
                let mut n = 0;
                $l: for _ in 0..2 {
                    'a: for i in 0..2 {
                        n += 1;
                        if i == 0 {
                            $leave;
                        }
                        continue 'a;
                    }
                    n += 10;
                }
                dst.store_tile([p], src.load_tile::<16>([p]) + n);
            }
        ) () } [] [] }
    };
}

nested!(k, 'a, break 'a);

fn main() {}
