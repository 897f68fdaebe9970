//! Every name of the language, evaluated with a fake that computes its answer from the call.

use openraid_claims::{
    axis_named, evaluate, Axis, AxisValue, Claim, ClaimOutcome, ClaimVerdict, Metric, MetricCall, MetricValue, Metrics,
    NotApplicable, Operations, Subject,
};
use std::sync::Mutex;

/// A fake that computes predictable figures from the call, and records the calls.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<MetricCall>>,
}

impl Metrics for Fake {
    #[allow(clippy::cast_precision_loss)]
    fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
        self.asked.lock().unwrap().push(call.clone());
        let whole = |axis: Axis| call.axes.whole(axis).unwrap_or(0) as f64;
        Ok(match call.metric {
            Metric::MemberOps => MetricValue::Operations(Operations { reads: 2, xors: 2, writes: 2 }),
            Metric::MemberDisks => MetricValue::Count(2),
            Metric::MinMembers => MetricValue::Count(if call.axes.text(Axis::Ctl) == Some("9650se") { 5 } else { 4 }),
            Metric::Lin => return Err(NotApplicable::new("this fake draws no graph")),
            Metric::Gain => MetricValue::Number(f64::NAN),
            Metric::Iops => {
                let members = call.subject()?.members();
                MetricValue::Number(f64::from(members) * 100.0 + whole(Axis::Rd))
            }
            Metric::PctlUs => MetricValue::Number(call.axes.real(Axis::P).unwrap_or(-1.0)),
            Metric::M4 => MetricValue::Number(whole(Axis::Rd) + 1.0),
            Metric::Util => MetricValue::Number(whole(Axis::Member)),
            _ => MetricValue::Number(call.axes.iter().count() as f64),
        })
    }
}

fn claim(check: &str, tolerance: f64) -> Claim {
    let text = serde_json::json!([{
        "id": "t", "system": "lab", "kind": "order", "reproducible": "physics", "check": check,
        "tolerance": tolerance, "workload": {"pattern": "database", "qd": 16},
    }]);
    openraid_claims::read(&text.to_string()).expect("a claim").claims.remove(0)
}

fn run(check: &str) -> (ClaimOutcome, Vec<MetricCall>) {
    let fake = Fake::default();
    let outcome = evaluate(&claim(check, 0.25), &fake);
    let asked = fake.asked.into_inner().unwrap();
    (outcome, asked)
}

fn holds(check: &str) {
    let (outcome, _) = run(check);
    assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{check}: {}", outcome.reason);
}

fn fails(check: &str) {
    let (outcome, _) = run(check);
    assert!(outcome.verdict == ClaimVerdict::Fail && !outcome.broken, "{check}: {}", outcome.reason);
}

/// The check itself is wrong, and the reason includes these words.
fn broken(check: &str, words: &str) {
    let (outcome, _) = run(check);
    assert!(outcome.broken && outcome.verdict == ClaimVerdict::Fail, "{check}: {:?}", outcome.verdict);
    assert!(outcome.reason.contains(words), "{check}: {}", outcome.reason);
    assert!(outcome.reason.len() < 1000, "{}", outcome.reason);
}

#[test]
fn constants_have_their_values() {
    holds("K == 1024 and M == 1024 * K and T == 0.25");
    holds("RD == [10 * n for n in range(11)]");
    holds("QDL == [1, 4, 16, 64, 256] and QDW == [1, 2, 4, 8, 16, 32] and OIO == [2, 4, 8, 16, 32, 64, 128]");
    holds("SEQ[0] == 512 and SEQ[-1] == M and len(SEQ) == 12 and all([SEQ[n] * 2 == SEQ[n + 1] for n in range(11)])");
    holds("RND[0] == 512 and RND[-1] == 2 * M and len(RND) == 13 and RND[:12] == SEQ");
    holds("OPS == ['create', 'read', 'copy_same', 'copy_other']");
    holds("SETS == ['install', 'iso', 'mp3', 'programs', 'windows']");
    holds("APPS == ['winmark99', 'photoshop40', 'soundforge40', 'visualcpp50']");
    holds("S4 == [single, raid0x2, raid0x3, raid0x4, raid1x2, raid10x4, raid5x3, raid5x4]");
    holds("S8 == [single, raid0x8, raid5x8, raid6x8, raid10x8, raid50x8]");
    holds("R0 == [raid0x2, raid0x3, raid0x4, raid0x5, raid0x6]");
}

#[test]
fn every_array_is_a_name_and_a_text() {
    for name in
        ["single", "raid0x2", "raid1x3", "raid1ex5", "raid10x12", "raid5x24", "raid6x16", "raid50x9", "raid60x16"]
    {
        holds(&format!("{name} == '{name}' and iops({name}, rd=0) == iops('{name}', rd=0)"));
    }
    for name in ["jbodx6", "slow_single", "best15k", "ssd2009", "desktop_ssd", "s3500", "s3700"] {
        holds(&format!("mbps('{name}') == mbps({name})"));
    }
    holds("iops(raid0x4, rd=7) == 407 and iops('jbodx6') == 600 and iops('s3700') == 100");
}

#[test]
fn every_metric_is_asked_with_its_arguments() {
    let calls = [
        ("iops(raid5x4, rd=30, qd=16) > 0", "iops(raid5x4, rd=30, qd=16)"),
        ("mbps(raid5x4, bs=64 * K) > 0", "mbps(raid5x4, bs=65536)"),
        ("peak_mbps(raid5x4, pat='sr', bus='pcie2_x8') > 0", "peak_mbps(raid5x4, pat='sr', bus='pcie2_x8')"),
        ("lat(raid5x4, op='write') > 0", "lat(raid5x4, op='write')"),
        ("mean_us(raid5x4) == 0", "mean_us(raid5x4)"),
        ("pctl_us(raid5x4, 99.999) == 99.999", "pctl_us(raid5x4, p=99.999)"),
        ("rating(raid5x4, zone='32g') > 0", "rating(raid5x4, zone='32g')"),
        ("score(raid5x4, app='winmark99', fs='ntfs') > 0", "score(raid5x4, fs='ntfs', app='winmark99')"),
        ("fct(raid5x4, op='copy_same', set='iso', cyc=2) > 0", "fct(raid5x4, op='copy_same', set='iso', cyc=2)"),
        ("wbwt(raid5x4, qd=256, rd=0) > 0", "wbwt(raid5x4, rd=0, qd=256)"),
        ("M4(raid5x4, 100) == 101", "M4(raid5x4, rd=100)"),
        ("count(raid5x4, op='read', secs=600) > 0", "count(raid5x4, op='read', secs=600)"),
        ("cpu(raid5x4, pat='rndssd') > 0", "cpu(raid5x4, pat='rndssd')"),
        ("util(raid5x4, 3) == 3", "util(raid5x4, member=3)"),
        ("capacity(raid5x4) == 0", "capacity(raid5x4)"),
        ("member_ops(raid5x4, 'small_write') == {'r': 2, 'x': 2, 'w': 2}", "member_ops(raid5x4)"),
        ("member_disks(raid5x4, 'small_write') == 2", "member_disks(raid5x4)"),
        ("reads_per_write(raid5x4, pat='rw') > 0", "reads_per_write(raid5x4, pat='rw')"),
        ("min_members('raid6', ctl='9650se') == 5", "min_members(raid6, ctl='9650se')"),
        ("min_members(raid6, ctl='9650se') == 5", "min_members(raid6, ctl='9650se')"),
        ("min_members(level='single') == 4", "min_members(single)"),
        ("capacity(s=raid5x4, ctl='3ware-9650se') == 1", "capacity(raid5x4, ctl='3ware-9650se')"),
    ];
    for (check, call) in calls {
        let (outcome, asked) = run(check);
        assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{check}: {}", outcome.reason);
        assert_eq!((asked.len(), asked[0].to_string().as_str()), (1, call));
        assert_eq!(outcome.measured[0].call, call);
        assert_eq!((asked[0].system.as_str(), asked[0].workload.defaults.whole(Axis::Qd)), ("lab", Some(16)));
    }
    assert_eq!(run("iops(raid5x4) > 0").1[0].subject(), Ok("raid5x4".parse::<Subject>().unwrap()));
}

#[test]
fn arithmetic_metrics_need_no_measurement() {
    for check in [
        "approx(cap('sas3'), 300, 0) and cap('pcie2_x8') < 8 * cap('sas6')",
        "survive_fraction('raid6', n=5, k=2) == 1.0 and survive_fraction(raid10x4, 4, 2) < 1 and survive_fraction('raid0', 2, 1) == 0",
        "approx(survive_fraction('raid10', n=4, k=2), 2 / 3, 0.001)",
        "all([parity_share(raid5x4, m) == 0.25 for m in range(4)])",
        "parity_share(raid0x4, 0) == 0 and parity_share(s=raid5x4, member=1) == 0.25 and cap(link='sata3') == cap('sata3')",
        "survive_fraction(raid5x8, k=1) == 1 and survive_fraction(raid5x8, k=2) == 0 and survive_fraction(level=raid50, n=8, k=1) == 1",
        "survive_fraction('single', n=1, k=1) == 0 and survive_fraction(single, k=0) == 1 and survive_fraction('jbodx4', k=1) == 0 and survive_fraction(jbod, n=4, k=0) == 1",
    ] {
        let (outcome, asked) = run(check);
        assert_eq!((outcome.verdict, asked.len()), (ClaimVerdict::Pass, 0), "{check}: {}", outcome.reason);
        assert!(!outcome.measured.is_empty());
    }
}

/// All axes with valid values.
const AXES: &[&str] = &[
    "rd=0",
    "rd=100",
    "qd=1",
    "qd=256",
    "oio=2",
    "workers=2",
    "users=8",
    "bs=512",
    "bs=2 * M",
    "th=4",
    "pat='db'",
    "pat='sr'",
    "pat='sw'",
    "pat='rr'",
    "pat='rw'",
    "pat='fs'",
    "pat='web'",
    "pat='ws'",
    "pat='mt'",
    "pat='rt'",
    "pat='seqssd'",
    "pat='rndssd'",
    "op='read'",
    "op='write'",
    "op='create'",
    "op='copy_same'",
    "op='copy_other'",
    "set='mp3'",
    "fs='fat32'",
    "app='visualcpp50'",
    "cache='wb'",
    "cache='wt'",
    "cache_mib=0",
    "cache_mib=256",
    "ctl='9650se'",
    "ctl='8506-8'",
    "ctl='8500-8'",
    "ctl='rst'",
    "ctl='9260-8i'",
    "ctl='8708em2'",
    "ctl='hba92xx'",
    "ctl='sas3041e-r'",
    "ctl='icp9024ro'",
    "ctl='areca1220'",
    "ctl='openraid'",
    "bus='pci64_33'",
    "bus='pci64_66'",
    "bus='pcix64_133'",
    "bus='pcie1_x1'",
    "bus='pcie3_x8'",
    "bus='dmi2'",
    "zone='full'",
    "zone='32g'",
    "pos='begin'",
    "pos='end'",
    "cyc=1",
    "cyc=2",
    "after='recreate'",
    "after='power_cycle'",
    "warm_s=30",
    "secs=0.5",
    "slow=0",
    "slow=1",
    "slow=True",
    "member=5",
    "host_speed=2",
    "host_speed=0.5",
    "rep=3",
];

#[test]
fn every_axis_is_taken_and_its_limits_hold() {
    for axis in AXES {
        let (outcome, asked) = run(&format!("mbps(raid0x2, {axis}) == 1"));
        assert_eq!(outcome.verdict, ClaimVerdict::Pass, "{axis}: {}", outcome.reason);
        let (name, _) = axis.split_once('=').unwrap();
        assert!(asked[0].axes.has(axis_named(name).unwrap()), "{axis}");
    }
    for axis in
        ["rd=101", "rd=-1", "rd=1.5", "qd=0", "th=5", "pat='tape'", "cyc=3", "fs='ext4'", "bs='big'", "rd=[1]", "ctl=1"]
    {
        broken(&format!("mbps(raid0x2, {axis}) == 1"), axis.split_once('=').unwrap().0);
    }
    let (_, asked) = run("mbps(raid0x2, bs=64 * K, host_speed=0.5) > 0");
    assert_eq!(asked[0].axes.get(Axis::HostSpeed), Some(&AxisValue::Number(0.5)));
}

#[test]
fn helpers_are_their_definitions() {
    holds("approx(90, 100, 0.1) and not approx(89.9, 100, 0.1) and approx(-110, -100, 0.1)");
    holds("within(1, 1, 2) and within(2, 1, 2) and not within(2.01, 1, 2)");
    holds("mean([1, 2, 6]) == 3 and mean([True, False]) == 0.5 and mean((4,)) == 4");
    holds("sum([1, 2]) == 3 and sum([0.5, 1]) == 1.5 and sum([True, False, True]) == 2 and sum([]) == 0");
    holds("abs(-3) == 3 and abs(-0.5) == 0.5 and abs(2) == 2");
    holds("approx(spread([90, 100, 110]), 0.2, 0.0001)");
    holds("flat([90, 100, 110], 0.21) and not flat([90, 100, 110], 0.19)");
    holds("rising([1, 2, 2], 0) and not rising([1, 2, 1.9], 0) and rising([1, 2, 1.9], 0.05)");
    holds("falling([2, 1, 1], 0) and not falling([1, 1.1], 0.05) and falling([1, 1.04], 0.05)");
    holds("slump([10, 8, 10], 1, 0.1) and not slump([10, 9.5, 10], 1, 0.1) and not slump([10, 8, 8.5], 1, 0.1)");
    holds("corr([1, 2, 3], [2, 4, 6]) == 1 and corr([1, 2, 3], [6, 4, 2]) == -1");
    holds("rankcorr([1, 2, 3], [1, 10, 100]) == 1 and approx(rankcorr([1, 2, 3, 4], [1, 3, 2, 4]), 0.8, 0.0001)");
    holds("max(1, 2.5) == 2.5 and min([3, 1, 2]) == 1 and len(sorted([3, 1])) == 2 and sorted([2, 1, 3])[0] == 1");
    holds("any([False, True]) and not all([True, False]) and [a for a, b in zip([1, 2], [3, 4]) if b > 3] == [2]");
    holds("sorted([1, 3, 2], reverse=True) == [3, 2, 1] and RD[::-1][0] == 100");
    broken("mean([]) > 0", "mean of nothing");
    broken("spread([1, -1]) > 0", "around zero");
    // An end has only one neighbour.
    holds("not slump([8, 10, 8], 0, 0.1) and not slump([10, 8, 7], 2, 0.1) and not any([slump([2, 1, 2], i, T) for i in (0, 2)])");
    broken("slump([1, 2], 2, 0.1)", "count from 0");
    holds("RD.index(50) == 5 and slump([2, 1, 2], RD.index(10), T)");
    broken("corr([1, 2], [1]) > 0", "one length");
    broken("mean(['a']) > 0", "numbers");
    broken("1 / 0 > 0", "ivi");
}

#[test]
fn comparisons_and_loops_work_as_in_the_published_claims() {
    holds("all([iops(a, rd=r) >= 100 for a in S4 for r in RD]) and max([iops(a, rd=0) for a in S4 if a != raid5x4]) == 400");
    holds("all([approx(iops(a, rd=0) / iops(single, rd=0), n, T) for a, n in [(raid0x2, 2), (raid0x3, 3)]])");
    holds("raid5x4 in S4 and raid5x9 not in S4 and (1 if T > 0 else 2) == 1 and 7 // 2 == 3 and 7 % 2 == 1 and 1 << 4 == 16");
    holds("sum([iops(a, rd=0) < 250 for a in S4]) == 3");
    fails("iops(raid0x2) > iops(raid0x3)");
    let (outcome, asked) = run("all([iops(single, rd=0) == 100 for a in range(50)])");
    assert_eq!((outcome.measured.len(), asked.len()), (1, 50), "a value is told once");
}

#[test]
fn an_expected_falsehood_passes_and_its_truth_fails() {
    let verdict = |check: &str| {
        let claim = Claim { expected: false, ..claim(check, 0.0) };
        let outcome = evaluate(&claim, &Fake::default());
        (outcome.verdict, outcome.reason)
    };
    let (passed, reason) = verdict("cap('pcie2_x8') >= 8 * cap('sas6')");
    assert_eq!(
        (passed, reason.as_str()),
        (ClaimVerdict::Pass, "the check is false, as expected: the review is wrong here")
    );
    assert_eq!(verdict("1 < 2").0, ClaimVerdict::Fail);
    // A check that cannot be evaluated is not a false statement.
    assert_eq!(verdict("nonsense(1)").0, ClaimVerdict::Fail);
}

#[test]
fn a_metric_without_meaning_makes_the_claim_not_applicable() {
    for (check, words) in [
        ("lin(single, pos='begin') > 0", "lin(single, pos='begin'): this fake draws no graph"),
        ("gain(single, app='winmark99') > 0", "not a number"),
        ("cap('token_ring') > 0", "unknown link"),
        ("survive_fraction('raid10', n=5, k=1) > 0", "even"),
        ("parity_share(raid0x4, 4) > 0", "no member 4"),
        ("parity_share(single, 1) > 0", "no member 1"),
        ("survive_fraction(single, k=2) > 0", "2 of 1"),
        ("parity_share(raid5x3, 3) > 0", "no member 3"),
    ] {
        let (outcome, _) = run(check);
        assert_eq!(outcome.verdict, ClaimVerdict::NotApplicable, "{check}: {}", outcome.reason);
        assert!(outcome.reason.contains(words), "{}", outcome.reason);
    }
    // The result is known before the metric without meaning is reached, so that part is not evaluated.
    holds("True or lin(single, pos='begin') > 0");
    let (outcome, _) = run("iops(single, rd=0) > 0 and lin(single, pos='end') > 0");
    assert_eq!((outcome.verdict, outcome.measured.len()), (ClaimVerdict::NotApplicable, 1));
}

#[test]
fn wrong_checks_are_distinguished_from_false_ones() {
    broken(
        "iops(single, rd=0) >",
        "character 21: this is not an expression: the end of the check stands in the place of a value",
    );
    broken("x = 1", "one expression");
    broken("1 < 2; 2 < 3", "character 6: ';' is no sign");
    broken("1 < 2 2 < 3", "one expression");
    broken("1 < 2 < 3", "join them with and: a < b and b < c");
    broken("iosp(single) > 0", "is 'iops' meant?");
    broken("iops(raid5) > 0", "'raid5' is not an array");
    broken("iops(single, n=4) > 0", "no axis 'n'");
    broken("iops(single, p=99) > 0", "no axis 'p'");
    broken("iops(single, s=single) > 0", "without names");
    broken("cap(s='sata3') > 0", "no axis 's'");
    broken("iops(single, ctl='abacus') > 0", "the name of a controller's profile");
    broken("iops('raid7x4') > 0", "not an array");
    broken("iops(3) > 0", "name of an array");
    broken("iops() > 0", "name of an array");
    broken("iops(single, depth=4) > 0", "no axis 'depth'");
    broken("iops(single, 4) > 0", "without names");
    broken("M4(single) > 0", "needs rd");
    broken("M4(single, 0, rd=0) > 0", "twice");
    broken("member_ops(raid5x4, 'large_write') == 0", "small_write");
    broken("survive_fraction('raid6', n=5) == 1", "needs k");
    broken("iops(single, rd=0)", "type float");
    broken("[1]", "type list");
    broken("'a' + 1 == 2", "character 5: string and int cannot be added");
    broken("True and\n  1 < 'a'", "character 14: int and string have no order");
    broken("RD[11] == 1", "there is no item 11 of 11; they count from 0");
    broken("RD['a'] == 1", "no item at an index of type string");
    broken("{'a': 1}['b'] == 1", "no such key");
    broken("[a for a in 5] == []", "character 13: int has no items");
    broken("[a for a, b in [(1, 2, 3)]] == []", "has not 2 parts");
    broken("mean(ys=[1]) == 1", "mean has no argument 'ys'; known are xs");
    broken("approx(1, 2) == 1", "approx needs t");
    broken("approx(1, 2, x=3, t=1) == 1", "x is given twice");
    broken("abs(x=1, x=2) == 1", "given twice");
    broken("abs(x=1, 2) == 1", "follows one with a name");
    broken("5(3) == 1", "int is not a function");
    broken("RD.sort() == 1", "no method 'sort'; known are keys");
    broken("RD.append(1)", "no method 'append'");
    broken("().__class__ == 1", "no method '__class__'");
    broken("abs(*[1]) == 1", "'*' stands in the place of a value");
    broken("[1, 2 == 1", "the end of the check stands in the place of ']'");
    broken("'abc == 1", "close its quote");
    broken("1e999 > 0", "not a number");
    broken("1e300 * 1e300 > 0", "too large for a number");
    broken("12ab > 0", "followed by a letter");
    broken("99999999999999999999 > 0", "too large; at most 9223372036854775807");
    broken("5 % 0 == 0", "division by zero");
    broken("5 // 0.0 == 0", "division by zero");
    broken("load('x', 'y')", "");
    broken("open('x')", "nothing is called 'open'");
    broken("len([a for a in RD]) + a == 1", "character 24: nothing is called 'a'; the names");
}

#[test]
fn hostile_checks_neither_hang_nor_eat_the_memory() {
    broken("len([0] * 2000000000) > 0", "more than 10000 items");
    broken("len('x' * 2000000000) > 0", "more than 10000 items");
    broken("len(range(2000000000)) > 0", "more than 10000 numbers");
    broken("(1 << 100000) > 0", "shift");
    broken("all([True for a in range(9999) for b in range(9999) for c in range(9999)])", "more than 10000 items");
    broken("[a for a in range(9999) for b in range(9999) for c in range(9999) if c < 0] == []", "5000000 steps");
    broken("{a: b for a in range(9999) for b in range(9999)} == {}", "5000000 steps");
    broken("len(range(0, -9223372036854775807 - 1, -1)) > 0", "more than 10000 numbers");
    broken("9223372036854775807 * 9223372036854775807 > 0", "too large");
    let deep = format!("{}1{} == 1", "(".repeat(4000), ")".repeat(4000));
    broken(&deep, "character 65: expressions are nested more than 64 deep");
    for (open, close) in
        [("[", "]"), ("{1: ", "}"), ("abs(", ")"), ("1 if True else ", ""), ("lambda: ", ""), ("RD[", "]")]
    {
        let deep = |depth: usize| format!("{}1{} == 1", open.repeat(depth), close.repeat(depth));
        broken(&deep(400), if open.starts_with('l') { "at most 24" } else { "64 deep" });
        assert!(!run(&deep(20)).0.reason.contains("deep"), "{open}");
    }
    broken(&format!("RD{} == 1", "[0]".repeat(400)), "64 deep");
    holds(&format!("{} True", "not ".repeat(1500)));
    let sum = format!("{} > 0", vec!["1"; 2500].join("+"));
    holds(&sum);
    broken(&"x".repeat(100_000), "at most 8192");
    // Lists that contain each other many times.
    let nested = "len([1 for a in [[0] * 9999] for b in [[a] * 9999] for c in [[b] * 9999] for d in [[c] * 9999] if d == d]) > 0";
    broken(nested, "5000000 steps");
    let sorted = "sorted([[1 for a in [[0] * 9999] for b in [[a] * 9999] if [b, b] < [b, b]]]) == []";
    broken(sorted, "5000000 steps");
    broken("[[[[[[[[[[0]]]]]]]]]] == [[[[[[[[[[0]]]]]]]]]]", "too large to be compared");
    let plus = "len([f for a in [[0] * 9999] for b in [a + a] for f in [b + b]]) > 0";
    broken(plus, "more than 10000 items");
    for garbage in ["\u{0}\u{1}", "\u{fe0f}", "'", "[[[[", "))))", "\\", "if", "for a in b", "#"] {
        let (outcome, _) = run(garbage);
        assert!(outcome.broken, "{garbage:?}");
    }
}

#[test]
fn functions_without_names_order_and_choose() {
    holds("(lambda x: x + 1)(1) == 2");
    holds("sorted(RD, key=lambda rd: -rd)[0] == 100 and sorted([3, 1, 2], reverse=True) == [3, 2, 1]");
    holds("max(RD, key=lambda rd: iops(raid0x2, rd=rd)) == 100 and min([4, 2], key=lambda x: -x) == 4");
    holds("[f(2) for f in [lambda x: x * x]] == [4]");
    broken("(lambda x: y)(1) == 1", "'y'");
    broken("(lambda f: f(f))(lambda f: f(f))", "nested more than 128 deep");
    broken("(lambda x: x)() == 1", "takes 1 arguments");
}

#[test]
fn names_of_arrays_can_be_made_of_numbers() {
    holds("iops('raid0x%d' % 4) == iops(raid0x4) and iops('raid{}x{}'.format(0, 4)) == iops(raid0x4)");
    holds(
        "iops('raid0x' + str(3)) == iops('raid0x3') and 'raid5x4'.startswith('raid5') and 'a,b'.split(',')[1] == 'b'",
    );
    holds(
        "survive_fraction(5, n=4, k=1) == 1 and survive_fraction('6', n=4, k=2) == survive_fraction('raid6', n=4, k=2)",
    );
    holds("spread([0, 0, 0]) == 0 and flat([0, 0], 0)");
    broken("'%s' % [[0] * 10000] * 10000 == ''", "");
}
