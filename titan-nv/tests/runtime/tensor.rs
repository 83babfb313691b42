//! The encoder of tensor maps, against bindings that are made from the header.

use cudarc::driver::sys;
use titan_nv::runtime::EncodedMap;
use titan_nv::runtime::internals::encoder_sizes;
use titan_nv::tma::{Element, Fill, L2Promotion, Swizzle};

/// The sizes of the arguments and of the result of a function of twelve.
macro_rules! sizes {
    ($($letter:ident)*) => {
        fn sizes<$($letter,)* R>(_: unsafe fn($($letter),*) -> R) -> Vec<usize> {
            vec![$(size_of::<$letter>(),)* size_of::<R>()]
        }
    };
}
sizes!(A B C D E F G H I J K L);

/// Against the bindings, which are made from the header.
#[test]
fn the_prototype_is_that_of_the_header() {
    assert_eq!(encoder_sizes(), sizes(sys::cuTensorMapEncodeTiled)[..]);
    assert_eq!(size_of::<EncodedMap>(), size_of::<sys::CUtensorMap>());
    assert!(align_of::<EncodedMap>() >= align_of::<sys::CUtensorMap>());
}

#[test]
fn numbers_are_those_of_the_header() {
    use sys::CUtensorMapDataType_enum as T;
    let types = [
        (Element::U8, T::CU_TENSOR_MAP_DATA_TYPE_UINT8),
        (Element::U16, T::CU_TENSOR_MAP_DATA_TYPE_UINT16),
        (Element::U32, T::CU_TENSOR_MAP_DATA_TYPE_UINT32),
        (Element::I32, T::CU_TENSOR_MAP_DATA_TYPE_INT32),
        (Element::U64, T::CU_TENSOR_MAP_DATA_TYPE_UINT64),
        (Element::I64, T::CU_TENSOR_MAP_DATA_TYPE_INT64),
        (Element::F16, T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16),
        (Element::F32, T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32),
        (Element::F64, T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64),
        (Element::Bf16, T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16),
    ];
    for (own, theirs) in types {
        assert_eq!(own as u32, theirs as u32, "{own:?}");
    }
    use sys::CUtensorMapSwizzle_enum as S;
    let swizzles = [
        (Swizzle::None, S::CU_TENSOR_MAP_SWIZZLE_NONE),
        (Swizzle::B32, S::CU_TENSOR_MAP_SWIZZLE_32B),
        (Swizzle::B64, S::CU_TENSOR_MAP_SWIZZLE_64B),
        (Swizzle::B128, S::CU_TENSOR_MAP_SWIZZLE_128B),
    ];
    for (own, theirs) in swizzles {
        assert_eq!(own as u32, theirs as u32, "{own:?}");
    }
    use sys::CUtensorMapL2promotion_enum as P;
    let promotions = [
        (L2Promotion::None, P::CU_TENSOR_MAP_L2_PROMOTION_NONE),
        (L2Promotion::B64, P::CU_TENSOR_MAP_L2_PROMOTION_L2_64B),
        (L2Promotion::B128, P::CU_TENSOR_MAP_L2_PROMOTION_L2_128B),
        (L2Promotion::B256, P::CU_TENSOR_MAP_L2_PROMOTION_L2_256B),
    ];
    for (own, theirs) in promotions {
        assert_eq!(own as u32, theirs as u32, "{own:?}");
    }
    use sys::CUtensorMapFloatOOBfill_enum as F;
    assert_eq!(Fill::Zero as u32, F::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE as u32);
    assert_eq!(Fill::Nan as u32, F::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA as u32);
}
