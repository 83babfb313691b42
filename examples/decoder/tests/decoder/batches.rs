//! Batches as a server has them: prompts beside single tokens, sequences that end, pages that others use again.

use crate::support::{Log, PAGE, Pair, prompt};
use decoder::batch::Batch;
use decoder::{Cache, Config, Error, generate};
use titan::prelude::*;

#[test]
fn sequences_begin_and_end_while_others_continue() {
    let mut pair = Pair::f16(&Device::cpu(), &Config::TINY, false);
    let prompts = [20, 9, 35].map(|n| prompt(n, &Config::TINY));
    let (mut a, mut b) = (Log::new(&mut pair.cache), Log::new(&mut pair.cache));
    pair.step(&mut [(&mut a, &prompts[0])]);
    for _ in 0..14 {
        let token = a.last();
        pair.step(&mut [(&mut a, &token)]);
    }
    let token = a.last();
    pair.step(&mut [(&mut a, &token), (&mut b, &prompts[1])]);
    for _ in 0..10 {
        let (first, second) = (a.last(), b.last());
        pair.step(&mut [(&mut b, &second), (&mut a, &first)]);
    }
    // The pages of `a` are not in order, and `c` gets some of them.
    let freed = pair.cache.pages.pages(a.sequence).to_vec();
    pair.cache.pages.end(a.sequence);
    let mut c = Log::new(&mut pair.cache);
    let token = b.last();
    pair.step(&mut [(&mut c, &prompts[2]), (&mut b, &token)]);
    assert!(pair.cache.pages.pages(c.sequence).iter().any(|page| freed.contains(page)));
    for _ in 0..20 {
        let (second, third) = (b.last(), c.last());
        pair.step(&mut [(&mut b, &second), (&mut c, &third)]);
    }
    for (log, prompt, steps) in [(&a, &prompts[0], 26), (&b, &prompts[1], 32), (&c, &prompts[2], 21)] {
        assert_eq!(log.tokens.len(), steps);
        pair.expect(log, prompt);
    }
}

#[test]
fn a_prompt_may_come_in_parts() {
    let mut pair = Pair::f16(&Device::cpu(), &Config::TINY, true);
    let prompt = prompt(3 * PAGE + 5, &Config::TINY);
    let mut log = Log::new(&mut pair.cache);
    for part in [&prompt[..21], &prompt[21..22], &prompt[22..]] {
        log.tokens.clear();
        log.logits.clear();
        pair.step(&mut [(&mut log, part)]);
    }
    for _ in 0..10 {
        let token = log.last();
        pair.step(&mut [(&mut log, &token)]);
    }
    pair.expect(&log, &prompt);
}

#[test]
fn what_is_not_possible_is_an_error_and_takes_no_pages() {
    let device = Device::cpu();
    let pair = Pair::f16(&device, &Config::TINY, false);
    let mut cache = Cache::new(&device, &Config::TINY, 3, PAGE).unwrap();
    let mut error = |prompts: &[Vec<i32>], steps| {
        let error = generate(&pair.model, &mut cache, prompts, steps, |_| Ok(())).unwrap_err();
        assert_eq!(cache.pages.free(), 3);
        error
    };
    assert!(matches!(error(&[vec![1; 20], vec![1; 20]], 1), Error::NoPages { wanted: 2, free: 1 }));
    assert!(matches!(error(&[vec![1; PAGE * 3]], 2), Error::NoPages { wanted: 1, free: 0 }));
    assert!(matches!(error(&[vec![1], vec![]], 1), Error::Request(_)));
    assert!(matches!(error(&[vec![1, 301]], 1), Error::Request(_)));
    assert!(matches!(error(&[vec![-1]], 1), Error::Request(_)));
    assert!(matches!(error(&[vec![1; 513]], 1), Error::Request(_)));
    assert!(matches!(error(&[], 1), Error::Request(_)));
}

#[test]
fn counts_that_do_not_fit_the_tokens_are_refused() {
    let device = Device::cpu();
    let mut cache = Cache::<f16>::new(&device, &Config::TINY, 3, PAGE).unwrap();
    let sequence = cache.pages.begin();
    let tokens = device.tensor([1, 2, 3], [3]).unwrap();
    let error = Batch::new(&Config::TINY, &mut cache.pages, &[sequence], &[2], tokens).unwrap_err();
    assert!(matches!(error, Error::Request(_)), "{error}");
    assert_eq!(cache.pages.free(), 3);
}
