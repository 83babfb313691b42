//! What launches and references take for a tensor: views of it, and any pointer to it.

use std::cell::RefCell;
use std::sync::Arc;
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, i32]), grid(cdiv(N, 8)))]
fn double<T: Elem>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) + x.load_tile::<8>([p]));
}

#[titan::kernel(grid(cdiv(N, 8)))]
fn add(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] z: Option<&Tensor<f32, 1>>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut v = x.load_tile::<8>([p]);
    if let Some(z) = z {
        v += z.load_tile::<8>([p]);
    }
    y.store_tile([p], v);
}

fn counted(n: usize) -> titan::Result<Tensor<f32, 1>> {
    Device::best().unwrap().from_fn([n], |[i]| i as f32)
}

#[test]
fn views_are_arguments_where_they_are_made() -> titan::Result<()> {
    let (x, mut y) = (counted(12)?, counted(12)?);
    double(&x.slice::<0>(2..5)?, &mut y.slice_mut::<0>(9..12)?).sync()?;
    assert_eq!(y.to_vec()?[8..], [8.0, 4.0, 6.0, 8.0]);
    double::reference::<f32>(&x.slice::<0>(3..5)?, &mut y.slice_mut::<0>(0..2)?)?;
    assert_eq!(y.to_vec()?[..3], [6.0, 8.0, 2.0]);
    let (part, mut rest) = (x.slice::<0>(0..4)?, y.slice_mut::<0>(4..8)?);
    add(&part, Some(&part), &mut rest).sync()?;
    assert_eq!(rest.to_vec()?, [0.0, 2.0, 4.0, 6.0]);
    Ok(())
}

#[test]
fn pointers_to_tensors_are_arguments() -> titan::Result<()> {
    let (shared, boxed) = (Arc::new(counted(3)?), Box::new(counted(3)?));
    let cell = RefCell::new(counted(3)?);
    double(&shared, &mut cell.borrow_mut()).sync()?;
    double(&*boxed, &mut *cell.borrow_mut()).sync()?;
    double(&boxed, &mut cell.borrow_mut()).sync()?;
    assert_eq!(cell.borrow().to_vec()?, [0.0, 2.0, 4.0]);
    Ok(())
}

#[test]
fn arguments_say_what_the_types_of_tensors_are() -> titan::Result<()> {
    let dev = Device::best().unwrap();
    let (x, mut y) = (dev.tensor(&[1, 2, 3], [3])?, dev.zeros([3])?);
    double(&x, &mut y).sync()?;
    assert_eq!(y.to_vec()?, [2, 4, 6]);
    // A `&mut` in a variable is lent again, not given away.
    let out = &mut y;
    double(&x, out).sync()?;
    double(&x, out).sync()
}

/// As many rows of `x` as are asked for.
#[titan::kernel(grid(n), require(n <= M && N % 4 == 0))]
fn first_rows(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(n, N)] y: &mut Tensor<f32, 2>, n: i32, by: f32) {
    let p = program_id(0);
    for i in 0..cdiv(N, 8) {
        y.store_tile([p, i], x.load_tile::<1, 8>([p, i]) * by);
    }
}

/// Launches that repeat an earlier one are not checked again. Each of these differs from one that was valid in one respect.
#[test]
fn what_does_not_fit_is_refused_after_launches_that_do() -> titan::Result<()> {
    let dev = Device::best().unwrap();
    let x = dev.from_fn([4, 8], |[i, j]| (8 * i + j) as f32)?;
    let (mut two, mut three, mut five) = (dev.zeros([2, 8])?, dev.zeros([3, 8])?, dev.zeros([5, 8])?);
    let (odd, mut odd_rows) = (dev.zeros([4, 6])?, dev.zeros([2, 6])?);
    for round in 0..6u8 {
        first_rows(&x, &mut two, 2, f32::from(round)).sync()?;
        first_rows(&x, &mut three, 3, f32::NAN).sync()?;
        first_rows(&x, &mut three, 3, -0.0).sync()?;
        let error = |launch: titan::Launch<'_>| launch.sync().expect_err("it does not fit");
        assert!(matches!(error(first_rows(&x, &mut two, 3, 1.0)), titan::Error::Shape { .. }));
        assert!(matches!(error(first_rows(&x, &mut three, 2, 1.0)), titan::Error::Shape { .. }));
        assert!(matches!(error(first_rows(&odd, &mut two, 2, 1.0)), titan::Error::Shape { .. }));
        // Requirements: of an integer, and of an extent.
        assert!(matches!(error(first_rows(&x, &mut five, 5, 1.0)), titan::Error::Requirement { .. }));
        assert!(matches!(error(first_rows(&odd, &mut odd_rows, 2, 1.0)), titan::Error::Requirement { .. }));
        // A grid is a part of what was checked, and so is that there is none.
        first_rows(&x, &mut two, 2, 1.0).grid([2]).sync()?;
        assert!(matches!(error(first_rows(&x, &mut two, 2, 1.0).grid([1])), titan::Error::Grid { .. }));
        first_rows(&x, &mut two, 2, 1.0).grid([3]).sync()?;
        assert_eq!(two.to_vec()?[8..], [8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
    }
    Ok(())
}
