#!/usr/bin/env python3
"""What every interface of the server says of the array `data`, as one line of JSON. Runs in the guest of tools/machine.py.

The interfaces: the exit code of `list`, `show`, the API, the event stream from which the console draws, the rolled-up health of
Redfish, the metrics, the open alarms, the status of the unit, and the kernel's md. A server that does not answer gives
"none".
"""

import json
import os
import re
import subprocess
import urllib.request

BASE = "http://127.0.0.1:8440"
# A token that lasts, and a session, as the console has one. They work after every restart of the server.
TOKEN, SESSION = "/var/lib/interfaces-token", "/run/interfaces-session"
ANSWER_SECONDS_MAX = 60


def run(*words):
    """Exit code and output of a program."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def token(place, *words):
    """The token at this place: it is made once."""
    if not os.path.exists(place):
        code, text = run("openraid", "login", "--token", "--role", "ReadOnly", *words)
        if code:
            return ""
        with open(place, "w", encoding="ascii") as file:
            file.write(text.splitlines()[-1])
    with open(place, encoding="ascii") as file:
        return file.read()


def fetch(path, bearer=None):
    """An answer of the server, as a stream."""
    headers = {"Authorization": f"Bearer {bearer or token(TOKEN, '--name', 'interfaces')}"}
    return urllib.request.urlopen(urllib.request.Request(BASE + path, headers=headers), timeout=ANSWER_SECONDS_MAX)


def health_of(document):
    """The health in a document with arrays."""
    return next((array["health"] for array in document["arrays"] if array["name"] == "data"), "absent")


def console():
    """The health in the first state that the stream of the console sends."""
    with fetch("/api/v1/stream", token(SESSION)) as stream:
        for line in stream:
            if line.startswith(b"event: status"):
                return health_of(json.loads(next(stream).removeprefix(b"data: ")))
    return "none"


def api():
    with fetch("/api/v1/arrays") as answer:
        return health_of(json.load(answer))


def redfish():
    with fetch("/redfish/v1/Systems/1") as answer:
        return json.load(answer)["Status"]["HealthRollup"]


def metrics():
    with fetch("/metrics") as answer:
        found = re.search(r'openraid_array_health\{array="data",.*health="(\w+)"\} 1', answer.read().decode())
    return found[1] if found else "absent"


def alarms():
    """The names of all open alarms."""
    with fetch("/api/v1/alarms") as answer:
        listed = json.load(answer)["alarms"]
    return sorted({alarm["event"] for alarm in listed if alarm["until_seconds"] is None})


def asked(interface):
    """An interface of the web; a server that does not answer is an answer, too."""
    try:
        return interface()
    except (OSError, ValueError, KeyError) as error:
        return f"none: {error}"


def main():
    code, _ = run("openraid", "list")
    _, shown = run("openraid", "show", "data", "--json")
    found = re.search(r'"health":\s*"(\w+)"', shown)
    _, unit = run("systemctl", "show", "-P", "StatusText", "openraid")
    has_md = False
    # Without the file not even the driver is there.
    if os.path.exists("/proc/mdstat"):
        with open("/proc/mdstat", encoding="ascii") as file:
            has_md = re.search(r"^md\d+ :", file.read(), re.M)
    said = {
        "list": code,
        "show": found[1] if found else "none",
        **{interface.__name__: asked(interface) for interface in (api, console, redfish, metrics, alarms)},
        "unit": unit.strip(),
        "md": "md has it" if has_md else "no md",
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
