//! Packing and unpacking gives the same text, many lines take few bytes, and invalid bytes are rejected with a message.

use super::writer::{Kind, Writer};
use titan_core::artifact::{Artifact, ArtifactError, VERSION, Variant};

/// As many bytes of texts are packed in one artifact, at most.
pub(super) const MOST: usize = 64 << 20;

pub(super) fn artifact(payloads: &[&[u8]]) -> Artifact {
    let variant = |p: &&[u8]| Variant { payload: p.to_vec(), ..Variant::default() };
    Artifact { kernel: String::new(), variants: payloads.iter().map(variant).collect(), refused: Vec::new() }
}

pub(super) fn le(n: usize) -> [u8; 4] {
    u32::try_from(n).expect("32 bits").to_le_bytes()
}

/// What comes before the code in a variant that has nothing else: five texts and lists without items (the target, the configuration and
/// the assumptions; notes, conflicts and sites stand behind three numbers and the grid).
const EMPTY_VARIANT: usize = 3 * 4 + 3 * 4 + 1 + 3 * 4;

/// The bytes of an artifact whose code consists of texts: the length of each, and the bytes that they are packed to.
pub(super) fn container(packed: &[(usize, &[u8])]) -> Vec<u8> {
    let mut body = [le(0), le(packed.len())].concat();
    for (length, bytes) in packed {
        body.extend(le(EMPTY_VARIANT + 1 + 4 + 4 + bytes.len()));
        body.extend([0; EMPTY_VARIANT]);
        body.push(1);
        body.extend([le(*length), le(bytes.len())].concat());
        body.extend(*bytes);
    }
    body.extend(le(0));
    sealed(&body)
}

/// An artifact with this body and a right header.
pub(super) fn sealed(body: &[u8]) -> Vec<u8> {
    let fnv = |hash: u64, b: &u8| (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
    let checksum = body.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    let head = [&b"\x89TITAN\r\n"[..], &VERSION.to_le_bytes(), &[0, 0], &le(body.len()), &checksum.to_le_bytes()];
    [&head.concat(), body].concat()
}

/// The bytes that the texts of one artifact are packed to.
pub(super) fn pack_all(texts: &[&str]) -> Vec<Vec<u8>> {
    let payloads: Vec<&[u8]> = texts.iter().map(|t| t.as_bytes()).collect();
    let bytes = artifact(&payloads).encode();
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut at = 24 + 4 + 4;
    let mut found = Vec::new();
    for text in texts {
        let code = at + 4 + EMPTY_VARIANT;
        assert_eq!((bytes[code], number(code + 1)), (1, text.len()), "a text is packed");
        let packed = &bytes[code + 9..code + 9 + number(code + 5)];
        at = code + 9 + packed.len();
        found.push(packed.to_vec());
    }
    let parts: Vec<(usize, &[u8])> = texts.iter().zip(&found).map(|(t, p)| (t.len(), &p[..])).collect();
    assert_eq!(bytes, container(&parts), "nothing else is in the artifact");
    found
}

fn pack(text: &str) -> Vec<u8> {
    pack_all(&[text]).remove(0)
}

/// The text of this length that bytes stand for.
fn unpack(bytes: &[u8], length: usize) -> Result<Vec<u8>, ArtifactError> {
    Artifact::decode(&container(&[(length, bytes)])).map(|mut read| read.variants.remove(0).payload)
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
    let texts = ["add %r1, %r2;\nret;\n", "add %r1, %r2;\nret;\n", ""];
    let sizes: Vec<usize> = pack_all(&texts).iter().map(Vec::len).collect();
    assert!(sizes[0] > 18 && sizes[1] <= 2 && sizes[2] <= 2, "{sizes:?}");
    let all = artifact(&texts.map(str::as_bytes));
    assert_eq!(Artifact::decode(&all.encode()), Ok(all));
}

#[test]
fn lines_that_go_on_as_before_take_a_fraction_of_a_bit() {
    let lines = |n: u32| (0..n).map(|i| format!("  mov.b32 %r{}, %r{};\n", 4000 - i, 2 * i)).collect::<String>();
    let (few, many) = (pack(&lines(16)).len(), pack(&lines(1616)).len());
    assert!(many - few < 20, "{few} and {many}");
}

/// Bytes that stand for these bits and bytes, as a writer with another text might have written them.
fn coded(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.end()
}

/// The writer of these tests writes what the crate's does.
#[test]
fn the_format_is_as_described() {
    let bytes = coded(|w| {
        w.new_line(1, b"mov %r5, %r300;");
        w.accepted();
        // The last line is empty, of form 0, to which there are no numbers.
        w.comes(false);
        w.leb128(Kind::Index, 1);
        w.leb128(Kind::Change(1), 2);
        w.leb128(Kind::Change(1), 199);
        w.comes(true);
        w.comes(false);
        w.leb128(Kind::Index, 0);
        w.at = 0;
        w.new_line(2, b"ret;");
    });
    assert_eq!(bytes, pack("mov %r5, %r300;\nmov %r6, %r200;\nmov %r7, %r100;\n\nret;"));
}

#[test]
fn what_no_writer_writes_is_refused() {
    let refused = |bytes: &[u8], length| unpack(bytes, length).expect_err("malformed").to_string();
    let lines = |texts: &[&[u8]]| {
        coded(|writer| {
            for (at, text) in texts.iter().enumerate() {
                writer.new_line(at + 1, text);
                // A line after which there are others is valid.
                if at + 1 < texts.len() {
                    writer.accepted();
                }
            }
        })
    };
    let number = |first: &[u8]| {
        coded(|writer| {
            writer.comes(false);
            writer.bytes(Kind::Index, first);
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
        (pack("x"), u32::MAX as usize, "more code than is ever packed"),
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
    let bytes = coded(|writer| {
        writer.new_line(1, b"500000000");
        writer.accepted();
        writer.comes(false);
        writer.leb128(Kind::Index, 1);
        // 499999999 more, as differences are written.
        writer.leb128(Kind::Change(1), 2 * 499_999_999);
        writer.comes(true);
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
    // Whether bytes stand for a text, of which they must be the encoding.
    let is_text = |bytes: &[u8], length: usize| {
        let all = container(&[(length, bytes)]);
        let Ok(other) = Artifact::decode(&all) else { return false };
        assert_eq!(other.encode(), all, "{bytes:?}");
        true
    };
    let step = test_depth::cases(1, 7);
    for (i, byte) in (0..bytes.len()).flat_map(|i| ((i % step) as u8..=255).step_by(step).map(move |b| (i, b))) {
        let mut changed = bytes.clone();
        changed[i] = byte;
        is_text(&changed, text.len());
    }
    // Any bytes at all: most are no text of that length, some are.
    let (mut state, mut texts) = (1u32, 0);
    let tries = test_depth::cases(200_000, 20_000);
    for _ in 0..tries {
        let mut bytes = Vec::new();
        for _ in 0..1 + state % 3 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push(state.to_be_bytes()[0]);
        }
        texts += (0..4).filter(|length| is_text(&bytes, *length)).count();
    }
    assert!(2000 * texts > tries, "{texts} texts");
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

/// Texts of more than the limit are stored as they are, and a reader accepts no packed ones.
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
    let packed = pack_all(&[&half, &half]);
    let second_of = |length: usize| Artifact::decode(&container(&[(half.len(), &packed[0]), (length, &packed[1])]));
    assert!(second_of(half.len()).is_ok());
    let refused = second_of(half.len() + 1).expect_err("above the limit");
    assert!(matches!(refused, ArtifactError::Malformed { what: "more code than is ever packed", .. }), "{refused}");
}
