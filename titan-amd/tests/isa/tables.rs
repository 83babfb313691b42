//! The tables agree with themselves.

use std::collections::BTreeMap;
use titan_amd::isa::{Access, Class, Format, Unit, all, by_name};

#[test]
fn opcodes_and_fixed_fields_tell_instructions_apart() {
    let mut seen = BTreeMap::new();
    for row in all() {
        let key = (row.format, row.op, row.fixed);
        assert_eq!(seen.insert(key, row.name), None, "`{}` is encoded like another", row.name);
        assert!(by_name(row.name).contains(&row));
    }
    assert!(seen.len() > 900, "{} rows", seen.len());
}

#[test]
fn fields_of_a_format_do_not_overlap() {
    for format in Format::ALL {
        let spec = format.spec();
        let mut used: u64 = spec.fixed.0.put(u32::MAX >> (32 - spec.fixed.0.len())).unwrap();
        for (field, bits) in spec.fields {
            let mask = bits.put(u32::MAX >> (32 - bits.len())).unwrap();
            assert_eq!(used & mask, 0, "{}: {field:?}", spec.name);
            assert!(bits.hi < 32 * spec.words, "{}: {field:?}", spec.name);
            used |= mask;
        }
    }
}

#[test]
fn matrix_products_have_the_registers_and_passes_of_the_manual() {
    let mut products = 0;
    for row in all().filter(|r| r.format == Format::Mai) {
        let dims =
            row.name.split('_').find(|p| p.contains('x') && p.starts_with(|c: char| c.is_ascii_digit())).unwrap();
        let [m, n, k]: [u32; 3] = dims.split('x').map(|d| d.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
        let blocks = row.name.split('_').find_map(|p| p.strip_suffix('b')?.parse::<u32>().ok()).unwrap_or(1);
        let sparse = row.name.starts_with("v_smfmac");
        let count = |i: usize| u32::from(row.args()[i].ty.count) * 64;
        assert_eq!(count(0), m * n * blocks, "{}", row.name);
        assert_eq!(count(1), m * k * blocks / if sparse { 2 } else { 1 }, "{}", row.name);
        assert_eq!(count(2), n * k * blocks, "{}", row.name);
        // ISA §7.1.2: 256 multiplications of f32, 1024 of 16 bits, 2048 of 8 bits in a pass, and half of that for `f64`
        // of 4x4; instructions with more blocks than one lie below it.
        let work = m * n * k * blocks / u32::from(row.passes);
        let peak = match row.args()[1].ty.elem.bits() {
            64 => 128,
            32 if row.name.contains("xf32") => 512,
            32 => 128,
            16 => 1024,
            _ => 2048,
        };
        assert!(work <= peak * if sparse { 2 } else { 1 }, "{}: {work} in a pass", row.name);
        products += 1;
    }
    assert_eq!(products, 46);
}

#[test]
fn what_is_spelled_in_a_name_is_in_the_row() {
    for row in all() {
        let writes = row.args().iter().filter(|a| a.access != Access::Read).count();
        match row.unit {
            Unit::Store | Unit::Cache | Unit::Control => assert_eq!(writes, 0, "{}", row.name),
            Unit::Xdl | Unit::Sgemm | Unit::Dgemm => assert!(row.passes > 0 && writes == 1, "{}", row.name),
            Unit::Load | Unit::Trans => assert_eq!(writes, 1, "{}", row.name),
            _ => {}
        }
        let lds = row.name.contains("load_lds") || row.fixed.contains(&(titan_amd::isa::Field::Lds, 1));
        assert_eq!(row.unit == Unit::LoadLds, lds, "{}", row.name);
        assert!(row.args().iter().filter(|a| a.class == Class::Va).all(|a| a.ty.dwords() <= 4), "{}", row.name);
    }
}
