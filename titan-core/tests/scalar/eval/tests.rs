//! Tests of the evaluator: control flow, errors, and the errors of approximate operations.

use super::{EvalError, Evaluator, Margin, builder};
use titan_core::ir::Pred;
use titan_core::lane::{FloatTy, FloatUn, Func, IntBin, OpKind, Space, Value, verify};

fn run(func: &Func, words: &[u64], result: Value) -> Result<u64, EvalError> {
    let mut evaluator = Evaluator::new(func, Margin::None);
    evaluator.run(words)?;
    Ok(evaluator.get(result))
}

/// The greatest power of two below a limit, computed by a loop with a `break`.
#[test]
fn loops_and_branches_run() {
    let (mut b, words) = builder(&[false]);
    let (zero, one) = (b.i32(0), b.i32(1));
    let hundred = b.i32(100);
    let (open, index, carried) = b.begin_for([zero, hundred, one], &[one]);
    let twice = b.add(carried[0], carried[0]);
    let beyond = b.cmp_u(Pred::Ge, twice, words[0]);
    let stop = b.begin_if(beyond, &[]);
    let mut stop = stop;
    b.terminate(OpKind::Break(0), &[carried[0]]);
    b.begin_else(&mut stop);
    b.terminate(OpKind::Yield, &[]);
    b.end(stop);
    let _ = index;
    b.terminate(OpKind::Continue(0), &[twice]);
    let power = b.end(open)[0];
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().expect("well typed");
    verify(&func).expect("well formed");
    for (limit, want) in [(2, 1), (3, 2), (1000, 512), (1024, 512), (1025, 1024)] {
        assert_eq!(run(&func, &[limit], power), Ok(want));
    }
}

#[test]
fn what_one_thread_cannot_do_is_an_error() {
    let (mut b, words) = builder(&[true]);
    let kind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false };
    let loaded = b.one(kind, &[words[0]]);
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().expect("well typed");
    assert!(matches!(run(&func, &[0], loaded), Err(EvalError::Unsupported(_))));
    assert_eq!(run(&func, &[], loaded), Err(EvalError::NoSlot(0)));
}

#[test]
fn operands_beyond_a_contract_are_an_error() {
    for (op, y) in [(IntBin::DivU, 0), (IntBin::RemS, 0), (IntBin::Shl, 32), (IntBin::ShrS, u64::from(u32::MAX))] {
        let (mut b, words) = builder(&[false, false]);
        let result = b.int(op, words[0], words[1]);
        b.terminate(OpKind::Return, &[]);
        let func = b.finish().expect("well typed");
        assert_eq!(run(&func, &[7, y], result), Err(EvalError::Contract(op.to_string(), vec![7, y])));
    }
}

#[test]
fn an_endless_loop_ends() {
    let (mut b, _) = builder(&[]);
    let (open, _) = b.begin_loop(&[], &[]);
    b.terminate(OpKind::Continue(0), &[]);
    b.end(open);
    let zero = b.i32(0);
    b.terminate(OpKind::Return, &[]);
    let func = b.finish().expect("well typed");
    assert!(matches!(run(&func, &[], zero), Err(EvalError::Endless(_))));
}

#[test]
fn margins_reach_their_ends_and_no_further() {
    type Exact = fn(f64) -> f64;
    let rows: [(FloatUn, Exact, f64); 3] = [
        (FloatUn::Ex2Approx, f64::exp2, 2.0),
        (FloatUn::RcpApprox, |x| 1.0 / x, 1.0),
        (FloatUn::RsqrtApprox, |x| 1.0 / x.sqrt(), 2.0),
    ];
    for (op, exact, ulps) in rows {
        let (mut b, words) = builder(&[false]);
        let result = b.one(OpKind::FloatUn(op, FloatTy::F32), &[words[0]]);
        b.terminate(OpKind::Return, &[]);
        let func = b.finish().expect("well typed");
        let mut greatest = 0f64;
        for k in 0..2000u32 {
            let x = 0.6 + f64::from(k) * 0.013;
            let x = f64::from(f32::from_bits((x as f32).to_bits()));
            for margin in [Margin::None, Margin::High, Margin::Low] {
                let mut evaluator = Evaluator::new(&func, margin);
                evaluator.run(&[u64::from((x as f32).to_bits())]).expect("one thread can");
                let got = f64::from(f32::from_bits(u32::try_from(evaluator.get(result)).expect("32 bits")));
                let want = exact(x);
                let ulp = f64::from_bits(want.to_bits() & 0x7ff0_0000_0000_0000) * f64::from(f32::EPSILON);
                let error = (got - want).abs() / ulp;
                assert!(error <= if margin == Margin::None { 0.5 } else { ulps }, "{op} {x}: {error}");
                assert!(margin == Margin::None || (got > want) == (margin == Margin::High), "{op} {x}: the other side");
                greatest = greatest.max(error);
            }
        }
        assert!(greatest > ulps - 0.01, "{op}: {greatest}");
        // Subnormal operands and results are flushed to zero at either end of the margin.
        let tiny = if op == FloatUn::Ex2Approx { (-130f32).to_bits() } else { 1 };
        for (margin, want) in [(Margin::None, true), (Margin::High, false), (Margin::Low, false)] {
            let mut evaluator = Evaluator::new(&func, margin);
            evaluator.run(&[tiny.into()]).expect("one thread can");
            let got = f32::from_bits(u32::try_from(evaluator.get(result)).expect("32 bits"));
            let kept = if op == FloatUn::Ex2Approx { got != 0.0 } else { got.is_finite() };
            assert!(kept == want || op == FloatUn::RcpApprox, "{op} {margin:?}: {got}");
        }
    }
}
