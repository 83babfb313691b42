//! Layouts against those of another compiler: Triton computes them without a GPU, asked by `layouts.py`.
//!
//! `cargo xtask tools` installs it under `target/tools`. Without it, or without Python, the tests say that they are skipped.

use crate::fragments::{ATOMS, ONE, quads};
use crate::random::{Random, held};
use crate::triton;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use titan_core::ir::Elem;
use titan_core::lane::{Builder, Func, IntBin, OpKind, Space, Value, banks};
use titan_core::layout::atoms::{Atom, WarpGrid};
use titan_core::layout::{Bit, Coords, Encoding, Layout};
use titan_core::target::Banks;

/// The answers to questions, one line each; `None`, with a message, if the other compiler is not installed.
fn ask(test: &str, questions: &[String]) -> Option<Vec<String>> {
    let python = triton::python(test)?;
    let mut command = triton::command(python, "tests/layout/layouts.py");
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("it started before");
    let mut input = child.stdin.take().expect("piped");
    let text = questions.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let done = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    writer.join().expect("no panic").expect("all questions are read");
    let answers: Vec<String> = String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), questions.len(), "{said}");
    Some(answers)
}

/// The bases of a linear layout: what each bit of each number adds, by XOR.
struct Bases(Vec<Vec<Coords>>);

impl Bases {
    fn parse(answer: &str) -> Bases {
        let base = |text: &str| {
            let mut at = [0; 4];
            text.split(',').enumerate().for_each(|(i, n)| at[i] = n.parse().expect("a number"));
            at
        };
        Bases(answer.split('|').map(|part| part.split_whitespace().map(base).collect()).collect())
    }

    fn at(&self, numbers: &[usize]) -> Coords {
        let mut at = [0; 4];
        for (bases, number) in self.0.iter().zip(numbers) {
            for (i, base) in bases.iter().enumerate().filter(|(i, _)| number >> i & 1 == 1) {
                assert!(i < bases.len());
                (0..4).for_each(|axis| at[axis] ^= base[axis]);
            }
        }
        at
    }

    /// What a thread holds.
    fn held(&self, lane: usize, warp: usize) -> BTreeSet<Coords> {
        (0..1 << self.0[0].len()).map(|r| self.at(&[r, lane, warp])).collect()
    }
}

/// Elements of A and B that lie beside each other in a register.
fn width(elem: Elem) -> u32 {
    (32 / elem.bits()).max(1)
}

#[test]
fn fragments_are_those_of_another_compiler() {
    let atoms: Vec<_> = ATOMS.iter().filter(|a| a.m == 16).collect();
    let mut questions = Vec::new();
    for a in &atoms {
        questions.push(format!("mma 1 1: {} {}", a.m, a.n));
        questions.push(format!("operand 0 {} mma 1 1: {} {}", width(a.a), a.m, a.k));
        questions.push(format!("operand 1 {} mma 1 1: {} {}", width(a.b), a.k, a.n));
    }
    let Some(answers) = ask("fragments_are_those_of_another_compiler", &questions) else { return };
    for (atom, answers) in atoms.iter().zip(answers.chunks(3)) {
        let ours = [
            quads(atom).accumulator(&[atom.m, atom.n], ONE),
            quads(atom).operand_a(&[atom.m, atom.k], ONE),
            quads(atom).operand_b(&[atom.n, atom.k], ONE).permuted(&[1, 0]),
        ];
        for (ours, answer) in ours.iter().zip(answers) {
            let theirs = Bases::parse(answer);
            for lane in 0..32 {
                for r in 0..ours.registers() {
                    assert_eq!(
                        ours.coords(r, lane, 0),
                        theirs.at(&[r, lane, 0]),
                        "{ours}: register {r} of lane {lane}"
                    );
                }
            }
        }
    }
}

#[test]
fn tiles_of_several_warps_are_dealt_alike() {
    let mut questions = Vec::new();
    let mut ours = Vec::new();
    for atom in ATOMS.iter().filter(|a| a.m == 16) {
        for (m, n) in [(1, 1), (2, 2), (4, 1), (1, 4), (2, 4)] {
            let (grid, [tm, tn, tk]) = (WarpGrid { m, n, all: m * n }, [64, 64, 2 * atom.k]);
            questions.push(format!("mma {m} {n}: {tm} {tn}"));
            questions.push(format!("operand 0 {} mma {m} {n}: {tm} {tk}", width(atom.a)));
            questions.push(format!("operand 1 {} mma {m} {n}: {tk} {tn}", width(atom.b)));
            ours.push((m, n, quads(atom).accumulator(&[tm, tn], grid)));
            ours.push((m, n, quads(atom).operand_a(&[tm, tk], grid)));
            ours.push((m, n, quads(atom).operand_b(&[tn, tk], grid).permuted(&[1, 0])));
        }
    }
    // f64 has instructions of 8 rows; two of them above each other are the others' 16.
    let f64 = &ATOMS[4];
    questions.push("mma 1 1: 16 8".to_owned());
    ours.push((1, 1, quads(f64).accumulator(&[16, 8], ONE)));
    questions.push("operand 0 1 mma 1 1: 16 8".to_owned());
    ours.push((1, 1, quads(f64).operand_a(&[16, 8], ONE)));
    questions.push("operand 1 1 mma 1 1: 8 8".to_owned());
    ours.push((1, 1, quads(f64).operand_b(&[8, 8], ONE).permuted(&[1, 0])));
    let Some(answers) = ask("tiles_of_several_warps_are_dealt_alike", &questions) else { return };
    // Their warps count along N first.
    dealt_alike(&ours, &questions, &answers, |[wm, wn], [_, n]| wn + wm * n);
}

/// Every lane of every warp holds the same elements. The layouts come with their numbers of warps along M and N, of which ours count along M
/// first; `number` is theirs of the warp at a place.
fn dealt_alike(
    ours: &[(u32, u32, Layout)],
    questions: &[String],
    answers: &[String],
    number: fn([usize; 2], [usize; 2]) -> usize,
) {
    for (((m, n, layout), answer), question) in ours.iter().zip(answers).zip(questions) {
        let (theirs, [m, n]) = (Bases::parse(answer), [*m as usize, *n as usize]);
        for (wm, wn) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            for lane in 0..32 {
                let mine: BTreeSet<Coords> = held(layout, lane, wm + wn * m).into_iter().collect();
                let theirs = theirs.held(lane, number([wm, wn], [m, n]));
                assert_eq!(mine, theirs, "{layout} for {question}: lane {lane} of warp {wm}, {wn}");
            }
        }
    }
}

fn words(all: &[u32]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn blocked_layouts_are_the_same() {
    let mut random = Random::new(12);
    let (mut questions, mut ours) = (Vec::new(), Vec::new());
    let power = |random: &mut Random, most: u32| 1u32 << random.below(most);
    for _ in 0..150 {
        let rank = 1 + random.below(3) as usize;
        let vector: Vec<u32> = (0..rank).map(|_| power(&mut random, 3)).collect();
        let (mut lanes, mut warps) = (vec![1; rank], vec![1; rank]);
        (0..5).for_each(|_| lanes[random.below(rank as u32) as usize] *= 2);
        (0..2).for_each(|_| warps[random.below(rank as u32) as usize] *= 2);
        let order = random.permutation(rank);
        // Tiles that are no smaller than what threads hold: where they are, copies are dealt out differently.
        let shape: Vec<u32> = (0..rank).map(|i| vector[i] * lanes[i] * warps[i] * power(&mut random, 2)).collect();
        let order_text = order.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        questions.push(format!(
            "blocked {} / {} / {} / {order_text}: {}",
            words(&vector),
            words(&lanes),
            words(&warps),
            words(&shape)
        ));
        ours.push(Layout::blocked(&shape, &vector, &lanes, &warps, &order));
    }
    let Some(answers) = ask("blocked_layouts_are_the_same", &questions) else { return };
    for ((layout, answer), question) in ours.iter().zip(&answers).zip(&questions) {
        let theirs = Bases::parse(answer);
        for warp in 0..4 {
            for lane in 0..32 {
                let mine: BTreeSet<Coords> = held(layout, lane, warp).into_iter().collect();
                assert_eq!(mine, theirs.held(lane, warp), "{layout} for {question}: lane {lane} of warp {warp}");
                for r in 0..1 << layout.register_bits().len() {
                    assert_eq!(layout.coords(r, lane, warp), theirs.at(&[r, lane, warp]), "{layout} for {question}");
                }
            }
        }
    }
}

/// The accumulators of MMAs of warpgroups, and operands A in registers, with one and two warpgroups along M and along N.
#[test]
fn fragments_of_warpgroups_are_those_of_another_compiler() {
    let (mut questions, mut ours) = (Vec::new(), Vec::new());
    for atom in ATOMS.iter().filter(|a| a.m == 16 && a.a.bits() <= 32) {
        for (m, n) in [(4, 1), (8, 1), (4, 2), (8, 2)] {
            let grid = WarpGrid { m, n, all: m * n };
            // With several warpgroups along N, one instruction is all of the columns of each.
            for width in if n == 1 { vec![8, 32, 64, 128, 256] } else { vec![8, 32, 128] } {
                let [tm, tn, tk] = [32 * m, n * width, 2 * atom.k];
                questions.push(format!("wgmma {width} {m} {n}: {tm} {tn}"));
                ours.push((m, n, Atom::in_quads(*atom, 16, 8).group_accumulator(&[tm, tn], grid)));
                questions.push(format!("operand 0 {} wgmma {width} {m} {n}: {tm} {tk}", self::width(atom.a)));
                ours.push((m, n, quads(atom).operand_a(&[tm, tk], grid)));
            }
        }
    }
    let Some(answers) = ask("fragments_of_warpgroups_are_those_of_another_compiler", &questions) else { return };
    // Their warps count along M first here.
    dealt_alike(&ours, &questions, &answers, |[wm, wn], [m, _]| wm + wn * m);
}

/// Shapes whose rows have a swizzle, with the bytes of it, and whether the rows run along the first axis.
fn swizzled() -> Vec<(u32, u32, [u32; 2], bool)> {
    let mut all = Vec::new();
    for transposed in [false, true] {
        for bits in [8, 16, 32] {
            for bytes in [32, 64, 128] {
                let row = bytes * 8 / bits;
                let mut add = |[m, n]: [u32; 2]| {
                    all.push((bits, bytes, if transposed { [n, m] } else { [m, n] }, transposed));
                };
                add([64, row]);
                if bytes == 128 {
                    add([32, 2 * row]);
                    add([16, 4 * row]);
                }
            }
        }
    }
    all
}

#[test]
fn swizzles_are_those_of_another_compiler() {
    let cases = swizzled();
    let ask_for = |(bits, bytes, [m, n], transposed): &(u32, u32, [u32; 2], bool)| {
        format!("nvmma {bytes} {bits} {}: {m} {n}", u8::from(*transposed))
    };
    let questions: Vec<String> = cases.iter().map(ask_for).collect();
    let Some(answers) = ask("swizzles_are_those_of_another_compiler", &questions) else { return };
    for ((bits, bytes, shape, transposed), answer) in cases.iter().zip(&answers) {
        let e = Encoding::swizzled(shape, *bits, if *transposed { &[1, 0] } else { &[0, 1] });
        assert_eq!(e.swizzle.row_bytes(), *bytes);
        let theirs = Bases::parse(answer);
        // Theirs goes from offsets to elements.
        for offset in 0..shape[0] * shape[1] {
            let at = theirs.at(&[offset as usize]);
            assert_eq!(e.offset(at), offset * bits / 8, "{e:?} at {at:?}");
        }
    }
}

/// A function in which each lane of a warp reads, in one go, what its first registers hold of an encoding.
///
/// The address is the sum or, where elements are exchanged, the XOR of what the bits of the lane's number add.
fn reader(layout: &Layout, e: &Encoding) -> Func {
    let mut b = Builder::new("reader", vec![], 32, 32);
    let lane = b.one(OpKind::LaneId, &[]);
    let mut address: Value = b.one(OpKind::SharedBase, &[]);
    for (i, bit) in layout.lane_bits().iter().enumerate() {
        let mut at = [0; 4];
        if let Bit::Step { axis, by } = bit {
            at[usize::from(*axis)] = *by;
        }
        let (shift, one, by) = (b.i32(i as i32), b.i32(1), b.i32(e.offset(at) as i32));
        let digit = b.int(IntBin::ShrU, lane, shift);
        let digit = b.and(digit, one);
        let part = b.mul(digit, by);
        address = b.int(IntBin::Xor, address, part);
    }
    let bytes = layout.vector(e.fast_axis()) * e.bits / 8;
    let (bytes, n) = match bytes {
        1 | 2 | 4 => (bytes as u8, 1),
        _ => (4, (bytes / 4).min(4) as u8),
    };
    b.op(OpKind::Load { space: Space::Shared, bytes, n, offset: 0, masked: false }, &[address]);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("it is right")
}

#[test]
fn bank_conflicts_are_those_of_another_compiler() {
    let mut cases: Vec<(Layout, Encoding, String)> = Vec::new();
    // Rows without gaps, of a power of two of elements; and every swizzle: read along rows and along columns.
    for bits in [8u32, 16, 32] {
        for vector in [1u32, 2, 4, 8, 16] {
            for (down, across) in [(32, 1), (16, 2), (8, 4), (4, 8), (2, 16), (1, 32)] {
                if vector * bits > 128 {
                    continue;
                }
                for bytes in [0, 32, 64, 128] {
                    let columns = if bytes == 0 { vector * across } else { bytes * 8 / bits };
                    if vector * across > columns || (bytes == 0 && columns * bits > 1 << 13) {
                        continue;
                    }
                    let shape = [64, columns];
                    let layout = Layout::blocked(&shape, &[1, vector], &[down, across], &[1, 1], &[1, 0]);
                    // More neighbours than these in one thread would be read at once there.
                    if across == 1 && columns > vector {
                        continue;
                    }
                    let (encoding, name) = if bytes == 0 {
                        (Encoding::padded(&shape, bits, &[0, 1], 0), "rows".to_owned())
                    } else {
                        (Encoding::swizzled(&shape, bits, &[0, 1]), format!("nvmma {bytes} {bits} 0"))
                    };
                    let text =
                        format!("conflicts {bits} 1 {vector} / {down} {across} / 1 1 / 1 0 with {name}: 64 {columns}");
                    cases.push((layout, encoding, text));
                }
            }
        }
    }
    let questions: Vec<String> = cases.iter().map(|(_, _, text)| text.clone()).collect();
    let Some(answers) = ask("bank_conflicts_are_those_of_another_compiler", &questions) else { return };
    let mut conflicts = 0;
    for ((layout, encoding, text), answer) in cases.iter().zip(&answers) {
        let theirs: u32 = answer.parse().expect("a number");
        let func = reader(layout, encoding);
        let ours = banks::conflicts(&func, &Banks::default()).first().map_or(1, |c| c.degree);
        assert_eq!(ours, theirs + 1, "{text}");
        conflicts += u32::from(theirs > 0);
    }
    assert!(cases.len() > 80 && conflicts > 20, "{conflicts} of {} have conflicts", cases.len());
}
