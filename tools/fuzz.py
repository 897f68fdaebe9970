#!/usr/bin/env python3
"""Every operation of the OpenAPI document, with input that fits it and input that does not.

    tools/fuzz.py PROGRAM [EXAMPLES]

schemathesis draws up to EXAMPLES (40 unless said) requests for each operation, as an administrator. No answer may be of the 500s, have another status,
type or form than the document says, or accept what the document forbids. Then the same connection limits as before must hold for
Redfish: bodies of every kind of JSON are POSTed to each of its actions. At the end the server runs, and the array is as it was.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

TOOLS = pathlib.Path(sys.executable).parent
# Signing out would end the run; a stream never ends; a renamed array is not found again.
LEFT_OUT = ["--exclude-operation-id", "delete_session", "--exclude-path", "/api/v1/stream", "--exclude-path", "/api/v1/arrays/{array}/rename"]
# A path with a name that nothing has is answered with 404 whatever the body is: that is no acceptance. A document cannot say that
# a name must exist, so refusals of what fits it are right, too.
CHECKS = ["not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "negative_data_rejection", "unsupported_method", "ignored_auth"]
ODD = [None, True, 0, -1, 1e308, 2**64, "", "x" * 60000, "\u0000", [], [[]] * 100, {}, {"": {}}, [1], "../../etc/passwd"]


def main():
    program = os.path.abspath(sys.argv[1])
    examples = sys.argv[2] if len(sys.argv) > 2 else "40"
    with tempfile.TemporaryDirectory(prefix="openraid-fuzz-") as folder:
        environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": f"{folder}/run"}
        environment.pop("OPENRAID_CONTROL", None)

        def run(*words):
            done = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        run("create", "data", "--level", "5", "--assume-clean", "--file-size", "16M", "d0", "d1", "d2")
        server = subprocess.Popen([program, "serve", "data", "--json", "--nbd-unix", f"{folder}/nbd.sock", "--http", "127.0.0.1:0"],
                                  cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            url = json.loads(server.stdout.readline())["console"].rstrip("/")
            # What the server tells afterwards is read, so that it need not wait for a reader.
            threading.Thread(target=server.stdout.read, daemon=True).start()
            token = run("login", "--token", "--role", "Administrator").strip()
            with_schemathesis(url, token, examples, folder)
            with_odd_bodies(url, token)
            assert server.poll() is None, "the server has ended"
            shown = json.loads(run("show", "data", "--json"))["array"]
            assert shown["health"] == "optimal" and len(shown["members"]) == 3, shown
        finally:
            server.terminate()
            server.wait()
    print("fuzz: all well")


def with_schemathesis(url, token, examples, folder):
    # A version of the state that is not the one in force is a refusal, too.
    config = pathlib.Path(folder) / "schemathesis.toml"
    config.write_text("[checks]\nnegative_data_rejection.expected-statuses = "
                      "[400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428, 429, 431]\n")
    words = [TOOLS.absolute() / "schemathesis", "--config-file", config, "run", f"{url}/api/v1/openapi.json", "-H", f"Authorization: Bearer {token}", "--rate-limit", "90/s",
             "--phases", "examples,coverage,fuzzing", "--max-examples", examples, "--checks", ",".join(CHECKS), "--warnings", "off",
             "--continue-on-failure", "--no-color", *LEFT_OUT]
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)
    print("\n".join(done.stdout.splitlines()[-25:]), flush=True)
    assert done.returncode == 0, done.stdout + done.stderr


def with_odd_bodies(url, token):
    storage = "/redfish/v1/Systems/1/Storage/openraid"
    volume = f"{storage}/Volumes/data"
    accounts = "/redfish/v1/AccountService/Accounts"
    targets = [("POST", f"{storage}/Volumes"), ("PATCH", volume), ("POST", f"{volume}/Actions/Volume.Initialize"), ("POST", accounts),
               ("PATCH", f"{accounts}/nobody"), ("POST", "/redfish/v1/SessionService/Sessions")]
    keys = ["RAIDType", "Links", "Name", "CapacityBytes", "StripSizeBytes", "MediaSpanCount", "Oem", "WriteCachePolicy", "UserName", "Password",
            "RoleId", "Enabled", "@Redfish.OperationApplyTime"]
    for method, path in targets:
        bodies = [json.dumps(odd) for odd in ODD] + [json.dumps({key: odd}) for key in keys for odd in ODD]
        bodies += ["{", "{\"a\":", "[" * 5000, "\xff", "{\"a\":1}{"]
        for body in bodies:
            request = urllib.request.Request(url + path, body.encode("utf-8", "surrogateescape"), method=method,
                                             headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            while (status := asked(request)) == 429:
                pass
            assert 400 <= status < 500, (method, path, body[:100], status)
    print("odd bodies: all refused")


def asked(request):
    try:
        return urllib.request.urlopen(request, timeout=30).status
    except urllib.error.HTTPError as error:
        assert json.loads(error.read())["error"]["message"], "an error of Redfish"
        return error.code


main()
