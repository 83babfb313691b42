//! Loops, branches, early exits, variables.

use super::{device, ramp, same};
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn counted(#[shape(8)] y: &mut Tensor<i32, 1>, n: i32) {
    let mut s = Tile::<i32, 8>::zeros();
    let mut count = 0;
    for i in 0..n {
        s += iota::<8>() * i;
        count += 1;
    }
    for _ in 0..=n {
        count += 100;
    }
    y.store_tile([0], s + count);
}

#[test]
fn loops_carry_what_they_assign() -> titan::Result<()> {
    for n in [0, 1, 5] {
        let got = same!(counted(device(); ; i32, [8]; n));
        let sum: i32 = (0..n).sum();
        let want: Vec<i32> = (0..8).map(|j| j * sum + n + 100 * (n + 1)).collect();
        assert_eq!(got, want);
    }
    Ok(())
}

#[titan::kernel(grid(1))]
fn exits(y: &mut Tensor<i32, 1>, n: i32) {
    let mut a = 0;
    let mut i = 0;
    while i < n {
        i += 1;
        if i % 3 == 0 {
            continue;
        }
        if i > 10 {
            break;
        }
        a += i;
    }
    let found = loop {
        i -= 1;
        if i * i < n {
            break i;
        }
    };
    let mut b = 0;
    'outer: for p in 0..n {
        for q in 0..n {
            if q > p {
                continue 'outer;
            }
            if p * q > 12 {
                break 'outer;
            }
            b += p * q;
        }
    }
    y.store_tile([0], Tile::<i32, 4>::full(a * 10_000 + found * 100 + b));
}

#[test]
fn breaks_and_continues_leave_the_loop_they_name() -> titan::Result<()> {
    for n in [1, 4, 9, 30] {
        let got = same!(exits(device(); ; i32, [4]; n));
        let (mut a, mut i, mut b) = (0, 0, 0);
        while i < n {
            i += 1;
            if i % 3 == 0 {
                continue;
            }
            if i > 10 {
                break;
            }
            a += i;
        }
        let found = loop {
            i -= 1;
            if i * i < n {
                break i;
            }
        };
        'outer: for p in 0..n {
            for q in 0..n {
                if q > p {
                    continue 'outer;
                }
                if p * q > 12 {
                    break 'outer;
                }
                b += p * q;
            }
        }
        assert_eq!(got, [a * 10_000 + found * 100 + b; 4], "n = {n}");
    }
    Ok(())
}

#[titan::kernel(grid(cdiv(N, 4)))]
fn early_return(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, last: i32) {
    let p = program_id(0);
    if p > last {
        return;
    }
    let v = x.load_tile::<4>([p]);
    let scaled = if p == 0 {
        v * 2.0
    } else if p == 1 {
        let w = v + 1.0;
        w * w
    } else {
        -v
    };
    y.store_tile([p], scaled);
}

#[test]
fn branches_give_values_and_programs_may_return() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(14, 1.0, 1.0), [14])?;
    let got = same!(early_return(dev; &x; f32, [14]; 2));
    let want: Vec<f32> = (1..=14)
        .map(|i| {
            let v = i as f32;
            match (i - 1) / 4 {
                0 => v * 2.0,
                1 => (v + 1.0) * (v + 1.0),
                2 => -v,
                _ => 0.0,
            }
        })
        .collect();
    assert_eq!(got, want);
    Ok(())
}

#[titan::kernel(grid(1))]
fn variables(y: &mut Tensor<i32, 1>, n: i32) {
    let late;
    if n > 3 {
        late = 7;
    } else {
        late = 9;
    }
    let (mut a, [mut b, c]) = (1, [2, 3]);
    (a, b) = (b + n, a);
    let pair = (a, [b, c]);
    let (p, q) = (pair.0, pair.1[1]);
    let both = n > 1 && n < 5;
    let either = n < 0 || n == 2;
    let flags = if both { 1 } else { 0 } + if either { 10 } else { 0 } + if !both { 100 } else { 0 };
    y.store_tile([0], Tile::<i32, 1>::full(late + p * 10 + b * 100 + q * 1000 + flags * 10_000));
}

#[test]
fn variables_are_assigned_destructured_and_shadowed() -> titan::Result<()> {
    for n in [-1, 0, 2, 4, 6] {
        let got = same!(variables(device(); ; i32, [1]; n));
        let late = if n > 3 { 7 } else { 9 };
        let (a, b, c) = (2 + n, 1, 3);
        let both = n > 1 && n < 5;
        let either = n < 0 || n == 2;
        let flags = i32::from(both) + 10 * i32::from(either) + 100 * i32::from(!both);
        assert_eq!(got, [late + a * 10 + b * 100 + c * 1000 + flags * 10_000], "n = {n}");
    }
    Ok(())
}

#[titan::kernel(instances(FLIP in [true, false], (A, B) in [(2, 4), (4, 2)]), grid(1))]
fn constants<const FLIP: bool, const A: i32, const B: i32>(y: &mut Tensor<i32, 2>) {
    let t = Tile::<i32, A, B>::ones();
    // The other arm does not type-check for this instance, and is not there.
    if FLIP {
        y.store_tile([0, 0], t.t().reshape::<{ A * B / 2 }, 2>().reshape::<A, B>() * 3);
    } else {
        y.store_tile([0, 0], t * (A - B));
    }
}

#[test]
fn a_constant_condition_removes_an_arm() -> titan::Result<()> {
    assert_eq!(same!(constants::<true, 2, 4>(device(); ; i32, [2, 4])), [3; 8]);
    assert_eq!(same!(constants::<false, 4, 2>(device(); ; i32, [4, 2])), [2; 8]);
    Ok(())
}

#[titan::kernel]
fn persistent(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>, limit: i32) {
    for out in y.tiles::<4, 8>() {
        let [m, n] = out.index();
        let old = out.load();
        if m + n > limit {
            out.skip();
            continue;
        }
        let v = x.load_tile::<4, 8>([m, n]);
        out.store(old + v * 2.0);
    }
}

#[test]
fn output_tiles_are_stored_or_skipped() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(10 * 20, 0.0, 1.0), [10, 20])?;
    let got = same!(persistent(dev; &x; f32, [10, 20]; 2));
    for (i, v) in got.iter().enumerate() {
        let (m, n) = (i / 20 / 4, i % 20 / 8);
        assert_eq!(*v, if m + n > 2 { 0.0 } else { i as f32 * 2.0 });
    }
    Ok(())
}

/// A function with branches, for elements.
#[titan::device]
fn folded(v: f32, at: f32) -> f32 {
    let mut out = v;
    if v > at {
        out = 2.0 * at - v;
    } else if v < -at {
        out = -2.0 * at - v;
    }
    out
}

/// Branches in closures: their values and the variables that they assign, of elements and of the whole program.
#[titan::kernel(grid(cdiv(N, 4)))]
fn elementwise(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<4>([p]).map(|e| {
        let (mut a, mut b) = (e, 1.0);
        let c = if e > 2.0 {
            (a, b) = (b, a);
            if p > 0 { e } else { 6.0 }
        } else {
            b = 7.0;
            6.0
        };
        if p == 1 && e > 5.0 || c < e {
            a += 100.0;
        }
        100.0 * a + 10.0 * b + c
    });
    let far = v.reduce::<0>(0.0, |a, b| {
        let mut m = a;
        if b > a {
            m = b;
        }
        m
    });
    y.store_tile([p], v.map(|e| folded(e, 600.0)) + far);
}

#[test]
fn branches_in_closures_choose_element_by_element() -> titan::Result<()> {
    let dev = device();
    let xs = ramp(10, 0.0, 1.0);
    let x = dev.tensor(&xs, [10])?;
    let of = |p: usize, e: f32| {
        let (mut a, b, c) = match e > 2.0 {
            true => (1.0, e, if p > 0 { e } else { 6.0 }),
            false => (e, 7.0, 6.0),
        };
        if p == 1 && e > 5.0 || c < e {
            a += 100.0;
        }
        100.0 * a + 10.0 * b + c
    };
    let mut want = Vec::new();
    for (p, part) in xs.chunks(4).enumerate() {
        let mut all: Vec<f32> = part.iter().map(|e| of(p, *e)).collect();
        let kept = all.len();
        all.resize(4, of(p, 0.0));
        let far = all.iter().copied().fold(0.0, f32::max);
        want.extend(all[..kept].iter().map(|v| if *v > 600.0 { 1200.0 - v } else { *v } + far));
    }
    assert_eq!(same!(elementwise(dev; &x; f32, [10])), want);
    Ok(())
}

#[titan::kernel(grid(N / 64))]
fn rounds_down(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]) + 1.0);
}

#[titan::kernel(grid(n - 2))]
fn as_many_as(#[shape(_)] y: &mut Tensor<f32, 1>, n: i32) {
    y.set([program_id(0)], 1.0);
}

#[titan::kernel(grid(unchecked n))]
fn the_first(#[shape(_)] y: &mut Tensor<f32, 1>, n: i32) {
    y.set([program_id(0)], 2.0);
}

#[titan::kernel(grid(cdiv(N, 64)))]
fn count(#[shape(N)] x: &Tensor<i32, 1>, #[shape(_)] y: &mut Tensor<i32, 1>) {
    y.atomic_add([x.load_tile_or::<64>([program_id(0)], -1)], Tile::<i32, 64>::ones());
}

#[test]
fn grids_without_programs() -> titan::Result<()> {
    let dev = device();
    let text = |result: titan::Result<()>| result.unwrap_err().to_string();
    let (x, mut y) = (dev.zeros([50])?, dev.zeros([50])?);
    let idle = "extent 0 of the grid, `N / 64`, is 0, but N = 50: no program would run, and `y` of extents [50] would keep what it holds";
    assert!(text(rounds_down(&x, &mut y).sync()).contains(idle));
    assert!(text(rounds_down::reference(&x, &mut y)).contains(idle));
    assert!(text(as_many_as(&mut y, 2).sync()).contains("`n - 2`, is 0, but n = 2: no program"));
    assert!(
        text(as_many_as(&mut y, 1).sync())
            .contains("extent 0 of the grid, `n - 2`, is -1, but must be 0 to 2147483647")
    );
    as_many_as(&mut y, 52).sync()?;
    assert_eq!(y.to_vec()?, [1.0; 50]);
    // Nothing to write, or nothing to add.
    rounds_down(&dev.zeros([0])?, &mut dev.zeros([0])?).sync()?;
    let mut sums = dev.full([3], 7)?;
    count(&dev.zeros([0])?, &mut sums).sync()?;
    assert_eq!(sums.to_vec()?, [7; 3]);
    Ok(())
}

#[test]
fn grids_that_leave_parts_unwritten() -> titan::Result<()> {
    let dev = device();
    let text = |result: titan::Result<()>| result.unwrap_err().to_string();
    let (x, mut y) = (dev.zeros([100])?, dev.zeros([100])?);
    let short = "extent 0 of the grid, `N / 64`, is 1 (N = 100), but `y` of extents [100] has 2 parts of 64 along axis 0, one for each \
         program: the rest would keep what it holds\n  help: declare `cdiv(y.dim(0), 64)` as extent 0 of the grid";
    assert!(text(rounds_down(&x, &mut y).sync()).contains(short), "{}", text(rounds_down(&x, &mut y).sync()));
    assert!(text(rounds_down::reference(&x, &mut y)).contains(short));
    assert!(
        text(as_many_as(&mut y, 5).sync())
            .contains("is 3 (n = 5), but `y` of extents [100] has 100 elements along axis 0")
    );
    let given = text(as_many_as(&mut y, 102).grid([99]).sync());
    assert!(
        given.contains("extent 0 of the grid is 99, but `y`") && given.contains("launch at least 100 programs"),
        "{given}"
    );
    as_many_as(&mut y, 102).sync()?;
    the_first(&mut y, 3).sync()?;
    the_first(&mut y, 0).sync()?;
    assert_eq!(y.to_vec()?[..4], [2.0, 2.0, 2.0, 1.0]);
    Ok(())
}
