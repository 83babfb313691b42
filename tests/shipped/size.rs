//! What the examples carry: how many bytes, and whether what is unpacked of them is what the compiler made.

use crate::ptxas;
use titan::KernelInfo;

/// Bytes of an instance of the product, with all its variants.
const MOST: usize = 20_000;

fn unpacked(kernel: &KernelInfo) -> usize {
    kernel.variants.iter().map(|v| v.code.len()).sum()
}

#[test]
fn what_the_examples_carry_is_a_fraction_of_their_code() {
    let kernels = titan::kernels().expect("what is embedded can be read");
    let products: Vec<_> = kernels.iter().filter(|k| k.location.file.ends_with("examples/gemm.rs")).collect();
    assert_eq!(products.len(), 4, "instances of `gemm`");
    for kernel in products {
        ptxas::say(&format!("{}: {} B, unpacked {} B", kernel.name, kernel.bytes, unpacked(kernel)));
        assert!(kernel.bytes <= MOST, "{} takes {} bytes", kernel.name, kernel.bytes);
        assert!(kernel.variants.len() > 2, "{} has code for the CPU and two variants for sm_80", kernel.name);
    }
    let (bytes, code) = kernels.iter().fold((0, 0), |(b, c), k| (b + k.bytes, c + unpacked(k)));
    ptxas::say(&format!("{} instances: {bytes} B, unpacked {code} B", kernels.len()));
    assert!(bytes * 10 < code, "{bytes} of {code} bytes");
}

#[test]
fn what_is_unpacked_is_what_was_compiled() {
    for kernel in crate::table::one_of_each(titan::kernels().expect("what is embedded can be read")) {
        let [cpu, gpu @ ..] = &kernel.variants[..] else { panic!("{} has no code", kernel.name) };
        let tile_ir = titan_core::text::parse_one(cpu.text().expect("tile IR is text")).expect("it parses");
        let verified = titan_core::verify::verify(tile_ir).expect("it is legal");
        let name = verified.sig.name.clone();
        let compiled = |target: &str| {
            let machine = titan_nv::Machine::from_name(target).expect("there is such a target");
            titan_core::driver::compile(&verified, machine, Some((&name, 1))).expect("it compiles")
        };
        let made = [compiled("sm_90a"), compiled("sm_80")].concat();
        assert_eq!(made.len(), gpu.len(), "{}", kernel.name);
        for (made, embedded) in made.iter().zip(gpu) {
            assert_eq!(made.target, embedded.target, "{}", kernel.name);
            assert!(made.payload == embedded.code, "{}: {:?}", kernel.name, made.config);
        }
    }
}
