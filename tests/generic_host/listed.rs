//! The declared instances as data.

use crate::kernels::{convert, made, many, negate, row_sum, scale};
use titan::{ElemType, GenericArg};

fn names(instances: &[titan::Instance]) -> Vec<&'static str> {
    instances.iter().map(titan::Instance::name).collect()
}

#[test]
fn a_kernel_lists_its_instances_in_the_order_in_which_they_are_declared() {
    let expected = ["scale::<f16, 64>", "scale::<f16, 256>", "scale::<bf16, 64>", "scale::<bf16, 256>"];
    assert_eq!(names(scale::instances())[..4], expected);
    assert_eq!(
        names(convert::instances()),
        ["convert::<f32, f16, 128>", "convert::<f16, f32, 128>", "convert::<f32, bf16, 128>"]
    );
    assert_eq!(names(made::plus_three::instances()), ["plus_three::<i32, 64>", "plus_three::<u8, 64>"]);
    assert_eq!(many::instances().len(), 20);
}

#[test]
fn the_arguments_of_an_instance_have_names_and_kinds() {
    let instance = row_sum::instances().last().unwrap();
    // The value of a constant that is named in `instances(..)`.
    assert_eq!(instance.name(), "row_sum::<f32, 128, true>");
    assert_eq!(
        instance.args(),
        [("T", GenericArg::Elem(ElemType::F32)), ("BN", GenericArg::Int(128)), ("SQUARED", GenericArg::Bool(true))]
    );
    assert_eq!(
        (instance.elem("T"), instance.int("BN"), instance.flag("SQUARED")),
        (Some(ElemType::F32), Some(128), Some(true))
    );
    assert_eq!((instance.elem("BN"), instance.int("SQUARED"), instance.flag("T")), (None, None, None));
    assert_eq!(instance.arg("M"), None);
    assert_eq!(instance.to_string(), "row_sum::<f32, 128, true>");
}

#[test]
fn a_kernel_without_generic_parameters_is_its_only_instance() {
    assert_eq!(names(negate::instances()), ["negate"]);
    assert!(negate::instances()[0].args().is_empty());
}

#[test]
fn instances_have_the_names_of_the_embedded_kernels() {
    let embedded = titan::kernels().unwrap();
    for instance in scale::instances().iter().chain(row_sum::instances()) {
        assert!(embedded.iter().any(|k| k.name == instance.name()), "{instance}");
    }
}

/// What tools find in the file of a program is what the program itself lists.
#[test]
fn the_kernels_of_a_program_are_in_its_file() {
    use std::collections::BTreeSet;
    use titan_core::artifact::Artifact;
    /// Names, and for each target the code.
    type Kernels = BTreeSet<(String, Vec<(String, Vec<u8>)>)>;
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let (embedded, errors) = Artifact::embedded(&file);
    assert!(errors.is_empty(), "{errors:?}");
    let found = embedded.into_iter().map(|artifact| {
        (artifact.kernel, artifact.variants.into_iter().map(|variant| (variant.target, variant.payload)).collect())
    });
    let listed = titan::kernels().unwrap().into_iter().map(|kernel| {
        (kernel.name, kernel.variants.into_iter().map(|variant| (variant.target, variant.code)).collect())
    });
    let (found, listed): (Kernels, Kernels) = (found.collect(), listed.collect());
    assert!(!listed.is_empty() && listed.iter().all(|kernel| found.contains(kernel)));
    assert_eq!(found.len(), listed.len());
}
