//! Safetensors files: as the `safetensors` library writes them, and files that lie.

use crate::kernels::device;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use titan::prelude::*;
use titan::safetensors::SafeTensors;
use titan::{ElemType, Error, dispatch};

/// A file with this header, and these bytes after it.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// The message about a malformed file.
fn refused(file: &[u8]) -> String {
    match SafeTensors::parse(file) {
        Err(error @ Error::SafetensorsFile { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_the_library_are_read_with_every_element_type_that_titan_has() {
    let types = [
        (Dtype::F64, ElemType::F64),
        (Dtype::F32, ElemType::F32),
        (Dtype::F16, ElemType::F16),
        (Dtype::BF16, ElemType::Bf16),
        (Dtype::F8_E4M3, ElemType::E4m3),
        (Dtype::F8_E5M2, ElemType::E5m2),
        (Dtype::I64, ElemType::I64),
        (Dtype::I32, ElemType::I32),
        (Dtype::I16, ElemType::I16),
        (Dtype::I8, ElemType::I8),
        (Dtype::U64, ElemType::U64),
        (Dtype::U32, ElemType::U32),
        (Dtype::U16, ElemType::U16),
        (Dtype::U8, ElemType::U8),
        (Dtype::BOOL, ElemType::Bool),
    ];
    let data: Vec<u8> = (0..48u8).map(|b| u8::from(b % 3 == 0)).collect();
    let views = types.iter().enumerate().map(|(i, (dtype, elem))| {
        let bytes = elem.bits() as usize / 8 * 6;
        (format!("layer.\"{i}\".é"), TensorView::new(*dtype, vec![2, 3], &data[..bytes]).unwrap())
    });
    let bytes = safetensors::serialize(views, None).unwrap();
    let parsed = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(parsed.tensors().len(), types.len());
    let dev = device();
    for (i, (_, elem)) in types.iter().enumerate() {
        let tensor = parsed.load(&dev, &format!("layer.\"{i}\".é")).unwrap();
        assert_eq!((tensor.elem(), tensor.shape()), (*elem, &[2, 3][..]));
        let found = dispatch!(match tensor.elem() {
            T in [f64, f32, f16, bf16, e4m3, e5m2, i64, i32, i16, i8, u64, u32, u16, u8, bool] => {
                T::pack(&tensor.view::<T, 2>().unwrap().to_vec().unwrap())
            }
        });
        assert_eq!(found.unwrap(), data[..elem.bits() as usize / 8 * 6], "{elem}");
    }
}

#[test]
fn a_weight_of_a_file_goes_to_the_kernel_for_its_element_type() {
    let weight: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect();
    let bytes = file(r#"{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}"#, &weight);
    let dev = device();
    let w = SafeTensors::parse(&bytes).unwrap().load(&dev, "w").unwrap();
    let mut y = titan::DynTensor::zeros(&dev, w.elem(), w.shape()).unwrap();
    dispatch!(crate::kernels::scale::<_, 64>(&w, &mut y, 2.0)).sync().unwrap();
    assert_eq!(y.into_tensor::<bf16, 1>().unwrap().to_vec().unwrap(), [bf16::from_f32(3.0), bf16::from_f32(-4.0)]);
}

#[test]
fn tensors_without_elements_and_scalars_are_loaded() {
    let bytes = file(
        r#" {"b":{"shape":[],"dtype":"U8","data_offsets":[0,1],"more":{"x":[null,-1.5e3,true]}},
             "a":{"dtype":"F32","shape":[3,0],"data_offsets":[0,0]}, "__metadata__":{"format":"pt","note":"{\"a\": [1]}"}}  "#,
        &[9],
    );
    let parsed = SafeTensors::parse(&bytes).unwrap();
    assert_eq!(parsed.tensors().iter().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let dev = device();
    assert_eq!(parsed.load(&dev, "a").unwrap().shape(), [3, 0]);
    assert_eq!(parsed.load(&dev, "b").unwrap().into_tensor::<u8, 0>().unwrap().to_vec().unwrap(), [9]);
    assert!(SafeTensors::parse(&file("{}", &[])).unwrap().tensors().is_empty());
}

#[test]
fn an_element_type_that_titan_lacks_is_an_error_of_that_tensor_only() {
    let header = r#"{"scales":{"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]},"n":{"dtype":"I32","shape":[1],"data_offsets":[4,8]}}"#;
    let bytes = file(header, &[1, 2, 3, 4, 5, 0, 0, 0]);
    let (parsed, dev) = (SafeTensors::parse(&bytes).unwrap(), device());
    assert_eq!(parsed.load(&dev, "n").unwrap().into_tensor::<i32, 1>().unwrap().to_vec().unwrap(), [5]);
    let error = parsed.load(&dev, "scales").unwrap_err();
    assert!(
        matches!(&error, Error::SafetensorsElement { tensor, dtype, .. } if tensor == "scales" && dtype == "F8_E8M0")
    );
    assert!(error.to_string().starts_with("[T1105] tensor `scales` has elements of type `F8_E8M0`, which TITAN does not have\n  help: convert it to one of F64, F32, "), "{error}");
    assert_eq!(parsed.get("scales").unwrap().elem(), None);
}

#[test]
fn a_name_that_the_file_lacks_is_an_error_with_the_names_that_it_has() {
    let header = r#"{"model.a.bias":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"model.a.weight":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
    let bytes = file(header, &[1, 2]);
    let error = SafeTensors::parse(&bytes).unwrap().load(&device(), "a.weight").unwrap_err();
    assert!(matches!(error, Error::SafetensorsName { .. }));
    let expected =
        "[T1106] the safetensors file has no tensor `a.weight`\n  help: it has `model.a.weight`, `model.a.bias`";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn files_whose_header_lies_about_the_data_are_refused() {
    let one = |dtype: &str, shape: &str, offsets: &str| {
        format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let two = |a: &str, b: &str| {
        let of =
            |name: &str, offsets: &str| format!(r#""{name}":{{"dtype":"U8","shape":[2],"data_offsets":{offsets}}}"#);
        format!("{{{},{}}}", of("a", a), of("b", b))
    };
    let cases = [
        (one("F32", "[2]", "[0,8]"), 4, "tensor `w` has data from byte 0 to byte 8, but the file has 4 bytes of data"),
        (one("F32", "[2]", "[8,0]"), 8, "tensor `w` has data from byte 8 to byte 0"),
        (one("F32", "[2]", "[18446744073709551608,18446744073709551615]"), 8, "but the file has 8 bytes of data"),
        (one("F32", "[3]", "[0,8]"), 8, "tensor `w` of shape [3] and type `F32` has 8 bytes of data, but needs 12"),
        (one("F32", "[0]", "[0,8]"), 8, "has 8 bytes of data, but needs 0"),
        (one("F64", "[4294967296,4294967296]", "[0,8]"), 8, "but needs more than memory can have"),
        (one("U8", "[4]", "[4,8]"), 8, "bytes 0 to 4 before tensor `w` belong to no tensor"),
        (one("U8", "[4]", "[0,4]"), 8, "4 bytes at the end belong to no tensor"),
        (two("[0,2]", "[1,3]"), 3, "tensor `b` begins at byte 1, in the data of another tensor"),
        (two("[0,2]", "[0,2]"), 2, "in the data of another tensor"),
        (one("F32", "[2]", "[0,8,16]"), 8, "`data_offsets` of tensor `w` are 3 numbers instead of 2"),
        (two("[0,2]", "[2,4]").replace("\"b\"", "\"a\""), 4, "there are two tensors `a`"),
    ];
    for (header, bytes, problem) in cases {
        let text = refused(&file(&header, &vec![0; bytes]));
        assert!(text.starts_with("[T1104] the safetensors file is malformed: "), "{text}");
        assert!(text.contains(problem) && text.contains("\n  help: "), "{text}");
    }
}

#[test]
fn data_that_is_not_aligned_to_its_elements_is_refused() {
    let header =
        r#"{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}}"#;
    let text = refused(&file(header, &[0; 7]));
    assert!(
        text.contains("the data of tensor `w` begins at byte 3, which is not a multiple of the 4 bytes of a `F32`"),
        "{text}"
    );
    assert!(text.contains("help: write the file again with the `safetensors` library"), "{text}");
}

#[test]
fn files_whose_header_is_incomplete_or_no_json_are_refused() {
    let entry = r#"{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    assert!(refused(&[1, 2, 3]).contains("it has 3 bytes, but the length of the header alone has 8"));
    assert!(refused(&[]).contains("it has 0 bytes"));
    let whole = file(entry, &[0]);
    assert!(refused(&whole[..20]).contains(&format!("its header has {} bytes, but only 12 follow", entry.len())));
    let mut huge = whole.clone();
    huge[..8].fill(0xFF);
    assert!(refused(&huge).contains("its header has 18446744073709551615 bytes"));
    let cases = [
        ("", "`{` is expected at byte 0"),
        ("[]", "`{` is expected at byte 0"),
        ("{} {}", "the end of the header is expected at byte 3"),
        (r#"{"w":1}"#, "`{` is expected at byte 5"),
        (r#"{"w"}"#, "`:` is expected at byte 4"),
        (
            r#"{"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}"#,
            "a whole number of at most 64 bits is expected at byte 28",
        ),
        (
            r#"{"w":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}}"#,
            "a whole number of at most 64 bits",
        ),
        (r#"{"w":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}"#, "`]` is expected at byte 29"),
        (r#"{"w":{"dtype":"U8","shape":[1]}}"#, "tensor `w` lacks one of `dtype`, `shape` and `data_offsets`"),
        (r#"{"w\x":1}"#, "an escape sequence is expected at byte 4"),
        (r#"{"w\ud800":1}"#, "the second half of a character"),
        (r#"{"w\udc00":1}"#, "a character before this"),
        (r#"{"w\u00":1}"#, "four hexadecimal digits"),
        ("{\"w", "`\"` is expected at byte 3"),
        ("{\"w\n\":1}", "a character of a string is expected at byte 3"),
    ];
    for (header, problem) in cases {
        let text = refused(&file(header, &[]));
        assert!(text.contains(problem), "{header}: {text}");
    }
    let deep = format!(r#"{{"__metadata__":{}"#, "[".repeat(100_000));
    assert!(refused(&file(&deep, &[])).contains("a value that is nested less deeply"));
    let latin = [&3u64.to_le_bytes()[..], b"{\"\xE9"].concat();
    assert!(refused(&latin).contains("`\"` is expected"));
    let latin = [&6u64.to_le_bytes()[..], b"{\"\xE9\":1"].concat();
    assert!(refused(&latin).contains("UTF-8 before this"));
}

#[test]
fn names_may_have_any_escape_sequence() {
    let header = r#"{"\u00e9\ud83d\ude00\n\"\/":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    let bytes = file(header, &[3]);
    assert!(SafeTensors::parse(&bytes).unwrap().get("é😀\n\"/").is_some());
}

#[test]
fn a_damaged_file_is_refused_or_read_but_never_a_panic() {
    let views = [("a", TensorView::new(Dtype::F32, vec![2, 2], &[0; 16]).unwrap())];
    let bytes = safetensors::serialize(views, None).unwrap();
    // The subject is the reader.
    let dev = Device::cpu();
    let mut read = 0;
    for at in 0..bytes.len() {
        for flip in 1..=255u8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            if let Ok(parsed) = SafeTensors::parse(&damaged) {
                read += 1;
                parsed.tensors().iter().for_each(|t| drop(parsed.load(&dev, &t.name)));
            }
        }
        if let Ok(parsed) = SafeTensors::parse(&bytes[..at]) {
            panic!("{} bytes of {} are accepted: {parsed:?}", at, bytes.len());
        }
    }
    // Damage in the data, and other names.
    assert!(read > 16 * 255, "{read}");
}
