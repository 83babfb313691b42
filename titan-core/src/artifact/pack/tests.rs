//! Packing and unpacking gives the same text, many lines take few bytes, and invalid bytes are rejected with a message.

use super::*;
use crate::artifact::{Artifact, ArtifactError};

fn pack(text: &str) -> Vec<u8> {
    Forms::new().pack(text.as_bytes())
}

fn unpack(bytes: &[u8], length: usize) -> Read<Vec<u8>> {
    let mut reader = Reader::new(bytes);
    let text = Forms::new().unpack(&mut reader, length)?;
    reader.end()?;
    Ok(text)
}

#[test]
fn texts_come_back() {
    let texts = [
        "",
        "\n",
        "\n\n",
        "a",
        "a\n",
        "a\nb",
        "0",
        "00",
        "007 7",
        "999999999 1000000000",
        "4294967295\n4294967296",
        "%r1, %r2\n%r2, %r4\n%r3, %r6\n%r4, %r8",
        "%a1b2_3 x1_2 $L3 0x1f 1.5e10 b32 @7:8",
        "1\n999999999\n1\n999999999",
        "\u{e9} %\u{e9}1 1\u{e9}1",
        "\r\n1\r\n2",
    ];
    for text in texts {
        assert_eq!(unpack(&pack(text), text.len()).as_deref(), Ok(text.as_bytes()), "{text:?}");
    }
    // Later texts are encoded relative to earlier ones.
    let (mut writer, mut reader) = (Forms::new(), Forms::new());
    let mut sizes = Vec::new();
    for text in ["add %r1, %r2;\nret;\n", "add %r1, %r2;\nret;\n", ""] {
        let bytes = writer.pack(text.as_bytes());
        assert_eq!(reader.unpack(&mut Reader::new(&bytes), text.len()).as_deref(), Ok(text.as_bytes()));
        sizes.push(bytes.len());
    }
    assert!(sizes[0] > 18 && sizes[1] <= 2 && sizes[2] <= 2, "{sizes:?}");
}

#[test]
fn lines_that_go_on_as_before_take_a_fraction_of_a_bit() {
    let lines = |n: u32| (0..n).map(|i| format!("  mov.b32 %r{}, %r{};\n", 4000 - i, 2 * i)).collect::<String>();
    let (few, many) = (pack(&lines(16)).len(), pack(&lines(1616)).len());
    assert!(many - few < 20, "{few} and {many}");
}

/// Bytes that stand for these bits and bytes, as a writer with another text might have written them.
fn coded(write: impl FnOnce(&mut Forms, &mut Encoder)) -> Vec<u8> {
    let (mut forms, mut out) = (Forms::new(), Encoder::new());
    write(&mut forms, &mut out);
    out.end()
}

/// A line of a new form that does not come as expected.
fn new_line(forms: &mut Forms, out: &mut Encoder, index: usize, text: &[u8]) {
    forms.model.expected.code(out, false);
    forms.index(out, index);
    forms.length(out, text.len());
    let mut before = 0;
    for letter in text {
        before = forms.model.letters[usize::from(before)].code(out, *letter);
    }
}

#[test]
fn what_no_writer_writes_is_refused() {
    let refused = |bytes: &[u8], length| unpack(bytes, length).expect_err("malformed").to_string();
    let lines = |texts: &[&[u8]]| {
        coded(|forms, out| {
            for (at, text) in texts.iter().enumerate() {
                new_line(forms, out, at + 1, text);
                let mut line = Line::default();
                if is_text(text) && line.read(text, 0) == text.len() && !forms.known.contains_key(&line.form) {
                    forms.add(&line);
                    forms.came(at + 1, &line.numbers);
                }
            }
        })
    };
    let number = |first: &[u8]| {
        coded(|forms, out| {
            forms.model.expected.code(out, false);
            for (place, byte) in first.iter().enumerate() {
                let Model { contexts, further, .. } = &mut forms.model;
                let chances = if place == 0 { &mut contexts[0].next } else { &mut further[place - 1] };
                chances.code(out, *byte);
            }
        })
    };
    for (bytes, length, says) in [
        (number(&[2]), 1, "a line of code of an unknown form"),
        (number(&[0]), 1, "comes as expected, and is not marked so"),
        (lines(&[b""]), 0, "not of a new form"),
        (lines(&[b"a\nb"]), 3, "not of a new form"),
        (lines(&[b"a\0b"]), 3, "not of a new form"),
        (lines(&[b"a", b"a"]), 3, "not of a new form"),
        (lines(&[b"1", b"2"]), 3, "not of a new form"),
        (lines(&[b"ab"]), 1, "code of another length than is said"),
        (number(&[0x81, 0]), 1, "a number that is not LEB128"),
        (number(&[0xff, 0xff, 0xff, 0xff, 0x7f]), 1, "a number that is not LEB128"),
        (number(&[0xff, 0xff, 0xff, 0xff, 0xff]), 1, "a number that is not LEB128"),
        (pack("x"), MOST + 1, "more code than is ever packed"),
        (pack("x"), usize::MAX, "more code than is ever packed"),
        (vec![], 0, "ends before or behind the end of its bytes"),
        ([pack("x"), vec![0]].concat(), 1, "ends before or behind the end of its bytes"),
    ] {
        let told = refused(&bytes, length);
        assert!(told.contains(says), "{bytes:?}: {told}");
    }
}

/// The maximum number is preserved, and the number that would be predicted after it is rejected.
#[test]
fn numbers_stay_below_their_limit() {
    let text = "500000000\n999999999\n";
    assert_eq!(unpack(&pack(text), text.len()).as_deref(), Ok(text.as_bytes()));
    let bytes = coded(|forms, out| {
        new_line(forms, out, 1, b"500000000");
        let mut line = Line::default();
        line.read(b"500000000", 0);
        forms.add(&line);
        forms.came(1, &line.numbers);
        forms.model.expected.code(out, false);
        forms.index(out, 1);
        let Model { contexts, further, .. } = &mut forms.model;
        leb128(out, &mut contexts[1].number, further, zigzag(499_999_999));
        forms.came(1, &[999_999_999]);
        forms.model.expected.code(out, true);
    });
    let refused = unpack(&bytes, 30).expect_err("1499999998").to_string();
    assert!(refused.contains("too many digits"), "{refused}");
}

/// Every prefix, and every change of a byte, gives an error or another text, and that text has no second encoding.
#[test]
fn no_text_has_two_encodings() {
    let text = (0..20).map(|i| format!("  add.s32 %r{i}, %r{}, {};\n.loc 1 {i} 5\n", i * i, i / 3)).collect::<String>();
    let bytes = pack(&text);
    for cut in 0..bytes.len() {
        assert!(unpack(&bytes[..cut], text.len()).is_err(), "the first {cut} bytes");
    }
    for (i, byte) in (0..bytes.len()).flat_map(|i| (0..=255).map(move |b| (i, b))) {
        let mut changed = bytes.clone();
        changed[i] = byte;
        if let Ok(other) = unpack(&changed, text.len()) {
            assert_eq!(Forms::new().pack(&other), changed, "byte {i} is {byte}");
        }
    }
    // Any bytes at all: most are no text of that length, some are.
    let (mut state, mut texts) = (1u32, 0);
    for _ in 0..200_000 {
        let mut bytes = Vec::new();
        for _ in 0..1 + state % 3 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push(state.to_be_bytes()[0]);
        }
        for length in 0..4 {
            if let Ok(other) = unpack(&bytes, length) {
                assert_eq!(Forms::new().pack(&other), bytes, "{bytes:?}");
                texts += 1;
            }
        }
    }
    assert!(texts > 100, "{texts} texts");
}

fn artifact(payloads: &[&[u8]]) -> Artifact {
    let variant = |p: &&[u8]| Variant { payload: p.to_vec(), ..Variant::default() };
    Artifact { kernel: String::new(), variants: payloads.iter().map(variant).collect(), refused: Vec::new() }
}

/// Code with a zero byte may be in the same artifact as packed texts.
#[test]
fn code_that_is_no_text_is_kept() {
    let text = "ret;\n".repeat(1000);
    let mixed = artifact(&[b"\x7fELF\0\x01", text.as_bytes(), b"\0", text.as_bytes(), b""]);
    let bytes = mixed.encode();
    assert!(bytes.len() < 800 && bytes.windows(6).any(|w| w == b"\x7fELF\0\x01"), "{} bytes", bytes.len());
    assert_eq!(Artifact::decode(&bytes), Ok(mixed));
}

/// Wrong lengths do not cause large allocations, whatever they are and however many there are.
#[test]
fn more_than_the_limit_is_not_packed() {
    let half = format!("{:1023}\n", 'x').repeat(MOST / 2048);
    let exactly = artifact(&[half.as_bytes(), half.as_bytes()]);
    let bytes = exactly.encode();
    assert!(bytes.len() < MOST / 8, "{} bytes", bytes.len());
    assert!(Artifact::decode(&bytes).is_ok_and(|read| read == exactly));
    let above = artifact(&[half.as_bytes(), half.as_bytes(), b"x"]);
    let bytes = above.encode();
    assert!(bytes.len() > MOST, "{} bytes", bytes.len());
    assert!(Artifact::decode(&bytes).is_ok_and(|read| read == above));
    let mut forms = Forms::new();
    let packed = Forms::new().pack(half.as_bytes());
    assert!(forms.unpack(&mut Reader::new(&packed), half.len()).is_ok());
    let refused = forms.unpack(&mut Reader::new(&packed), half.len() + 1).expect_err("above the limit");
    assert!(matches!(refused, ArtifactError::Malformed { what: "more code than is ever packed", .. }), "{refused}");
}
