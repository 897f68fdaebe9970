//! The check language is a part of Python: Python itself says what drawn checks come to.

use openraid_claims::{evaluate, read, ClaimVerdict, MetricCall, MetricValue, Metrics, NotApplicable};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Number of drawn checks.
const CHECKS: usize = 3000;

/// Prints for each line whether it is true, false, or an error.
const PYTHON: &str = "
import sys
for line in sys.stdin:
    try:
        print(bool(eval(line, {})))
    except (ZeroDivisionError, IndexError, ValueError, KeyError):
        print('error')
";

struct Nothing;

impl Metrics for Nothing {
    fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
        panic!("bug: no check asks for {call}")
    }
}

/// Draws checks.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % count
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    fn number(&mut self, depth: usize, names: &[&str]) -> String {
        if depth == 0 {
            let numbers = ["0", "1", "2", "7", "-3", "0.5", "2.25", "-1.5", "1e3", ".25", "10"];
            return if self.below(3) == 0 && !names.is_empty() { self.of(names) } else { self.of(&numbers) }.into();
        }
        let (one, other) = (self.number(depth - 1, names), self.number(depth - 1, names));
        match self.below(9) {
            0 => format!("({one} if {} else {other})", self.truth(depth - 1, names)),
            1 => format!("len({})", self.list(depth - 1, names)),
            2 => format!("{}({one}, {other})", self.of(&["max", "min"])),
            3 => format!("{}({})", self.of(&["max", "min", "sum"]), self.list(depth - 1, names)),
            4 => format!("{}[{}]", self.list(depth - 1, names), self.of(&["0", "1", "-1", "-2"])),
            5 => format!("abs({one})"),
            6 => format!("-({one})"),
            7 => format!("(lambda x: x {} {one})({other})", self.of(&["+", "*", "-"])),
            _ => format!("{one} {} {other}", self.of(&["+", "-", "*", "/", "//", "%"])),
        }
    }

    fn list(&mut self, depth: usize, names: &[&str]) -> String {
        if depth == 0 {
            return self
                .of(&["[1, 2, 3]", "[]", "[0.5, 2, -1, 2]", "[7]", "list(range(5))", "list(range(6, 0, -2))"])
                .into();
        }
        let inner = self.list(depth - 1, names);
        match self.below(8) {
            0 => format!("{inner}{}", self.of(&["[::-1]", "[1:]", "[:-1]", "[-2:]", "[::2]", "[3:0:-1]", "[5:]"])),
            1 => format!("sorted({inner}{})", self.of(&["", ", reverse=True", ", key=lambda x: -x"])),
            2 => format!("({inner} + {})", self.list(depth - 1, names)),
            3 => format!("({inner} * {})", self.of(&["0", "1", "2"])),
            4 => format!("[a * b for a, b in zip({inner}, {})]", self.list(depth - 1, names)),
            5 => format!("[i - a for i, a in enumerate({inner})]"),
            _ => {
                let names: Vec<&str> = names.iter().copied().chain(["a"]).collect();
                let item = self.number(depth - 1, &names);
                format!("[{item} for a in {inner} if {}]", self.truth(depth - 1, &names))
            }
        }
    }

    fn truth(&mut self, depth: usize, names: &[&str]) -> String {
        if depth == 0 {
            return self.of(&["True", "False", "'raid5x%d' % 4 == 'raid5x4'", "'a' < 'b'", "(1, 2) < (1, 3)"]).into();
        }
        match self.below(6) {
            0 => format!(
                "({} {} {})",
                self.truth(depth - 1, names),
                self.of(&["and", "or"]),
                self.truth(depth - 1, names)
            ),
            1 => format!("(not {})", self.truth(depth - 1, names)),
            2 => format!("({} {} {})", self.number(0, names), self.of(&["in", "not in"]), self.list(depth - 1, names)),
            3 => format!(
                "({} {} {})",
                self.list(depth - 1, names),
                self.of(&["==", "!=", "<"]),
                self.list(depth - 1, names)
            ),
            4 => format!("{}([b > 0 for b in {}])", self.of(&["all", "any"]), self.list(depth - 1, names)),
            _ => {
                let comparison = self.of(&["<", "<=", ">", ">=", "==", "!="]);
                format!("({} {comparison} {})", self.number(depth - 1, names), self.number(depth - 1, names))
            }
        }
    }
}

fn ours(check: &str) -> &'static str {
    let text = serde_json::json!([{"id": "t", "system": "s", "check": format!("bool({check})")}]);
    let claim = read(&text.to_string()).expect("a claim").claims.remove(0);
    let outcome = evaluate(&claim, &Nothing);
    match outcome.verdict {
        _ if outcome.broken => "error",
        ClaimVerdict::Pass => "True",
        _ => "False",
    }
}

#[test]
fn drawn_checks_come_to_what_python_says() {
    let mut draw = Draw(40);
    let checks: Vec<String> = (0..CHECKS).map(|index| draw.truth(2 + index % 4, &[])).collect();
    let mut python = Command::new("/usr/bin/python3")
        .args(["-W", "ignore", "-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3");
    let lines = checks.join("\n") + "\n";
    let mut input = python.stdin.take().expect("its input");
    let written = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().expect("its output");
    written.join().expect("no panic").expect("all checks");
    let output = String::from_utf8(output.stdout).expect("text");
    let answers: Vec<&str> = output.lines().collect();
    assert_eq!(answers.len(), checks.len());
    let mut counts = [0; 3];
    for (check, answer) in checks.iter().zip(answers) {
        assert_eq!(ours(check), answer, "{check}");
        counts[["True", "False", "error"].iter().position(|word| *word == answer).expect("an answer")] += 1;
    }
    // Each answer is frequent enough to mean something.
    assert!(counts.iter().all(|count| *count >= CHECKS / 20), "{counts:?}");
}
