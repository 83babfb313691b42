//! Launches: results, checks before anything runs, traps, grids, aliases.

#![expect(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a test that cannot go on stops; small numbers")]

mod runtime_kernels;

use runtime_kernels::{add, add_one, fill, fill_two, is_present, kernel, scale, trap_at};
use titan::__private::{KernelRef, LaunchArg};
use titan::{AsTensorMut, Device, DeviceKind, Error, Launch};
use titan_core::artifact::{Artifact, Variant};

fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap().to_owned()
}

#[test]
fn a_launch_computes() {
    let dev = Device::best().unwrap();
    let x = dev.tensor(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let mut y = dev.zeros([3]).unwrap();
    add(&x, &mut y, 0.5).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.5, 2.5, 3.5]);
    scale(&mut y, 2.0).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0, 5.0, 7.0]);
}

#[test]
fn views_are_arguments() {
    let dev = Device::best().unwrap();
    let x = dev.from_fn([2, 3], |[i, j]| (10 * i + j) as f32).unwrap();
    let mut y = dev.zeros::<f32, 2>([3, 4]).unwrap();
    let mut part = y.slice_mut::<1>(1..3).unwrap();
    add_one(&x.transpose::<0, 1>().unwrap(), &mut part).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0., 1., 11., 0., 0., 2., 12., 0., 0., 3., 13., 0.]);
    let row = dev.tensor(&[5.0f32, 6.0], [2]).unwrap();
    let rows = row.unsqueeze::<0>().unwrap().broadcast([3, 2]).unwrap();
    let mut out = dev.zeros([3, 2]).unwrap();
    add_one(&rows, &mut out).sync().unwrap();
    assert_eq!(out.to_vec().unwrap(), [6., 7., 6., 7., 6., 7.]);
}

#[test]
fn optional_tensors_are_there_or_not() {
    let dev = Device::best().unwrap();
    let x = dev.zeros([2]).unwrap();
    let mut y = dev.zeros([2]).unwrap();
    is_present(Some(&x), &mut y).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0, 1.0]);
    is_present(None, &mut y).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0, 0.0]);
}

#[test]
fn a_shape_that_does_not_fit_is_an_error_and_nothing_runs() {
    let dev = Device::best().unwrap();
    let x = dev.zeros([4]).unwrap();
    let mut y = dev.zeros([3]).unwrap();
    let error = add(&x, &mut y, 1.0).sync().unwrap_err();
    assert!(matches!(error, Error::Shape { .. }));
    assert_eq!(first_line(&error), "kernel `add`: `y`: extent 0 is 3, but `N` is 4 (bound by `x`, extent 0)");
    let error = add(&x, &mut y, 1.0).launch(&dev.default_stream()).unwrap_err();
    assert!(matches!(error, Error::Shape { .. }));
    assert_eq!(y.to_vec().unwrap(), [0.0; 3]);
}

#[test]
fn a_requirement_that_does_not_hold_shows_its_values() {
    let kernel = kernel!(
        even,
        "kernel @even(%x: in tensor<f32>[K], %g: i32) grid(1) require(K % %g == 0) {
            return
        }"
    );
    let x = Device::best().unwrap().zeros::<f32, 1>([10]).unwrap();
    let error = Launch::new(kernel, vec![(&x).into(), 4i32.into()]).sync().unwrap_err();
    assert!(matches!(error, Error::Requirement { .. }));
    assert_eq!(first_line(&error), "kernel `even`: the kernel requires `K % g == 0`, but K = 10 and g = 4");
    Launch::new(kernel, vec![(&x).into(), 5i32.into()]).sync().unwrap();
}

#[test]
fn raw_arguments_are_checked_too() {
    let dev = Device::best().unwrap();
    let kernel = kernel!(
        raw,
        "kernel @raw(%y: mut tensor<f32>[N], %n: i32) grid(%n) {
            %p = program_id<0> : i32
            %one = const 1.0 : f32
            set %y[%p], %one
            return
        }"
    );
    let launch = |args: Vec<LaunchArg<'_>>| first_line(&Launch::new(kernel, args).sync().unwrap_err());
    let mut y = dev.zeros::<f32, 1>([2]).unwrap();
    assert_eq!(launch(vec![]), "kernel `raw`: the kernel takes 2 arguments, but this launch gives 0");
    assert_eq!(
        launch(vec![(&y).into(), 1i32.into()]),
        "kernel `raw`: `y` is a tensor passed by `&mut`, but one passed by `&` was given"
    );
    // Arguments first: without the right ones, nothing is known of a grid.
    let overridden = Launch::new(kernel, vec![(&y).into(), 1i32.into()]).grid([1, 2]).sync().unwrap_err();
    for error in [first_line(&overridden), launch(vec![(&y).into(), 0i32.into()])] {
        assert_eq!(error, "kernel `raw`: `y` is a tensor passed by `&mut`, but one passed by `&` was given");
    }
    assert_eq!(
        launch(vec![(&mut y).into(), 1i64.into()]),
        "kernel `raw`: `n` has elements of type `i32`, but `i64` was given"
    );
    let error = Launch::new(kernel, vec![(&mut y).into(), (-1i32).into()]).sync().unwrap_err();
    assert!(matches!(error, Error::Grid { .. }), "{error}");
}

#[test]
fn a_grid_without_programs_runs_nothing() {
    let dev = Device::best().unwrap();
    let x = dev.zeros([0]).unwrap();
    let mut y = dev.zeros([0]).unwrap();
    add(&x, &mut y, 1.0).sync().unwrap();
    assert!(y.to_vec().unwrap().is_empty() && y.is_empty());
    fill(&mut y, 1.0).grid([0]).sync().unwrap();
}

#[test]
fn a_grid_without_programs_is_refused_where_outputs_wait() {
    let mut z = Device::best().unwrap().zeros([2]).unwrap();
    let error = fill(&mut z, 1.0).grid([0]).sync().unwrap_err();
    assert!(matches!(error, Error::Grid { .. }), "{error}");
    assert_eq!(
        first_line(&error),
        "kernel `fill`: extent 0 of the grid is 0: no program would run, and `y` of extents [2] would keep what it holds"
    );
}

#[test]
fn a_grid_may_be_overridden() {
    let mut z = Device::best().unwrap().zeros([4]).unwrap();
    fill(&mut z, 1.0).grid([4]).sync().unwrap();
    assert_eq!(z.to_vec().unwrap(), [1.0; 4]);
    let error = fill(&mut z, 2.0).grid([2]).sync().unwrap_err();
    assert!(matches!(error, Error::Grid { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "kernel `fill`: extent 0 of the grid is 2, but `y` of extents [4] has 4 elements along axis 0, one for each program: \
         the rest would keep what it holds\n  help: launch at least 4 programs along axis 0; or declare `grid(unchecked ..)`, if \
         that is meant"
    );
    let error = fill(&mut z, 2.0).grid([3]).sync().unwrap_err();
    assert!(matches!(error, Error::Grid { .. }), "one too few: {error}");
    assert_eq!(z.to_vec().unwrap(), [1.0; 4], "a launch that is refused does nothing");
    let head = kernel!(
        head,
        "kernel @head(%y: mut tensor<f32>[N]) grid unchecked(N) {
            %p = program_id<0> : i32
            %two = const 2.0 : f32
            set %y[%p], %two
            return
        }"
    );
    Launch::new(head, vec![(&mut z).into()]).grid([2]).sync().unwrap();
    assert_eq!(z.to_vec().unwrap(), [2.0, 2.0, 1.0, 1.0]);
    // More programs than these extents need, and no more than others would: they do what the kernel says, here trap.
    let error = fill(&mut z, 1.0).grid([6]).sync().unwrap_err();
    assert!(matches!(&error, Error::Trap { program, .. } if program[0] >= 4 && program[1..] == [0, 0]), "{error}");
    let error = fill(&mut z, 1.0).grid([1 << 31]).sync().unwrap_err();
    assert!(matches!(error, Error::GridOverride { axis: 0, .. }), "{error}");
}

#[test]
fn a_grid_is_one_that_the_device_can_have() {
    let dev = Device::best().unwrap();
    let kernel = kernel!(
        columns,
        "kernel @columns(%y: mut tensor<i8>[N]) grid(1, N) {
            %p = program_id<1> : i32
            %one = const 1 : i8
            set %y[%p], %one
            return
        }"
    );
    let mut y = dev.zeros::<i8, 1>([65_536]).unwrap();
    Launch::new(kernel, vec![y.slice_mut::<0>(0..100).unwrap().as_tensor_mut().into()]).sync().unwrap();
    let all = Launch::new(kernel, vec![(&mut y).into()]).sync();
    if dev.kind() == DeviceKind::Cpu {
        all.unwrap();
        return assert!(y.to_vec().unwrap().iter().all(|v| *v == 1));
    }
    let error = all.unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(
            "its grid has 65536 programs along axis 1, but the device allows 65535\n  help: make the longest"
        ),
        "{text}"
    );
}

#[test]
fn programs_beyond_the_proof_are_refused() {
    let mut z = Device::best().unwrap().zeros([4]).unwrap();
    let error = fill(&mut z, 1.0).grid([2, 2]).sync().unwrap_err();
    assert_eq!(
        first_line(&error),
        "kernel `fill`: the launch asks for 2 programs along grid axis 1, but the kernel's `grid(..)` allows at most 1"
    );
    // One program may store where it likes; two would race.
    let alone = kernel!(
        alone,
        "kernel @alone(%y: mut tensor<f32>[N]) grid(1) {
            %zero = const 0 : i32
            %one = const 1.0 : f32
            set %y[%zero], %one
            return
        }"
    );
    Launch::new(alone, vec![(&mut z).into()]).grid([1]).sync().unwrap();
    let error = Launch::new(alone, vec![(&mut z).into()]).grid([2]).sync().unwrap_err();
    assert!(matches!(error, Error::GridOverride { axis: 0, found: 2, most: 1, .. }), "{error}");
}

#[test]
fn a_trap_names_kernel_place_and_program() {
    let mut y = Device::best().unwrap().zeros([4]).unwrap();
    trap_at(&mut y, 4).sync().unwrap();
    let error = trap_at(&mut y, 2).sync().unwrap_err();
    let Error::Trap { ref kernel, ref location, program, .. } = error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), program[1..].to_vec()), ("trap_at::<f32>", vec![0, 0]));
    assert_eq!(location.to_string(), "src/kernels.rs:12:9");
    assert!(
        first_line(&error).starts_with("kernel `trap_at::<f32>` stopped at src/kernels.rs:12:9 in program ["),
        "{error}"
    );
    assert!(first_line(&error).ends_with("]: the sky is falling"), "{error}");
    assert_eq!(y.to_vec().unwrap().len(), 4, "a failure that was told is not told again");
}

#[test]
fn a_kernel_that_cannot_be_read_says_so() {
    let kernel = kernel!(broken, "kernel @broken(");
    let error = Launch::new(kernel, vec![]).sync().unwrap_err();
    assert!(matches!(error, Error::Artifact { .. }));
    assert!(error.to_string().starts_with("the compiled form of kernel `broken` cannot be read: "), "{error}");
}

fn embedded(artifact: Vec<u8>) -> &'static KernelRef {
    Box::leak(Box::new(KernelRef::new("boxed", artifact.leak(), "src/kernels.rs", [1, 8])))
}

#[test]
fn a_kernel_comes_in_an_artifact() {
    let source = "kernel @boxed(%y: mut tensor<f32>[N]) grid(N) {
        %p = program_id<0> : i32
        %one = const 1.0 : f32
        set %y[%p], %one
        return
    }";
    let variant =
        |target: &str| Variant { target: target.to_owned(), payload: source.as_bytes().to_vec(), ..Variant::default() };
    let artifact = |variants| Artifact { kernel: "boxed".to_owned(), variants, refused: Vec::new() }.encode();
    let mut y = Device::best().unwrap().zeros::<f32, 1>([2]).unwrap();
    let kernel = embedded(artifact(vec![variant("gfx9999"), variant("cpu")]));
    Launch::new(kernel, vec![(&mut y).into()]).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [1.0; 2]);

    let refusal = |bytes| Launch::new(embedded(bytes), vec![]).sync().unwrap_err().to_string();
    assert!(refusal(artifact(vec![variant("sm_80")])).contains("it has no variant for the CPU"));
    let mut newer = artifact(vec![variant("cpu")]);
    newer[8] += 1;
    let text = refusal(newer);
    let made = format!("made by a newer TITAN: format version {}", titan_core::artifact::VERSION + 1);
    assert!(text.contains(&made) && text.contains("\n  help: use one version of all"), "{text}");
    assert!(refusal(vec![0xff, 0xfe]).contains("these bytes are not a TITAN artifact"));
}

#[test]
fn halves_of_one_tensor_may_both_be_written() {
    let dev = Device::best().unwrap();
    let mut y = dev.zeros::<f32, 1>([6]).unwrap();
    let (mut head, mut tail) = y.split_at_mut::<0>(3).unwrap();
    fill_two(&mut head, &mut tail, 2.0).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2., 2., 2., -2., -2., -2.]);
    // Columns: their byte ranges interleave.
    let mut m = dev.zeros::<f32, 2>([3, 4]).unwrap();
    let (left, mut right) = m.split_at_mut::<1>(2).unwrap();
    add_one(&left, &mut right).sync().unwrap();
    assert_eq!(m.to_vec().unwrap(), [0., 0., 1., 1., 0., 0., 1., 1., 0., 0., 1., 1.]);
}

#[test]
fn a_broadcast_output_is_refused() {
    let dev = Device::best().unwrap();
    let x = dev.zeros::<f32, 1>([1]).unwrap();
    let kernel = kernel!(
        own,
        "kernel @own(%y: mut tensor<f32>[N]) grid(N) {
            %p = program_id<0> : i32
            %one = const 1.0 : f32
            set %y[%p], %one
            return
        }"
    );
    let wide = x.broadcast([4]).unwrap();
    let mut y = dev.zeros::<f32, 1>([4]).unwrap();
    Launch::new(kernel, vec![y.view_mut().as_tensor_mut().into()]).sync().unwrap();
    let error = Launch::new(kernel, vec![(&*wide).into()]).sync().unwrap_err();
    assert!(error.to_string().contains("several of its indices name the same element"), "{error}");
}

#[test]
fn launches_and_tensors_move_between_threads() {
    fn movable<T: Send>(_: &T) {}
    fn shareable<T: Send + Sync>(_: &T) {}
    let dev = Device::best().unwrap();
    let mut y = dev.zeros::<f32, 1>([1]).unwrap();
    shareable(&dev);
    shareable(&dev.default_stream());
    shareable(&y);
    movable(&fill(&mut y, 1.0));
    movable(&fill(&mut y, 1.0).into_future());
    shareable(&Device::named("none").unwrap_err());
}

/// The types of the host side that hold memory, work or code: a change of a private field shows here.
#[test]
fn host_types_are_send_and_sync() {
    fn shareable<T: Send + Sync + Unpin + std::fmt::Debug>() {}
    shareable::<Error>();
    shareable::<titan::Tensor<f32, 1>>();
    shareable::<titan::View<'_, f32, 1>>();
    shareable::<titan::ViewMut<'_, f32, 1>>();
    shareable::<titan::Exclusive<'_, titan::Tensor<f32, 1>>>();
    shareable::<titan::DynTensor>();
    shareable::<titan::DynView<'_>>();
    shareable::<titan::DynViewMut<'_>>();
    shareable::<titan::Pinned<f32>>();
    shareable::<titan::Upload<f32>>();
    shareable::<titan::Stream>();
    shareable::<titan::Event>();
    shareable::<titan::Timer>();
    shareable::<titan::Graph>();
    shareable::<Launch<'_>>();
    shareable::<titan::LaunchFuture<'_>>();
    shareable::<titan::Instance>();
    shareable::<titan::KernelInfo>();
    shareable::<titan::bench::Bench>();
    shareable::<titan::records::Records>();
    shareable::<titan::tune::Tuner>();
    shareable::<titan::tune::Pick>();
    shareable::<titan::safetensors::SafeTensors<'_>>();
    shareable::<titan::cpu::Scope<'_, '_>>();
    shareable::<titan::dlpack::Managed>();
    #[cfg(feature = "cuda")]
    shareable::<titan::cuda::Lent<'_>>();
    #[cfg(feature = "hip")]
    {
        shareable::<titan::hip::Module>();
        shareable::<titan::hip::Kernel>();
        shareable::<titan::hip::Arg<'_>>();
    }
}
