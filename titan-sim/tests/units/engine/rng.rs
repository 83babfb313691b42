//! The generator of random numbers.

use titan_sim::engine::Rng;

#[test]
fn the_sequence_is_that_of_the_paper() {
    // The first outputs of the public-domain reference (Vigna, splitmix64.c) for seed 1234567.
    let mut rng = Rng::new(1_234_567);
    assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
    assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
}

#[test]
fn below_stays_below_and_reaches_all() {
    let mut rng = Rng::new(7);
    let mut seen = [false; 5];
    (0..200).for_each(|_| seen[rng.below(5)] = true);
    assert_eq!(seen, [true; 5]);
    assert_eq!(rng.below(0), 0);
}
