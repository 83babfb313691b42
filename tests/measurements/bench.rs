//! Comparisons.

use crate::host_devices::devices;
use crate::runtime_kernels::{fill, slow_fill, trap_at};
use std::time::Duration;
use titan::bench::{Bench, Clock, Spread};
use titan::{Device, Error};

fn spins(device: &Device) -> [i32; 2] {
    if *device == Device::cpu() { [100, 200_000] } else { [10, 2_000] }
}

#[test]
fn cases_are_measured_alternately_on_every_device() {
    for device in devices() {
        let mut x = device.zeros([4]).unwrap();
        let [few, many] = spins(&device);
        let mut order = Vec::new();
        let bench = Bench::on(&device).rounds(4).warm_up(2).batch(3).flush(1000);
        let compared = bench
            .compare(&["few", "many"], |case, stream| {
                order.push(case);
                slow_fill(&mut x, 1.5, [few, many][case]).launch(stream)
            })
            .unwrap();
        // Another case is first in each round.
        let rounds = [[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]];
        assert_eq!(order, rounds.concat().repeat(3), "{device}");
        assert_eq!((compared.rounds, compared.clock, &compared.device), (4, Clock::Host, &device.to_string()));
        let [few, many] = &compared.cases[..] else { panic!("{compared:?}") };
        assert_eq!((few.samples.len(), many.samples.len()), (4, 4));
        let Spread { least, lower, median, upper, .. } = few.ratio;
        assert_eq!([least, lower, median, upper], [1.0; 4]);
        assert!(many.ratio.median > 1.0, "{device}: {compared}");
        assert!(many.seconds.least > 0.0 && many.seconds.least <= many.seconds.lower, "{compared}");
        assert_eq!(many.more_than(many).median, 0.0);
        assert!(many.more_than(few).median > 0.0, "{compared}");
        let text = compared.to_string();
        assert!(text.starts_with(&format!("{device}, 4 rounds by the host's clock\n")), "{text}");
        assert!(text.contains("\nfew ") && text.contains("1.000 (1.000 to 1.000)\nmany "), "{text}");
        assert_eq!(x.to_vec().unwrap(), [1.5; 4]);
    }
}

#[test]
fn the_clock_of_a_device_measures_launches_of_its_streams() {
    for device in devices() {
        let mut x = device.zeros([4]).unwrap();
        let [few, many] = spins(&device);
        let bench = Bench::on(&device).rounds(3).clock(Clock::Device);
        let compared =
            bench.compare(&["few", "many"], |case, stream| slow_fill(&mut x, 1.5, [few, many][case]).launch(stream));
        let compared = compared.unwrap();
        assert!(compared.cases[1].ratio.median > 1.0, "{device}: {compared}");
        assert!(compared.to_string().contains(" by the device's clock\n"));
    }
}

#[test]
fn cases_may_measure_themselves() {
    let times = [[2u64, 6], [10, 20], [4, 4], [1, 9]];
    let mut round = 0;
    let bench = Bench::on(&Device::cpu()).rounds(3).warm_up(1);
    let compared = bench.sample(&["a", "b"], |case| {
        let time = times[round / 2][case];
        round += 1;
        Ok(Duration::from_micros(time))
    });
    let compared = compared.unwrap();
    let close = |found: f64, wanted: f64| assert!((found - wanted).abs() <= 1e-9 * wanted, "{found} {wanted}");
    // Without the first round: 10 and 20, 4 and 4, 1 and 9.
    let b = &compared.cases[1];
    let wanted = [(b.ratio.least, 1.0), (b.ratio.median, 2.0), (b.seconds.least, 4e-6), (b.seconds.median, 9e-6)];
    wanted.into_iter().for_each(|(found, wanted)| close(found, wanted));
    close(compared.cases[0].seconds.median, 4e-6);
    // A clock that does not advance is no division by zero.
    let still = Bench::on(&Device::cpu()).rounds(2).sample(&["a", "b"], |_| Ok(Duration::ZERO)).unwrap();
    assert_eq!(still.cases[1].ratio.median, 1.0);
}

#[test]
fn a_spread_has_values_that_were_measured() {
    let of = |values: &[f64]| {
        let Spread { least, lower, median, upper, .. } = Spread::of(values.iter().copied());
        [least, lower, median, upper]
    };
    assert_eq!(of(&[5.0, 1.0, 4.0, 2.0, 3.0]), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(of(&[2.0, 1.0]), [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(of(&[7.0]), [7.0; 4]);
    assert!(of(&[]).iter().all(|v| v.is_nan()));
    assert_eq!(Spread::of([1.0, 2.0, 3.0]).to_string(), "2.000 (2.000 to 3.000)");
}

#[test]
fn nothing_to_measure_is_an_error() {
    let bench = Bench::on(&Device::cpu());
    let told = |bench: Bench, names: &[&str], says: &str| {
        let error = bench.compare(names, |_, _| Ok(())).unwrap_err();
        assert!(matches!(error, Error::Measurement { .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("[T1122] there are no {says} to measure\n  help: ")), "{error}");
    };
    told(bench.clone(), &[], "cases");
    told(bench.clone().rounds(0), &["a"], "rounds");
    told(bench.batch(0), &["a"], "runs in a batch");
}

#[test]
fn failures_of_cases_are_reported_by_either_clock() {
    for device in devices() {
        for clock in [Clock::Host, Clock::Device] {
            let mut x = device.zeros([4]).unwrap();
            let bench = Bench::on(&device).rounds(2).clock(clock);
            let error = bench.compare(&["trap"], |_, stream| trap_at(&mut x, 1).launch(stream)).unwrap_err();
            assert!(matches!(error, Error::Trap { .. }), "{device}: {error}");
            // Others are as before.
            let mut y = device.zeros([4]).unwrap();
            bench.compare(&["fill"], |_, stream| fill(&mut y, 2.0).launch(stream)).unwrap();
            assert_eq!(y.to_vec().unwrap(), [2.0; 4]);
        }
    }
}
