//! Arguments for a kernel of a file: extents and scalars as the user sets them, tensors with repeating numbers.
//!
//! Values that are not set have defaults, which are printed: extents are 64, integers 4, floats 1. Tensors contain multiples of 1/4
//! between -1 and 1, which every format represents exactly, or integers from 0 to 3, which are mostly valid indices; outputs contain
//! zeros. Optional tensors are absent unless they are set to `present`.

use std::collections::BTreeMap;
use std::io;
use titan_core::ir::{Access, Const, DimSpec, Elem, HostEnv, Kernel, ParamKind, Symbol, fold};
use titan_core::num;
use titan_sim::sim::Arg;

/// The values of `--set`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, String>);

/// The largest tensor, in bytes.
const MOST: usize = 1 << 28;

impl Settings {
    /// Parses words `NAME=VALUE`.
    pub(crate) fn parse<'a>(words: impl Iterator<Item = &'a String>) -> io::Result<Settings> {
        let mut all = BTreeMap::new();
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                return Err(io::Error::other(format!("`--set {word}` is not NAME=VALUE")));
            };
            all.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        Ok(Settings(all))
    }

    /// The values, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn number(&self, name: &str, default: i64) -> io::Result<i64> {
        match self.0.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| io::Error::other(format!("`--set {name}={text}`: not an integer"))),
        }
    }
}

/// Arguments, and a description of them.
pub(crate) struct Arguments {
    pub(crate) args: Vec<Arg>,
    /// The names and values of all arguments, set or not.
    pub(crate) told: Vec<(String, String)>,
}

/// Shape names and scalars while arguments are made.
struct Values<'k> {
    kernel: &'k Kernel,
    symbols: Vec<i64>,
    scalars: Vec<Option<Const>>,
    extents: Vec<Vec<i64>>,
}

impl HostEnv for Values<'_> {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.symbols.get(symbol.index()).copied().unwrap_or(0)
    }
    fn scalar(&self, param: usize) -> i64 {
        match self.scalars.get(param) {
            Some(Some(Const::Int(_, v))) => *v,
            _ => 0,
        }
    }
    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.extents.get(param).and_then(|e| e.get(axis)).copied().unwrap_or(0)
    }
}

/// Makes the arguments of a kernel.
pub(crate) fn make(kernel: &Kernel, settings: &Settings) -> io::Result<Arguments> {
    let params = &kernel.sig.params;
    let mut values = Values {
        kernel,
        symbols: Vec::new(),
        scalars: vec![None; params.len()],
        extents: vec![Vec::new(); params.len()],
    };
    let mut told = Vec::new();
    for name in &kernel.sig.symbols {
        let value = settings.number(name, 64)?;
        told.push((name.clone(), value.to_string()));
        values.symbols.push(value);
    }
    for (i, param) in params.iter().enumerate() {
        if let ParamKind::Scalar(elem) = param.kind {
            let (value, text) = scalar(settings, &param.name, elem)?;
            values.scalars[i] = Some(value);
            told.push((param.name.clone(), text));
        }
    }
    let mut args = Vec::new();
    for i in 0..params.len() {
        args.push(values.argument(i, settings, &mut told)?);
    }
    Ok(Arguments { args, told })
}

/// Rejects names that no kernel has.
pub(crate) fn named<'k>(settings: &Settings, kernels: impl Iterator<Item = &'k Kernel>) -> io::Result<()> {
    let mut all = Vec::new();
    let mut said = Vec::new();
    for kernel in kernels {
        let names = known(kernel);
        let listed = names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
        said.push(format!(
            "kernel `{}` has {}",
            kernel.sig.name,
            if names.is_empty() { "no extents or scalar arguments" } else { &listed }
        ));
        all.extend(names);
    }
    match settings.0.keys().find(|name| !all.contains(name)) {
        Some(odd) if !said.is_empty() => Err(io::Error::other(format!("`--set {odd}`: {}", said.join("; ")))),
        _ => Ok(()),
    }
}

/// The names that may be set.
fn known(kernel: &Kernel) -> Vec<String> {
    let mut all = kernel.sig.symbols.clone();
    for param in &kernel.sig.params {
        match &param.kind {
            ParamKind::Scalar(_) => all.push(param.name.clone()),
            ParamKind::Tensor { optional, shape, .. } => {
                all.extend(optional.then(|| param.name.clone()));
                let free = shape.iter().enumerate().filter(|(_, d)| **d == DimSpec::Any);
                all.extend(free.map(|(axis, _)| format!("{}.{axis}", param.name)));
            }
        }
    }
    all
}

fn scalar(settings: &Settings, name: &str, elem: Elem) -> io::Result<(Const, String)> {
    if elem.is_float() {
        let text = settings.0.get(name).map_or("1.0", String::as_str);
        let value = text.parse().map_err(|_| io::Error::other(format!("`--set {name}={text}`: not a number")))?;
        return Ok((Const::Float(elem, value), text.to_owned()));
    }
    if elem == Elem::Bool {
        let text = settings.0.get(name).map_or("true", String::as_str);
        let value: bool =
            text.parse().map_err(|_| io::Error::other(format!("`--set {name}={text}`: expected `true` or `false`")))?;
        return Ok((Const::Int(elem, value.into()), text.to_owned()));
    }
    let value = settings.number(name, 4)?;
    if fold::wrap(elem, value) != value {
        return Err(io::Error::other(format!("`--set {name}={value}`: not a value of {elem}")));
    }
    Ok((Const::Int(elem, value), value.to_string()))
}

impl Values<'_> {
    fn argument(&mut self, i: usize, settings: &Settings, told: &mut Vec<(String, String)>) -> io::Result<Arg> {
        let param = &self.kernel.sig.params[i];
        let ParamKind::Tensor { elem, access, optional, shape } = &param.kind else {
            return Ok(self.scalars[i].map_or(Arg::Absent, Arg::Scalar));
        };
        if *optional {
            let present = match settings.0.get(&param.name).map(String::as_str) {
                Some("present") => true,
                Some("absent") | None => false,
                Some(text) => {
                    let name = &param.name;
                    return Err(io::Error::other(format!("`--set {name}={text}`: expected `present` or `absent`")));
                }
            };
            told.push((param.name.clone(), if present { "present" } else { "absent" }.to_owned()));
            if !present {
                return Ok(Arg::Absent);
            }
        }
        let mut extents = Vec::new();
        for (axis, dim) in shape.iter().enumerate() {
            let name = format!("{}.{axis}", param.name);
            extents.push(match dim {
                DimSpec::Any => {
                    let value = settings.number(&name, 64)?;
                    told.push((name, value.to_string()));
                    value
                }
                DimSpec::Bind(symbol) => self.symbol(*symbol),
                DimSpec::Equals(expr) => {
                    expr.eval(self).map_err(|e| io::Error::other(format!("extent {axis} of `{}`: {e}", param.name)))?
                }
            });
        }
        let n = extents.iter().try_fold(1usize, |n, e| n.checked_mul(usize::try_from(*e).ok()?));
        let n = n.filter(|n| elem.bytes_for(*n) <= MOST).ok_or_else(|| {
            io::Error::other(format!(
                "`{}` with extents {extents:?} has no valid size, or needs more than {} MiB",
                param.name,
                MOST >> 20
            ))
        })?;
        self.extents[i].clone_from(&extents);
        let bytes = if *access == Access::In { numbers(*elem, n, i) } else { vec![0; elem.bytes_for(n)] };
        Ok(Arg::dense(*elem, &extents, bytes))
    }
}

/// Repeating numbers, different for each argument.
fn numbers(elem: Elem, n: usize, argument: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64 ^ (argument as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    if elem.bits() == 4 {
        let codes: Vec<u8> = (0..n).map(|_| u8::try_from(next(4)).unwrap_or(0)).collect();
        return num::pack_nibbles(&codes);
    }
    let mut out = Vec::with_capacity(elem.bytes_for(n));
    for _ in 0..n {
        let quarters = f64::from(u8::try_from(next(9)).unwrap_or(4)) / 4.0 - 1.0;
        let whole = next(if elem == Elem::Bool { 2 } else { 4 });
        match elem {
            Elem::F64 => out.extend(quarters.to_le_bytes()),
            Elem::F32 | Elem::Tf32 => out.extend(num::tf32_from_f64(quarters).to_le_bytes()),
            Elem::F16 => out.extend(num::f16_from_f64(quarters).to_le_bytes()),
            Elem::Bf16 => out.extend(num::bf16_from_f64(quarters).to_le_bytes()),
            Elem::E4m3 => out.push(num::e4m3_from_f64(quarters)),
            Elem::E5m2 => out.push(num::e5m2_from_f64(quarters)),
            Elem::I64
            | Elem::U64
            | Elem::I32
            | Elem::U32
            | Elem::I16
            | Elem::U16
            | Elem::I8
            | Elem::U8
            | Elem::I4
            | Elem::U4
            | Elem::Bool => out.extend(&whole.to_le_bytes()[..elem.bytes_for(1)]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(text: &str) -> Kernel {
        titan_core::text::parse_one(text).expect("a kernel")
    }

    const TEXT: &str = "kernel @k(%a: in tensor<f16>[M, M + 1], %b: in tensor<u4>[N], %x: f32, %n: i32, %y: mut tensor<f32>[M]) grid(M) {\n    return\n}\n";

    #[test]
    fn extents_follow_from_what_is_set() {
        let words = ["M=3".to_owned(), "n=7".to_owned()];
        let made = make(&kernel(TEXT), &Settings::parse(words.iter()).expect("settings")).expect("arguments");
        let Arg::Tensor { shape, bytes, .. } = &made.args[0] else { panic!("{:?}", made.args) };
        assert_eq!((shape.as_slice(), bytes.len()), (&[3, 4][..], 24));
        let Arg::Tensor { bytes, .. } = &made.args[1] else { panic!("{:?}", made.args) };
        assert_eq!(bytes.len(), 32);
        assert_eq!(made.args[3], Arg::Scalar(Const::Int(Elem::I32, 7)));
        let told: Vec<String> = made.told.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        assert_eq!(told, ["M = 3", "N = 64", "x = 1.0", "n = 7"]);
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        let error = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let made = Settings::parse(words.iter()).and_then(|s| {
                named(&s, [&kernel(TEXT)].into_iter())?;
                make(&kernel(TEXT), &s)
            });
            made.err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert_eq!(error(&["Q=3"]), "`--set Q`: kernel `k` has `M`, `N`, `x`, `n`");
        assert_eq!(error(&["M"]), "`--set M` is not NAME=VALUE");
        assert_eq!(error(&["n=x"]), "`--set n=x`: not an integer");
        assert_eq!(error(&["n=2147483648"]), "`--set n=2147483648`: not a value of i32");
        assert_eq!(error(&["n=-2147483648"]), "");
        assert!(error(&["M=-1"]).contains("has no valid size"), "{}", error(&["M=-1"]));
    }
}
