//! Matrix products whose factors come through rings: roles, persistent programs, several readers, accumulators with products
//! in flight. The results are those of plain loops.
#![expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "test data are small")]

use crate::common::{Tensor, all_options, assert_close, compile_text, data, run};
use titan_core::ir::Elem;
use titan_cpu::Options;

/// What a kernel of these tests is.
#[derive(Clone, Copy, Debug)]
struct Gemm {
    elem: Elem,
    /// Of a program, and of one step.
    tile: [i32; 3],
    slots: u32,
    /// MMAs in flight.
    keep: u32,
    /// Loops over tiles in both roles, instead of a grid of them.
    persistent: bool,
    /// One ring for each factor.
    apart: bool,
}

const PLAIN: Gemm = Gemm { elem: Elem::F16, tile: [16, 8, 8], slots: 3, keep: 1, persistent: false, apart: false };

impl Gemm {
    /// The types of the factors' tiles.
    fn tiles(&self) -> [String; 2] {
        let (elem, [bm, bn, bk]) = (self.elem, self.tile);
        [format!("{bm}x{bk}x{elem}"), format!("{bn}x{bk}x{elem}")]
    }

    /// Copies `%sa` and `%sb`.
    fn produce(&self) -> String {
        let (elem, [bm, bn, bk]) = (self.elem, self.tile);
        let bytes = |rows: i32| rows * bk * elem.bits() as i32 / 8;
        let braces = |bytes: i32| format!("{{bytes = {bytes}, proxy = generic}}");
        match self.apart {
            true => format!(
                "%slot = ttg.stage.acquire<0>
                ttg.stage.async_produce %slot, %sa {}
                %slot2 = ttg.stage.acquire<1>
                ttg.stage.async_produce %slot2, %sb {}",
                braces(bytes(bm)),
                braces(bytes(bn))
            ),
            false => format!(
                "%slot = ttg.stage.acquire<0>\nttg.stage.async_produce %slot, %sa, %sb {}",
                braces(bytes(bm + bn))
            ),
        }
    }

    /// Multiplies `%acc` into `%acc2`.
    fn consume(&self) -> String {
        let [ta, tb] = self.tiles();
        let take = |ring: u32, suffix: &str| {
            format!(
                "%r{suffix} = ttg.stage.ready<{ring}>
                %there{suffix} = ttg.stage.wait_ready %r{suffix}
                %p{suffix} = ttg.stage.read_perm %there{suffix}\n"
            )
        };
        match self.apart {
            true => format!(
                "{}{}%va = ttg.stage.view<0> %pa : smem<{ta}>
                %vb = ttg.stage.view<0> %pb : smem<{tb}>
                %vbt = permute<1, 0> %vb
                %product = ttg.compute.issue %va, %vbt, %acc
                %acc2 = ttg.compute.wait %product
                %ca = ttg.stage.consumed %pa
                ttg.stage.release %ca
                %cb = ttg.stage.consumed %pb
                ttg.stage.release %cb",
                take(0, "a"),
                take(1, "b")
            ),
            false => format!(
                "{}%va = ttg.stage.view<0> %pa : smem<{ta}>
                %vb = ttg.stage.view<1> %pa : smem<{tb}>
                %vbt = permute<1, 0> %vb
                %acc2 = ttg.acc.mma %acc, %pa, %va, %vbt",
                take(0, "a")
            ),
        }
    }

    fn text(&self) -> String {
        let (elem, [bm, bn, bk], Gemm { slots, keep, .. }) = (self.elem, self.tile, *self);
        let [ta, tb] = self.tiles();
        let rings = match self.apart {
            true => format!("pipe({slots}, \"a\", tile<{ta}>) pipe({slots}, \"b\", tile<{tb}>)"),
            false => format!("pipe({slots}, \"ring\", tile<{ta}>, tile<{tb}>)"),
        };
        let (produce, consume) = (self.produce(), self.consume());
        let (start, finish) = match self.apart {
            true => ("%acc0 = ttg.hint.rematerialize %z".to_owned(), "%sum = ttg.hint.rematerialize %done".to_owned()),
            false => (format!("%acc0 = ttg.acc.start<{keep}> %z"), "%sum = ttg.acc.finish %done".to_owned()),
        };
        let (grid, [open, mn, close]) = match self.persistent {
            true => (
                "persistent".to_owned(),
                [
                    "for %w = %zero to %work step %one distributed {",
                    "%m, %n = unflatten %w, %rows, %cols",
                    "continue\n}",
                ],
            ),
            false => (format!("(cdiv(M, {bm}), cdiv(N, {bn}))"), ["", "", ""]),
        };
        let ids = if self.persistent { "" } else { "%m = program_id<0>\n%n = program_id<1>" };
        format!(
            "kernel @gemm_ws(%a: in tensor<{elem}>[M, K], %b: in tensor<{elem}>[N, K], %c: mut tensor<f32>[M, N])
            grid {grid} {rings} role(producer, 1) role(consumer, 4) {{
                {ids}
                %k = dim<1> %a
                %em = dim<0> %a
                %en = dim<0> %b
                %zero = const 0 : i32
                %one = const 1 : i32
                %bm = const {bm} : i32
                %bn = const {bn} : i32
                %bk = const {bk} : i32
                %km = sub %bm, %one
                %kn = sub %bn, %one
                %kk = sub %bk, %one
                %upm = add %em, %km
                %upn = add %en, %kn
                %upk = add %k, %kk
                %rows = div %upm, %bm
                %cols = div %upn, %bn
                %steps = div %upk, %bk
                %work = mul %rows, %cols
                %pad = const 0.0 : {elem}
                ttg.roles producer {{
                    {open}
                    {mn}
                    for %t = %zero to %steps step %one {{
                        %sa = ttg.source_tile %a[%m, %t] or %pad : source<{ta}>
                        %sb = ttg.source_tile %b[%n, %t] or %pad : source<{tb}>
                        {produce}
                        continue
                    }}
                    {close}
                    ttg.pipeline.finalize
                    yield
                }} consumer {{
                    {open2}
                    {mn2}
                    %f0 = const 0.0 : f32
                    %z = splat %f0 : tile<{bm}x{bn}xf32>
                    {start}
                    %done = for %t2 = %zero to %steps step %one carry(%acc = %acc0) {{
                        {consume}
                        continue %acc2
                    }}
                    {finish}
                    store_tile %c[{place}], %sum
                    {close}
                    ttg.pipeline.finalize
                    yield
                }}
                return
            }}",
            open2 = open.replace("%w ", "%w2 "),
            mn2 = mn.replace("%m, %n", "%m2, %n2").replace("%w,", "%w2,"),
            place = if self.persistent { "%m2, %n2" } else { "%m, %n" },
        )
    }

    fn check(&self, extents: [i32; 3], options: Options) {
        let [m, n, k] = extents.map(|e| e as usize);
        let (a, b) = (data(self.elem, m * k, 3), data(self.elem, n * k, 5));
        let ta = Tensor::new(self.elem, &[extents[0], extents[2]], &a);
        let tb = Tensor::new(self.elem, &[extents[1], extents[2]], &b);
        let tc = Tensor::new(Elem::F32, &[extents[0], extents[1]], &vec![7.0; m * n]);
        let program = compile_text(&self.text(), options);
        let programs = |axis: usize| (extents[axis] as u32).div_ceil(self.tile[axis] as u32);
        let grid = if self.persistent { [2, 1, 1] } else { [programs(0), programs(1), 1] };
        for _ in 0..2 {
            run(&program, &[ta.arg(), tb.arg(), tc.arg()], grid);
        }
        let element = |e: usize| (0..k).map(|l| a[e / n * k + l] * b[e % n * k + l]).sum();
        let want: Vec<f64> = (0..m * n).map(element).collect();
        assert_close(
            &tc.values(),
            &want,
            1e-4 * (k as f64).sqrt().max(1.0),
            &format!("{self:?} {extents:?} {options:?}"),
        );
    }
}

/// Ragged and whole, no step, one step, more steps than a ring has room for.
const EXTENTS: [[i32; 3]; 8] =
    [[16, 8, 8], [50, 33, 19], [1, 1, 1], [64, 64, 64], [17, 9, 0], [40, 16, 100], [33, 8, 2500], [32, 7, 4104]];

/// Checks kernels for all extents and options; in the quick depth, each kernel with each option and for each of the extents.
fn check_all(kernels: impl IntoIterator<Item = Gemm>) {
    for gemm in kernels {
        let cases = all_options().into_iter().flat_map(|options| EXTENTS.map(|extents| (options, extents)));
        let traits = |(options, extents): &(Options, [i32; 3])| vec![format!("{options:?}"), format!("{extents:?}")];
        for (options, extents) in test_depth::covering(cases, traits) {
            gemm.check(extents, options);
        }
    }
}

#[test]
fn two_roles() {
    check_all([1, 4].into_iter().flat_map(|slots| {
        let keep = u32::from(slots > 1);
        [Elem::F16, Elem::F32].map(|elem| Gemm { slots, keep, elem, ..PLAIN })
    }));
}

#[test]
fn persistent_programs() {
    check_all([Gemm { persistent: true, ..PLAIN }]);
}

#[test]
fn a_ring_for_each_factor() {
    check_all([Gemm { apart: true, ..PLAIN }, Gemm { apart: true, persistent: true, ..PLAIN }]);
}

/// Products for several programs at once are only theirs, and a step of another extent than the tile's.
#[test]
fn tiles_of_many_shapes() {
    for (tile, extents) in
        [([16, 64, 32], [16 * 9 + 3, 150, 96]), ([128, 32, 16], [700, 33, 50]), ([8, 8, 1], [20, 20, 20])]
    {
        for elem in [Elem::F32, Elem::Bf16] {
            Gemm { elem, tile, ..PLAIN }.check(extents, Options::default());
        }
    }
}

/// What a product has where its factors are padding: NaN where the other one is not finite.
#[test]
fn padding_is_multiplied_too() {
    let gemm = Gemm { elem: Elem::F32, tile: [8, 8, 8], ..PLAIN };
    let (mut a, mut b) = (data(Elem::F32, 21 * 19, 3), data(Elem::F32, 13 * 19, 5));
    (a[2 * 19 + 18], b[3 * 19 + 1]) = (f64::INFINITY, f64::NAN);
    let (ta, tb) = (Tensor::new(Elem::F32, &[21, 19], &a), Tensor::new(Elem::F32, &[13, 19], &b));
    let at = |x: &[f64], i: usize, l: usize| if l < 19 { x[i * 19 + l] } else { 0.0 };
    let want: Vec<f64> = (0..21 * 13).map(|e| (0..24).map(|l| at(&a, e / 13, l) * at(&b, e % 13, l)).sum()).collect();
    for options in all_options() {
        let tc = Tensor::zeros(Elem::F32, &[21, 13]);
        run(&compile_text(&gemm.text(), options), &[ta.arg(), tb.arg(), tc.arg()], [3, 2, 1]);
        assert_close(&tc.values(), &want, 1e-5, &format!("{options:?}"));
    }
}
