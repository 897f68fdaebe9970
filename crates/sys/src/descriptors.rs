//! How many descriptors this process may have.

/// Let this process have at least `wanted` descriptors, or as many as the system allows it; returns how many that are.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one structure of this type there.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return wanted;
    }
    if limit.rlim_cur >= wanted {
        return limit.rlim_cur;
    }
    let before = limit.rlim_cur;
    limit.rlim_cur = wanted.min(limit.rlim_max);
    // SAFETY: the kernel reads one structure of this type there.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
        limit.rlim_cur
    } else {
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_rises_as_far_as_the_system_allows_and_never_falls() {
        let before = raise_descriptor_limit(0);
        let after = raise_descriptor_limit(before + 1);
        assert!(after == before || after == before + 1);
        assert_eq!(raise_descriptor_limit(1), after);
    }
}
