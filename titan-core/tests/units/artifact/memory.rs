//! What reading an artifact allocates is bounded by its size, for valid bytes and for all others: at most 1 MiB and a hundred times as
//! much. All bytes here have a right header, so that nothing is refused because of its version or its checksum.

use super::pack::{MOST, artifact, container, le, pack_all, sealed};
use super::writer::{Kind, Writer};
use crate::allocations;
use test_depth::cases;
use titan_core::artifact::Artifact;

/// Reads bytes, whether they are valid or not.
#[track_caller]
fn read(what: &str, bytes: &[u8]) -> bool {
    let (result, counted) = allocations::of(|| Artifact::decode(bytes));
    let most = (1 << 20) + 100 * bytes.len();
    assert!(counted.peak <= most, "{what}: {} bytes allocate {}, above {most}", bytes.len(), counted.peak);
    result.is_ok()
}

/// Texts that take few bytes when they are packed, each in a different way.
fn texts(size: usize) -> Vec<(&'static str, String)> {
    let lines = |line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        let mut n = 0;
        while text.len() < size {
            text.push_str(&line(n));
            text.push('\n');
            n += 1;
        }
        text
    };
    let word = |mut n: usize| {
        let mut word = String::new();
        loop {
            word.push(char::from(b'a' + (n % 26) as u8));
            n /= 26;
            if n == 0 {
                return word;
            }
        }
    };
    vec![
        ("empty lines", lines(&|_| String::new())),
        ("one line, repeated", lines(&|_| "x".repeat(999))),
        ("one long line", "x".repeat(size)),
        ("one line of numbers", "1 ".repeat(size / 2)),
        ("numbers that grow", lines(&|n| format!("%r{n}, %r{}", 3 * n))),
        (
            "numbers of one digit, then of nine",
            format!("{}\n{}", "1,".repeat(size / 20), "999999999,".repeat(size / 20)),
        ),
        ("short lines, each of a new form", lines(&word)),
        ("longer and longer lines", lines(&|n| "x".repeat(n % 3000))),
        ("forms in all orders", lines(&|n| word(n * n % 3001))),
    ]
}

/// Valid artifacts, and the same without the zeros that make packed code as long as it must be.
#[test]
fn code_that_is_packed_well() {
    for size in [1 << 10, 1 << 16, cases(1 << 20, 3 << 17)] {
        for (what, text) in texts(size) {
            let texts = [&text[..], &text];
            let valid = artifact(&texts.map(str::as_bytes));
            let bytes = valid.encode();
            assert!(read(what, &bytes), "{what}");
            assert_eq!(Artifact::decode(&bytes), Ok(valid), "{what}");
            let without_zeros = pack_all(&texts).into_iter().map(|mut packed| {
                packed.truncate(packed.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                packed
            });
            let parts: Vec<_> = without_zeros.map(|packed| (text.len(), packed)).collect();
            let parts: Vec<_> = parts.iter().map(|(length, packed)| (*length, &packed[..])).collect();
            let had_zeros = container(&parts) != bytes;
            assert_eq!(read(what, &container(&parts)), !had_zeros, "{what}");
            // The length is not that of the text.
            for length in [0, text.len() - 1, text.len() + 1, 2 * text.len(), MOST] {
                read(what, &container(&[(length, parts[0].1)]));
            }
        }
    }
}

/// The longer a repetitive text is, the more zeros are behind its packed bytes.
#[test]
fn a_long_text_takes_a_part_of_its_size() {
    for (size, least) in [(300 << 10, 0), (2 << 20, (2 << 20) / 80), (16 << 20, (16 << 20) / 66)] {
        let packed = pack_all(&[&"\n".repeat(size)]).remove(0);
        assert!(packed.len() >= least && packed.len() <= size / 64 + 300, "{size}: {}", packed.len());
    }
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let n = self.below(most);
        (0..n).map(|_| self.below(256) as u8).collect()
    }
}

/// Packed code whose bytes mean anything, with lengths that mean anything.
#[test]
fn any_bytes_as_packed_code() {
    let mut random = Random(1);
    for _ in 0..cases(4000, 300) {
        let texts: Vec<_> =
            (0..1 + random.below(3)).map(|_| (random.below(MOST) >> random.below(24), random.bytes(200))).collect();
        let parts: Vec<_> = texts.iter().map(|(length, packed)| (*length, &packed[..])).collect();
        read("any bytes", &container(&parts));
    }
}

/// Packed code that a writer writes in which anything comes after anything.
#[test]
fn any_lines_as_packed_code() {
    let mut random = Random(2);
    for _ in 0..cases(1000, 100) {
        let mut writer = Writer::new();
        let mut forms = 1;
        let (news, repeats) = (1 + random.below(4), 1 + random.below(2000));
        for _ in 0..random.below(60) {
            match random.below(news + 2) {
                0 => (0..repeats).for_each(|_| writer.comes(true)),
                1 => {
                    writer.comes(false);
                    writer.leb128(Kind::Index, random.below(forms + 1) as u32);
                }
                _ => {
                    let letter = [b"x", b"1", b" ", b"%"][random.below(4)];
                    let line = [&random.bytes(4)[..], &letter.repeat(random.below(3000))].concat();
                    writer.new_line(forms, &line);
                    writer.accepted();
                    forms += 1;
                }
            }
        }
        let bytes = writer.end();
        read("any lines", &container(&[(random.below(MOST) >> random.below(24), &bytes)]));
    }
}

/// The smallest items of each list, and as many as the bytes allow.
#[test]
fn the_smallest_items_of_lists() {
    let n = cases(1 << 18, 1 << 14);
    let list = |claimed: usize, item: &[u8], items: usize| [&le(claimed)[..], &item.repeat(items)].concat();
    let none = || le(0).to_vec();
    // Code that is not packed: one zero byte.
    let code = [0, 1, 0, 0, 0, 0];
    // A variant with these configuration, assumptions, notes, conflicts and sites.
    let variant = |[config, assumptions, notes, conflicts, sites]: [Vec<u8>; 5]| {
        let content = [&le(0)[..], &config, &assumptions, &[0; 13], &notes, &conflicts, &sites, &code].concat();
        [&le(content.len())[..], &content].concat()
    };
    let empty = variant([(); 5].map(|()| none()));
    let not = [&[5][..], &[4; 100], &[2, 0, 0, 0, 0]].concat();
    let map = [7, 0, 0, 0, 0, 0, 0];
    let boxes = |items: usize| [&map[..], &list(items, &[0; 4], n / 4), &[0]].concat();
    let site = [0; 13];
    let print = |items: usize| [&[0; 8][..], &[1], &[0; 4], &list(items, &[0; 2], n / 2)].concat();
    for claimed in [0, n / 2, n, n + 1, 100 * n, u32::MAX as usize] {
        let of = |items: &[u8]| list(claimed, items, n / items.len());
        let bodies = [
            ("configuration", variant([of(&[0; 8]), none(), none(), none(), none()])),
            ("assumptions", variant([none(), of(&[4]), none(), none(), none()])),
            ("expressions", variant([none(), of(&not), none(), none(), none()])),
            ("tensor maps", variant([none(), of(&[&map[..], &[0; 5]].concat()), none(), none(), none()])),
            ("a tensor map", variant([none(), list(1, &boxes(claimed), 1), none(), none(), none()])),
            ("notes", variant([none(), none(), of(&[0; 4]), none(), none()])),
            ("conflicts", variant([none(), none(), none(), of(&[0; 12]), none()])),
            ("sites", variant([none(), none(), none(), none(), of(&site)])),
            ("types", variant([none(), none(), none(), none(), list(1, &print(claimed), 1)])),
        ];
        for (what, variant) in bodies {
            for items in [1, claimed] {
                read(what, &sealed(&[&le(0)[..], &list(items, &variant, 1), &le(0)].concat()));
            }
        }
        read("variants", &sealed(&[&le(0)[..], &list(claimed, &empty, n / empty.len()), &le(0)].concat()));
        read("refusals", &sealed(&[&le(0)[..], &le(0), &of(&[0; 8])].concat()));
    }
    // Right counts are accepted, so that the items are what they are taken for.
    let right = |item: &[u8]| list(n / item.len(), item, n / item.len());
    let whole = variant([right(&[0; 8]), right(&[4]), right(&[0; 4]), right(&[0; 12]), right(&site)]);
    assert!(read("a variant", &sealed(&[&le(0)[..], &list(1, &whole, 1), &le(0)].concat())));
    let deep = variant([none(), right(&not), none(), none(), list(1, &print(n / 2), 1)]);
    assert!(read("deep", &sealed(&[&le(0)[..], &list(1, &deep, 1), &le(0)].concat())));
    let maps = variant([none(), list(1, &boxes(n / 4), 1), none(), none(), none()]);
    assert!(read("maps", &sealed(&[&le(0)[..], &list(1, &maps, 1), &le(0)].concat())));
    assert!(read("variants", &sealed(&[&le(0)[..], &right(&empty), &right(&[0; 8])].concat())));
}
