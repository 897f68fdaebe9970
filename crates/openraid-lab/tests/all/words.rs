//! What people read of the laboratory, what it says of itself, and how its bad lines end.

use crate::support::prose::read_well;
use crate::support::readline::completed;
use crate::support::Lab;

#[test]
fn the_output_of_the_laboratory_reads_well() {
    let lab = Lab::new("lab-words");
    read_well(
        &lab,
        &[
            "review --arrays raid1x2 --load latency --effort quick --out a-review",
            "compare a-review a-review",
            "simulate raid5x4 --drive wd740gd --effort quick",
            "plan --drives 4 --levels 5 --effort quick",
            "torture --seeds 1..2",
            "console choices",
        ],
    );
}

#[test]
fn lines_of_the_laboratory_that_make_no_sense_end_as_usage() {
    let lab = Lab::new("lab-usage");
    for line in [
        "",
        "explode",
        "plan --levels 9",
        "simulate raid5x0",
        "torture --seeds 5..3",
        "completions tcl",
        "serve x --bogus",
    ] {
        let ran = lab.line(line).expect(64);
        assert!(!ran.err.is_empty(), "{line}: silent");
    }
    lab.line("torture --minutes 0.5").refused(64, &["'0.5' is not a number of minutes"]);
    lab.line("torture --replay abc").refused(64, &["'abc' is not a seed"]);
    lab.line("explode").refused(64, &["openraid-lab has no verb 'explode'", "`openraid-lab --help`"]);
    assert_eq!(std::fs::read_dir(&lab.folder).expect("the folder").count(), 0, "a line has made something");
}

#[test]
fn its_man_pages_and_completions_cover_its_verbs() {
    let lab = Lab::new("lab-man");
    lab.line("man pages").expect(0);
    let help = lab.line("--help").expect(0).text();
    for verb in openraid::lab_program::VERBS {
        assert!(help.contains(&format!("\n  {verb} ")), "{verb} is not in {help}");
        let text = std::fs::read_to_string(lab.path(&format!("pages/openraid-lab-{verb}.1"))).expect("the page");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{verb}");
    }
    assert!(!lab.path("pages/openraid-lab-console.1").exists() && !help.contains("console"), "it is for servers only");
    for shell in ["bash", "zsh", "fish"] {
        lab.line(&format!("completions {shell}")).expect(0).says(&["COMPLETE", "openraid-lab"]);
    }
    assert_eq!(completed(&lab, &["openraid-lab", "sim"]), ["simulate"]);
    assert_eq!(completed(&lab, &["openraid-lab", "plan", "--effort=qu"]), ["quick"]);
}

#[test]
fn verbs_of_openraid_are_verbs_of_the_laboratory() {
    let lab = Lab::new("lab-verbs");
    lab.line("create data --level 1 --assume-clean --file-size 8M d0 d1").expect(0);
    lab.line("list").expect(0).says(&["data"]);
    lab.line("help serve").expect(0).says(&["Serve"]);
    lab.line("show nothing").refused(65, &["openraid-lab show: "]);
}
