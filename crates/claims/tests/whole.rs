//! The whole language on the simulated laboratory: every metric, axis, array, constant and helper of docs/lab/claims.md,
//! each in a check with the smallest effort. No check may be broken or without meaning. Each value must be within the
//! bounds of a closed form or of the drive's data sheet.

use openraid_claims::axis_arguments::BUSES;
use openraid_claims::{axis_named, evaluate, read, Claim, ClaimStore, ClaimVerdict, Metric, Simulated, CLAIM_AXES};
use openraid_methods::cell::Effort;
use openraid_models::Library;

const DOCS: &str = include_str!("../../../docs/lab/claims.md");

/// System, pattern, check. The tolerance is a tenth.
const CHECKS: &[(&str, &str, &str)] = &[
    // A WD740GD: 72 MB/s outside, 54 inside; an arm of 4.5 ms, a turn of 6 ms.
    ("9650se", "database", "within(iops(single, rd=100, qd=1), 100, 150) and within(lat(single, op='read', pat='rt'), 6.5, 9.5)"),
    ("9650se", "sequential", "approx(mbps(single, bs=64 * K), 72, T) and approx(peak_mbps(raid0x2, rd=100), 144, T)"),
    ("9650se", "sequential", "approx(mbps(raid0x2, op='write', bs=M, th=2), mbps(raid0x2, rd=0, bs=M, workers=2), T)"),
    ("9650se", "winbench99-transfer-graph", "approx(lin(single, pos='begin'), 72, T) and approx(lin(single, pos='end'), 54, T) and approx(lin(single), 63, T)"),
    ("9650se", "response-time", "approx(count(single, op='read'), 600 * 1000 / lat(single, op='read'), T) and approx(count('jbodx2', secs=10, member=0), count('jbodx2', secs=10) / 2, T)"),
    ("9650se", "static-property", "min_members('single') == 1 and min_members(jbod) == 1"),
    ("9650se", "response-time", "approx(count(single, op='read', secs=10), 10 * 1000 / lat(single, op='read', secs=10), T)"),
    ("9650se", "database", "approx(iops(single, rd=100, warm_s=5), iops(single, rd=100), T) and approx(iops(single, rd=100, rep=1), iops(single, rd=100, rep=2), T)"),
    ("9650se", "database", "wbwt(single, rd=0, qd=1) > 1 and iops(raid5x4, rd=0, cache='wb') >= iops(raid5x4, rd=0, cache='wt') * (1 - T)"),
    ("9650se", "database", "iops(raid5x4, rd=0, qd=16, cache_mib=256) >= iops(raid5x4, rd=0, qd=16, cache_mib=4) * (1 - T)"),
    ("9650se", "database", "all([iops(single, pat=p, qd=4) > 50 for p in ('db', 'fs', 'web', 'ws')]) and all([mbps(single, pat=p) > 0.05 for p in ('sr', 'sw', 'rr', 'rw', 'mt', 'rt', 'seqssd', 'rndssd')])"),
    ("9650se", "file-server", "within(rating(single), iops(single, qd=1) * (1 - T), iops(single, qd=256) * (1 + T)) and iops(single, qd=4, zone='32g') > iops(single, qd=4, zone='full')"),
    ("9650se", "fc-test", "all([within(fct(single, op=o, set='install', fs=f), 5, 72 * (1 + T)) for o in OPS for f in ('ntfs', 'fat32')])"),
    ("9650se", "fc-test", "all([within(fct(raid0x2, op='create', set=s), 5, 144 * (1 + T)) for s in SETS])"),
    ("9650se", "database", "within(util(single, 0, rd=100, qd=4), 0.8, 1) and approx(iops('jbodx2', rd=100, member=1), iops(single, rd=100), T)"),
    ("9650se", "database", "approx(iops('jbodx2', rd=100), 2 * iops(single, rd=100), T) and approx(iops('jbodx2', rd=100, workers=4), 2 * iops(single, rd=100, qd=2), T) and approx(iops('jbodx2', rd=100, workers=1), iops(single, rd=100), T)"),
    ("9650se", "database", "approx(iops('slow_single', rd=100), iops(single, rd=100) / 2, T) and iops(raid0x2, rd=100, qd=16, slow=1) < iops(raid0x2, rd=100, qd=16, slow=0)"),
    ("9650se", "database", "approx(iops(single, rd=100, oio=4), iops(single, rd=100, qd=4), T)"),
    ("9260-8i", "sequential", "all([mbps(raid0x8, bs=M, op='write', cyc=c) > 20 for c in (1, 2)]) and mbps(raid0x8, bs=M, op='write', after='power_cycle') > mbps(raid0x8, bs=M, op='write', after='recreate')"),
    ("icp9024ro", "winbench99", "all([score(raid5x4, app=a, cache_mib=128) > 1000 for a in APPS]) and all([score(raid5x4, app=a) > 1000 for a in ('business', 'highend')])"),
    ("icp9024ro", "winbench99", "within(gain(raid0x4, app='soundforge40', fs='fat32'), -T, 1) and score(raid5x4, app='winmark99', users=8) > score(raid5x4, app='winmark99') * (1 - T)"),
    // A load with both directions, and parallel drives.
    ("9650se", "database", "approx(count(single, op='read', rd=50, qd=4, secs=10) + count(single, op='write', rd=50, qd=4, secs=10), count(single, rd=50, qd=4, secs=10), 0.001) and within(count(single, op='read', rd=50, qd=4, secs=10) / count(single, rd=50, qd=4, secs=10), 0.4, 0.6)"),
    ("9650se", "database", "min([lat(single, op=o, pat='fs', qd=4) for o in ('read', 'write')]) < lat(single, pat='fs', qd=4) and max([lat(single, op=o, pat='fs', qd=4) for o in ('read', 'write')]) > lat(single, pat='fs', qd=4)"),
    ("9650se", "static-property", "approx(capacity('jbodx4', member=1), capacity(single), 0.001)"),
    ("9650se", "winbench99-transfer-graph", "approx(mbps(single, pos='end'), lin(single, pos='end'), 0.001) and mbps(single, pos='end') < mbps(single, pos='begin')"),
    // A member is busy if any part of it is busy: at its plateau, the path or the link of an SSD.
    ("rst", "rst-random", "all([iops(a, rd=100, oio=64) < iops(a, rd=100, oio=32) * 1.02 and util(a, 0, rd=100, oio=64) >= 0.95 for a in (single, 's3500', 's3700')])"),
    // SSDs: the data sheet of an S3500 states 75,000 reads of 4 KiB per second and 500 MB/s.
    ("rst", "rst-random", "approx(M4('s3500', 100), 75000, T) and M4('s3700', rd=0) > 10000 and iops('s3500', rd=100, oio=3) > 0"),
    ("rst", "rst-random", "0 < pctl_us(raid0x2, 1) and pctl_us(raid0x2, 1) <= mean_us(raid0x2) and mean_us(raid0x2) < pctl_us(raid0x2, p=99.99)"),
    ("rst", "rst-random", "within(cpu(raid0x2, rd=100), 0.01, 1) and cpu(raid0x2, rd=100, host_speed=0.5) > cpu(raid0x2, rd=100)"),
    ("rst", "rst-sequential", "approx(peak_mbps('s3500', rd=100), 500, T) and mbps('ssd2009') < 300 and mbps('desktop_ssd') > 400"),
    ("9260-8i", "sequential", "within(mbps('best15k', bs=64 * K), 150, 260)"),
    // Other controllers and buses: all of them give the drives' full rate.
    ("9650se", "sequential", "all([within(mbps(raid0x2, bs=64 * K, ctl=c), 100, 144 * (1 + T)) for c in ('9650se', '8506-8', '8500-8', 'rst', '9260-8i', '8708em2', 'hba92xx', 'sas3041e-r', 'icp9024ro', 'areca1220', 'openraid')])"),
    ("9650se", "sequential", "all([approx(mbps(raid0x2, bs=64 * K, bus=b), 144, T) for b in ('pci64_33', 'pci64_66', 'pcix64_133', 'pcie1_x1', 'pcie1_x4', 'pcie1_x8', 'pcie2_x1', 'pcie2_x4', 'pcie2_x8', 'pcie3_x1', 'pcie3_x4', 'pcie3_x8', 'dmi2')])"),
    ("9650se", "static-property", "approx(cap('sata1'), 150, 0) and approx(cap('sata3'), 300, 0) and approx(cap('sata6'), 600, 0) and approx(cap('sas3'), 300, 0) and approx(cap('sas6'), 600, 0) and approx(cap('pci64_66'), 533, 0.01) and approx(cap('pcie2_x4'), 2000, 0.01) and cap('dmi2') == cap('pcie2_x4')"),
    // All levels: capacity, cost of a small write, and survivors.
    ("9650se", "static-property", "all([approx(capacity(a, ctl='openraid') / capacity(single), n, 0.001) for a, n in [(raid0x3, 3), (raid1x3, 1), (raid1ex3, 1.5), (raid10x4, 2), (raid5x3, 2), (raid6x4, 2), (raid50x6, 4), (raid60x8, 4), ('jbodx2', 2)]])"),
    ("9650se", "static-property", "survive_fraction('raid6', n=5, k=2) == 1 and approx(survive_fraction(raid10x4, 4, 2), 2 / 3, 0.001) and approx(parity_share(raid6x5, 0), 0.2, 0.001)"),
    ("9650se", "static-property", "member_ops(raid5x4, 'small_write') == {'r': 2, 'x': 2, 'w': 2} and member_disks(raid5x4, 'small_write') == 2 and min_members('raid6', ctl='9650se') == 5"),
    ("9650se", "random-write-by-block", "approx(reads_per_write(raid5x4, bs=4 * K, cache='wt'), 2, T) and reads_per_write(raid0x4, bs=4 * K) == 0"),
    // Constants and helpers, on measured values.
    ("9650se", "database", "all([iops(a, rd=100, qd=4) > 0 for a in sorted(list(S4))]) and rising([iops(a, rd=100, qd=16) for a in (raid0x2, raid0x4)], T) and falling([lat(a, rd=100, qd=16) for a in (raid0x2, raid0x4)], T)"),
    ("9260-8i", "database", "len([iops(a, rd=100, qd=4) for a in S8]) == 6 and rankcorr([1, 2, 3], [iops(a, rd=100, qd=16) for a in (single, raid0x2, raid0x8)]) == 1 and corr(list(RD), RD) == 1"),
    ("rst", "rst-random", "flat([iops(a, rd=100, qd=2) / n for n, a in enumerate(['x'] + ['s3500', raid0x2]) if n > 0], 1) and spread([iops(single, rd=100), iops('s3500', rd=100)]) <= T and slump([2, 1, 2], 1, T)"),
    ("rst", "rst-random", "sum([mean(list(reversed(RD))), abs(-50)]) == 100 and any([b for a, b in zip(QDL, QDW) if b > 4]) and max(OIO) == 128 and min(SEQ) == 512 and RND[-1] == 2 * M and len(R0) == 5 and len(range(3)) == 3"),
    ("rst", "rst-random", "int(2.5) == 2 and float(1) == 1.0 and bool(1) and str(4) == '4' and tuple([1]) == (1,) and iops('raid0x%d' % 2, rd=100) == iops('raid{}x{}'.format(0, 2), rd=100)"),
];

fn claim(system: &str, pattern: &str, check: &str) -> Claim {
    claim_of(system, &serde_json::json!({"pattern": pattern}), check)
}

fn claim_of(system: &str, workload: &serde_json::Value, check: &str) -> Claim {
    let text = serde_json::json!([{
        "id": "t", "system": system, "check": check, "tolerance": 0.1, "workload": workload,
    }]);
    read(&text.to_string()).expect("a claim").claims.remove(0)
}

#[test]
fn every_name_of_the_language_has_a_sensible_value() {
    let effort = Effort { requests: 400, seconds_max: 5, warm_seconds_max: 5 };
    let laboratory = Simulated::new(Library::builtin(), ClaimStore::in_memory(), effort, 1);
    let mut wrong = Vec::new();
    for (system, pattern, check) in CHECKS {
        let outcome = evaluate(&claim(system, pattern, check), &laboratory);
        if outcome.verdict != ClaimVerdict::Pass {
            let measured: Vec<String> =
                outcome.measured.iter().map(|one| format!("{} = {:?}", one.call, one.value)).collect();
            wrong.push(format!("{check}\n    {}\n    {}", outcome.reason, measured.join("\n    ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CHECKS.len(), wrong.join("\n"));
}

#[test]
fn an_unmeasured_value_is_not_answered_with_another() {
    let effort = Effort { requests: 200, seconds_max: 2, warm_seconds_max: 2 };
    let laboratory = Simulated::new(Library::builtin(), ClaimStore::in_memory(), effort, 1);
    for (pattern, check, words) in [
        ("database", "lat('jbodx2', rd=100, member=0) > 0", "leave member out"),
        ("database", "lat('jbodx2', rd=100, member=2) > 0", "no member 2"),
        ("rst-random", "mean_us(raid0x2, member=1) > 0", "leave member out"),
        ("rst-random", "pctl_us(raid0x2, 99, member=1) > 0", "leave member out"),
        ("database", "reads_per_write(raid5x4, rd=0, member=1) > 0", "leave member out"),
        ("database", "cpu(raid0x2, rd=0, member=1) > 0", "leave member out"),
        ("winbench99", "score(raid0x2, app='winmark99', member=1) > 0", "leave member out"),
        ("winbench99-transfer-graph", "lin(raid0x2, member=1) > 0", "leave member out"),
        ("winbench99-transfer-graph", "lin('jbodx4') > 0", "drives side by side"),
        ("fc-test", "fct('jbodx4', op='read', set='iso') > 0", "drives side by side"),
        ("winbench99", "score('jbodx4', app='winmark99') > 0", "drives side by side"),
        ("database", "capacity('jbodx4', member=4) > 0", "no member 4"),
        ("database", "capacity(raid5x4, member=1) > 0", "leave member out"),
        ("database", "mbps(single, pos='end') > 0", "belongs to winbench99-transfer-graph"),
        ("database", "iops(single, secs=0.25) > 0", "whole seconds"),
        ("file-server", "rating(single, qd=16) > 0", "leave qd out"),
        ("web-server", "lat(single, op='write', qd=4) > 0", "no requests of this direction"),
    ] {
        let outcome = evaluate(&claim("9650se", pattern, check), &laboratory);
        assert_eq!(outcome.verdict, ClaimVerdict::NotApplicable, "{check}: {}", outcome.reason);
        assert!(outcome.reason.contains(words), "{check}: {}", outcome.reason);
    }
}

#[test]
fn a_verdict_that_rests_on_a_load_that_was_not_steady_says_so() {
    let check =
        "iops(single, rd=0, qd=16) > 0 and iops(single, rd=100, qd=16) > 0 and peak_mbps(raid0x2, pat='rw') > 0";
    // In a second no three windows are measured.
    for (warm_seconds_max, unsteady) in [(1, true), (60, false)] {
        let effort = Effort { requests: 100, seconds_max: 2, warm_seconds_max };
        let laboratory = Simulated::new(Library::builtin(), ClaimStore::in_memory(), effort, 1);
        let check = if unsteady { check.split(" and peak").next().expect("a part") } else { check };
        let outcome = evaluate(&claim("9650se", "database", check), &laboratory);
        let expected = "the check is true; it rests on values of loads that had not become steady: iops(single, rd=";
        assert_eq!(outcome.reason.contains(expected), unsteady, "{}", outcome.reason);
        assert!(unsteady || outcome.reason == "the check is true", "{}", outcome.reason);
    }
}

#[test]
fn ratings_are_the_formulas_of_the_documentation() {
    let effort = Effort { requests: 100, seconds_max: 2, warm_seconds_max: 1 };
    let laboratory = Simulated::new(Library::builtin(), ClaimStore::in_memory(), effort, 1);
    // An array's figures at several depths, and the single drive's at the same depths: computed by hand from
    // docs/lab/methods.md.
    let sum = |terms: &[(u32, u32)]| {
        let terms = terms.iter().map(|(depth, by)| format!("iops(raid0x2, qd={depth}) / {by}"));
        terms.collect::<Vec<_>>().join(" + ")
    };
    let to_16 = [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16)];
    let to_32 = [&to_16[..], &[(32, 32)]].concat();
    let work = [(1, 1), (2, 1), (4, 2), (8, 3), (16, 4)];
    let index = |cache: &str| {
        let one = |depth| format!("iops(raid0x2, qd={depth}{cache}) / iops(single, qd={depth}{cache})");
        format!("({} + {} + {}) / 3", one(16), one(64), one(256))
    };
    for (pattern, scheme, array, expected) in [
        ("workstation", "R1", "raid0x2", "mean([iops(raid0x2, qd=q) for q in QDW])".to_owned()),
        ("file-server", "R2(mean)", "raid0x2", sum(&to_16)),
        ("file-server", "R3, to 32", "raid0x2", sum(&to_32)),
        ("file-server", "R4", "raid0x2", sum(&[(1, 1), (4, 2), (16, 4), (64, 6), (256, 8)])),
        ("web-server", "depth-weighted", "raid0x2", sum(&[(1, 1), (4, 1), (16, 2), (64, 4), (256, 6)])),
        ("workstation", "R4", "raid0x2", sum(&work)),
        ("file-server", "R5", "raid0x2", index("")),
        ("file-server", "R5", "raid0x2, cache='wt'", index(", cache='wt'")),
        ("file-server", "R5", "single", "1".to_owned()),
    ] {
        let workload = serde_json::json!({"pattern": pattern, "rating_scheme": scheme});
        let check = format!("approx(rating({array}), {expected}, 0.000001) and rating({array}) > 0");
        let outcome = evaluate(&claim_of("9650se", &workload, &check), &laboratory);
        assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{scheme}: {check}: {} {:?}", outcome.reason, outcome.measured);
    }
    // The single drive with which an array with a slow member is compared is a good one.
    let workload = serde_json::json!({"pattern": "file-server", "rating_scheme": "R5"});
    for check in ["rating(raid0x2, slow=1) < rating(raid0x2)", "within(rating('jbodx2', member=1), 0.5, 2)"] {
        let outcome = evaluate(&claim_of("9650se", &workload, check), &laboratory);
        assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{check}: {} {:?}", outcome.reason, outcome.measured);
    }
}

#[test]
fn workload_fields_that_its_method_does_not_take_stop_no_check() {
    let effort = Effort { requests: 100, seconds_max: 2, warm_seconds_max: 1 };
    let laboratory = Simulated::new(Library::builtin(), ClaimStore::in_memory(), effort, 1);
    for (workload, check) in [
        (serde_json::json!({"pattern": "winbench99-transfer-graph", "block": 65536}), "lin(single) > 0"),
        (serde_json::json!({"pattern": "winbench99", "qd": 1}), "score(single, app='winmark99') > 0"),
        (
            serde_json::json!({"pattern": "fc-test", "workers": 1, "zone": "full", "duration_s": 60}),
            "fct(single, op='read', set='iso') > 0",
        ),
        (serde_json::json!({"pattern": "database", "users": 1, "op": "create", "app": "business"}), "iops(single) > 0"),
    ] {
        let outcome = evaluate(&claim_of("9650se", &workload, check), &laboratory);
        assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{workload}: {}", outcome.reason);
    }
}

/// The rows of a table in docs/lab/claims.md, each with its first two columns.
fn rows_of(table: &str) -> Vec<(&'static str, &'static str)> {
    let start = DOCS.find(&format!("\n### {table}\n")).unwrap_or_else(|| panic!("docs/lab/claims.md has no {table}"));
    let lines = DOCS[start..].lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_start_matches('|').split_once('|').expect("two columns")).collect()
}

/// The words in backticks of the first column of a table.
fn words_of(table: &str) -> Vec<&'static str> {
    let quoted = rows_of(table).into_iter().flat_map(|(first, _)| first.split('`').skip(1).step_by(2));
    quoted.map(|text| text.split('(').next().unwrap_or(text).trim_matches('\'')).collect()
}

#[test]
fn every_list_of_the_documentation_is_the_constants_value() {
    let laboratory = Simulated::new(Library::builtin(), ClaimStore::in_memory(), Effort::QUICK, 1);
    let mut lists = 0;
    for (name, rest) in rows_of("Constants") {
        let name = name.trim().trim_matches('`');
        let value = rest.split([':', '|']).next().unwrap_or_default().replace('`', "");
        // Series with only the first and last values given, and scalars.
        if value.contains("...") || !value.contains(',') || value.contains(';') || name.contains(',') {
            continue;
        }
        let outcome = evaluate(&claim("9650se", "static-property", &format!("list({name}) == [{value}]")), &laboratory);
        assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{name}: {value}: {}", outcome.reason);
        lists += 1;
    }
    assert_eq!(lists, 9, "QDL, QDW, OIO, OPS, SETS, APPS, S4, S8, R0");
}

#[test]
fn no_name_of_the_documentation_is_left_out() {
    let all: String = CHECKS.iter().map(|(_, _, check)| format!(" {check} ")).collect();
    let has = |word: &str| {
        let part = |at: char| at.is_ascii_alphanumeric() || at == '_';
        all.match_indices(word).any(|(at, _)| !all[..at].ends_with(part) && !all[at + word.len()..].starts_with(part))
    };
    let (metrics, axes) = (words_of("Metrics"), words_of("Axes"));
    for metric in Metric::ALL {
        assert!(has(metric.name()), "no check asks for {}", metric.name());
        assert!(metrics.contains(&metric.name()), "docs/lab/claims.md does not name {}", metric.name());
    }
    for axis in CLAIM_AXES {
        assert!(has(axis.word()), "no check gives {}", axis.word());
        assert!(axes.contains(&axis.word()), "docs/lab/claims.md does not name {}", axis.word());
    }
    for axis in axes {
        assert!(axis_named(axis).is_some(), "{axis} of docs/lab/claims.md is not an axis");
    }
    for pattern in words_of("Patterns") {
        assert!(pattern == "wk" || has(pattern), "no check has the pattern {pattern}");
    }
    for bus in BUSES {
        assert!(has(bus), "no check gives the bus {bus}");
    }
    for word in words_of("Constants").into_iter().chain(words_of("Helpers")) {
        assert!(has(word), "no check has {word}");
    }
    for level in ["raid0", "raid1", "raid1e", "raid10", "raid5", "raid6", "raid50", "raid60", "jbod"] {
        let named = all.match_indices(level).any(|(at, _)| all[at + level.len()..].starts_with('x'));
        assert!(named, "no check has an array of {level}");
    }
    for drive in ["single", "slow_single", "best15k", "ssd2009", "desktop_ssd", "s3500", "s3700"] {
        assert!(has(drive), "no check has {drive}");
    }
}
