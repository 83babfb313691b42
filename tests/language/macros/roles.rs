//! Rings and roles: their names, and the variables of each.

use super::devices;
use titan::prelude::*;

/// Twice every element of `x`, and one of `z` less. Both rings are called `ring`, both stages `stage`, and the caller names the roles.
macro_rules! piped {
    ($name:ident, $fill:ident $Fill:ident, $read:ident $Read:ident, $ring:ident, $stage:ident => $e:expr) => {
        #[titan::kernel(roles($fill: 1 warp, $read: 1 warpgroup), allow(no_code))]
        fn $name(
            #[shape(M, N)] x: &Tensor<f32, 2>,
            #[shape(M, N)] z: &Tensor<f32, 2>,
            #[shape(M, N)] y: &mut Tensor<f32, 2>,
        ) {
            let ring = Ring::<Smem<f32, 16, 16>, 3>::new();
            let $ring = Ring::<Smem<f32, 16, 16>, 2>::new();
            let staging = Staging::<Smem<f32, 16, 16>, 2>::new();
            let tiles = y.work::<16, 16>();
            match role() {
                Role::$Fill => {
                    for at in tiles.indices() {
                        ring.acquire().copy(x.tile(at)).commit();
                        $ring.acquire().copy(z.tile(at)).commit();
                    }
                }
                Role::$Read => {
                    for out in tiles.tiles() {
                        let stage = ring.ready().wait();
                        let $stage = $ring.ready().wait();
                        let v = $e;
                        let written = staging.acquire().write(stage.get().load() * 2.0 - v);
                        stage.release();
                        $stage.release();
                        out.store_from(written).wait();
                    }
                }
            }
        }
    };
}
piped!(two_rings, load Load, work Work, ring, stage => stage.get().load() + 1.0);
piped!(swapped_roles, work Work, load Load, ring, v => v.get().load() + 1.0);

#[test]
fn rings_stages_and_roles() -> titan::Result<()> {
    for dev in devices() {
        for extents in [[1, 1], [33, 40]] {
            let x = dev.from_fn(extents, |[i, j]| (i * 64 + j) as f32)?;
            let z = dev.from_fn(extents, |[i, j]| (i + 3 * j) as f32)?;
            let want: Vec<f32> =
                x.to_vec()?.iter().zip(z.to_vec()?).map(|(x, z): (&f32, f32)| x * 2.0 - (z + 1.0)).collect();
            let (mut y, mut again) = (dev.zeros(extents)?, dev.zeros(extents)?);
            two_rings(&x, &z, &mut y).sync()?;
            two_rings::reference(&x, &z, &mut again)?;
            assert_eq!((y.to_vec()?, again.to_vec()?), (want.clone(), want.clone()), "two_rings on {dev}");
            let (mut y, mut again) = (dev.zeros(extents)?, dev.zeros(extents)?);
            swapped_roles(&x, &z, &mut y).sync()?;
            swapped_roles::reference(&x, &z, &mut again)?;
            assert_eq!((y.to_vec()?, again.to_vec()?), (want.clone(), want), "swapped_roles on {dev}");
        }
    }
    Ok(())
}

/// A variable `n` of the caller's in each role, beside the macro's.
macro_rules! in_roles {
    ($name:ident, $n:ident: $first:expr, $last:expr) => {
        #[titan::kernel(roles(load: 1 warp, work: 1 warpgroup), allow(no_code))]
        fn $name(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
            let ring = Ring::<Smem<f32, 16, 16>, 2>::new();
            let tiles = y.work::<16, 16>();
            let n = 2;
            let $n = 3;
            match role() {
                Role::Load => {
                    for at in tiles.indices() {
                        let n = n - 2;
                        let [row, column] = at;
                        ring.acquire().copy(x.tile([row + $first, column + n])).commit();
                    }
                }
                Role::Work => {
                    for out in tiles.tiles() {
                        let stage = ring.ready().wait();
                        let v = stage.get().load();
                        stage.release();
                        out.store(v * $last as f32 * n as f32);
                    }
                }
            }
        }
    };
}
in_roles!(scaled_in_roles, n: n - 3, n + 4);

#[test]
fn variables_of_roles() -> titan::Result<()> {
    for dev in devices() {
        let x = dev.from_fn([33, 40], |[i, j]| (i * 64 + j) as f32)?;
        let want: Vec<f32> = x.to_vec()?.into_iter().map(|x: f32| x * 7.0 * 2.0).collect();
        let (mut y, mut again) = (dev.zeros([33, 40])?, dev.zeros([33, 40])?);
        scaled_in_roles(&x, &mut y).sync()?;
        scaled_in_roles::reference(&x, &mut again)?;
        assert_eq!((y.to_vec()?, again.to_vec()?), (want.clone(), want), "{dev}");
    }
    Ok(())
}
