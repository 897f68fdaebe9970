//! A table of all methods, and the rules that need no measurement of their own.

use super::{cells, Method, TargetNeeds};
use crate::cell::words;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The form in which a report shows the results of a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportShape {
    /// Requests per second over the share of reads, with a panel for each queue depth.
    Shares,
    /// Rate over the size of a request, reads and writes separately.
    Sizes,
    /// Requests per second over queue depth, with a rating.
    Depths,
    /// MB/s over the number of clients.
    Clients,
    /// One figure for each subject.
    Bars,
    /// MB/s for each set of files.
    Files,
    /// MB/s over the position.
    Graph,
    /// Scores of applications.
    Scores,
    /// Ratios of write-back to write-through.
    Ratios,
    /// Two figures that should be equal.
    Pairs,
    /// Rate over the number of outstanding requests.
    Outstanding,
    /// The best of several runs, and the spread between them.
    BestRun,
    /// Requests per second over queue depth, for a part of the array and for all of it.
    Parts,
    /// Latency by percentile.
    Latencies,
    /// Rate over the size of the cache.
    CacheSizes,
    /// Figures by the state of the array.
    States,
    /// Speed and latency of one load.
    Load,
}

words! {
    /// The name of a method on the command line.
    MethodName {
        Database = "database",
        RandomByBlock = "random-by-block",
        ResponseTime = "response-time",
        Sequential = "sequential",
        MultiThreaded = "multi-threaded",
        FileServer = "file-server",
        WebServer = "web-server",
        Workstation = "workstation",
        FcTest = "fc-test",
        FcSubset = "fc-subset",
        TransferGraph = "transfer-graph",
        Winmarks = "winmarks",
        LowLevel = "low-level",
        Applications = "applications",
        BestOfSeven = "best-of-seven",
        ColdRepetitions = "cold-repetitions",
        WbWt = "wb-wt",
        TwoCycles = "two-cycles",
        RstJbod = "rst-jbod",
        RstRaid = "rst-raid",
        Latency = "latency",
        CacheSizes = "cache-sizes",
        Repeatability = "repeatability",
        Degraded = "degraded",
        First32Gb = "first-32-gb",
        OwnLoad = "own-load",
    }
}

const CONTROLLER: TargetNeeds = TargetNeeds::Remade(
    "the caches of a real target cannot be changed from here; they can be for arrays that the review makes (--members)",
);

const METHODS: &[Method] = &[
    Method {
        id: "M01",
        name: MethodName::Database,
        title: "Database",
        question: "How many 8 KiB requests a second, by share of reads and queue depth?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Shares,
        cells: cells::database,
    },
    Method {
        id: "M02",
        name: MethodName::RandomByBlock,
        title: "Random read and write by block size",
        question: "What does the size of a random request cost?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Sizes,
        cells: cells::random_by_block,
    },
    Method {
        id: "M03",
        name: MethodName::ResponseTime,
        title: "Response time",
        question: "How long does one sector at a random place take?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Bars,
        cells: cells::response_time,
    },
    Method {
        id: "M04",
        name: MethodName::Sequential,
        title: "Sequential read and write",
        question: "How fast is one stream, by the size of its requests?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Sizes,
        cells: cells::sequential,
    },
    Method {
        id: "M05",
        name: MethodName::MultiThreaded,
        title: "Multi-threaded read and write",
        question: "What do one to four streams get together?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Clients,
        cells: cells::multi_threaded,
    },
    Method {
        id: "M06",
        name: MethodName::FileServer,
        title: "File-Server",
        question: "How does a file server's load grow with queue depth?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Depths,
        cells: cells::file_server,
    },
    Method {
        id: "M07",
        name: MethodName::WebServer,
        title: "Web-Server",
        question: "How does a web server's load grow with queue depth?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Depths,
        cells: cells::web_server,
    },
    Method {
        id: "M08",
        name: MethodName::Workstation,
        title: "Workstation",
        question: "How does a workstation's load grow with queue depth, on the whole array and on its first 32 GB?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Depths,
        cells: cells::workstation,
    },
    Method {
        id: "M09",
        name: MethodName::FcTest,
        title: "Files: create, read, copy",
        question: "How fast are files of five sets made, read and copied?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Files,
        cells: cells::fc_test,
    },
    Method {
        id: "M10",
        name: MethodName::FcSubset,
        title: "Files: the three sets that are discussed",
        question: "How fast are files of three sets made, read and copied?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Files,
        cells: cells::fc_subset,
    },
    Method {
        id: "M11",
        name: MethodName::TransferGraph,
        title: "Transfer graph",
        question: "How fast is the array read from its beginning to its end?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Graph,
        cells: cells::transfer_graph,
    },
    Method {
        id: "M12",
        name: MethodName::Winmarks,
        title: "Disk WinMarks, imitated (High-End: 3 of 7 parts)",
        question: "What would the disk part of a day score, with office programs and with large ones?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Scores,
        cells: cells::winmarks,
    },
    Method {
        id: "M13",
        name: MethodName::LowLevel,
        title: "Access time, rate, processor share",
        question: "What are the plain figures: access time, sequential rate, processor share?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Bars,
        cells: cells::low_level,
    },
    Method {
        id: "M14",
        name: MethodName::Applications,
        title: "Application traces, imitated",
        question: "What does twice the cache bring to applications?",
        needs: CONTROLLER,
        shape: ReportShape::Scores,
        cells: cells::applications,
    },
    Method {
        id: "M15",
        name: MethodName::BestOfSeven,
        title: "Best of seven",
        question: "How far apart are seven runs of three tests, and which is the best?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::BestRun,
        cells: cells::best_of_seven,
    },
    Method {
        id: "M16",
        name: MethodName::ColdRepetitions,
        title: "Three cold repetitions",
        question: "Does the same come out after a cold start?",
        needs: TargetNeeds::Remade(
            "a real target cannot be power-cycled from here; start cold and run again. An array that the review makes (--members) is made again for each run",
        ),
        shape: ReportShape::Pairs,
        cells: cells::cold_repetitions,
    },
    Method {
        id: "M17",
        name: MethodName::WbWt,
        title: "Write-back against write-through",
        question: "Where does the write cache help, and where does it harm?",
        needs: CONTROLLER,
        shape: ReportShape::Ratios,
        cells: cells::wb_wt,
    },
    Method {
        id: "M18",
        name: MethodName::TwoCycles,
        title: "Two cycles in different order",
        question: "Does the order of the tests change their results?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Pairs,
        cells: cells::two_cycles,
    },
    Method {
        id: "M20",
        name: MethodName::RstJbod,
        title: "Drives side by side",
        question: "What do one to six drives get, each with a worker of its own?",
        needs: TargetNeeds::Drives(
            "a real target is one drive here; give several, each with a name (--target a=/dev/sdx --target b=/dev/sdy), or --members",
        ),
        shape: ReportShape::Outstanding,
        cells: cells::rst_jbod,
    },
    Method {
        id: "M21",
        name: MethodName::RstRaid,
        title: "Two workers on one array",
        question: "How does an array of SSDs grow with outstanding requests?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Outstanding,
        cells: cells::rst_raid,
    },
    Method {
        id: "M23",
        name: MethodName::Latency,
        title: "Latency distribution",
        question: "How long do the fastest and the slowest requests take?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Latencies,
        cells: cells::latency,
    },
    Method {
        id: "M29",
        name: MethodName::CacheSizes,
        title: "Cache-size sweep",
        question: "How much cache pays?",
        needs: CONTROLLER,
        shape: ReportShape::CacheSizes,
        cells: cells::cache_sizes,
    },
    Method {
        id: "M30",
        name: MethodName::Repeatability,
        title: "Repeatability",
        question: "Is the response time the same in both cycles?",
        needs: TargetNeeds::Reads,
        shape: ReportShape::Pairs,
        cells: cells::repeatability,
    },
    Method {
        id: "M31",
        name: MethodName::Degraded,
        title: "Degraded and rebuilding",
        question: "How fast is the array while a drive is missing, and during the rebuild?",
        needs: TargetNeeds::Remade("drives of a real target are not pulled from here; those of an array that the review makes (--members) are"),
        shape: ReportShape::States,
        cells: cells::degraded,
    },
    Method {
        id: "M32",
        name: MethodName::First32Gb,
        title: "The first 32 GB",
        question: "How much faster is an array that uses only the beginning of its drives?",
        needs: TargetNeeds::Writes,
        shape: ReportShape::Parts,
        cells: cells::first_32_gb,
    },
];

/// The user's own load as a method. It has cells if the suite has such a load.
pub static OWN: Method = Method {
    id: "OWN",
    name: MethodName::OwnLoad,
    title: "A load of your own",
    question: "How is this load served?",
    needs: TargetNeeds::Reads,
    shape: ReportShape::Load,
    cells: cells::own_load,
};

/// Rules for every method: number, and how the laboratory follows the rule.
const RULES: &[(&str, &str)] = &[
    ("M19", "Replacement: every cell on a simulated target begins on a machine that was just switched on, with a new array; an array of --members is made again for each write cache, and for each cell that needs another state."),
    ("M22", "Equal footing: one layout of workers for all arrays, even where another would suit one of them better."),
    ("M24", "Outstanding axis: with several workers the axis shows workers times depth."),
    ("M25", "Groups: all arrays of a write cache are in one chart; more than twelve are drawn apart, without and with redundancy, each chart with the single drive; colour says the level."),
    ("M26", "Sync first: simulated arrays are in sync when a cell begins, unless the cell is about a rebuild; the first sync of those of --members is waited for; of a target that openraid serves here, the test bed has what its server answered."),
    ("M27", "Placement: members stand on the controller's ports in their order, those of --members in the order that was given; shared links are part of the profile."),
    ("M28", "Cache setting: write-back and read-ahead as the controller's profile has them, named with every result; the test bed has all settings of the arrays of --members."),
    ("M33", "Preconditioning: simulated SSDs have been written full unless they are said to be fresh; a real one, and each of --members, is written full twice with --precondition."),
];

/// All methods, by number.
#[must_use]
pub fn methods() -> &'static [Method] {
    METHODS
}

/// The rules, by number.
#[must_use]
pub fn rules() -> &'static [(&'static str, &'static str)] {
    RULES
}

/// A method by name or number.
#[must_use]
pub fn find(word: &str) -> Option<&'static Method> {
    let mut all = METHODS.iter().chain([&OWN]);
    all.find(|method| method.name.word() == word || method.id.eq_ignore_ascii_case(word))
}
