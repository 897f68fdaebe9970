//! Numbers without a pattern, for tests: the same for each seed.

/// A function that draws a number below its argument. The generator is linear congruential with the constants of Numerical
/// Recipes, third edition, 7.1; the upper bits are the better ones.
pub(crate) fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}
