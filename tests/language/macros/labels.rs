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

/// Three loops with labels of the same name: of the caller, of the first macro and of the second; in a kernel and in a function of Rust.
macro_rules! first_of_two {
    ($name:ident $plain:ident, $l:lifetime, $leave:expr) => {
        second_of_two!($name $plain, $l 'l, $leave, break 'l);
    };
}
macro_rules! second_of_two {
    ($name:ident $plain:ident, $outer:lifetime $middle:lifetime, $leave_outer:expr, $leave_middle:expr) => {
        #[titan::kernel]
        fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
            let p = program_id(0);
            let mut n = 0;
            $outer: loop {
                n += 100;
                $middle: loop {
                    n += 10;
                    'l: loop {
                        n += 1;
                        if n > 900 {
                            $leave_outer;
                        }
                        if n % 3 == 0 {
                            $leave_middle;
                        }
                        if n % 5 == 0 {
                            break 'l;
                        }
                    }
                }
            }
            dst.store_tile([p], src.load_tile::<16>([p]) * n as f32);
        }

        fn $plain() -> f32 {
            let mut n = 0;
            $outer: loop {
                n += 100;
                $middle: loop {
                    n += 10;
                    'l: loop {
                        n += 1;
                        if n > 900 {
                            $leave_outer;
                        }
                        if n % 3 == 0 {
                            $leave_middle;
                        }
                        if n % 5 == 0 {
                            break 'l;
                        }
                    }
                }
            }
            n as f32
        }
    };
}
first_of_two!(three_labels in_rust, 'l, break 'l);

#[test]
fn loops_inside_of_loops() -> titan::Result<()> {
    gives!(inner_run(), |x| x * 33.0);
    let factor = in_rust();
    assert!(factor > 900.0);
    gives!(three_labels(), |x| x * factor);
    Ok(())
}
