//! What cannot be captured, and updates that do not fit: an error where the mistake is, after which everything is as before.

use crate::host_devices::devices;
use crate::runtime_kernels::{add, fill, scale};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use titan::{Device, DynTensor, ElemType, Error, Graph, Result, Stream, Tensor, dlpack};

/// The tensors and streams of a mistake.
struct Place {
    device: Device,
    s: Stream,
    other: Stream,
    x: Tensor<f32, 1>,
    y: Tensor<f32, 1>,
}

type Mistake = fn(&mut Place) -> Result<()>;

/// What is done in a capture, what the message names, and a part of its reason.
const MISTAKES: &[(&str, &str, Mistake)] = &[
    ("`to_vec`", "it runs now", |p| p.y.to_vec().map(drop)),
    ("`read_into`", "it runs now", |p| p.y.read_into(&mut [0.0; 4])),
    ("`write`", "it runs now", |p| p.x.write(&[0.0; 4])),
    ("`fill`", "it runs now", |p| p.x.fill(0.0)),
    ("`copy_from`", "it runs now", |p| p.y.copy_from(&p.x)),
    ("a new tensor with contents", "filled now", |p| p.device.zeros::<f32, 1>([4]).map(drop)),
    ("a new tensor with contents", "filled now", |p| p.device.full([4], 1u8).map(drop)),
    ("a new tensor with contents", "filled now", |p| p.device.tensor([1i32], [1]).map(drop)),
    ("a new tensor with contents", "filled now", |p| DynTensor::zeros(&p.device, ElemType::F32, &[2]).map(drop)),
    ("`to_vec`", "it runs now", |p| p.x.copy().map(drop)),
    ("kernel `fill`", "now", |p| fill(&mut p.x, 1.0).sync()),
    ("kernel `fill`", "only launches by `.launch(&stream)`", |p| {
        let launch = pin!(fill(&mut p.x, 1.0).into_future());
        match launch.poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(outcome) => outcome,
            std::task::Poll::Pending => Ok(()),
        }
    }),
    ("`sync`", "do not run", |p| p.s.sync()),
    ("`sync`", "do not run", |p| p.other.sync()),
    ("`record`", "only launches", |p| p.s.record().map(drop)),
    ("`record`", "only launches", |p| p.s.timer().map(drop)),
    ("kernel `fill`", "on another stream", |p| fill(&mut p.x, 1.0).launch(&p.other)),
    ("a launch", "its grid has no programs", |p| fill(&mut p.x.slice_mut::<0>(0..0)?, 1.0).launch(&p.s)),
    ("a capture", "capturing already", |p| p.s.capture(|| Ok(())).map(drop)),
    ("a capture", "capturing already", |p| p.other.capture(|| Ok(())).map(drop)),
];

#[test]
fn what_a_graph_cannot_repeat_is_refused_where_it_is_done() {
    for device in devices() {
        let [s, other] = [(); 2].map(|()| device.stream().unwrap());
        let [x, y] = [(); 2].map(|()| device.full([4], 1.0f32).unwrap());
        let mut place = Place { device: device.clone(), s: s.clone(), other, x, y };
        for (what, reason, mistake) in MISTAKES {
            let mut told = None;
            let error = s.capture(|| {
                add(&place.x, &mut place.y, 1.0).launch(&s)?;
                let outcome = mistake(&mut place);
                told = outcome.as_ref().err().map(ToString::to_string);
                outcome
            });
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Capture { .. }), "{device}, {what}: {error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("[T1123] {what} cannot be captured into a graph: ")), "{text}");
            assert!(text.contains(reason) && text.contains("\n  help: "), "{text}");
            // Where it is done, and nothing is left of the capture.
            assert_eq!(told.as_deref(), Some(text.as_str()), "{device}");
            assert_eq!(place.y.to_vec().unwrap(), [1.0; 4], "{device}, {what}");
            scale(&mut place.x, 1.0).launch(&s).unwrap();
            s.sync().unwrap();
        }
        let text = s.capture(|| Ok(())).unwrap_err().to_string();
        assert!(text.starts_with("[T1123] an empty list of launches cannot be captured"), "{text}");
        assert!(told_of(&s, &mut place).starts_with("[T1123] `to_vec` cannot be captured into a graph: "));
    }
}

fn told_of(s: &Stream, place: &mut Place) -> String {
    s.capture(|| place.y.to_vec().map(drop)).unwrap_err().to_string()
}

/// A mistake that the closure hides is no capture of what it did: the launches that were made are captured.
#[test]
fn an_error_of_the_closure_is_returned_and_a_panic_ends_the_capture() {
    for device in devices() {
        let s = device.stream().unwrap();
        let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([5]).unwrap());
        let error = s.capture(|| {
            fill(&mut x, 1.0).launch(&s)?;
            add(&x, &mut y, 1.0).launch(&s)
        });
        assert!(matches!(error.unwrap_err(), Error::Shape { .. }), "{device}");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            s.capture(|| {
                fill(&mut x, 1.0).launch(&s)?;
                panic!("in a capture")
            })
        }));
        assert!(panicked.is_err());
        // This thread is not capturing.
        fill(&mut x, 2.0).launch(&s).unwrap();
        assert_eq!(x.to_vec().unwrap(), [2.0; 4], "{device}");
    }
}

#[test]
fn other_threads_go_on_while_one_captures() {
    for device in devices() {
        let s = device.stream().unwrap();
        let (mut x, mut y) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
        let graph = s.capture(|| {
            fill(&mut x, 1.0).launch(&s)?;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    fill(&mut y, 5.0).launch(&s).unwrap();
                    assert_eq!(y.to_vec().unwrap(), [5.0; 4]);
                });
            });
            fill(&mut x, 2.0).launch(&s)
        });
        let graph = graph.unwrap();
        assert_eq!((graph.launches(), x.to_vec().unwrap()), (2, vec![0.0; 4]), "{device}");
        graph.launch(&s).unwrap();
        assert_eq!(x.to_vec().unwrap(), [2.0; 4], "{device}");
    }
}

/// A graph would use the slice after the scope.
#[test]
fn memory_that_others_own_is_refused() {
    let device = Device::cpu();
    let s = device.stream().unwrap();
    let mut data = vec![1.0f32; 4];
    let mut own = device.zeros([4]).unwrap();
    let kept = titan::cpu::scope(|host| {
        let mut lent = host.borrow_mut(&mut data, [4])?;
        let written = s.capture(|| fill(&mut lent, 2.0).launch(&s));
        let read = s.capture(|| add(&lent, &mut own, 2.0).launch(&s));
        let mut graph = s.capture(|| fill(&mut own, 3.0).launch(&s))?;
        let set = graph.set(0, fill(&mut lent, 3.0));
        for error in [written.map(drop), read.map(drop), set] {
            let text = error.unwrap_err().to_string();
            assert!(text.starts_with("[T1123] kernel `") && text.contains(" that TITAN does not own, and "), "{text}");
        }
        Ok::<_, Error>(graph)
    });
    kept.unwrap().launch(&s).unwrap();
    assert_eq!((data, own.to_vec().unwrap()), (vec![1.0; 4], vec![3.0; 4]));
}

/// A graph keeps its own handles, so that Rust's borrows cannot keep it from memory that has been given away.
#[test]
fn replays_are_refused_while_another_library_has_a_tensor() {
    let device = Device::cpu();
    let s = device.stream().unwrap();
    let [x, mut y] = [(); 2].map(|()| device.full([4], 1.0f32).unwrap());
    let writes = s.capture(|| add(&x, &mut y, 2.0).launch(&s)).unwrap();
    let shared = Arc::new(DynTensor::from(x));
    let refused = |graph: &Graph| {
        let text = graph.launch(&s).unwrap_err().to_string();
        assert!(text.starts_with("[T1124] ") && text.contains("another library"), "{text}");
    };
    // Two that read beside each other are no conflict; a writer conflicts with both.
    let theirs = dlpack::export_shared(&shared).unwrap();
    writes.launch(&s).unwrap();
    let mut view = shared.view::<f32, 1>().unwrap().copy().unwrap();
    let reads = s.capture(|| add(&y, &mut view, 1.0).launch(&s)).unwrap();
    let managed = dlpack::export(y).unwrap();
    refused(&reads);
    refused(&writes);
    let forgotten = dlpack::export(view).unwrap();
    drop(managed);
    refused(&reads);
    writes.launch(&s).unwrap();
    // What is never given back stays refused.
    std::mem::forget(forgotten);
    refused(&reads);
    drop(theirs);
    writes.launch(&s).unwrap();
    s.sync().unwrap();
}

/// A writer of memory that another library reads is refused too.
#[test]
fn replays_that_write_what_another_library_reads_are_refused() {
    let device = Device::cpu();
    let s = device.stream().unwrap();
    let mut x = device.zeros([4]).unwrap();
    let graph = s.capture(|| fill(&mut x, 1.0).launch(&s)).unwrap();
    let shared = Arc::new(DynTensor::from(x));
    let theirs = [(); 2].map(|()| dlpack::export_shared(&shared).unwrap());
    for theirs in theirs {
        assert!(graph.launch(&s).unwrap_err().to_string().starts_with("[T1124] "));
        drop(theirs);
    }
    graph.launch(&s).unwrap();
    assert_eq!(shared.view::<f32, 1>().unwrap().to_vec().unwrap(), [1.0; 4]);
}

#[test]
fn updates_that_do_not_fit_are_refused_and_change_nothing() {
    let all = devices();
    for device in &all {
        let s = device.stream().unwrap();
        let [mut x, mut y] = [(); 2].map(|()| device.zeros([4]).unwrap());
        let mut graph = s
            .capture(|| {
                fill(&mut x, 1.0).launch(&s)?;
                add(&x, &mut y, 1.0).launch(&s)
            })
            .unwrap();
        let told = |outcome: Result<()>, says: &str| {
            let error = outcome.unwrap_err();
            assert!(matches!(error, Error::Graph { .. }), "{error}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("[T1124] {says}")) && text.contains("\n  help: "), "{text}");
        };
        let other = graph.set(0, scale(&mut x, 1.0)).unwrap_err().to_string();
        assert!(other.starts_with("[T1124] the graph launches `fill` there, not `scale`"), "{other}");
        told(graph.set(2, fill(&mut x, 1.0)), "the graph has 2 launches, and none is at 2");
        told(graph.update(|| fill(&mut x, 1.0).launch(&s)), "the graph has 2 launches, but 1 were made");
        let swapped = graph.update(|| {
            add(&x, &mut y, 1.0).launch(&s)?;
            fill(&mut x, 1.0).launch(&s)
        });
        told(swapped, "the graph launches `fill` there, not `add`");
        for other in all.iter().filter(|other| *other != device) {
            let says = format!("the graph is on {device}, but the stream is on {other}");
            told(graph.launch(&other.default_stream()), &says);
            let mut far = other.zeros([4]).unwrap();
            let error = graph.set(0, fill(&mut far, 1.0)).unwrap_err();
            assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
        }
        let mut long = device.zeros([5]).unwrap();
        let error = graph.set(1, add(&x, &mut long, 1.0)).unwrap_err();
        assert!(matches!(error, Error::Shape { .. }), "{error}");
        let error = graph.update(|| x.to_vec().map(drop)).unwrap_err();
        assert!(matches!(error, Error::Capture { .. }), "{error}");
        graph.launch(&s).unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0; 4], "{device}");
    }
}
