//! What the examples carry: how many bytes, and whether what is unpacked of them is what the compiler made.

use crate::ptxas;
use titan::KernelInfo;

/// Bytes of an instance of the product, with all its variants.
const MOST: usize = 23_000;

/// The bytes of the code that is packed, which is text, without those of code objects, which are embedded as they are.
fn unpacked(kernel: &KernelInfo) -> usize {
    kernel.variants.iter().filter(|v| v.text().is_some()).map(|v| v.code.len()).sum()
}

/// The bytes of code objects.
fn objects(kernel: &KernelInfo) -> usize {
    kernel.variants.iter().filter(|v| v.text().is_none()).map(|v| v.code.len()).sum()
}

#[test]
fn what_the_examples_carry_is_a_fraction_of_their_code() {
    let kernels = titan::kernels().expect("what is embedded can be read");
    let products: Vec<_> = kernels.iter().filter(|k| k.location.file.ends_with("examples/gemm.rs")).collect();
    assert_eq!(products.len(), 4, "instances of `gemm`");
    for kernel in products {
        let (bytes, objects) = (kernel.bytes - objects(kernel), objects(kernel));
        ptxas::say(&format!("{}: {bytes} B, unpacked {} B; code objects {objects} B", kernel.name, unpacked(kernel)));
        assert!(bytes <= MOST, "{} takes {bytes} bytes", kernel.name);
        assert!(kernel.variants.len() > 2, "{} has code for the CPU and two variants for sm_80", kernel.name);
    }
    let (bytes, code) = kernels.iter().fold((0, 0), |(b, c), k| (b + k.bytes - objects(k), c + unpacked(k)));
    let objects: usize = kernels.iter().map(objects).sum();
    ptxas::say(&format!("{} instances: {bytes} B, unpacked {code} B; code objects {objects} B", kernels.len()));
    assert!(bytes * 10 < code, "{bytes} of {code} bytes");
}

#[test]
fn what_is_unpacked_is_what_was_compiled() {
    for kernel in crate::table::one_of_each(titan::kernels().expect("what is embedded can be read")) {
        let [cpu, gpu @ ..] = &kernel.variants[..] else { panic!("{} has no code", kernel.name) };
        let tile_ir = titan_core::text::parse_one(cpu.text().expect("tile IR is text")).expect("it parses");
        let verified = titan_core::verify::verify(tile_ir).expect("it is legal");
        let name = verified.sig.name.clone();
        let compiled = |machine: &dyn titan_core::driver::Backend| {
            titan_core::driver::compile(&verified, machine, Some((&name, 1)))
        };
        let nvidia = |target: &str| {
            let machine = titan_nv::Machine::from_name(target).expect("there is such a target");
            compiled(machine).expect("it compiles")
        };
        let made = [nvidia("sm_90a"), nvidia("sm_80")].concat();
        #[cfg(feature = "hip")]
        let made = {
            let machine = titan_amd::Machine::from_name("gfx942").expect("there is such a target");
            let refused = kernel.refused.iter().any(|(target, _)| target == "gfx942");
            let more = compiled(machine);
            assert_eq!(more.is_err(), refused, "{}", kernel.name);
            [made, more.unwrap_or_default()].concat()
        };
        assert_eq!(made.len(), gpu.len(), "{}", kernel.name);
        for (made, embedded) in made.iter().zip(gpu) {
            assert_eq!(made.target, embedded.target, "{}", kernel.name);
            assert!(made.payload == embedded.code, "{}: {:?}", kernel.name, made.config);
        }
    }
}
