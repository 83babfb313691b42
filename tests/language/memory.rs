//! Loads, stores, views, gathers, scatters, atomics, optional tensors.

use super::{device, ramp, same};
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn loads(#[shape(M, N)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 3>) {
    let mut k = 0;
    y.index_mut::<0>(k).store_tile([0, 0], x.load_tile::<4, 4>([1, 1]));
    k += 1;
    y.index_mut::<0>(k).store_tile([0, 0], x.load_tile_or::<4, 4>([1, 1], -1.0));
    k += 1;
    y.index_mut::<0>(k).store_tile([0, 0], x.load_at::<4, 4>([-1, 2]));
    k += 1;
    y.index_mut::<0>(k).store_tile([0, 0], x.load_at_or::<4, 4>([3, -2], 9.0));
    k += 1;
    y.index_mut::<0>(k).store_at([1, -1], x.slice::<0>(1..4).load_tile_or::<4, 4>([0, 0], 5.0));
    k += 1;
    y.index_mut::<0>(k).store_tile([0, 0], Tile::<f32, 4, 4>::full(x.get([2, 3]) + x.dim(1).cast::<f32>()));
}

#[test]
fn loads_pad_and_stores_clip() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(6 * 5, 0.0, 1.0), [6, 5])?;
    let got = same!(loads(dev; &x; f32, [6, 4, 4]));
    let at = |r: i32, c: i32, pad: f32| {
        if (0..6).contains(&r) && (0..5).contains(&c) { (r * 5 + c) as f32 } else { pad }
    };
    let plane = |f: &dyn Fn(i32, i32) -> f32| (0..16).map(|i| f(i / 4, i % 4)).collect::<Vec<f32>>();
    assert_eq!(got[..16], plane(&|r, c| at(4 + r, 4 + c, 0.0)));
    assert_eq!(got[16..32], plane(&|r, c| at(4 + r, 4 + c, -1.0)));
    assert_eq!(got[32..48], plane(&|r, c| at(r - 1, c + 2, 0.0)));
    assert_eq!(got[48..64], plane(&|r, c| at(3 + r, c - 2, 9.0)));
    let sliced = |r: i32, c: i32| if r < 3 { at(1 + r, c, 5.0) } else { 5.0 };
    assert_eq!(got[64..80], plane(&|r, c| if r < 1 || c > 2 { 0.0 } else { sliced(r - 1, c + 1) }));
    assert_eq!(got[80..], [13.0 + 5.0; 16]);
    Ok(())
}

#[titan::kernel(grid(1))]
fn gathers(#[shape(M, N)] x: &Tensor<f32, 2>, ix: &Tensor<i32, 1>, y: &mut Tensor<f32, 2>) {
    let i = ix.load_tile::<4>([0]);
    y.store_tile([0, 0], x.gather_rows::<4, 3>(i, 1));
    y.store_tile([1, 0], x.gather_rows_or::<4, 3>(i, 3, 7.0));
    let both = x.gather([i, i]);
    let padded = x.gather_or([i, Tile::<i32, 4>::full(1)], -3.0);
    y.store_tile([2, 0], both.broadcast::<1, 3>());
    y.store_tile([3, 0], padded.broadcast::<1, 3>());
}

#[test]
fn gathers_read_padding_for_indices_out_of_range() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(20, 0.0, 1.0), [4, 5])?;
    let ix = [2, -1, 0, 9];
    let got = same!(gathers(dev; &x, &dev.tensor(&ix, [4])?; f32, [16, 3]));
    let at = |r: i32, c: i32, pad: f32| {
        if (0..4).contains(&r) && (0..5).contains(&c) { (r * 5 + c) as f32 } else { pad }
    };
    for (j, i) in ix.iter().enumerate() {
        for c in 0..3 {
            assert_eq!(got[j * 3 + c], at(*i, c as i32 + 1, 0.0));
            assert_eq!(got[12 + j * 3 + c], at(*i, c as i32 + 3, 7.0));
            assert_eq!(got[24 + j * 3 + c], at(*i, *i, 0.0));
            assert_eq!(got[36 + j * 3 + c], at(*i, 1, -3.0));
        }
    }
    Ok(())
}

#[titan::kernel(grid(cdiv(N, 8)))]
fn histogram(#[shape(N)] x: &Tensor<i32, 1>, bins: &mut Tensor<i32, 1>) {
    let v = x.load_tile_or::<8>([program_id(0)], -1);
    bins.atomic_add([v], Tile::<i32, 8>::ones());
}

#[titan::kernel(grid(cdiv(N, 8)))]
fn row_sums(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let t = x.load_tile::<4, 8>([0, program_id(0)]);
    y.atomic_add_tile([0], t.reduce_sum::<1>());
}

#[titan::kernel(grid(cdiv(N, 4)))]
fn invert(#[shape(N)] to: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let at = to.load_tile_or::<4>([p], -1);
    y.scatter([at], iota::<4>() + p * 4);
}

#[test]
fn atomics_count_and_scatters_place() -> titan::Result<()> {
    let dev = device();
    let xs: Vec<i32> = (0..37).map(|i| i * 7 % 5).collect();
    let got = same!(histogram(dev; &dev.tensor(&xs, [37])?; i32, [5]));
    let want: Vec<i32> = (0..5).map(|b| xs.iter().filter(|x| **x == b).count() as i32).collect();
    assert_eq!(got, want);
    let m = dev.tensor(&ramp(3 * 20, 0.0, 1.0), [3, 20])?;
    assert_eq!(same!(row_sums(dev; &m; f32, [3])), [190.0, 590.0, 990.0]);
    let to = [3, 0, 4, 1, 2];
    assert_eq!(same!(invert(dev; &dev.tensor(&to, [5])?; i32, [5])), [1, 3, 4, 0, 2]);
    Ok(())
}

#[titan::kernel(grid(cdiv(N, 4)))]
fn optional(
    #[shape(N)] x: &Tensor<f32, 1>,
    #[shape(N)] bias: Option<&Tensor<f32, 1>>,
    #[shape(N)] y: &mut Tensor<f32, 1>,
) {
    let at = [program_id(0)];
    let mut v = x.load_tile::<4>(at);
    if let Some(b) = bias {
        v += b.load_tile::<4>(at);
    } else {
        v = -v;
    }
    y.store_tile(at, v);
}

#[test]
fn an_optional_tensor_is_a_branch() -> titan::Result<()> {
    let dev = device();
    let (x, b) = (dev.tensor(&ramp(6, 0.0, 1.0), [6])?, dev.tensor(&ramp(6, 10.0, 10.0), [6])?);
    assert_eq!(same!(optional(dev; &x, Some(&b); f32, [6])), [10.0, 21.0, 32.0, 43.0, 54.0, 65.0]);
    assert_eq!(same!(optional(dev; &x, None; f32, [6])), [-0.0, -1.0, -2.0, -3.0, -4.0, -5.0]);
    Ok(())
}

#[titan::kernel(grid(G))]
fn segments(x: &Tensor<f32, 1>, #[shape(G + 1)] off: &Tensor<i32, 1>, #[shape(G)] y: &mut Tensor<f32, 1>) {
    let g = program_id(0);
    let s = x.segment(off, g);
    let mut total = 0.0;
    for i in 0..cdiv(s.dim(0), 4) {
        total += s.load_tile::<4>([i]).reduce_sum::<0>();
    }
    y.set([g], total);
}

#[test]
fn segments_end_where_the_next_begins() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(12, 1.0, 1.0), [12])?;
    let got = same!(segments(dev; &x, &dev.tensor(&[0, 5, 5, 12], [4])?; f32, [3]));
    assert_eq!(got, [15.0, 0.0, 63.0]);
    Ok(())
}

#[test]
fn a_trap_names_kernel_line_and_program() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(12, 1.0, 1.0), [12])?;
    let mut y = dev.zeros([3])?;
    let off = dev.tensor(&[0, 5, 3, 12], [4])?;
    let error = segments(&x, &off, &mut y).sync().expect_err("the offsets decrease").to_string();
    assert!(error.contains("segments") && error.contains("memory.rs"), "{error}");
    let reference = segments::reference(&x, &off, &mut y).expect_err("the offsets decrease").to_string();
    assert!(reference.contains("segments"), "{reference}");
    Ok(())
}

#[titan::kernel(grid(1))]
fn small_types(
    a: &Tensor<i4, 1>,
    b: &Tensor<u4, 1>,
    c: &Tensor<e4m3, 1>,
    d: &Tensor<e5m2, 1>,
    e: &Tensor<bool, 1>,
    y: &mut Tensor<f32, 2>,
) {
    y.index_mut::<0>(0).store_tile([0], a.load_tile::<6>([0]).cast());
    y.index_mut::<0>(1).store_tile([0], b.load_tile::<6>([0]).cast());
    y.index_mut::<0>(2).store_tile([0], c.load_tile::<6>([0]).cast());
    y.index_mut::<0>(3).store_tile([0], d.load_tile::<6>([0]).cast());
    y.index_mut::<0>(4).store_tile([0], e.load_tile::<6>([0]).cast());
}

#[test]
fn small_types_load_and_convert() -> titan::Result<()> {
    let dev = device();
    let vals = [-8.0f32, -1.0, 0.0, 3.0, 7.0, 100.0];
    let a: Vec<i4> = vals.iter().map(|v| v.cast()).collect();
    let b: Vec<u4> = vals.iter().map(|v| v.cast()).collect();
    let c: Vec<e4m3> = vals.iter().map(|v| (v * 10.0).cast()).collect();
    let d: Vec<e5m2> = vals.iter().map(|v| (v * 1000.0).cast()).collect();
    let e: Vec<bool> = vals.iter().map(|v| *v > 0.0).collect();
    let (a, b, c, d, e) =
        (dev.tensor(&a, [6])?, dev.tensor(&b, [6])?, dev.tensor(&c, [6])?, dev.tensor(&d, [6])?, dev.tensor(&e, [6])?);
    let got = same!(small_types(dev; &a, &b, &c, &d, &e; f32, [5, 6]));
    assert_eq!(got[..6], [-8.0, -1.0, 0.0, 3.0, 7.0, 7.0]);
    assert_eq!(got[6..12], [0.0, 0.0, 0.0, 3.0, 7.0, 15.0]);
    assert_eq!(got[12..18], [-80.0, -10.0, 0.0, 30.0, 72.0, 448.0]);
    assert_eq!(got[18..24], [-8192.0, -1024.0, 0.0, 3072.0, 7168.0, 57344.0]);
    assert_eq!(got[24..], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    Ok(())
}

#[titan::kernel(grid(1))]
fn five_axes(#[shape(A, B, C, D, E)] x: &Tensor<i32, 5>, ix: &Tensor<i32, 1>, y: &mut Tensor<i32, 2>) {
    let i = ix.load_tile::<4>([0]);
    let one = Tile::<i32, 4>::ones();
    y.store_tile([0, 0], x.index::<0>(1).load_tile::<1, 1, 1, 4>([1, 2, 1, 0]).reshape::<1, 4>());
    y.store_tile([1, 0], x.index::<3>(2).load_tile::<1, 1, 1, 4>([1, 0, 2, 0]).reshape::<1, 4>());
    y.store_tile(
        [2, 0],
        x.index::<4>(3).index::<0>(7).load_tile::<1, 1, 1>([0, 0, 0]).broadcast::<0, 4>().reshape::<1, 4>(),
    );
    y.store_tile([3, 0], x.gather_or([i, one, one, one, one], -5).broadcast::<0, 1>());
    y.store_tile([4, 0], x.gather_or([one, one, one, one, i], -5).broadcast::<0, 1>());
    let rows = x.gather_rows_or::<4, 4>((i, 1, one, 0), 2, -7);
    y.store_at([5, 0], rows);
    let later = x.slice::<0>(1..9);
    y.store_tile([9, 0], Tile::<i32, 1, 4>::full(later.get([0, 1, 2, 1, 4]) + 10000 * later.dim(0) + 1000 * x.dim(4)));
    y.store_tile([10, 0], later.index::<0>(0).slice::<3>(3..5).load_tile::<1, 1, 1, 4>([0, 1, 2, 0]).reshape::<1, 4>());
}

#[titan::kernel(grid(2))]
fn five_written(#[shape(2, 3, 4, 3, 5)] y: &mut Tensor<i32, 5>) {
    let p = program_id(0);
    for i in 0..3 {
        y.index_mut::<0>(p).index_mut::<2>(i).store_tile([0, 0, 0], Tile::<i32, 3, 4, 5>::full(10 * p + i));
        y.set([p, i, 3, 2, 4], 100 * p + i);
    }
}

#[titan::kernel(grid(3))]
fn five_scattered(#[shape(2, 3, 4, 3, 5)] y: &mut Tensor<i32, 5>) {
    let i = iota::<8>();
    let p = i * 0 + program_id(0);
    y.scatter([i % 4 - 1, p, i % 4, p, p + i / 4], i * 10 + p);
}

#[titan::kernel(grid(3))]
fn outside_of_five(x: &Tensor<i32, 5>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([p, 0, 0, 0, 1]));
}

#[test]
fn tensors_of_five_axes() -> titan::Result<()> {
    let dev = device();
    let x = dev.from_fn([2, 3, 4, 3, 5], |at| at.iter().fold(0, |n, i| 10 * n + *i as i32))?;
    let got = same!(five_axes(dev; &x, &dev.tensor(&[1, -1, 0, 2], [4])?; i32, [11, 4]));
    let want = [
        [11210, 11211, 11212, 11213],
        [10220, 10221, 10222, 10223],
        [0; 4],
        [11111, -5, 1111, -5],
        [11111, -5, 11110, 11112],
        [11102, 11103, 11104, -7],
        [-7; 4],
        [1102, 1103, 1104, -7],
        [-7; 4],
        [11214 + 15000; 4],
        [10123, 10124, 0, 0],
    ];
    assert_eq!(got, want.concat());
    same!(five_written(dev; ; i32, [2, 3, 4, 3, 5]));
    same!(five_scattered(dev; ; i32, [2, 3, 4, 3, 5]));
    let mut y = dev.zeros([3])?;
    let text = outside_of_five(&x, &mut y).sync().unwrap_err().to_string();
    assert!(text.contains("tests/language/memory.rs:") && text.contains("[2, 0, 0]"), "{text}");
    Ok(())
}
