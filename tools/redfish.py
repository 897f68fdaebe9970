#!/usr/bin/env python3
"""Redfish against programs that others wrote.

    tools/redfish.py PROGRAM [SCHEMAS]

One server with arrays that are optimal, degraded, rebuilding and failed, over TLS. DMTF's service, protocol and interop validators must
find no failure, and so must its use cases. sushy, Ansible and redfishtool make a volume of drives that are free, watch it, change it, and
delete it; redfish_utilities read it. SCHEMAS is
the folder `csdl` of DMTF's publications; without it the service validator is left out. Needs the Python packages
redfish-service-validator, redfish-protocol-validator, redfish-interop-validator, sushy; ansible, redfishtool, redfish-utilities and
redfish-use-case-checkers if they are to be tried.
"""

import base64
import glob
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

TOOLS = pathlib.Path(sys.executable).parent
STORAGE = "/redfish/v1/Systems/1/Storage/openraid"
USER, PASSWORD = "admin", "correct-horse-1"
PROFILE = pathlib.Path(__file__).resolve().parent.parent / "packaging/redfish/openraid.json"


class Lab:
    """A server in a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": f"{folder}/run"}
        self.environment.pop("OPENRAID_CONTROL", None)
        self.tls = ssl._create_unverified_context()

    def run(self, *words, codes=(0, 1)):
        done = subprocess.run([self.program, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode in codes, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def drive(self, name, size=32):
        with open(self.folder / name, "wb") as file:
            file.truncate(size << 20)
        return str(self.folder / name)

    def start(self):
        for name, level, count in [("data", "6", 5), ("lame", "5", 3), ("filling", "1", 2), ("dead", "5", 3)]:
            members = [f"{name}{n}" for n in range(count)]
            self.run("create", name, "--level", level, "--assume-clean", "--file-size", "32M", *members)
        self.drive("filling2")
        free = [self.drive(f"free{n}") for n in range(6)]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"],
                       cwd=self.folder, check=True, capture_output=True)
        drives = ", ".join(f'"{drive}"' for drive in free)
        (self.folder / "openraid.toml").write_text(f"""
[server]
nbd-unix = ["{self.folder}/nbd.sock"]
[management]
listen = "127.0.0.1:0"
certificate = "{self.folder}/certificate.pem"
key = "{self.folder}/key.pem"
drives = [{drives}]
[arrays.filling.settings]
rebuild.rate = "16K"
""")
        self.server = subprocess.Popen([self.program, "serve", "--json", "--config", "openraid.toml"],
                                       cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        while True:
            told = json.loads(self.server.stdout.readline())
            if told.get("event") == "ready" or "console" in told:
                break
        self.url = told["console"].rstrip("/")
        for array, member in [("lame", "lame1"), ("filling", "filling1"), ("dead", "dead0")]:
            self.run("fail", array, member)
        self.run("remove", "filling", "filling1")
        self.run("add", "filling", "filling2")
        # A second loss, as a drive that goes away would be: the file ends.
        os.truncate(self.folder / "dead1", 0)
        subprocess.run(["qemu-io", "-f", "raw", "-c", "read 0 1M", f"nbd+unix:///dead?socket={self.folder}/nbd.sock"], capture_output=True)
        token = self.run("login", "--token", "--role", "Administrator").strip()
        body = {"name": USER, "role": "Administrator", "password": PASSWORD}
        self.ask("POST", "/api/v1/users", body, {"Authorization": f"Bearer {token}"})

    def ask(self, method, path, body=None, headers=None):
        if headers is None:
            headers = {"Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **headers}, method=method)
        try:
            answer = urllib.request.urlopen(request, context=self.tls, timeout=30)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read()
        return answer.status, json.loads(text) if text else None, answer.headers

    def states(self):
        members = self.ask("GET", f"{STORAGE}/Volumes")[1]["Members"]
        volumes = [self.ask("GET", member["@odata.id"])[1] for member in members]
        return {volume["Id"]: (volume["Status"]["Health"], [operation["OperationName"] for operation in volume["Operations"]]) for volume in volumes}


# Judges that could not be asked, and why.
LEFT_OUT = []


def tool(lab, *words):
    print("$", " ".join(str(word) for word in words), flush=True)
    environment = {**os.environ, "REQUESTS_CA_BUNDLE": f"{lab.folder}/certificate.pem", "SSL_CERT_FILE": f"{lab.folder}/certificate.pem",
                   "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_PYTHON_INTERPRETER": sys.executable, "LC_ALL": "C.UTF-8"}
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=1800, env=environment)


def service_validator(lab, schemas):
    if not schemas or not pathlib.Path(schemas).is_dir():
        LEFT_OUT.append("the service validator, because there are no schemas")
        return
    # It writes into its folder of schemas.
    folder = lab.folder / "schemas"
    folder.mkdir()
    for file in pathlib.Path(schemas).glob("*.xml"):
        (folder / file.name).write_bytes(file.read_bytes())
    # The service's own schemas come from the service, by its metadata.
    fetch = lambda path: urllib.request.urlopen(lab.url + path, context=lab.tls, timeout=30).read()
    references = re.findall(r'Uri="(/redfish/v1/Schemas/[^"]*)"', fetch("/redfish/v1/$metadata").decode())
    assert len(references) == 5, references
    for path in references:
        (folder / path.rsplit("/", 1)[1]).write_bytes(fetch(path))
    done = tool(lab, TOOLS / "rf_service_validator", "-u", USER, "-p", PASSWORD, "-r", lab.url, "--logdir", lab.folder / "service",
                "--schema_directory", folder, "--skipschema", "--collectionlimit", "LogEntry", "20")
    print("\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    logs = "".join(file.read_text(errors="replace") for file in (lab.folder / "service").rglob("*.log"))
    assert done.returncode == 0, "\n".join(line for line in logs.splitlines() if " - FAIL - " in line) + done.stdout[-2000:] + done.stderr[-2000:]
    # A validator has only warnings for words of others: there are none of ours.
    unknown = [line for line in logs.splitlines() if "Openraid" in line and "Schema Error" in line]
    assert not unknown, "\n".join(unknown)


def protocol_validator(lab):
    reports = lab.folder / "protocol"
    done = tool(lab, TOOLS / "rf_protocol_validator", "-u", USER, "-p", PASSWORD, "-r", lab.url, "--report-dir", reports,
                "--report-type", "tsv")
    print([line for line in (done.stdout + done.stderr).splitlines() if "Summary" in line])
    failed = [line for file in glob.glob(f"{reports}/*.tsv") for line in open(file) if "\tFAIL\t" in line]
    assert not failed and "FAIL: 0" in done.stdout + done.stderr, "\n".join(failed) + done.stdout[-2000:] + done.stderr[-2000:]


def interop_validator(lab):
    done = tool(lab, TOOLS / "rf_interop_validator", "-u", USER, "-p", PASSWORD, "-r", lab.url, "--logdir", lab.folder / "interop",
                "--collectionlimit", "LogEntry", "20", "--", PROFILE)
    print("\n".join((done.stdout + done.stderr).splitlines()[-8:]))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def free_drives(lab):
    drives = lab.ask("GET", STORAGE)[1]["Drives"]
    documents = [lab.ask("GET", drive["@odata.id"])[1] for drive in drives]
    return [drive["@odata.id"] for drive in documents if "Volumes" not in drive["Links"]]


def wait_for_task(lab, path):
    while True:
        status, task, _ = lab.ask("GET", path)
        if status != 202:
            return task
        time.sleep(0.2)


def with_sushy(lab):
    import sushy

    os.environ["REQUESTS_CA_BUNDLE"] = f"{lab.folder}/certificate.pem"
    root = sushy.Sushy(lab.url, username=USER, password=PASSWORD, verify=False)
    storage = root.get_system("/redfish/v1/Systems/1").storage.get_members()[0]
    chassis = root.get_chassis("/redfish/v1/Chassis/1")
    assert chassis.power_state == sushy.PowerState.ON and chassis.status.health == sushy.Health.OK, chassis
    healths = {own.identity: own.json["Status"]["State"] for own in storage.volumes.get_members()}
    assert healths == {"data": "Enabled", "lame": "Degraded", "filling": "Degraded", "dead": "Disabled"}, healths
    drives = free_drives(lab)
    payload = {"Name": "fleet", "RAIDType": "RAID5", "StripSizeBytes": 65536,
               "Links": {"Drives": [{"@odata.id": drive} for drive in drives[:3]]}}
    volume = storage.volumes.create(payload)
    assert volume.identity == "fleet" and volume.raid_type == sushy.RAIDType.RAID5, volume
    shown = json.loads(lab.run("show", "fleet", "--json"))["array"]
    assert shown["size_bytes"] == volume.capacity_bytes and shown["level"] == "raid5", shown
    storage = root.get_system("/redfish/v1/Systems/1").storage.get_members()[0]
    assert "fleet" in [own.identity for own in storage.volumes.get_members()]
    # The check, and its task.
    lab.run("show", "fleet", "--follow")
    status, task, headers = lab.ask("POST", f"{volume.path}/Actions/Volume.CheckConsistency", {})
    assert status == 202 and task["TaskState"] in ("Running", "Completed"), (status, task)
    assert wait_for_task(lab, headers["Location"])["TaskState"] == "Completed"
    assert lab.ask("POST", f"{volume.path}/Actions/Volume.Initialize", {"InitializeType": "Fast"})[0] == 400
    # A spare by PATCH, and out again.
    for spares in ([drives[3]], []):
        body = {"Links": {"DedicatedSpareDrives": [{"@odata.id": drive} for drive in spares]}}
        status, document, _ = lab.ask("PATCH", volume.path, body)
        assert status == 200 and document["Links"]["DedicatedSpareDrives"] == body["Links"]["DedicatedSpareDrives"], document
    volume.delete()
    assert "fleet" not in lab.states()
    assert set(drives) == set(free_drives(lab)), "its drives are free again"
    # The data is still there: a new volume over it wants a word.
    status, refused, _ = lab.ask("POST", f"{STORAGE}/Volumes", payload)
    assert status == 409 and "fleet" in json.dumps(refused), refused
    payload["Oem"] = {"Openraid": {"Overwrite": True}}
    status, made, headers = lab.ask("POST", f"{STORAGE}/Volumes", payload)
    assert status == 201 and headers["Location"] == f"{STORAGE}/Volumes/fleet", made
    assert lab.ask("DELETE", headers["Location"])[0] == 204
    print("sushy: a volume made, checked, changed, deleted")


def with_ansible(lab):
    program = TOOLS / "ansible-playbook"
    if not program.exists():
        LEFT_OUT.append("Ansible, which is not installed")
        return
    drives = free_drives(lab)[4:6]
    common = {"baseuri": lab.url.split("//")[1], "username": USER, "password": PASSWORD}
    tasks = [
        {"community.general.redfish_config": {**common, "category": "Systems", "command": "CreateVolume", "storage_subsystem_id": "openraid",
         "volume_details": {"Name": "play", "RAIDType": "RAID1", "Drives": drives, "WriteCachePolicy": "WriteThrough"}}},
        {"community.general.redfish_info": {**common, "category": "Systems", "command": "GetVolumeInventory"}, "register": "told"},
        {"assert": {"that": "'play' in (told | string)"}},
        {"community.general.redfish_info": {**common, "category": "Systems", "command": "GetHealthReport"}, "register": "health"},
        {"assert": {"that": ["'Critical' in (health | string)"]}},
        {"community.general.redfish_info": {**common, "category": "Systems", "command": "GetDiskInventory"}, "register": "disks"},
        {"assert": {"that": ["'data0' in (disks | string)"]}},
        {"community.general.redfish_info": {**common, "category": "Chassis", "command": "GetHealthReport,GetChassisInventory"}, "register": "chassis"},
        {"assert": {"that": ["'chassis' in chassis.redfish_facts", "chassis.redfish_facts.chassis.entries | length == 1"]}},
        {"community.general.redfish_config": {**common, "category": "Systems", "command": "DeleteVolumes", "storage_subsystem_id": "openraid",
         "volume_ids": ["play"]}},
    ]
    book = lab.folder / "book.json"
    book.write_text(json.dumps([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]))
    done = tool(lab, program, "-i", "localhost,", book)
    assert done.returncode == 0 and "failed=0" in done.stdout, done.stdout + done.stderr
    assert "play" not in lab.states()
    print("Ansible: a volume made, seen, deleted")


def redfishtool(lab, *words, code=0):
    """DMTF's command line."""
    host = lab.url.split("//")[1]
    done = tool(lab, TOOLS / "redfishtool", "-r", host, "-u", USER, "-p", PASSWORD, "-S", "Always", *words)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout.strip().startswith("{") else done.stdout


def with_redfishtool(lab):
    if not (TOOLS / "redfishtool").exists():
        LEFT_OUT.append("redfishtool, which is not installed")
        return
    assert redfishtool(lab, "root")["Product"] == "openraid"
    assert redfishtool(lab, "Systems", "-I", "1", "get")["SystemType"] == "OS"
    volume = redfishtool(lab, "raw", "GET", f"{STORAGE}/Volumes/data")
    assert volume["RAIDType"] == "RAID6" and volume["Oem"]["Openraid"]["Survives"] == 2, volume
    body = {"ControllerRates": {"RebuildRatePercent": 7}}
    redfishtool(lab, "raw", "PATCH", f"{STORAGE}/Controllers/1", "-d", json.dumps(body))
    shown = json.loads(lab.run("show", "data", "--json"))["array"]
    assert shown["settings"]["rebuild_rate"] == 7 * (4 << 20), shown["settings"]
    drives = free_drives(lab)[:2]
    body = {"Name": "shelf", "RAIDType": "RAID1", "Links": {"Drives": [{"@odata.id": drive} for drive in drives]},
            "Oem": {"Openraid": {"Overwrite": True}}}
    redfishtool(lab, "raw", "POST", f"{STORAGE}/Volumes", "-d", json.dumps(body))
    assert lab.states()["shelf"][0] == "OK"
    target = f"{STORAGE}/Volumes/shelf/Actions/Oem/OpenraidVolume.Locate"
    redfishtool(lab, "raw", "POST", target, "-d", json.dumps({"OffsetBytes": 4096}))
    redfishtool(lab, "raw", "DELETE", f"{STORAGE}/Volumes/shelf")
    assert "shelf" not in lab.states()
    print("redfishtool: a volume made, asked, deleted; a rate changed")


def use_cases(lab):
    """DMTF's use cases. Those of a machine's power, boot and network interfaces are skipped: a storage service has none of these."""
    if not (TOOLS / "rf_use_case_checkers").exists():
        LEFT_OUT.append("the use cases, because their package is not installed")
        return
    reports = lab.folder / "cases"
    done = tool(lab, TOOLS / "rf_use_case_checkers", "-u", USER, "-p", PASSWORD, "-r", lab.url, "--report-dir", reports)
    told = done.stdout + done.stderr
    print("\n".join(told.splitlines()[-8:]))
    assert done.returncode == 0, told


def with_utilities(lab):
    """DMTF's utilities: inventory, accounts, log, events."""
    if not (TOOLS / "rf_sys_inventory.py").exists():
        LEFT_OUT.append("redfish_utilities, which is not installed")
        return
    ask = lambda name, *words: tool(lab, TOOLS / name, "-u", USER, "-p", PASSWORD, "-r", lab.url, *words)

    def told(name, *words):
        done = ask(name, *words)
        assert done.returncode == 0, (name, words, done.stdout, done.stderr)
        return done.stdout

    inventory = told("rf_sys_inventory.py", "--details")
    assert "data0" in inventory and "Chassis: 1" in inventory, inventory
    assert USER in told("rf_accounts.py")
    assert "dead" in told("rf_logs.py", "--manager"), "the log has events"
    service = told("rf_event_service.py", "info")
    assert "Status: Enabled" in service and "EventService/SSE" in service, service
    made = told("rf_event_service.py", "subscribe", "--destination", "https://127.0.0.1:9/events", "--context", "a trial")
    number = re.search(r"Subscriptions/(\d+)", made)
    assert number, made
    told("rf_event_service.py", "unsubscribe", "--id", number[1])
    assert told("rf_raw_request.py", "--request", f"{STORAGE}/Volumes/data")
    print("redfish_utilities: inventory, accounts, log and events read; a subscription made and deleted")


def with_events(lab):
    """A stream tells of a change, and is a destination while it is open."""
    headers = {"Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
    request = urllib.request.Request(lab.url + "/redfish/v1/EventService/SSE", headers=headers)
    stream = urllib.request.urlopen(request, context=lab.tls, timeout=30)
    assert stream.headers["Content-Type"] == "text/event-stream"
    stream.readline()
    destinations = lab.ask("GET", "/redfish/v1/EventService/Subscriptions")[1]["Members"]
    assert len(destinations) == 1, destinations
    lab.run("set", "data", "rebuild.rate=50M")
    while not (line := stream.readline().decode()).startswith("data: "):
        pass
    event = json.loads(line[6:])
    assert event["Events"][0]["MessageId"].startswith("Openraid.1.0."), event
    # A test event, as sushy submits it.
    import sushy

    root = sushy.Sushy(lab.url, username=USER, password=PASSWORD, verify=False)
    root.get_event_service().submit_test_event("e1", "2026-01-02T03:04:05Z", "Alert", "a trial", [], "Openraid.1.0.TestMessage", STORAGE, "OK")
    while "a trial" not in (line := stream.readline().decode()):
        assert line, "the stream has ended"
    assert json.loads(line[6:])["Events"][0]["EventId"] == "e1", line
    assert lab.ask("DELETE", destinations[0]["@odata.id"])[0] == 204
    while stream.readline():
        pass
    print("events: a stream tells of a change, and ends when it is deleted")


def main():
    program = os.path.abspath(sys.argv[1])
    schemas = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(prefix="openraid-redfish-") as folder:
        lab = Lab(program, pathlib.Path(folder))
        try:
            lab.start()
            states = lab.states()
            print(states)
            healths = {name: health for name, (health, _) in states.items()}
            assert healths == {"data": "OK", "lame": "Warning", "filling": "Warning", "dead": "Critical"}, states
            assert states["filling"][1] == ["rebuild"], states
            service_validator(lab, schemas)
            protocol_validator(lab)
            interop_validator(lab)
            use_cases(lab)
            with_utilities(lab)
            with_events(lab)
            with_sushy(lab)
            with_ansible(lab)
            with_redfishtool(lab)
        finally:
            if hasattr(lab, "server"):
                lab.server.terminate()
                lab.server.wait()
    print("Redfish: all well" + (f", but left out: {'; '.join(LEFT_OUT)}" if LEFT_OUT else ""))


main()
