//! The choice of an instance of a kernel by its speed, measured once and kept in records.
//!
//! A kernel declares several instances, with other tiles or schedules, of which another one is the fastest on each device and for each class of
//! shapes. [`Tuner`] measures them, and [`Records::pick`] chooses by what was measured:
//!
//! ```
//! use titan::prelude::*;
//! use titan::records::Records;
//! use titan::tune::Tuner;
//! use titan::dispatch;
//!
//! #[titan::kernel(instances(BN in [64, 256, 1024]))]
//! fn double<const BN: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
//!     let p = program_id(0);
//!     y.store_tile([p], x.load_tile::<BN>([p]) * 2.0);
//! }
//!
//! # fn main() -> titan::Result<()> {
//! # let file = std::env::temp_dir().join(format!("titan-tuning-{}.json", std::process::id()));
//! let dev = Device::cpu();
//! let (x, mut y) = (dev.full([10_000], 1.5f32)?, dev.zeros([10_000])?);
//! // In a program of its own, such as `cargo run --bin tune`:
//! let mut records = Records::open(&file)?;
//! let tuned = Tuner::on(&dev).class("10000").rounds(5).measure(double::instances(), &mut y, |instance, y, stream| {
//!     dispatch!(double[instance](&x, y)).launch(stream)
//! })?;
//! println!("{tuned}");
//! records.insert(tuned.record);
//! records.save()?;
//!
//! // In the program that launches, once:
//! let records = Records::open(&file)?; // or `Records::parse(include_str!("tuning.json"))`
//! let pick = records.pick(double::instances(), "10000", &dev)?;
//! println!("{pick}");
//! dispatch!(double[pick.instance](&x, &mut y)).sync()?;
//! # assert_eq!(pick.instance, tuned.fastest);
//! # std::fs::remove_file(&file).expect("it was written");
//! # Ok(())
//! # }
//! ```
//!
//! **Without a record** of this source, class and device, [`Records::pick`] returns the first instance, always: a program without records does the
//! same in every run. Put the instance first that is good enough everywhere. The fingerprint of the source covers the embedded code of the
//! instances that are given, in their order; so a change of the kernel, of the compiler or of the list makes a record one of another source.
//!
//! **Results are checked** before an instance may win: each starts from the contents that the outputs had, and must leave the same results as
//! the first instance that runs, bit by bit or within [`Tuner::tolerance`].
//!
//! Deliberately absent: a search among instances that are not declared, and measuring while a program serves.

use crate::bench::Bench;
use crate::lang::{Elem, Number};
use crate::records::{Record, Records};
use crate::runtime::{Device, Instance, Stream, Tensor, fingerprint};
use crate::{Error, Result};
use std::fmt;

/// How the instances of a kernel are measured: see [the module](self).
#[derive(Clone, Debug)]
#[must_use = "nothing is measured before `measure`"]
pub struct Tuner {
    bench: Bench,
    class: String,
    tolerance: Option<Tolerance>,
}

/// The instances that may win, and the places of the others with the reasons.
type Checked = (Vec<&'static Instance>, Vec<(usize, String)>);

/// How far a result may be from that of the first instance.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tolerance {
    absolute: f64,
    relative: f64,
}

impl Tuner {
    /// Measurements on a device, by [`Bench::on`].
    pub fn on(device: &Device) -> Tuner {
        Tuner::by(Bench::on(device))
    }

    /// Measurements in this way.
    pub fn by(bench: Bench) -> Tuner {
        Tuner { bench, class: String::new(), tolerance: None }
    }

    /// The name of the class of shapes that the arguments stand for, such as `rows of 4096`. Which shapes are alike is for the program to say.
    pub fn class(self, class: impl Into<String>) -> Tuner {
        Tuner { class: class.into(), ..self }
    }

    /// The number of rounds: see [`Bench::rounds`].
    pub fn rounds(self, rounds: usize) -> Tuner {
        Tuner { bench: self.bench.rounds(rounds), ..self }
    }

    /// Lets elements of floating-point results differ from those of the first instance by `absolute + relative · |first|`, for instances that add
    /// in another order. Without it, results must be the same bit by bit; integers must be equal in any case.
    pub fn tolerance(self, absolute: f64, relative: f64) -> Tuner {
        Tuner { tolerance: Some(Tolerance { absolute, relative }), ..self }
    }

    /// Measures instances. `launch` launches one of them on the stream that it is given; `outputs` are the tensors that it writes, which have
    /// their contents again when this returns.
    ///
    /// An instance that cannot run these arguments on the device, traps, or has another result is left out, and the record says why.
    ///
    /// # Errors
    /// If there are no instances, or none of them runs (T1122); other errors of launches, such as a lost device or a lack of memory.
    pub fn measure<O: Outputs>(
        &self,
        instances: impl IntoIterator<Item = &'static Instance>,
        outputs: &mut O,
        mut launch: impl FnMut(&'static Instance, &mut O, &Stream) -> Result<()>,
    ) -> Result<Tuned> {
        let all: Vec<&'static Instance> = instances.into_iter().collect();
        let device = self.bench.device().clone();
        let stream = device.stream()?;
        let before = outputs.contents()?;
        let checked = self.check(&all, outputs, &before, |instance, outputs| {
            launch(instance, outputs, &stream)?;
            stream.sync()
        });
        let measured = checked.and_then(|(fit, left_out)| {
            let names: Vec<&str> = fit.iter().map(|instance| instance.name()).collect();
            let compared = self.bench.compare(&names, |nth, stream| launch(fit[nth], outputs, stream))?;
            Ok((fit, left_out, compared))
        });
        let restored = outputs.restore(&before);
        let (fit, left_out, compared) = measured?;
        restored?;
        let mut record = Record::of(&compared, &device, kernel(&all), &*self.class).with_source(fingerprint(&all));
        for (place, reason) in left_out {
            record = record.leaving_out(place, all[place].name(), reason);
        }
        let fastest = fit.into_iter().find(|instance| instance.name() == record.fastest);
        let fastest = fastest.ok_or_else(|| none(&all, None))?;
        Ok(Tuned { fastest, record })
    }

    /// The instances whose results are those of the first that runs, and the places of the others with the reasons.
    fn check<O: Outputs>(
        &self,
        all: &[&'static Instance],
        outputs: &mut O,
        before: &O::Contents,
        mut run: impl FnMut(&'static Instance, &mut O) -> Result<()>,
    ) -> Result<Checked> {
        let (mut fit, mut left_out, mut first) = (Vec::new(), Vec::new(), None);
        for (place, instance) in all.iter().enumerate() {
            outputs.restore(before)?;
            match run(instance, outputs) {
                Ok(()) => {}
                Err(error) if is_of_instance(&error) => {
                    left_out.push((place, error.to_string()));
                    continue;
                }
                Err(error) => return Err(error),
            }
            let result = outputs.contents()?;
            match &first {
                None => first = Some(result),
                Some(first) => {
                    if let Some(difference) = O::difference(first, &result, &|a, b| self.are_same(a, b)) {
                        left_out.push((place, difference));
                        continue;
                    }
                }
            }
            fit.push(*instance);
        }
        match left_out.first() {
            Some((_, reason)) if fit.is_empty() => Err(none(all, Some(reason))),
            None if fit.is_empty() => Err(none(all, None)),
            Some(_) | None => Ok((fit, left_out)),
        }
    }

    /// Whether a result is near enough to that of the first instance. Both are of one type, and their bits differ.
    fn are_same(&self, first: Number, other: Number) -> bool {
        match (first, other, self.tolerance) {
            (Number::Float(a), Number::Float(b), Some(Tolerance { absolute, relative })) => {
                // An infinity is near to nothing but itself, although its distance to others is not more than itself.
                let near = a.is_finite() && b.is_finite() && (a - b).abs() <= absolute + relative * a.abs();
                (a.is_nan() && b.is_nan()) || a == b || near
            }
            (Number::Float(_), _, None) => false,
            (Number::Int(a), Number::Int(b), _) => a == b,
            (Number::Float(_), Number::Int(_), Some(_)) | (Number::Int(_), Number::Float(_), _) => false,
        }
    }
}

/// The name of the kernel.
fn kernel(instances: &[&'static Instance]) -> &'static str {
    instances.first().map_or("", |first| first.name().split("::<").next().unwrap_or_default())
}

fn none(all: &[&'static Instance], reason: Option<&str>) -> Error {
    match reason {
        None if all.is_empty() => {
            let problem = "there are no instances to choose from".to_owned();
            Error::Measurement { problem, help: "give the `instances()` of a kernel, or a part of them" }
        }
        reason => {
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let problem = format!("no instance of kernel `{}` runs with these arguments{reason}", kernel(all));
            Error::Measurement { problem, help: "measure on another device, or with other arguments" }
        }
    }
}

/// Whether an error concerns one instance, and not the device or the program.
fn is_of_instance(error: &Error) -> bool {
    match error {
        Error::Shape { .. }
        | Error::Requirement { .. }
        | Error::Grid { .. }
        | Error::GridOverride { .. }
        | Error::Argument { .. }
        | Error::NotOfType { .. }
        | Error::Trap { .. }
        | Error::Emulated { .. }
        | Error::Simulated { .. }
        | Error::Unsupported { .. }
        | Error::TooOld { .. }
        | Error::ForeignGpu { .. }
        | Error::CodeObject { .. }
        | Error::SharedMemory { .. }
        | Error::Code { .. } => true,
        Error::NoInstance { .. }
        | Error::NoArm { .. }
        | Error::TensorBytes { .. }
        | Error::SafetensorsFile { .. }
        | Error::SafetensorsElement { .. }
        | Error::SafetensorsName { .. }
        | Error::Alias { .. }
        | Error::DeviceMismatch { .. }
        | Error::ElementCount { .. }
        | Error::TooLarge { .. }
        | Error::Layout { .. }
        | Error::OutOfMemory { .. }
        | Error::NoSuchDevice { .. }
        | Error::Dependency { .. }
        | Error::Artifact { .. }
        | Error::Unwritten { .. }
        | Error::Copy { .. }
        | Error::AxisView { .. }
        | Error::Timing { .. }
        | Error::Strided { .. }
        | Error::Foreign(_)
        | Error::Dlpack(_)
        | Error::Records { .. }
        | Error::Measurement { .. }
        | Error::Capture { .. }
        | Error::Graph { .. }
        | Error::Driver { .. }
        | Error::DeviceLost { .. }
        | Error::Timeout { .. }
        | Error::Thread { .. }
        | Error::Internal { .. } => false,
    }
}

/// The result of [`Tuner::measure`]. Its text is a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tuned {
    /// The fastest instance whose result is right.
    pub fastest: &'static Instance,
    /// What was measured, for [`Records::insert`].
    pub record: Record,
}

impl fmt::Display for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.record.fmt(f)
    }
}

/// An instance that was chosen by records: see [`Records::pick`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pick {
    /// The instance.
    pub instance: &'static Instance,
    /// Why it is this one.
    pub reason: Reason,
    /// What was asked for.
    asked: String,
}

/// Why an instance was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// It is the fastest one of a record.
    Recorded,
    /// It is the first one: there is no record of the kernel for this class.
    NoRecord,
    /// It is the first one: records of the kernel for this class are of these devices.
    OtherDevice(Vec<String>),
    /// It is the first one: the record of the kernel for this class and device is of another source.
    OtherSource,
}

impl Pick {
    /// The instance, if a record chose it.
    ///
    /// # Errors
    /// If there is no record of this source, class and device (T1122).
    pub fn recorded(&self) -> Result<&'static Instance> {
        match self.reason {
            Reason::Recorded => Ok(self.instance),
            Reason::NoRecord | Reason::OtherDevice(_) | Reason::OtherSource => Err(Error::Measurement {
                problem: format!("no instance is recorded: {self}"),
                help: "measure with `titan::tune::Tuner` on this device, and save the record",
            }),
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pick { instance, reason, asked } = self;
        match reason {
            Reason::Recorded => write!(f, "`{instance}`, the fastest by the record of {asked}"),
            Reason::NoRecord => write!(f, "`{instance}`, the first instance: there is no record of {asked}"),
            Reason::OtherDevice(devices) => {
                write!(f, "`{instance}`, the first instance: records of {asked} are of {}", devices.join(", "))
            }
            Reason::OtherSource => write!(
                f,
                "`{instance}`, the first instance: the record of {asked} is of other code, or of other instances"
            ),
        }
    }
}

impl Records {
    /// The fastest of these instances by the record of their source, this class and this device; the first one without such a record. Records of
    /// another source or device are not used; [`Pick::reason`] tells, and [`Pick::recorded`] makes an error of it.
    ///
    /// The instances must be those that were measured. This reads their code: call it once, and keep the result.
    ///
    /// # Errors
    /// If there are no instances (T1122); if the record of this source names an instance that does not exist (T1121).
    pub fn pick(
        &self,
        instances: impl IntoIterator<Item = &'static Instance>,
        class: &str,
        device: &Device,
    ) -> Result<Pick> {
        let all: Vec<&'static Instance> = instances.into_iter().collect();
        let Some(first) = all.first() else { return Err(none(&all, None)) };
        let what = kernel(&all);
        let asked = format!("`{what}`, `{class}`, on {}", device.type_name());
        let pick = |instance, reason| Ok(Pick { instance, reason, asked: asked.clone() });
        let Some(record) = self.get(what, class, device) else {
            let others = self.all().iter().filter(|r| r.what == what && r.class == class);
            let devices: Vec<String> = others.map(|r| r.device.clone()).collect();
            let reason = if devices.is_empty() { Reason::NoRecord } else { Reason::OtherDevice(devices) };
            return pick(first, reason);
        };
        if record.source != fingerprint(&all) {
            return pick(first, Reason::OtherSource);
        }
        match all.iter().find(|instance| instance.name() == record.fastest) {
            Some(instance) => pick(instance, Reason::Recorded),
            None => Err(Error::Records {
                file: None,
                problem: format!("the fastest instance of {asked} is `{}`, which does not exist", record.fastest),
                help: "restore the file from version control, or delete it and measure again",
            }),
        }
    }
}

/// The tensors that a launch writes: a tensor, or a tuple, an array or a `Vec` of such.
pub trait Outputs: sealed::Sealed {
    /// What they hold.
    #[doc(hidden)]
    type Contents;

    /// What they hold now.
    ///
    /// # Errors
    /// The same as of [`Tensor::to_vec`].
    #[doc(hidden)]
    fn contents(&self) -> Result<Self::Contents>;

    /// Overwrites them with what they held.
    ///
    /// # Errors
    /// The same as of [`Tensor::write`].
    #[doc(hidden)]
    fn restore(&mut self, contents: &Self::Contents) -> Result<()>;

    /// The first difference, as a clause, where `same` does not hold.
    #[doc(hidden)]
    fn difference(
        first: &Self::Contents,
        other: &Self::Contents,
        same: &dyn Fn(Number, Number) -> bool,
    ) -> Option<String>;
}

mod sealed {
    pub trait Sealed {}
}

impl<T: Elem, const R: usize> sealed::Sealed for Tensor<T, R> {}

impl<T: Elem, const R: usize> Outputs for Tensor<T, R> {
    type Contents = Vec<T>;

    fn contents(&self) -> Result<Vec<T>> {
        self.to_vec()
    }

    fn restore(&mut self, contents: &Vec<T>) -> Result<()> {
        self.write(contents)
    }

    fn difference(first: &Vec<T>, other: &Vec<T>, same: &dyn Fn(Number, Number) -> bool) -> Option<String> {
        let differ = |(a, b): (&T, &T)| a.raw() != b.raw() && !same(a.number(), b.number());
        let at = first.iter().zip(other).position(differ)?;
        Some(format!("element {at} of its result is {:?} instead of {:?}", other[at], first[at]))
    }
}

macro_rules! tuples {
    ($($($o:ident $n:tt)*;)*) => {$(
        impl<$($o: Outputs),*> sealed::Sealed for ($($o,)*) {}

        impl<$($o: Outputs),*> Outputs for ($($o,)*) {
            type Contents = ($($o::Contents,)*);

            fn contents(&self) -> Result<Self::Contents> {
                Ok(($(self.$n.contents()?,)*))
            }

            fn restore(&mut self, contents: &Self::Contents) -> Result<()> {
                $(self.$n.restore(&contents.$n)?;)*
                Ok(())
            }

            fn difference(
                first: &Self::Contents,
                other: &Self::Contents,
                same: &dyn Fn(Number, Number) -> bool,
            ) -> Option<String> {
                let all = [$($o::difference(&first.$n, &other.$n, same),)*];
                nth(all)
            }
        }
    )*};
}
tuples! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
}

/// The first difference of several outputs, with the place of the output.
fn nth(all: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let found = all.into_iter().enumerate().find_map(|(i, difference)| difference.map(|text| (i, text)));
    found.map(|(i, text)| format!("output {i}: {text}"))
}

macro_rules! lists {
    ($([$($generics:tt)*] $list:ty;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $list {}

        impl<$($generics)*> Outputs for $list {
            type Contents = Vec<O::Contents>;

            fn contents(&self) -> Result<Self::Contents> {
                self.iter().map(Outputs::contents).collect()
            }

            fn restore(&mut self, contents: &Self::Contents) -> Result<()> {
                self.iter_mut().zip(contents).try_for_each(|(output, contents)| output.restore(contents))
            }

            fn difference(
                first: &Self::Contents,
                other: &Self::Contents,
                same: &dyn Fn(Number, Number) -> bool,
            ) -> Option<String> {
                nth(first.iter().zip(other).map(|(a, b)| O::difference(a, b, same)))
            }
        }
    )*};
}
lists! {
    [O: Outputs, const N: usize] [O; N];
    [O: Outputs] Vec<O>;
}
