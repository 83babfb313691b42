//! Outputs that may be absent, and outputs that only some instances store.

use super::device;
use titan::prelude::*;

/// Row sums, and on request the largest elements and a count of programs.
#[titan::kernel(instances(T in [f32, f16]))]
fn sums<T: Float>(
    #[shape(M, N)] x: &Tensor<T, 2>,
    #[shape(M)] sum: &mut Tensor<f32, 1>,
    #[shape(M)] max: Option<&mut Tensor<T, 1>>,
    #[shape(1)] programs: Option<&mut Tensor<i32, 1>>,
) {
    let m = program_id(0);
    let mut total = Tile::<f32, 2>::zeros();
    for n in 0..cdiv(N, 8) {
        let v = x.load_tile::<2, 8>([m, n]);
        total += v.cast::<f32>().reduce_sum::<1>();
        if let Some(max) = max {
            let most = v.reduce_max::<1>();
            if n == 0 {
                max.store_tile([m], most);
            } else {
                max.store_tile([m], max.load_tile::<2>([m]).max(most));
            }
        }
    }
    sum.store_tile([m], total);
    if let Some(count) = programs {
        count.atomic_add_tile([0], Tile::<i32, 1>::ones());
    }
}

#[test]
fn an_output_may_be_absent() -> titan::Result<()> {
    let dev = device();
    let x: Vec<f32> = (0..5 * 19).map(|i| (i * 29 % 31) as f32).collect();
    let x = dev.tensor(&x, [5, 19])?;
    let row = |r: usize| (0..19).map(move |c| ((r * 19 + c) * 29 % 31) as f32);
    let want: Vec<f32> = (0..5).map(|r| row(r).sum()).collect();
    let most: Vec<f32> = (0..5).map(|r| row(r).fold(0.0, f32::max)).collect();
    for (with_max, with_count) in [(false, false), (true, false), (false, true), (true, true)] {
        for reference in [false, true] {
            let (mut sum, mut max, mut count) = (dev.full([5], -1.0f32)?, dev.full([5], -1.0f32)?, dev.full([1], 7)?);
            let (max_arg, count_arg) = (with_max.then_some(&mut max), with_count.then_some(&mut count));
            if reference {
                sums::reference::<f32>(&x, &mut sum, max_arg, count_arg)?;
            } else {
                sums::<f32>(&x, &mut sum, max_arg, count_arg).sync()?;
            }
            assert_eq!(sum.to_vec()?, want);
            assert_eq!(max.to_vec()?, if with_max { most.clone() } else { vec![-1.0; 5] });
            assert_eq!(count.to_vec()?, [if with_count { 10 } else { 7 }]);
        }
    }
    Ok(())
}

#[test]
fn optional_outputs_by_value_and_of_views() -> titan::Result<()> {
    let dev = device();
    let x = dev.full([4, 8], f16::ONE)?;
    let (mut sum, mut max) = (dev.zeros([4])?, dev.zeros::<f16, 2>([3, 4])?);
    titan::dispatch!(sums::<_>(&x, &mut sum, None, None)).sync()?;
    assert_eq!(sum.to_vec()?, [8.0; 4]);
    let mut row = max.index_mut::<0>(1)?;
    titan::dispatch!(sums::<_>(&x, &mut sum, Some(&mut row), None)).sync()?;
    drop(row);
    let mut want = vec![f16::ZERO; 12];
    want[4..8].fill(f16::ONE);
    assert_eq!(max.to_vec()?, want);
    Ok(())
}

#[test]
fn an_optional_output_has_the_declared_shape() -> titan::Result<()> {
    let dev = device();
    let (x, mut sum, mut max) = (dev.full([4, 8], 1.0f32)?, dev.zeros([4])?, dev.zeros([3])?);
    let error = sums::<f32>(&x, &mut sum, Some(&mut max), None).sync().unwrap_err().to_string();
    assert!(error.contains("max") && error.contains('3') && error.contains('4'), "{error}");
    let error = sums::<f32>(&x, &mut sum, None, None).grid([1]).sync().unwrap_err().to_string();
    assert!(error.contains("sum"), "{error}");
    Ok(())
}

/// A forward pass that keeps what the backward pass needs only where it is trained.
#[titan::kernel(instances(TRAINED in [true, false], SQUARED in [true, false]), grid(cdiv(N, 16)))]
fn activate<const TRAINED: bool, const SQUARED: bool>(
    #[shape(N)] x: &Tensor<f32, 1>,
    #[shape(N)] y: &mut Tensor<f32, 1>,
    #[shape(N)] mask: &mut Tensor<bool, 1>,
    #[shape(N)] kept: Option<&mut Tensor<f32, 1>>,
) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    let positive = v > 0.0;
    let r = select(positive, v, 0.0);
    y.store_tile([p], if SQUARED { r * r } else { r });
    if TRAINED {
        mask.store_tile([p], positive);
        if let Some(kept) = kept {
            kept.store_tile([p], v);
        }
    }
}

#[test]
fn an_output_that_only_some_instances_store() -> titan::Result<()> {
    let dev = device();
    let x: Vec<f32> = (0..40).map(|i| i as f32 - 20.0).collect();
    let input = dev.tensor(&x, [40])?;
    macro_rules! of {
        ($($trained:literal $squared:literal;)*) => {$(for reference in [false, true] {
            let (mut y, mut mask, mut kept) = (dev.zeros([40])?, dev.full([40], true)?, dev.full([40], 9.0f32)?);
            if reference {
                activate::reference::<$trained, $squared>(&input, &mut y, &mut mask, Some(&mut kept))?;
            } else {
                activate::<$trained, $squared>(&input, &mut y, &mut mask, Some(&mut kept)).sync()?;
            }
            let want = |v: f32| if $squared { v.max(0.0) * v.max(0.0) } else { v.max(0.0) };
            assert_eq!(y.to_vec()?, x.iter().map(|v| want(*v)).collect::<Vec<f32>>());
            assert_eq!(mask.to_vec()?, x.iter().map(|v| !$trained || *v > 0.0).collect::<Vec<bool>>());
            assert_eq!(kept.to_vec()?, if $trained { x.clone() } else { vec![9.0; 40] });
        })*};
    }
    of! { true true; true false; false true; false false; }
    let (mut y, mut mask) = (dev.zeros([40])?, dev.zeros([40])?);
    activate::<true, false>(&input, &mut y, &mut mask, None).sync()?;
    assert_eq!(mask.to_vec()?, x.iter().map(|v| *v > 0.0).collect::<Vec<bool>>());
    Ok(())
}
