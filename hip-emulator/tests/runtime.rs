//! titan-amd's runtime to its end, over a HIP runtime that needs no GPU.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, unsafe_code, reason = "a test that cannot go on stops; launches are unsafe")]
#![expect(clippy::disallowed_methods, reason = "tests are set by the environment")]

mod process;

use process::{code_object, in_every_order, is_child, process, with};
use titan_amd::runtime::{
    Absence, Context, Driver, DriverError, Event, Geometry, Graph, HostMemory, Kind, Launch, LoadError, Memory, Misfit,
    Module, SYMBOLS, Stream, Waiting,
};

fn context() -> &'static Context {
    Driver::get().unwrap().devices()[0].context().unwrap()
}

fn floats(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

const ONE: Geometry = Geometry { grid: [1, 1, 1], block: [256, 1, 1], dynamic_lds: 0 };

/// `z = x + y`, of 256 numbers.
fn add(module: &Module, stream: &Stream, [x, y, z]: [&Memory; 3]) -> Result<(), String> {
    let addresses = [x, y, z].map(|m| m.address(0).to_le_bytes());
    let n = 256_u32.to_le_bytes();
    let args: [&[u8]; 4] = [&addresses[0], &addresses[1], &addresses[2], &n];
    let function = module.function("vector_add").map_err(|e| e.to_string())?;
    // SAFETY: three memories of 256 numbers, which live until the caller has waited.
    unsafe { function.launch(stream, &ONE, &args) }.map_err(|e| e.to_string())
}

fn memory(context: &'static Context, bytes: usize, zeroed: bool) -> Result<Memory, DriverError> {
    let (memory, ready) = Memory::new(context, bytes, zeroed)?;
    if let Some(ready) = ready {
        ready.wait()?;
    }
    Ok(memory)
}

/// A chain over two streams: the sum of a sum. Every call of the interface is made.
fn chain() -> Result<Vec<u8>, String> {
    let words = |e: &dyn std::error::Error| e.to_string();
    let device = &Driver::get().map_err(|e| words(&e))?.devices()[0];
    let context = device.context().map_err(|e| words(&e))?;
    context.memory().map_err(|e| words(&e))?;
    let module = Module::load(context, &code_object()).map_err(|e| words(&e))?;
    let made = |zeroed| memory(context, 1024, zeroed).map_err(|e| words(&e));
    let (x, y, z) = (made(false)?, made(false)?, made(true)?);
    x.write(0, &floats(&[1.5; 256])).map_err(|e| words(&e))?;
    y.write(0, &floats(&[2.0; 256])).map_err(|e| words(&e))?;
    let (s, t) = (Stream::new(context).map_err(|e| words(&e))?, Stream::new(context).map_err(|e| words(&e))?);
    add(&module, &s, [&x, &y, &z])?;
    let mark = s.mark(Waiting::Spins).map_err(|e| words(&e))?;
    t.follow(&mark).map_err(|e| words(&e))?;
    add(&module, &t, [&z, &y, &x])?;
    let end: Event = t.mark(Waiting::Sleeps).map_err(|e| words(&e))?;
    while !end.is_over().map_err(|e| words(&e))? {}
    end.wait().map_err(|e| words(&e))?;
    let mut out = vec![0; 1024];
    x.read(0, &mut out).map_err(|e| words(&e))?;
    replays(&module, &s, [&x, &y, &z])?;
    Ok(out)
}

/// `z = x + y` by a graph, then `z = z + y` by the same one, where `y` comes from pinned memory: `x` is 5.5 and `y` becomes 1.
fn replays(module: &Module, s: &Stream, [x, y, z]: [&Memory; 3]) -> Result<(), String> {
    let words = |e: &dyn std::error::Error| e.to_string();
    let context = s.context();
    let host = HostMemory::new(context, 1024).map_err(|e| words(&e))?;
    // SAFETY: so many bytes, which nothing else uses.
    unsafe { host.start().copy_from_nonoverlapping(floats(&[1.0; 256]).as_ptr(), host.len()) };
    let function = module.function("vector_add").map_err(|e| words(&e))?;
    let addresses = [x, y, z].map(|m| m.address(0).to_le_bytes());
    let n = 256_u32.to_le_bytes();
    let (first, second): ([&[u8]; 4], [&[u8]; 4]) =
        ([&addresses[0], &addresses[1], &addresses[2], &n], [&addresses[2], &addresses[1], &addresses[2], &n]);
    let launch = |args| Launch { function: &function, geometry: ONE, args };
    let made = (|| {
        // SAFETY: the pinned memory lives until the stream has been waited for, below.
        unsafe { y.write_in(s, 0, &host) }.map_err(|e| words(&e))?;
        // SAFETY: three memories of 256 numbers, which live until the stream has been waited for.
        let graph = unsafe { Graph::new(context, &[launch(&first)]) }.map_err(|e| words(&e))?;
        // SAFETY: as above, of other arguments from the second launch on.
        unsafe {
            graph.launch(s).map_err(|e| words(&e))?;
            graph.set(0, &launch(&second)).map_err(|e| words(&e))?;
            graph.launch(s).map_err(|e| words(&e))
        }
    })();
    // What was enqueued uses the memory, whatever failed after it.
    let mark = s.mark(Waiting::Spins).and_then(|mark| mark.wait());
    if mark.is_err() {
        std::mem::forget(host);
    }
    mark.map_err(|e| words(&e))?;
    made?;
    let mut out = vec![0; 1024];
    z.read(0, &mut out).map_err(|e| words(&e))?;
    if out == floats(&[7.5; 256]) { Ok(()) } else { panic!("the graph is wrong: {:?}", &out[..8]) }
}

#[test]
fn a_chain_over_two_streams_is_in_order() {
    in_every_order("a_chain_over_two_streams_is_in_order", || {
        let driver = Driver::get().unwrap();
        let properties = &driver.devices()[0].properties;
        assert_eq!((properties.target(), properties.lds_bytes), ("gfx942", 65536));
        assert_eq!(properties.architecture, "gfx942:sramecc+:xnack-");
        for _ in 0..3 {
            assert_eq!(chain().unwrap(), floats(&[5.5; 256]));
        }
    });
}

#[test]
fn memory_is_freed_after_its_uses_and_given_out_again() {
    in_every_order("memory_is_freed_after_its_uses_and_given_out_again", || {
        let context = context();
        let module = Module::load(context, &code_object()).unwrap();
        let s = Stream::new(context).unwrap();
        let y = memory(context, 1024, true).unwrap();
        for _ in 0..20 {
            let (x, z) = (memory(context, 1024, true).unwrap(), memory(context, 1024, false).unwrap());
            add(&module, &s, [&x, &y, &z]).unwrap();
            let mark = std::sync::Arc::new(s.mark(Waiting::Spins).unwrap());
            x.used_until(mark.clone());
            z.used_until(mark);
        }
        // More than there is: what has ended is freed for it.
        let (free, total) = context.memory().unwrap();
        assert!(free < total);
        let all = memory(context, total - 2048, false).unwrap();
        drop(all);
        let error = Memory::new(context, total, false).unwrap_err();
        assert_eq!((error.kind(), error.code), (Kind::OutOfMemory, 2));
    });
}

#[test]
fn without_the_runtime_the_reason_is_told() {
    let test = "without_the_runtime_the_reason_is_told";
    process(test, None, &[], || {
        let absence = Driver::get().unwrap_err();
        let text = absence.to_string();
        assert!(matches!(absence, Absence::NoLibrary { .. }), "{absence:?}");
        assert!(text.starts_with("AMD's HIP runtime `libamdhip64.so.7` cannot be opened ("), "{text}");
        assert!(absence.help().contains("ROCm"));
    });
}

#[test]
fn a_runtime_without_a_function_is_told() {
    process("a_runtime_without_a_function_is_told", Some(&["hipStreamQuery"]), &[], || {
        assert_eq!(Driver::get().unwrap_err(), Absence::MissingSymbols { names: vec!["hipStreamQuery"] });
    });
}

#[test]
fn a_machine_without_devices_is_told() {
    with("a_machine_without_devices_is_told", &[("HIP_EMULATOR_DEVICES", "none")], || {
        assert_eq!(Driver::get().unwrap_err(), Absence::NoDevice);
    });
}

#[test]
fn code_for_another_machine_is_refused() {
    with("code_for_another_machine_is_refused", &[("HIP_EMULATOR_DEVICES", "gfx90a:sramecc+:xnack-")], || {
        let error = Module::load(context(), &code_object()).unwrap_err();
        assert_eq!(error.to_string(), "the code object is for gfx942, but the device is gfx90a:sramecc+:xnack-");
    });
}

#[test]
fn what_is_no_code_object_and_launches_that_do_not_fit_are_refused() {
    with("what_is_no_code_object_and_launches_that_do_not_fit_are_refused", &[], || {
        let context = context();
        assert!(matches!(Module::load(context, b"\x7fELF").unwrap_err(), LoadError::Object(_)));
        let module = Module::load(context, &code_object()).unwrap();
        let text = module.function("sub").unwrap_err().to_string();
        assert_eq!(text, "there is no kernel `sub`; the code object has `vector_add`, `stray`");
        let function = module.function("vector_add").unwrap();
        let s = Stream::new(context).unwrap();
        let args: [&[u8]; 4] = [&[0; 8], &[0; 8], &[0; 8], &[0; 4]];
        let told = |geometry: Geometry, args: &[&[u8]]| {
            // SAFETY: nothing is launched.
            unsafe { function.launch(&s, &geometry, args) }.unwrap_err().to_string()
        };
        let lds = told(Geometry { dynamic_lds: 65537, ..ONE }, &args);
        assert_eq!(lds, "65537 bytes of LDS: the device allows 65536 per workgroup");
        let wide = told(Geometry { block: [257, 1, 1], ..ONE }, &args);
        assert_eq!(wide, "a workgroup of 257 × 1 × 1 work items: the kernel allows 1 to 256");
        assert!(told(Geometry { grid: [0, 1, 1], ..ONE }, &args).contains("0 × 1 × 1 workgroups"));
        assert!(told(Geometry { grid: [1, 65536, 1], ..ONE }, &args).contains("the device allows"));
        assert_eq!(told(ONE, &args[..3]), "the kernel takes 4 arguments, not 3");
        assert_eq!(told(ONE, &[&[0; 8], &[0; 4], &[0; 8], &[0; 4]]), "argument 1 has 8 bytes, not 4");
    });
}

#[test]
fn a_stray_write_loses_the_device() {
    in_every_order("a_stray_write_loses_the_device", || {
        let context = context();
        let module = Module::load(context, &code_object()).unwrap();
        let x = memory(context, 1024, true).unwrap();
        let s = Stream::new(context).unwrap();
        let address = x.address(0).to_le_bytes();
        let args: [&[u8]; 4] = [&address, &address, &address, &[0; 4]];
        let function = module.function("stray").unwrap();
        // SAFETY: the emulator stops what it does.
        let launched = unsafe { function.launch(&s, &ONE, &args) };
        let error = match launched {
            Err(Misfit::Driver(error)) => error,
            Err(other) => panic!("{other}"),
            Ok(()) => s.mark(Waiting::Spins).and_then(|m| m.wait()).unwrap_err(),
        };
        assert_eq!((error.kind(), error.code), (Kind::Sticky, 700), "{error}");
        assert!(
            error.to_string().starts_with("a kernel accessed an address that is not memory (hipErrorIllegalAddress")
        );
        assert!(context.memory().unwrap_err().ends_context());
    });
}

#[test]
fn each_call_that_fails_once_is_an_error_in_words_or_made_up_for() {
    for function in SYMBOLS {
        let fault = format!("{function}:1:304");
        with(
            "each_call_that_fails_once_is_an_error_in_words_or_made_up_for",
            &[("HIP_EMULATOR_FAULT", &fault)],
            || {
                // The failure is reported; afterwards everything works as before.
                match chain() {
                    Ok(bytes) => assert_eq!(bytes, floats(&[5.5; 256])),
                    Err(text) => assert!(
                        text.contains("refused a call of the runtime (hipErrorOperatingSystem from hip"),
                        "{text}"
                    ),
                }
                assert_eq!(chain().unwrap(), floats(&[5.5; 256]));
            },
        );
        if is_child() {
            return;
        }
    }
}
