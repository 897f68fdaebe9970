#!/usr/bin/env python3
"""Builds other simulators, runs the cells of crates/sim/tests/judges in them, and writes their answers there.

    tools/judges.py build-disksim SOURCE FOLDER     copies SOURCE, a DiskSim 4.0, into the new FOLDER and builds it there
    tools/judges.py build-mqsim SOURCE FOLDER       the same for MQSim; the last line says what to run next
    tools/judges.py disksim PROGRAM FOLDER ORIGIN   PROGRAM is DiskSim 4.0, FOLDER has the files of its drives
    tools/judges.py mqsim PROGRAM ORIGIN            PROGRAM is MQSim

ORIGIN says where the program came from (source, commit, compiler); it is written into the file. Neither program is part of
this repository. docs/lab/judges.md says what the cells are and how the answers compare.
"""

import datetime
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "crates/sim/tests/judges"
COLUMNS = ["drive", "level", "members", "reads", "pattern", "kib", "depth", "rate", "window", "cache", "mirror", "requests"]


def cell(drive, level, members, reads, pattern="random", kib=4, depth=1, rate=0, window=1, cache="off", mirror="round-robin",
         requests=10000):
    """One cell: `depth` requests outstanding, or `rate` a second if that is not zero; `window` commands are sorted."""
    return dict(drive=drive, level=level, members=members, reads=reads, pattern=pattern, kib=kib, depth=depth, rate=rate,
                window=window, cache=cache, mirror=mirror if level in ("raid1", "raid10") else "none", requests=requests)


def disksim_cells():
    """All cells for DiskSim."""
    cells = []
    plain = [("single", 1), ("raid0", 2), ("raid0", 4), ("raid0", 8), ("raid1", 2), ("raid5", 3), ("raid5", 5), ("raid5", 8),
             ("raid10", 4), ("raid10", 8)]
    for level, members in plain:
        for reads in (100, 66, 0):
            for depth in (1, 8, 32):
                cells.append(cell("common", level, members, reads, depth=depth))
    for level, members in [("single", 1), ("raid0", 4), ("raid1", 2), ("raid5", 5)]:
        for depth in (8, 32):
            cells.append(cell("common", level, members, 100, depth=depth, window=32))
        cells.append(cell("common", level, members, 100, kib=64))
        cells.append(cell("common", level, members, 100, kib=64, depth=8))
        cells.append(cell("common", level, members, 0, kib=64))
        for reads in (100, 0):
            cells.append(cell("common", level, members, reads, "sequential", 64, requests=3000))
    for level, members in [("raid0", 4), ("raid5", 5)]:  # whole stripes
        # DiskSim with synchronous writes ends whole stripes of RAID 5 without an answer.
        for reads in (100, 0) if level == "raid0" else (100,):
            for depth in (1, 8):
                cells.append(cell("common", level, members, reads, kib=256, depth=depth, requests=5000))
    for mirror in ("nearest", "pending", "shortest"):
        for depth in (1, 4, 16):
            cells.append(cell("common", "raid1", 2, 100, depth=depth, mirror=mirror))
    for level, members in [("single", 1), ("raid0", 4)]:
        cells.append(cell("common", level, members, 100, "sequential", 64, depth=4, requests=3000))
    for level, members, rates in [("single", 1, (30, 60, 80)), ("raid0", 4, (120, 240)), ("raid1", 2, (60, 120)), ("raid5", 5, (120, 240))]:
        for rate in rates:
            cells.append(cell("common", level, members, 100, rate=rate, depth=0))
    for level, members, rates in [("single", 1, (10, 30)), ("raid5", 5, (20,))]:
        for rate in rates:
            cells.append(cell("common", level, members, 0, rate=rate, depth=0, cache="on"))
    for drive in ("cheetah9lp", "atlas10k", "cheetah9lp-fast", "atlas10k-fast"):
        for level, members in [("single", 1), ("raid0", 4), ("raid1", 2), ("raid5", 5)]:
            for reads in (100, 0):
                for depth in (1, 8):
                    cells.append(cell(drive, level, members, reads, depth=depth))
        cells.append(cell(drive, "single", 1, 100, kib=64))
        cells.append(cell(drive, "single", 1, 100, "sequential", 64, requests=3000))
        cells.append(cell(drive, "single", 1, 100, depth=32, window=32))
        cells.append(cell(drive, "single", 1, 100, rate=50, depth=0))
    return cells


# The drive of both: crates/sim/tests/judges/common.toml has the same figures.
COMMON_ZONES = [(0, 2499, 240), (2500, 4999, 216), (5000, 7499, 192), (7500, 9999, 168)]
COMMON_SECTORS = sum((last - first + 1) * track * 4 for first, last, track in COMMON_ZONES)
TURN_MS, SKEW_MS, CYLINDER_MS = 6.0, 0.75, 1.25

SEEK_MS = (0.75, 5.0, 10.5)


def seek_curve(cylinders):
    """The curve through the three points of SEEK_MS (to the next cylinder, mean, full stroke) as DiskSim reads it."""
    next_ms, average, full = SEEK_MS
    root = ((average - next_ms) - (full - next_ms) / 3) / (8 / 15 - 1 / 3)
    line = full - next_ms - root
    share = lambda d: (d - 1) / (cylinders - 2)
    places = sorted({min(cylinders - 1, round(1.06**i)) for i in range(170)})
    rows = [f"{d},\t{next_ms + root * share(d)**0.5 + line * share(d):.5f}" for d in places]
    return "\n".join([f"Seek distances measured: {len(rows)}"] + rows) + "\n"


QUEUE = """Scheduler = disksim_ioqueue {{
 Scheduling policy = {policy}, Cylinder mapping strategy = {mapping}, Write initiation delay = 0.0,
 Read initiation delay = 0.0, Sequential stream scheme = 0, Maximum concat size = 128, Overlapping request scheme = 0,
 Sequential stream diff maximum = 0, Scheduling timeout scheme = 0, Timeout time/weight = 6, Timeout scheduling = 1,
 Scheduling priority scheme = 0, Priority scheduling = 1 }}"""


def common_drive():
    """The drive of both in DiskSim's words."""
    zones = []
    for first, last, track in COMMON_ZONES:
        zones.append(f"""dm_layout_g1_zone {{ First cylinder number = {first}, Last cylinder number = {last},
 Blocks per track = {track}, Offset of first block = 0.0, Empty space at zone front = 0,
 Skew for track switch = {track * SKEW_MS / TURN_MS}, Skew for cylinder switch = {track * CYLINDER_MS / TURN_MS},
 Number of spares = 0, slips = [], defects = [] }}""")
    flags = ["Hold bus entire read xfer = 0", "Hold bus entire write xfer = 0", "Allow almost read hits = 1",
             "Allow sneaky full read hits = 0", "Allow sneaky partial read hits = 0",
             "Allow sneaky intermediate read hits = 0", "Allow read hits on write data = 1", "Allow write prebuffering = 0",
             "Preseeking level = 0", "Never disconnect = 0", "Print stats = 1", "Avg sectors per cylinder = 816",
             "Max queue length = 1", "Number of buffer segments = 4", "Maximum number of write segments = 4",
             "Segment size (in blks) = 512", "Use separate write segment = 0", "Low (write) water mark = 0.0",
             "High (read) water mark = 0.0", "Set watermark by reqsize = 1", "Calc sector by sector = 1",
             "Enable caching in buffer = 1", "Buffer continuous read = 4", "Minimum read-ahead (blks) = 0",
             "Maximum read-ahead (blks) = 512", "Read-ahead over requested = 1", "Read-ahead on idle hit = 1",
             "Read any free blocks = 0", "Fast write level = 0", "Immediate buffer read = 1", "Immediate buffer write = 1",
             "Combine seq writes = 1", "Stop prefetch in sector = 0", "Disconnect write if seek = 0",
             "Write hit stop prefetch = 1", "Read directly to buffer = 1", "Immed transfer partial hit = 1"]
    times = {"Read hit over. after read": 0.2, "Read hit over. after write": 0.2, "Read miss over. after read": 0.3,
             "Read miss over. after write": 0.3, "Write hit over. after read": 0.2, "Write hit over. after write": 0.2,
             "Write miss over. after read": 0.3, "Write miss over. after write": 0.3}
    nothing = ["Read completion overhead", "Write completion overhead", "Data preparation overhead", "First reselect overhead",
               "Other reselect overhead", "Read disconnect afterread", "Read disconnect afterwrite", "Write disconnect overhead",
               "Extradisc command overhead", "Extradisc disconnect overhead", "Extradisc inter-disconnect delay",
               "Extradisc 2nd disconnect overhead", "Extradisc seek delta", "Minimum seek delay"]
    values = [f"{name} = {time}" for name, time in times.items()] + [f"{name} = 0.0" for name in nothing]
    return f"""disksim_disk COMMON {{
 Model = dm_disk COMMON_MODEL {{ Number of data surfaces = 4, Number of cylinders = 10000, Block count = {COMMON_SECTORS},
  Mechanical Model = dm_mech_g1 {{ Access time type = trackSwitchPlusRotation, Seek type = extracted,
   Single cylinder seek time = 0.75, Full seek curve = common.seek, Full strobe seek time = 10.5, Add. write settling delay = 0.5,
   Head switch time = 0.25, Rotation speed (in rpms) = 10000, Percent error in rpms = 0.0 }},
  Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, Sparing scheme used = 9, Rangesize for sparing = 1,
   Zones = [ {", ".join(zones)} ] }} }},
 Per-request overhead time = 0.0, Time scale for overheads = 1.0, Bulk sector transfer time = 0.0,
 {QUEUE.format(policy=1, mapping=0)}, Extra write disconnect = 0,
 {", ".join(flags + values)} }}
"""


# For each drive: its own file, the name in it, its sectors.
DRIVES = {
    "common": (None, "COMMON", COMMON_SECTORS),
    "cheetah9lp": ("cheetah9LP.diskspecs", "SEAGATE_ST39102LW_validate", 17783240),
    "atlas10k": ("atlas10k.diskspecs", "QUANTUM_TORNADO_validate", 17938986),
}
CHUNK = 128
MIRRORS = {"none": 1, "round-robin": 3, "nearest": 4, "pending": 5, "shortest": 6}


def disksim_parameters(c):
    """DiskSim's parameter file of a cell."""
    source, name, sectors = DRIVES[c["drive"].removesuffix("-fast")]
    n, blocks = c["members"], c["kib"] * 2
    each = sectors // CHUNK * CHUNK
    layout = {"single": ("Striped", "Noredun", each), "raid0": ("Striped", "Noredun", each * n), "raid1": ("Striped", "Shadowed", each),
              "raid10": ("Striped", "Shadowed", each * n // 2),
              "raid5": ("Striped", "Parity_rotated", each * (n - 1))}
    distribution, redundancy, capacity = layout[c["level"]]
    if c["pattern"] == "sequential":  # in the outer zone
        capacity //= 4
    stats = {"driver": ("iodriver", "size locality blocking interference queue crit idle intarr streak stamp per-device"),
             "bus": ("bus", "idle arbwait"),
             "controller": ("ctlr", "cache size locality blocking interference queue crit idle intarr streak stamp per-device"),
             "device": ("device", "queue crit idle intarr size seek latency xfer acctime interfere buffer")}
    blocks_of = []
    for word, (short, kinds) in stats.items():
        prints = ", ".join(f"Print {word} {kind} stats = 0" for kind in kinds.split())
        blocks_of.append(f"{short} stats = disksim_{short}_stats {{ {prints} }}")
    pf = ", ".join(f"Print {kind} stats = 0" for kind in ("per-process", "per-CPU", "all interrupt", "sleep"))
    blocks_of.append(f"process flow stats = disksim_pf_stats {{ {pf} }}")
    ways = ", ".join(f"disksim_ctlr ctlr{i} [ disksim_bus bus{i + 1} [ disksim_disk disk{i} [] ] ]" for i in range(n))
    many = lambda what: f"{what}0" if n == 1 else f"{what}0 .. {what}{n - 1}"
    buses = "bus1" if n == 1 else f"bus1 .. bus{n}"
    critical, pause = (0.0, 1000.0 / c["rate"]) if c["rate"] else (1.0, 0.0)
    generator = f"""disksim_synthgen {{ Storage capacity per device = {capacity // blocks * blocks}, devices = [ org0 ],
 Blocking factor = {blocks}, Probability of sequential access = {1.0 if c["pattern"] == "sequential" else 0.0},
 Probability of local access = 0.0, Probability of read access = {c["reads"] / 100},
 Probability of time-critical request = {critical}, Probability of time-limited request = 0.0,
 Time-limited think times = [ normal, 30.0, 100.0 ], General inter-arrival times = [ exponential, 0.0, {pause} ],
 Sequential inter-arrival times = [ exponential, 0.0, {pause} ], Local inter-arrival times = [ exponential, 0.0, 0.0 ],
 Local distances = [ normal, 0.0, 40000.0 ], Sizes = [ normal, {blocks}.0, 0.0 ] }}"""
    bus_ms = 0.0064 if c["drive"] == "common" else 0.0
    drive = common_drive() if source is None else f"source {source}\n"
    return f"""disksim_global Global {{ Init Seed = 42, Real Seed = 42, Stat definition file = statdefs }}
disksim_stats Stats {{ {", ".join(blocks_of)} }}
disksim_iodriver DRIVER0 {{ type = 1, Constant access time = 0.0,
 {QUEUE.format(policy=1, mapping=0)}, Use queueing in subsystem = 1 }}
disksim_bus BUS0 {{ type = 2, Arbitration type = 1, Arbitration time = 0.0, Read block transfer time = 0.0,
 Write block transfer time = 0.0, Print stats = 0 }}
disksim_bus BUS1 {{ type = 1, Arbitration type = 1, Arbitration time = 0.0, Read block transfer time = {bus_ms},
 Write block transfer time = {bus_ms}, Print stats = 0 }}
disksim_ctlr CTLR0 {{ type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.0, Maximum queue length = 0,
 Print stats = 0 }}
{drive}
instantiate [ statfoo ] as Stats
instantiate [ {many("ctlr")} ] as CTLR0
instantiate [ bus0 ] as BUS0
instantiate [ {many("disk")} ] as {name}
instantiate [ driver0 ] as DRIVER0
instantiate [ {buses} ] as BUS1
topology disksim_iodriver driver0 [ disksim_bus bus0 [ {ways} ] ]
disksim_logorg org0 {{ Addressing mode = Array, Distribution scheme = {distribution}, Redundancy scheme = {redundancy},
 devices = [ {many("disk")} ], Stripe unit = {CHUNK}, Synch writes for safety = 1,
 Number of copies = 2, Copy choice on read = {MIRRORS[c["mirror"]]}, RMW vs. reconstruct = {1.0 if n > 3 else 0.0},
 Parity stripe unit = {CHUNK}, Parity rotation type = 1, Time stamp interval = 0.0, Time stamp start time = 60000.0,
 Time stamp stop time = 10000000000.0, Time stamp file name = stamps }}
disksim_pf Proc {{ Number of processors = 1, Process-Flow Time Scale = 1.0 }}
disksim_synthio Synthio {{ Number of I/O requests to generate = {c["requests"]}, Maximum time of trace generated = 1000000.0,
 System call/return with each request = 0, Think time from call to request = 0.0, Think time from request to return = 0.0,
 Generators = [ {", ".join([generator] * max(1, c["depth"]))} ] }}
"""


def disksim(program, folder, work, c):
    """Mean response in ms and requests a second."""
    (work / "cell.parv").write_text(disksim_parameters(c))
    (work / "common.seek").write_text(seek_curve(10000))
    source = DRIVES[c["drive"].removesuffix("-fast")][0]
    for file in [f for f in pathlib.Path(folder).iterdir() if f.name == "statdefs" or source and f.stem == pathlib.Path(source).stem]:
        if not (work / file.name).exists():
            (work / file.name).symlink_to(file.resolve())
    changes = []
    if c["window"] > 1:
        changes += ["disk*", "Max queue length", str(c["window"]), "disk*", "Scheduler:Scheduling policy", "8"]
    if c["drive"] != "common" or c["cache"] == "on":
        changes += ["disk*", "Fast write level", "2" if c["cache"] == "on" else "0"]
    if c["drive"].endswith("-fast"):  # the link of the profile that this project ships, 78 MB/s
        changes += ["disk*", "Bulk sector transfer time", "0.006564"]
    if c["drive"] == "common" and c["cache"] == "on":
        changes += ["disk*", "Allow write prebuffering", "1"]
    run = subprocess.run([program, "cell.parv", "cell.out", "ascii", "0", "1"] + changes, cwd=work, capture_output=True, text=True)
    out = (work / "cell.out").read_text() if (work / "cell.out").exists() else ""
    mean = re.search(r"^System logorg #0 Response time average:\s+(\S+)", out, re.M)
    count = re.search(r"^Overall I/O System Total Requests handled:\s+(\S+)", out, re.M)
    # The last requests may be under way at the end.
    if run.returncode != 0 or not mean or not count or int(count[1]) < 0.99 * c["requests"]:
        print(f"{c}: {(run.stdout + run.stderr).strip()[-300:]}", file=sys.stderr)
        return None
    return [f"{float(mean[1]):.4f}"]


def mqsim_cells():
    """All cells for MQSim: percent of reads, pattern, KiB, depth, channels for 32 dies."""
    cells = [(100, "random", 4, depth) for depth in (1, 2, 4, 8, 16, 32, 64, 128)]
    cells += [(100, "random", 16, depth) for depth in (1, 8, 32)] + [(100, "sequential", 4, depth) for depth in (1, 8, 32)]
    cells += [(0, "random", 4, depth) for depth in (8, 32, 64)] + [(0, "random", 16, 32)]
    cells += [(0, "sequential", 4, depth) for depth in (8, 32, 64)] + [(70, "random", 4, depth) for depth in (1, 8, 32)]
    return [each + (8,) for each in cells] + [(100, "random", 4, depth, 32) for depth in (1, 8, 32, 128)]


# The SSD of both: crates/sim/tests/judges/common-ssd.toml has the same figures. A page is a request of 4 KiB.
SSD = {
    "Seed": 321, "Enabled_Preconditioning": "false", "Memory_Type": "FLASH", "HostInterface_Type": "NVME",
    "IO_Queue_Depth": 1024, "Queue_Fetch_Size": 512, "Caching_Mechanism": "ADVANCED", "Data_Cache_Sharing_Mode": "SHARED",
    "Data_Cache_Capacity": 4 << 20, "Data_Cache_DRAM_Row_Size": 8192, "Data_Cache_DRAM_Data_Rate": 3200,
    "Data_Cache_DRAM_Data_Busrt_Size": 8, "Data_Cache_DRAM_tRCD": 13, "Data_Cache_DRAM_tCL": 13, "Data_Cache_DRAM_tRP": 13,
    "Address_Mapping": "PAGE_LEVEL", "Ideal_Mapping_Table": "true", "CMT_Capacity": 64 << 20, "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP", "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER",
    "Overprovisioning_Ratio": 0.07, "GC_Exec_Threshold": 0.05, "GC_Block_Selection_Policy": "GREEDY",
    "Use_Copyback_for_GC": "false", "Preemptible_GC_Enabled": "false", "GC_Hard_Threshold": 0.005,
    "Dynamic_Wearleveling_Enabled": "false", "Static_Wearleveling_Enabled": "false", "Static_Wearleveling_Threshold": 100,
    "Preferred_suspend_erase_time_for_read": 700000, "Preferred_suspend_erase_time_for_write": 700000,
    "Preferred_suspend_write_time_for_read": 100000, "Flash_Channel_Count": 8, "Flash_Channel_Width": 1,
    "Channel_Transfer_Rate": 500, "Chip_No_Per_Channel": 4, "Flash_Comm_Protocol": "NVDDR2",
}
FLASH = {
    "Flash_Technology": "SLC", "CMD_Suspension_Support": "NONE", "Page_Read_Latency_LSB": 50000, "Page_Read_Latency_CSB": 50000,
    "Page_Read_Latency_MSB": 50000, "Page_Program_Latency_LSB": 500000, "Page_Program_Latency_CSB": 500000,
    "Page_Program_Latency_MSB": 500000, "Block_Erase_Latency": 3000000, "Block_PE_Cycles_Limit": 100000,
    "Suspend_Erase_Time": 700000, "Suspend_Program_Time": 100000, "Die_No_Per_Chip": 1, "Plane_No_Per_Die": 1,
    "Block_No_Per_Plane": 512, "Page_No_Per_Block": 256, "Page_Capacity": 4096, "Page_Metadat_Capacity": 448,
}


def elements(values):
    """Values as XML."""
    return "".join(f"<{name}>{value}</{name}>" for name, value in values.items())


def mqsim(program, work, reads, pattern, kib, depth, channels, requests=40000):
    """Mean response in us and requests a second."""
    host = {"PCIe_Lane_Bandwidth": 1.0, "PCIe_Lane_Count": 4, "SATA_Processing_Delay": 400000,
            "Enable_ResponseTime_Logging": "false", "ResponseTime_Logging_Period_Length": 1000000}
    ssd = SSD | {"Flash_Channel_Count": channels, "Chip_No_Per_Channel": 32 // channels}
    head = '<?xml version="1.0" encoding="us-ascii"?>'
    device = f"<Flash_Parameter_Set>{elements(FLASH)}</Flash_Parameter_Set>"
    (work / "ssd.xml").write_text(
        f"{head}<Execution_Parameter_Set><Host_Parameter_Set>{elements(host)}</Host_Parameter_Set>"
        f"<Device_Parameter_Set>{elements(ssd)}{device}</Device_Parameter_Set></Execution_Parameter_Set>")
    caching = "TURNED_OFF" if reads == 100 else "WRITE_CACHE"
    flow = {"Priority_Class": "HIGH", "Device_Level_Data_Caching_Mode": caching, "Channel_IDs": ",".join(map(str, range(channels))),
            "Chip_IDs": ",".join(map(str, range(32 // channels))), "Die_IDs": "0", "Plane_IDs": "0", "Initial_Occupancy_Percentage": 50,
            "Working_Set_Percentage": 90, "Synthetic_Generator_Type": "QUEUE_DEPTH", "Read_Percentage": reads,
            "Address_Distribution": "RANDOM_UNIFORM" if pattern == "random" else "STREAMING", "Percentage_of_Hot_Region": 0, "Generated_Aligned_Addresses": "true",
            "Address_Alignment_Unit": 2 * kib, "Request_Size_Distribution": "FIXED", "Average_Request_Size": 2 * kib,
            "Variance_Request_Size": 0, "Seed": 798, "Average_No_of_Reqs_in_Queue": depth, "Intensity": 32768, "Stop_Time": 0,
            "Total_Requests_To_Generate": requests}
    inner = f"<IO_Flow_Parameter_Set_Synthetic>{elements(flow)}</IO_Flow_Parameter_Set_Synthetic>"
    (work / "load.xml").write_text(f"{head}<MQSim_IO_Scenarios><IO_Scenario>{inner}</IO_Scenario></MQSim_IO_Scenarios>")
    run = subprocess.run([program, "-i", "ssd.xml", "-w", "load.xml"], cwd=work, capture_output=True, text=True, input="\n")
    file = work / "load_scenario_1.xml"
    out = file.read_text() if file.exists() else ""
    found = lambda name: re.search(rf"<{name}>([^<]+)</{name}>", out)
    mean, count = found("End_to_End_Request_Delay"), found("Request_Count")
    if run.returncode != 0 or not mean or int(count[1]) != requests:
        print(f"{reads} % {kib}K depth {depth}: {(run.stdout + run.stderr).strip()[-300:]}", file=sys.stderr)
        return None
    return [mean[1]]


# What DiskSim is built of, in this order. It is a program of 32 bits, and its inline functions are those of C89.
DISKSIM_PARTS = [("libddbg", []), ("libparam", []), ("diskmodel", []), ("memsmodel", []), ("ssdmodel", []), ("src/modules", []),
                 ("src", ["disksim", "rms"])]
DISKSIM_COMPILER = "CC=gcc -m32 -std=gnu89 -w"


def make(folder, arguments, needs):
    """make in a folder; if it fails, its last lines and what it needs."""
    run = subprocess.run(["make", "-C", str(folder)] + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        sys.exit(f"{run.stdout[-2000:]}\n{folder}: it cannot be built; {needs}")


def copied(source, folder, mark):
    """A copy of a source without what was built of it elsewhere."""
    if not (source / mark).is_file():
        sys.exit(f"{source}: it has no {mark}; name the folder of the source")
    if folder.exists():
        sys.exit(f"{folder}: it exists; name a new folder")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git", "*.o", "*.a", "*.d", ".depend"))


def build_disksim(source, folder):
    """DiskSim 4.0 from its source; its own validation of one drive says whether it is right."""
    copied(source, folder, "src/disksim_main.c")
    for script in (folder / "libparam").glob("*.pl"):
        script.chmod(0o755)
    for program in ("disksim", "rms"):
        (folder / "src" / program).unlink(missing_ok=True)
    for part, goals in DISKSIM_PARTS:
        make(folder / part, goals + [DISKSIM_COMPILER], "it needs the Debian packages gcc-multilib, flex, bison and perl")
    valid = folder / "valid"
    subprocess.run(["../src/disksim", "cheetah9LP.parv", "cheetah9LP.outv", "validate", "cheetah9LP.trace", "0"], cwd=valid, check=True,
                   stdout=subprocess.DEVNULL)
    rms = subprocess.run(["../src/rms", "cheetah9LP.outv", "cheetah9LP.outv", "-1", "-1", "1"], cwd=valid, capture_output=True, text=True)
    print(f"validation of the cheetah9LP, which its makers expect to be about 0.107: {rms.stdout.strip()}")
    print(f"next: tools/judges.py disksim {folder}/src/disksim {folder}/valid ORIGIN")


def build_mqsim(source, folder):
    """MQSim from its source."""
    copied(source, folder, "src/main.cpp")
    make(folder, [], "it needs the Debian package g++")
    print(f"next: tools/judges.py mqsim {folder}/MQSim ORIGIN")


def write(name, origin, command, columns, rows):
    """The file of answers."""
    head = [f"# {name}: {origin}.", f"# Made by `tools/judges.py {command}` on {datetime.date.today()}; docs/lab/judges.md says what it is.",
            "\t".join(columns)]
    (DATA / f"{name}.tsv").write_text("\n".join(head + ["\t".join(map(str, row)) for row in rows]) + "\n")
    print(f"{len(rows)} cells are in {DATA / name}.tsv")


def main():
    """See above."""
    builders = {"build-disksim": build_disksim, "build-mqsim": build_mqsim}
    if len(sys.argv) == 4 and sys.argv[1] in builders:
        builders[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]).resolve())
    elif len(sys.argv) == 5 and sys.argv[1] == "disksim":
        _, _, program, folder, origin = sys.argv
        program, rows = str(pathlib.Path(program).resolve()), []
        for c in disksim_cells():
            with tempfile.TemporaryDirectory() as work:
                answer = disksim(program, folder, pathlib.Path(work), c)
            if answer:
                rows.append([c[column] for column in COLUMNS] + answer)
        write("disksim", origin, "disksim PROGRAM FOLDER ORIGIN", COLUMNS + ["mean_ms"], rows)
    elif len(sys.argv) == 4 and sys.argv[1] == "mqsim":
        _, _, program, origin = sys.argv
        program, rows = str(pathlib.Path(program).resolve()), []
        for c in mqsim_cells():
            with tempfile.TemporaryDirectory() as work:
                answer = mqsim(program, pathlib.Path(work), *c)
            if answer:
                rows.append(list(c) + answer)
        write("mqsim", origin, "mqsim PROGRAM ORIGIN", ["reads", "pattern", "kib", "depth", "channels", "mean_us"], rows)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
