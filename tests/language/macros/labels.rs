//! Labels, and the loops that `break` and `continue` leave.

use super::gives;
use titan::prelude::*;

/// Two loops, the inner one with the macro's label `'a`.
macro_rules! nested {
    ($name:ident, $l:lifetime, $leave:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut n = 0;
            $l: for i in 0..3 {
                'a: for j in 0..3 {
                    n += 1;
                    if j == 1 {
                        $leave;
                    }
                    if i == 2 {
                        continue 'a;
                    }
                    n += 100;
                }
                n += 10;
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * n as f32);
        }
    };
}
nested!(break_outer, 'a, break 'a);
nested!(break_other, 'b, break 'b);
nested!(continue_outer, 'a, continue 'a);

#[test]
fn a_label_of_the_caller_is_not_the_macros() -> titan::Result<()> {
    // One iteration with 101, and the one that leaves.
    gives!(break_outer(), |x| x * 102.0);
    gives!(break_other(), |x| x * 102.0);
    // The same for i = 0 and i = 1, and two iterations without 100 for i = 2.
    gives!(continue_outer(), |x| x * (102.0 + 102.0 + 2.0));
    Ok(())
}

/// The caller's loop, with its label, is inside of the macro's with the same label.
macro_rules! around {
    ($name:ident, $l:lifetime: $body:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut n = 0;
            'run: loop {
                n += 1;
                $l: loop {
                    n += 10;
                    if n > 25 {
                        break 'run;
                    }
                    $body
                }
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * n as f32);
        }
    };
}
around!(inner_run, 'run: break 'run);

/// A label that is declared twice by the caller alone, around and inside of the macro's.
macro_rules! between {
    ($name:ident, $l:lifetime, $leave:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut n = 0;
            $l: while n < 100 {
                'l: for i in 0..4 {
                    $l: for j in 0..4 {
                        n += 1;
                        if i == j {
                            $leave;
                        }
                    }
                    if i == 2 {
                        break 'l;
                    }
                }
                n += 50;
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * n as f32);
        }
    };
}
between!(three_labels, 'l, break 'l);

#[test]
fn loops_inside_of_loops() -> titan::Result<()> {
    gives!(inner_run(), |x| x * 33.0);
    // 1 + 2 + 3 iterations and 50, twice.
    gives!(three_labels(), |x| x * 112.0);
    Ok(())
}
