//! Instances that are measured, checked, recorded and chosen.

use crate::host_devices::devices;
use crate::kernels::{added, busy, shifted, whole};
use titan::records::{Outcome, Records};
use titan::tune::{Reason, Tuned, Tuner};
use titan::{Device, Error, Instance, Tensor, dispatch};

fn input(device: &Device, n: usize) -> (Tensor<f32, 1>, Tensor<f32, 1>) {
    (device.from_fn([n], |[i]| i as f32).unwrap(), device.full([n], -1.0).unwrap())
}

fn tuned_busy(device: &Device) -> Tuned {
    let (x, mut y) = input(device, 40);
    let tuner = Tuner::on(device).class("40").rounds(5);
    let tuned = tuner.measure(busy::instances(), &mut y, |i, y, stream| dispatch!(busy[i](&x, y)).launch(stream));
    assert_eq!(y.to_vec().unwrap(), [-1.0; 40], "the outputs have their contents again");
    tuned.unwrap()
}

fn left_out(tuned: &Tuned) -> Vec<(&str, &str)> {
    let reason = |case: &'_ titan::records::RecordedCase| {
        if let Outcome::LeftOut(reason) = &case.outcome { Some(reason.clone()) } else { None }
    };
    let all = tuned.record.cases.iter();
    all.filter_map(|case| reason(case).map(|reason| (&*case.name, &*reason.leak()))).collect()
}

#[test]
fn the_fastest_instance_wins_on_every_device() {
    for device in devices() {
        let tuned = tuned_busy(&device);
        // The other two are near each other on a busy machine.
        assert_ne!(tuned.fastest.name(), "busy::<400>", "{device}: {tuned}");
        assert_eq!(tuned.record.fastest, tuned.fastest.name());
        let median = |case: &titan::records::RecordedCase| {
            let Outcome::Measured { ratio, .. } = &case.outcome else { panic!("{case:?}") };
            ratio.median
        };
        let least = tuned.record.cases.iter().min_by(|a, b| median(a).total_cmp(&median(b))).unwrap();
        assert_eq!(least.name, tuned.record.fastest, "{device}: {tuned}");
        assert_eq!((tuned.record.what.as_str(), tuned.record.class.as_str()), ("busy", "40"));
        assert!(left_out(&tuned).is_empty() && tuned.record.cases.len() == 3);
        assert!(tuned.to_string().contains(&format!("\n* {}", tuned.fastest)), "{tuned}");
        assert_eq!(tuned.record.source.len(), 32);
    }
}

#[test]
fn an_instance_with_another_result_does_not_win() {
    for device in devices() {
        let (x, mut y) = input(&device, 40);
        let mut measure = |tuner: Tuner| {
            let launch = |i: &'static Instance, y: &mut Tensor<f32, 1>, stream: &titan::Stream| {
                dispatch!(shifted[i](&x, y)).launch(stream)
            };
            tuner.class("40").rounds(3).measure(shifted::instances(), &mut y, launch).unwrap()
        };
        let exact = measure(Tuner::on(&device));
        assert_eq!(exact.fastest.name(), "shifted::<0>", "{device}: {exact}");
        let wrong = |d| ("element 0 of its result is {}.0 instead of 0.0").replace("{}", d);
        let (one, two) = (wrong("1"), wrong("2"));
        assert_eq!(left_out(&exact), [("shifted::<1>", &*one), ("shifted::<2>", &*two)]);
        // With 1 as the tolerance the second instance may win, and the third may not.
        let near = measure(Tuner::on(&device).tolerance(1.0, 0.0));
        assert_ne!(near.fastest.name(), "shifted::<2>", "{device}: {near}");
        assert_eq!(left_out(&near), [("shifted::<2>", &*two)]);
        // A relative one is 0 at the first element.
        let relative = measure(Tuner::on(&device).tolerance(0.0, 0.5));
        assert_eq!(relative.fastest.name(), "shifted::<0>");
    }
}

/// An infinity is near to itself alone, whatever the tolerance, and NaN to NaN.
#[test]
fn infinite_results_are_compared_exactly() {
    let device = Device::cpu();
    let (x, mut y) = input(&device, 40);
    let tuner = Tuner::on(&device).rounds(2).tolerance(1.0, 0.5);
    let mut others = |values: [f32; 3]| {
        let tuned = tuner.measure(shifted::instances(), &mut y, |i, y, stream| {
            dispatch!(shifted[i](&x, y)).launch(stream)?;
            let value = values[usize::try_from(i.int("D").unwrap_or_default()).unwrap_or_default()];
            y.slice_mut::<0>(0..1)?.fill(value)?;
            y.slice_mut::<0>(1..40)?.fill(0.0)
        });
        left_out(&tuned.unwrap()).iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()
    };
    const MAX: f32 = f32::MAX;
    const INF: f32 = f32::INFINITY;
    assert_eq!(others([INF, INF, 3.0]), ["shifted::<2>"]);
    assert_eq!(others([INF, -INF, f32::NAN]), ["shifted::<1>", "shifted::<2>"]);
    assert_eq!(others([f32::NAN, f32::NAN, INF]), ["shifted::<2>"]);
    assert_eq!(others([MAX, INF, MAX / 1.5]), ["shifted::<1>"]);
}

#[test]
fn instances_that_cannot_run_are_left_out_with_the_reason() {
    for device in devices() {
        let (x, mut y) = input(&device, 96);
        let tuner = Tuner::on(&device).rounds(2);
        let launch = |i: &'static Instance, y: &mut Tensor<f32, 1>, stream: &titan::Stream| {
            dispatch!(whole[i](&x, y)).launch(stream)
        };
        let tuned = tuner.measure(whole::instances(), &mut y, launch).unwrap();
        assert_eq!(tuned.fastest.name(), "whole::<16>");
        let [(trapped, why), (unfit, condition)] = left_out(&tuned)[..] else { panic!("{tuned}") };
        assert_eq!((trapped, unfit), ("whole::<32>", "whole::<64>"));
        assert!(why.contains("this one stops") && condition.contains("`whole::<64>`"), "{tuned}");
        // In the order in which they are declared.
        let names: Vec<&str> = tuned.record.cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["whole::<16>", "whole::<32>", "whole::<64>"]);
        assert_eq!(y.to_vec().unwrap(), [-1.0; 96]);
        // The first one that runs is what the others are compared with.
        let last = whole::instances().iter().rev();
        let tuned = tuner.measure(last, &mut y, launch).unwrap();
        assert_eq!(tuned.fastest.name(), "whole::<16>");

        let none = whole::instances().iter().skip(1);
        let error = tuner.measure(none, &mut y, launch).unwrap_err().to_string();
        assert!(error.starts_with("[T1122] no instance of kernel `whole` runs with these arguments: "), "{error}");
        assert_eq!(y.to_vec().unwrap(), [-1.0; 96]);
        let error = tuner.measure([], &mut y, launch).unwrap_err().to_string();
        assert!(error.starts_with("[T1122] there are no instances to choose from\n"), "{error}");
    }
}

#[test]
fn outputs_in_place_start_from_the_same_contents_and_keep_them() {
    for device in devices() {
        let x = device.full([70], 3i32).unwrap();
        let mut outputs = (device.full([70], 10i32).unwrap(), device.full([70], 0i32).unwrap());
        let tuner = Tuner::on(&device).rounds(2);
        let tuned = tuner.measure(added::instances(), &mut outputs, |i, (y, z), stream| {
            dispatch!(added[i](&x, y, z)).launch(stream)
        });
        assert!(left_out(&tuned.unwrap()).is_empty());
        assert_eq!((outputs.0.to_vec().unwrap(), outputs.1.to_vec().unwrap()), (vec![10; 70], vec![0; 70]));
        // Lists of outputs too; the place of a difference is told.
        let mut list = vec![device.zeros::<i32, 1>([70]).unwrap(), device.zeros([70]).unwrap()];
        let tuned = tuner.measure(added::instances(), &mut list, |i, list, stream| {
            let [y, z] = &mut list[..] else { panic!("two outputs") };
            dispatch!(added[i](&x, y, z)).launch(stream)?;
            if i.int("BN") == Some(64) { z.slice_mut::<0>(5..6)?.fill(8) } else { Ok(()) }
        });
        let tuned = tuned.unwrap();
        assert_eq!(left_out(&tuned), [("added::<64>", "output 1: element 5 of its result is 8 instead of 7")]);
    }
}

#[test]
fn errors_that_concern_the_program_are_returned() {
    let device = Device::cpu();
    let (x, mut y) = input(&device, 40);
    let alias = Tuner::on(&device).measure(busy::instances(), &mut y, |i, _, stream| {
        let other = Device::cpu().zeros::<f32, 1>([41])?;
        let mut other = other;
        let _ = (&x, i, stream);
        other.write(&[0.0])
    });
    assert!(matches!(alias.unwrap_err(), Error::ElementCount { .. }));
    assert_eq!(y.to_vec().unwrap(), [-1.0; 40]);
}

#[test]
fn a_choice_without_a_record_is_the_first_instance_and_says_why() {
    for device in devices() {
        let all = busy::instances();
        let name = |instance: &Instance| instance.name();
        let mut records = Records::default();
        let pick = records.pick(all, "40", &device).unwrap();
        assert_eq!((name(pick.instance), &pick.reason), ("busy::<400>", &Reason::NoRecord));
        assert!(
            pick.to_string().starts_with("`busy::<400>`, the first instance: there is no record of `busy`, `40`, on ")
        );
        let error = pick.recorded().unwrap_err().to_string();
        assert!(error.starts_with("[T1122] no instance is recorded: `busy::<400>`, the first instance: "), "{error}");

        let mut record = tuned_busy(&device).record;
        let fastest = record.fastest.clone();
        records.insert(record.clone());
        let records = Records::parse(&records.to_string()).unwrap();
        let pick = records.pick(all, "40", &device).unwrap();
        assert_eq!((name(pick.recorded().unwrap()), &pick.reason), (&*fastest, &Reason::Recorded));
        let says = format!("`{fastest}`, the fastest by the record of `busy`, `40`, on ");
        assert!(pick.to_string().starts_with(&says), "{pick}");
        assert_eq!(records.pick(all, "41", &device).unwrap().reason, Reason::NoRecord);
        assert_eq!(records.pick(shifted::instances(), "40", &device).unwrap().reason, Reason::NoRecord);

        // Other instances are another source; and so is a record of other code.
        let some = records.pick(all.iter().skip(1), "40", &device).unwrap();
        assert_eq!((name(some.instance), &some.reason), ("busy::<1>", &Reason::OtherSource));
        let turned = records.pick(all.iter().rev(), "40", &device).unwrap();
        assert_eq!((name(turned.instance), &turned.reason), ("busy::<20>", &Reason::OtherSource));
        record.source = "0".repeat(32);
        let mut stale = Records::default();
        stale.insert(record.clone());
        let pick = stale.pick(all, "40", &device).unwrap();
        assert_eq!((name(pick.instance), &pick.reason), ("busy::<400>", &Reason::OtherSource));
        assert!(pick.to_string().ends_with(" is of other code, or of other instances"), "{pick}");
        pick.recorded().unwrap_err();

        record.device = "cuda (NVIDIA X1)".to_owned();
        let mut elsewhere = Records::default();
        elsewhere.insert(record);
        let pick = elsewhere.pick(all, "40", &device).unwrap();
        assert_eq!(pick.reason, Reason::OtherDevice(vec!["cuda (NVIDIA X1)".to_owned()]));
        assert!(pick.to_string().ends_with(" are of cuda (NVIDIA X1)"), "{pick}");
        assert!(matches!(records.pick([], "40", &device).unwrap_err(), Error::Measurement { .. }));
    }
}

#[test]
fn a_record_of_an_instance_that_does_not_exist_is_an_error() {
    let device = Device::cpu();
    let mut record = tuned_busy(&device).record;
    record.fastest = "busy::<2>".to_owned();
    let mut records = Records::default();
    records.insert(record);
    let error = records.pick(busy::instances(), "40", &device).unwrap_err();
    assert!(
        matches!(error, Error::Records { .. }) && error.to_string().contains("is `busy::<2>`, which does not exist")
    );
}
