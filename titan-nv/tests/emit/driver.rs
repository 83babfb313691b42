//! The driver: schedules are plain data that say all that was decided, and none is carried out that does not fit its kernel.

use super::loops;
use super::tiles::{kernels, some_kernels};
use std::collections::BTreeSet;
use titan_core::artifact::{Assumption, Variant};
use titan_core::driver::{Ahead, Body, FALLBACK, Roles, Schedule, compile, follow, stages};
use titan_core::ir::{Effect, LocalOp, NvOp, Op, OpKind, Planned, Scheduler};
use titan_core::text::{parse_one, print};
use titan_core::verify::{Verified, barrier_program, verify};
use titan_nv::Machine;

fn gemm(m: u32, n: u32, k: u32) -> Verified {
    verify(parse_one(&loops::gemm([m, n, k])).unwrap()).unwrap()
}

fn machine() -> &'static Machine {
    Machine::from_name("sm_80").unwrap()
}

/// No kernel of the tree needs a simpler schedule than the rule's; and the simpler ones are proved as well.
#[test]
fn no_kernel_falls_back() {
    let (mut programs, mut simpler) = (0, 0);
    let machines = [machine(), Machine::from_name("sm_90a").unwrap()];
    for (number, kernel) in kernels().iter().enumerate() {
        let name = kernel.sig.full_name();
        // In the quick depth, each kernel is compiled for one machine, and the simpler schedules of every tenth are tried.
        let is_meant = |of: usize| test_depth::is_full() || of == number % machines.len();
        for (_, machine) in machines.into_iter().enumerate().filter(|(of, _)| is_meant(*of)) {
            let variants = compile(kernel, machine, None).unwrap_or_else(|error| {
                assert!(!error.message.contains("defect"), "{}: {error}", machine.name);
                Vec::new()
            });
            for variant in &variants {
                let fallen = variant.notes.iter().find(|note| note.starts_with(FALLBACK));
                assert_eq!(fallen, None, "{name}, {}", machine.name);
                programs += 1;
            }
        }
        if number % test_depth::cases(1, 10) != 0 || compile(kernel, machine(), None).is_err() {
            continue;
        }
        let schedule = stages(kernel, machine(), true, None).unwrap().schedule;
        for less in schedule.simpler() {
            // What cannot be fused has no simpler schedule.
            match follow(kernel, machine(), &less) {
                Ok(_) => simpler += 1,
                Err(error) => assert!(error.message.contains("not one of this kernel"), "{name}: {error}\n{less}"),
            }
        }
    }
    let [many, some] = test_depth::cases([300, 20], [150, 2]);
    assert!(programs > many && simpler > some, "{programs}, {simpler}");
}

/// The same schedule results in the same code, independently of the rule's choice.
#[test]
fn a_schedule_says_all_that_was_decided() {
    for kernel in some_kernels() {
        let name = kernel.sig.full_name();
        for aligned in [true, false] {
            let Ok(made) = stages(kernel, machine(), aligned, None) else { continue };
            let again =
                follow(kernel, machine(), &made.schedule).unwrap_or_else(|e| panic!("{name}: {e}\n{}", made.schedule));
            assert_eq!(made.code, again.code, "{name}\n{}", made.schedule);
        }
    }
}

#[test]
fn devices_with_more_memory_get_more_slots() {
    let kernel = gemm(128, 256, 64);
    let variants = compile(&kernel, machine(), None).unwrap();
    let of = |v: &Variant| {
        let granted = v.assumptions.iter().find_map(|a| match a {
            Assumption::SharedMemory { bytes } => Some(bytes / 1024),
            _ => None,
        });
        (granted, v.shared_bytes / 1024)
    };
    let all: Vec<_> = variants.iter().map(of).collect();
    assert_eq!(all[..3], [(Some(227), 192), (Some(163), 144), (None, 96)], "a stage takes 48 KiB");
    assert!(variants.last().unwrap().assumptions.is_empty(), "the last one assumes nothing");
    // Four slots of 8 KiB fit everywhere.
    let small = compile(&gemm(64, 64, 32), machine(), None).unwrap();
    assert!(small.iter().all(|v| of(v).0.is_none()));
}

/// Loops are placed by the modulo scheduler unless the kernel asks for the rule. A note says how many it placed, also none if it was asked for.
#[test]
fn the_scheduler_that_a_kernel_asks_for_places_its_loops() {
    let of = |scheduler| {
        let mut kernel = parse_one(&loops::gemm([128, 128, 64])).unwrap();
        kernel.sig.scheduler = scheduler;
        compile(&verify(kernel).unwrap(), machine(), None).unwrap()
    };
    let (default, rule, swing) = (of(None), of(Some(Scheduler::Rule)), of(Some(Scheduler::Swing)));
    let note = |v: &Variant| v.notes.iter().find(|note| note.starts_with("schedule(swing)")).cloned();
    let payloads = |all: &[Variant]| all.iter().map(|v| v.payload.clone()).collect::<Vec<_>>();
    assert_eq!(payloads(&default), payloads(&swing));
    assert!(default.iter().zip(&swing).all(|(a, b)| note(a).is_none_or(|said| Some(said) == note(b))));
    assert!(note(&default[0]).is_some());
    assert!(rule.iter().all(|v| note(v).is_none()));
    let said: Vec<Option<String>> = swing.iter().map(note).collect();
    let placed = "schedule(swing): 1 of 1 loops are placed by the modulo scheduler".to_owned();
    assert!(said.contains(&Some(placed)) && said.iter().all(Option::is_some), "{said:?}");
    assert_ne!(rule[0].payload, swing[0].payload);
}

/// A ring with fewer slots than the most has a note of the number that was rejected, and why: too much memory, or one program at a time.
#[test]
fn fewer_slots_than_the_most_have_a_reason() {
    let mut told = Vec::new();
    for tile in [[128, 256, 64], [128, 128, 64], [64, 64, 64], [64, 64, 32]] {
        for Variant { notes, .. } in compile(&gemm(tile[0], tile[1], tile[2]), machine(), None).unwrap() {
            let slots = |note: &String| note.split(" slot").next()?.rsplit(' ').next()?.parse::<u32>().ok();
            let chosen = notes.iter().find(|note| note.starts_with("pipelined: ")).and_then(slots);
            let rejected = notes.iter().find(|note| note.starts_with("not ") && note.contains(" slots for "));
            let Some(chosen) = chosen else { continue };
            assert_eq!(rejected.is_some(), chosen < 4, "{notes:#?}");
            let Some(rejected) = rejected else { continue };
            assert!(slots(rejected).is_some_and(|slots| chosen < slots && slots <= 4), "{notes:#?}");
            told.extend(rejected.split_once(": ").map(|(_, why)| why.to_owned()));
        }
    }
    for why in ["they alone take more than", "would run 1 program"] {
        assert!(told.iter().any(|told| told.contains(why)), "no `{why}` in {told:#?}");
    }
}

/// By the rule, a ring of D slots is filled D − 1 iterations ahead; the modulo scheduler places copies behind the wait that shows that a slot
/// was read, so that they have one iteration more.
#[test]
fn copies_behind_the_last_wait_are_as_far_ahead_as_there_are_slots() {
    for (tile, slots) in [([128, 256, 64], 2), ([128, 128, 64], 3), ([64, 64, 32], 4)] {
        for (scheduler, distance) in [(Scheduler::Rule, slots - 1), (Scheduler::Swing, slots)] {
            let mut kernel = parse_one(&loops::gemm(tile)).unwrap();
            kernel.sig.scheduler = Some(scheduler);
            let made = stages(&verify(kernel).unwrap(), machine(), true, None).unwrap();
            let [own] = &made.schedule.loops[..] else { panic!("one loop") };
            let again = follow(&verify(parse_one(&loops::gemm(tile)).unwrap()).unwrap(), machine(), &made.schedule);
            assert_eq!(again.unwrap().code, made.code, "the schedule says it all");
            assert_eq!(
                (own.slots, own.distance, own.carried),
                (slots, distance, slots > 2 || scheduler == Scheduler::Swing)
            );
        }
    }
}

/// A product whose loop is scheduled by the rule.
fn by_rule(tile: [u32; 3]) -> Verified {
    let mut kernel = parse_one(&loops::gemm(tile)).unwrap();
    kernel.sig.scheduler = Some(Scheduler::Rule);
    verify(kernel).unwrap()
}

/// Each is rejected with a message, and nothing panics.
#[test]
fn schedules_of_other_kernels_are_refused() {
    let kernel = by_rule([64, 64, 32]);
    let right = stages(&kernel, machine(), true, None).unwrap().schedule;
    let with = |change: &dyn Fn(&mut Schedule)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        follow(&kernel, machine(), &wrong).map(|made| made.schedule).expect_err("it is wrong").to_string()
    };
    let not = "the schedule is not one of this kernel";
    assert!(with(&|s| s.loops[0].slots = 0).contains(not));
    assert!(with(&|s| s.loops[0].distance = s.loops[0].slots + 1).contains(not));
    assert!(with(&|s| s.loops[0].number = 7).contains(not));
    assert!(with(&|s| s.loops[0].loads = vec![99]).contains(not));
    assert!(with(&|s| s.loops[0].loads = vec![0]).contains(not));
    assert!(with(&|s| s.loops[0].loads.clear()).contains(not));
    assert!(with(&|s| s.loops[0].distance = 0).contains(not), "the stages say something else");
    assert!(with(&|s| s.loops.push(s.loops[0].clone())).contains(not));
    assert!(with(&|s| s.slots.push(2)).contains(not));
    assert!(with(&|s| s.roles = Roles::Fused { distance: 1, carried: false }).contains(not));
    assert!(with(&|s| s.warps = Some(3)).contains("no program has 3 warps"));
    assert!(with(&|s| s.warps = Some(0)).contains("no program has 0 warps"));
    assert!(with(&|s| s.shared_bytes = 1024).contains("shared memory"));
    let order = "operations that do not exist";
    assert!(with(&|s| s.bodies[0].places.truncate(3)).contains(order));
    assert!(
        with(&|s| s.bodies.push(Body { number: 9, places: Vec::new(), peeled: false, unmasked: false }))
            .contains(order)
    );
    let early = "before one whose result it uses";
    let reversed = with(&|s| {
        let orders: Vec<u16> = s.bodies[0].places[..20].iter().rev().map(|place| place.order).collect();
        s.bodies[0].places.iter_mut().zip(orders).for_each(|(place, order)| place.order = order);
    });
    assert!(reversed.contains(early), "{reversed}");
    assert!(with(&|s| s.bodies[0].places[0] = s.bodies[0].places[1]).contains("two operations at this place"));
    assert!(with(&|s| s.bodies[0].places.iter_mut().for_each(|place| place.stage += 64)).contains("too many stages"));
    // An MMA of stage 0 uses what one of a later stage computes; and a stage that is released as early was not filled as far ahead as is said.
    let early = |from: usize| {
        with(&|s| s.bodies[0].places.iter_mut().rev().skip(from).take(2).for_each(|place| place.stage = 0))
    };
    assert!(early(2).contains("the schedule executes"), "{}", early(2));
    assert!(early(0).contains(not), "{}", early(0));
}

/// Copies may run fewer iterations ahead than there are slots.
#[test]
fn slots_and_distance_are_apart() {
    let kernel: Verified = gemm(64, 64, 32);
    let right = stages(&kernel, machine(), true, None).unwrap().schedule;
    for (slots, distance) in [(2, 1), (3, 1), (4, 1), (4, 2), (5, 4)] {
        let ahead = Ahead { slots, distance, ..right.loops[0].clone() };
        let schedule = Schedule { loops: vec![ahead], bodies: Vec::new(), ..right.clone() };
        let made = follow(&kernel, machine(), &schedule).unwrap_or_else(|e| panic!("{slots}, {distance}: {e}"));
        assert_eq!(made.rings.pipes[0].slots, slots);
    }
}

/// What an operation or instruction is, as far as the order of a loop matters.
fn kind_of_op(kind: &OpKind) -> Option<char> {
    Some(match kind {
        OpKind::Local(LocalOp::Load) => 'L',
        OpKind::Local(LocalOp::Mma) => 'M',
        OpKind::Local(LocalOp::Copy { .. }) => 'C',
        OpKind::Nv(NvOp::Commit { .. }) => 'G',
        OpKind::Nv(NvOp::WaitGroup { .. }) => 'W',
        OpKind::Nv(NvOp::BarrierSync { .. }) => 'B',
        _ => return None,
    })
}

fn kind_of_instruction(line: &str) -> Option<char> {
    let code = line.trim_start().trim_start_matches(['@', '%', '!']);
    let kinds = [
        ("ldmatrix", 'L'),
        ("mma.sync", 'M'),
        ("cp.async.commit_group", 'G'),
        ("cp.async.wait_group", 'W'),
        ("cp.async.c", 'C'),
        ("bar.sync", 'B'),
        ("barrier.sync", 'B'),
    ];
    kinds.iter().find(|(word, _)| code.contains(word)).map(|(_, kind)| *kind)
}

/// The kinds in order, of neighbours that are alike one.
fn in_order(kinds: impl Iterator<Item = Option<char>>) -> String {
    let mut all: Vec<char> = kinds.flatten().collect();
    all.dedup();
    all.into_iter().collect()
}

/// The lines of the loop with the first MMA.
fn main_loop(ptx: &str) -> Vec<&str> {
    let lines: Vec<&str> = ptx.lines().collect();
    let mma = lines.iter().position(|line| line.contains("mma.sync")).expect("an MMA");
    let label = lines[..mma].iter().rposition(|line| line.trim_end().ends_with(':')).expect("a loop");
    let name = lines[label].trim().trim_end_matches(':');
    let ends = |line: &&str| line.contains("bra") && line.contains(&format!("{name};"));
    let end = label + lines[label..].iter().position(ends).expect("its end");
    lines[label..=end].to_vec()
}

/// A legal order of a loop's operations is that of the instructions, whoever chose it; one that is not legal is refused.
#[test]
fn every_legal_order_is_that_of_the_code() {
    let kernel = by_rule([64, 64, 64]);
    let chosen = stages(&kernel, machine(), true, None).unwrap();
    let mut body = None;
    let laid_out = &chosen.laid_out;
    let mut number = 0;
    laid_out.walk(&mut |_, op| {
        if op.kind.is_loop() {
            let has_mma =
                laid_out.block(op.regions[0]).ops.iter().any(|id| kind_of_op(&laid_out.op(*id).kind) == Some('M'));
            body = if has_mma { Some((number, op.regions[0])) } else { body };
            number += 1;
        }
    });
    let (number, block) = body.expect("a loop with MMAs");
    let ops = laid_out.block(block).ops.clone();
    let uses = |user: usize, of: usize| {
        let mut any = false;
        let mut look = |op: &Op| any |= op.args.iter().any(|v| laid_out.op(ops[of]).results.contains(v));
        look(laid_out.op(ops[user]));
        laid_out.op(ops[user]).regions.iter().for_each(|r| laid_out.walk_block(*r, &mut |_, op| look(op)));
        any
    };
    // Loads and operations on rings keep their order, but loads do not among themselves; MMAs and numbers move anywhere. In one try of four,
    // all do.
    let effect = |at: usize| laid_out.op(ops[at]).kind.effect();
    let in_order_of_effects = |a: usize, b: usize| {
        [effect(a), effect(b)].contains(&Effect::Pipeline) && effect(a) != Effect::Pure && effect(b) != Effect::Pure
    };
    let (mut state, mut seen, mut refused) = (1u64, BTreeSet::new(), 0);
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for turn in 0..120 {
        let any = turn % 4 == 0;
        let mut order: Vec<usize> = (0..ops.len()).collect();
        for _ in 0..below(4000) {
            let at = below(ops.len() - 2);
            let may_swap = any || !in_order_of_effects(order[at], order[at + 1]);
            if may_swap && !uses(order[at + 1], order[at]) {
                order.swap(at, at + 1);
            }
        }
        let place = |at: usize| order.iter().position(|other| *other == at).expect("a permutation");
        let stage = |at: usize| {
            chosen.schedule.bodies.iter().find(|body| body.number == number).map_or(0, |body| body.places[at].stage)
        };
        let places = (0..ops.len() - 1).map(|at| Planned { stage: stage(at), order: place(at) as u16 }).collect();
        let bodies = vec![Body { number, places, peeled: false, unmasked: false }];
        let schedule = Schedule { bodies, ..chosen.schedule.clone() };
        let Ok(made) = follow(&kernel, machine(), &schedule) else {
            refused += 1;
            continue;
        };
        let mut wanted = String::new();
        made.barriers.walk(&mut |_, op| {
            let body = op.regions.first().filter(|_| op.kind.is_loop()).map(|r| &made.barriers.block(*r).ops);
            let kinds = body.map(|ops| in_order(ops.iter().map(|id| kind_of_op(&made.barriers.op(*id).kind))));
            wanted = kinds.filter(|kinds| kinds.contains('M')).unwrap_or(std::mem::take(&mut wanted));
        });
        let ptx = String::from_utf8(made.code.payload).unwrap();
        assert_eq!(in_order(main_loop(&ptx).into_iter().map(kind_of_instruction)), wanted, "{schedule}");
        seen.insert(wanted);
    }
    assert!(seen.len() > 5 && refused > 0, "{} orders, {refused} refused", seen.len());
}

/// A kernel whose loop over tiles is run, or not, by what all programs read; or not by all, if they read at `%place`.
fn behind_a_condition(tile: u32, place: &str) -> String {
    format!(
        "kernel @k(%x: in tensor<f32>[N], %y: mut tensor<f32>[N]) grid persistent {{
            %p = program_id<0> : i32
            %zero = const 0 : i32
            %none = const 0.0 : f32
            %t = load_tile %x[%{place}] or %none : tile<{tile}xf32>
            %most = reduce_max<0> %t : f32
            %some = gt %most, %none : bool
            %n = dim<0> %x : i32
            %wide = const 16 : i32
            %count = div %n, %wide : i32
            %one = const 1 : i32
            if %some {{
                for %i = %zero to %count step %one distributed {{
                    %v = load_tile %x[%i] or %none : tile<16xf32>
                    store_tile %y[%i], %v
                    continue
                }}
                yield
            }} else {{
                yield
            }}
            return
        }}"
    )
}

/// A reduced tile goes through shared memory, where all programs have equal values if they store equal ones.
#[test]
fn loops_over_tiles_are_compiled_behind_conditions_of_tiles_that_all_programs_read() {
    for name in ["sm_80", "sm_90a"] {
        let machine = Machine::from_name(name).unwrap();
        for tile in [1, 32, 512] {
            let kernel = verify(parse_one(&behind_a_condition(tile, "zero")).unwrap()).unwrap();
            let made = stages(&kernel, machine, true, None).unwrap_or_else(|e| panic!("{name}, {tile}: {e}"));
            assert_eq!(barrier_program(&made.barriers), Ok(()));
            // The same program is refused if programs read other tiles, or if only some of them store.
            let text = print(&made.barriers);
            assert!(text.contains("ttg.local.load"), "{text}");
            let other = text.replacen("load_tile %x[%zero]", "load_tile %x[%p]", 1);
            let mistaken = parse_one(&other).unwrap_or_else(|e| panic!("{e:?}\n{other}"));
            let errors = barrier_program(&mistaken).expect_err("programs differ");
            assert!(errors.iter().any(|e| e.title.starts_with("only some of the programs")), "{errors:?}");
        }
    }
    assert!(verify(parse_one(&behind_a_condition(32, "p")).unwrap()).is_err(), "programs read other tiles");
}
