#!/usr/bin/env python3
"""The console in Debian's Chromium, against a real server.

    tools/console.py PROGRAM AXE [FOLDER]

A story: signs in by the link of the first start, makes an array with the wizard, loads it, reads the story of a slow request,
switches the light of a drive, pulls a drive of it, watches the rebuild, reads and acknowledges the alarm, removes the drive, changes the profile, clicks the
stripe map, runs reviews and compares them, adds a user. It is told twice: at 1280 pixels, light, with a mouse; and at 360 pixels,
dark, with the keys Tab, Enter, Space and the arrows alone, the focus being seen. Then each page at 1280, 768 and 360 pixels, light and dark:
axe (the file AXE) finds nothing, no page and no table is wider than the window, every control is reached by the Tab key, and the browser's
console has no error. With FOLDER, the screenshots
are left there. Needs the Python package playwright, fio and gzip.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from playwright.sync_api import expect, sync_playwright

PAGES = ["", "array/data", "array/made", "array/pair", "drives", "journal", "create", "lab", "lab/what-if", "events", "settings"]
SIZE_MAX = 80 * 1024
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Jobs have the lowest priority: on a busy machine they wait.
SLOW = 900000


def main():
    program = os.path.abspath(sys.argv[1])
    axe = pathlib.Path(sys.argv[2]).read_text()
    out = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        with Service(program) as service:
            size(browser, service.ready["console"])
            service.out = out
            story(browser, service, 1280, "light", Mouse)
            # A drive is missing, and its rebuild takes eight minutes.
            service.run("set", "data", "rebuild.rate=64K")
            service.run("fail", "data", "d1")
            focus_stays(browser, service.link())
            for width, scheme in [(1280, "light"), (1280, "dark"), (768, "light"), (768, "dark"), (360, "light"), (360, "dark")]:
                look(browser, service.link(), width, scheme, axe, out)
            for width in [1280, 768, 360]:
                tab(browser, service.link(), width)
            first_page(browser, service.link)
            after_a_crash(browser, service)
        with Service(program) as service:
            story(browser, service, 360, "dark", Keys)
        browser.close()
    print("console: all well")


class Service:
    """A server with an array, a journal, and files for another array."""

    def __init__(self, program):
        self.program = program
        # It has models of drives, and all verbs of the other one.
        self.laboratory = f"{program}-lab"
        self.place = tempfile.TemporaryDirectory(prefix="openraid-console-")
        self.folder = pathlib.Path(self.place.name)
        self.out = None

    def run(self, *words, program=None):
        done = subprocess.run([program or self.program, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode in (0, 1), (words, done.stdout, done.stderr)
        return done.stdout

    def link(self):
        return json.loads(self.run("login", "--json"))["link"]

    def __enter__(self):
        self.environment = {**os.environ, "XDG_STATE_HOME": f"{self.folder}/state", "XDG_RUNTIME_DIR": f"{self.folder}/run"}
        self.environment.pop("OPENRAID_CONTROL", None)
        self.run("create", "data", "--level", "6", "--chunk", "64K", "--assume-clean", "--file-size", "32M", "--spare", "d6", *[f"d{n}" for n in range(6)])
        for name, mib in [("battery", 64)] + [(f"new{number}", 32) for number in range(5)] + [("e0", 64), ("e1", 64)]:
            with open(self.folder / name, "wb") as file:
                file.truncate(mib << 20)
        # Of modelled drives the class is known.
        self.run("create", "pair", "--level", "1", "--assume-clean", *[f"model:evo870_1tb,file={self.folder}/e{n}" for n in range(2)], program=self.laboratory)
        self.run("journal", "create", "battery")
        led = self.folder / "led"
        led.write_text(f"#!/bin/sh\necho \"$1 $2\" >>{self.folder}/lights\n")
        led.chmod(0o755)
        config = f'[care]\nled = "{led}"\n[sinks.script]\nkind = "exec"\nprogram = "/bin/true"\n'
        (self.folder / "openraid.toml").write_text(config)
        self.serve("127.0.0.1:0")
        return self

    def serve(self, address):
        self.server = subprocess.Popen(
            [self.laboratory, "serve", "data", "pair", "--json", "--config", "openraid.toml", "--nbd-unix", f"{self.folder}/nbd.sock", "--http", address, "--journal", "battery"],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True)
        self.ready = json.loads(self.server.stdout.readline())

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()
        self.place.cleanup()


class Mouse:
    """Uses the page as one does who has a mouse, and a keyboard for texts."""

    def __init__(self, page):
        self.page = page

    def press(self, control):
        control.click()

    def fill(self, field, text):
        field.fill(text)

    def choose(self, select, value):
        select.select_option(value)

    def check(self, box):
        box.check()


class Keys:
    """Uses the page by Tab, Enter, the space bar and the arrows; the focus must be seen where it is."""

    def __init__(self, page):
        self.page = page

    def reach(self, control):
        """By the Tab key, from where the focus is now."""
        expect(control).to_be_enabled()
        for _ in range(400):
            if control.evaluate("own => own === document.activeElement"):
                seen = control.evaluate("own => { const box = own.getBoundingClientRect(); return getComputedStyle(own).outlineStyle !== 'none' && box.bottom > 0 && box.top < innerHeight; }")
                assert seen, f"the focus on {self.page.evaluate(FOCUSED)} cannot be seen"
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{control} is not reached by the Tab key")

    def press(self, control):
        self.reach(control)
        self.page.keyboard.press("Enter")

    def fill(self, field, text):
        self.reach(field)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.press("Delete")
        # An Enter ends a line in a field of several lines only.
        self.page.keyboard.type(text)

    def choose(self, select, value):
        self.reach(select)
        values = select.evaluate("own => [...own.options].map((one) => one.value)")
        self.page.keyboard.press("Home")
        for _ in range(values.index(value)):
            self.page.keyboard.press("ArrowDown")
        if select.evaluate("own => own.value") != value:
            raise AssertionError(f"{value} is not chosen by the arrows")

    def check(self, box):
        self.reach(box)
        self.page.keyboard.press("Space")
        expect(box).to_be_checked()


def open_page(browser, link, width, scheme="light"):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(link)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    return page, wrong


def focus_stays(browser, link):
    """The cards of the arrays are built again with each step of the rebuild: the link that has the focus keeps it."""
    page, _ = open_page(browser, link, 1280)
    own = page.get_by_role("main").get_by_role("link", name="made", exact=True)
    own.focus()
    before = own.element_handle()
    page.wait_for_function("own => !own.isConnected", arg=before)
    expect(own).to_be_focused()
    page.close()


def after_a_crash(browser, service):
    """The server is killed: the page says that it is out of date. It is right again by itself within 5 s of the next server."""
    page, _ = open_page(browser, service.link(), 1280)
    old = page.get_by_text("The server does not answer")
    expect(old).to_be_hidden()
    service.server.kill()
    service.server.wait()
    expect(old).to_be_visible()
    service.serve(re.search(r"[\d.]+:\d+", service.ready["console"]).group())
    expect(old).to_be_hidden(timeout=5000)
    # Not only the banner: what the next server says is on the page.
    go(page, "array/data")
    service.run("set", "data", "rebuild.rate=77M")
    expect(page.get_by_text("at most 77.0 MiB/s", exact=True)).to_be_visible(timeout=5000)
    page.close()


def go(page, path):
    page.evaluate("path => { location.hash = '#/' + path; }", path)


def size(browser, base):
    """All files of the console, each compressed by itself, as a proxy would send them."""
    page = browser.new_context().new_page()
    files = {}
    wrong = []

    def note(answer):
        if answer.url.startswith(base) and "/api/" not in answer.url:
            files[answer.url] = answer.body()
            head = answer.headers
            if "/console/" in answer.url and (head.get("content-encoding") != "gzip" or "immutable" not in head["cache-control"]):
                wrong.append((answer.url, head))

    page.on("response", note)
    page.goto(base)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert not wrong, wrong
    # The next page of this browser takes every file from its cache.
    again = page.context.new_page()
    again.goto(base)
    expect(again.get_by_role("heading", name="Sign in")).to_be_visible()
    sent = again.evaluate("performance.getEntriesByType('resource').filter((own) => own.name.includes('/console/')).map((own) => own.transferSize)")
    assert len(sent) > 10 and not any(sent), sent
    page.context.close()
    sizes = [len(subprocess.run(["gzip", "-9"], input=body, stdout=subprocess.PIPE, check=True).stdout) for body in files.values()]
    print(f"console: {len(files)} files, {sum(map(len, files.values()))} bytes, {sum(sizes)} compressed")
    assert len(files) > 10 and sum(sizes) < SIZE_MAX, (len(files), sum(sizes))


def first_page(browser, link):
    """From the request to the arrays' state on the page; the median of five."""
    took = []
    for _ in range(5):
        page = browser.new_page()
        page.goto(link(), wait_until="commit")
        page.locator("main h2 a").first.wait_for()
        took.append(page.evaluate("performance.now()"))
        page.close()
    print(f"console: first page in {sorted(took)[2]:.0f} ms")


def story(browser, service, width, scheme, way):
    """One array goes through all of it: it is made, loaded, loses a drive, is rebuilt, changed and asked."""
    page, wrong = open_page(browser, service.ready["login"], width, scheme)
    hand = way(page)
    create(page, hand, service)
    uri = f"nbd+unix:///made?socket={service.folder}/nbd.sock"
    load = subprocess.Popen(
        ["fio", "--name=load", "--ioengine=nbd", f"--uri={uri}", "--rw=randrw", "--bs=8k", "--size=32M", "--iodepth=4", "--runtime=3600", "--time_based", "--rate_iops=200"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=service.folder)
    try:
        explain(page, hand)
        light(page, hand, service)
        pull_a_drive(page, hand, service)
        acknowledge(page, hand, service)
        rebuilt(page, hand, service)
        assert load.poll() is None, "the load has ended"
    finally:
        load.terminate()
        load.wait()
    change_profile(page, hand, service)
    values_of_the_class(page, hand, service)
    stripe_map(page, hand)
    laboratory(page, hand, 2 if way is Mouse else 1)
    users(page, hand)
    # Refusals are answers, not errors of the page.
    assert not [text for text in wrong if "Failed to load resource" not in text], wrong
    page.close()
    print(f"console: the story at {width} pixels, {scheme}, with {way.__name__.lower()}")


def the_array(service, name="made"):
    return json.loads(service.run("show", name, "--json"))["array"]


def no_holes(page):
    """No part of the page is the word for something that is not there."""
    words = {"null", "undefined", "NaN", "[object Object]"} & set(page.locator("body").inner_text().splitlines())
    assert not words, (page.url, words)


def settings(page, hand, name, value):
    hand.press(page.get_by_role("button", name="Change settings"))
    field = page.get_by_label(name, exact=True)
    if field.evaluate("own => own.tagName") == "SELECT":
        hand.choose(field, value)
    else:
        hand.fill(field, value)
    hand.press(page.get_by_role("button", name="Apply"))
    expect(page.get_by_role("dialog")).to_have_count(0)


def create(page, hand, service):
    hand.press(page.get_by_role("link", name="Create", exact=True))
    hand.fill(page.get_by_label("Name"), "made")
    hand.choose(page.get_by_label("Level").first, "6")
    # On a machine with unused drives the paths are folded away.
    page.wait_for_timeout(1500)
    folded = page.locator("#paths:not([open]) > summary")
    if folded.count():
        hand.press(folded)
    hand.fill(page.get_by_label("Members"), "\n".join(f"{service.folder}/new{n}" for n in range(4)))
    hand.fill(page.get_by_label("Spares"), f"{service.folder}/new4")
    hand.press(page.get_by_role("button", name="Preview"))
    expect(page.locator("#cli")).to_contain_text("openraid create --level 6")
    # The simulator's figures come for each level, with the profile that they are for.
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name="Choose level 5", exact=True))
    expect(row).to_contain_text("requests/s", timeout=SLOW)
    expect(row).to_contain_text("any member")
    expect(page.locator("#stands-for")).to_contain_text("openraid-lab plan --effort quick --drives 4")
    # Until every level is computed, the table is built again each second.
    expect(page.get_by_text("is computed")).to_have_count(0, timeout=SLOW)
    no_holes(page)
    if service.out:
        service.out.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=service.out / "wizard-1280-light.png", full_page=True)
    hand.press(page.get_by_role("button", name="Choose level 5", exact=True))
    expect(page.locator("#cli")).to_contain_text("openraid create --level 5")
    hand.press(page.get_by_role("button", name="Create", exact=True))
    expect(page.get_by_role("heading", name="made", exact=True)).to_be_visible()
    # The server's own sentence, as the command line has it.
    service.run("show", "made", "--wait", "60")
    expect(page.locator("main .health")).to_contain_text("made is optimal.", timeout=SLOW)
    expect(page.locator("main .health")).to_contain_text(the_array(service)["sentence"])


def explain(page, hand):
    panel = page.locator("section").filter(has=page.get_by_role("heading", name="Explain"))
    expect(panel).to_contain_text("requests a second", timeout=SLOW)
    expect(panel.get_by_role("row").filter(has_text="slot 0")).to_have_count(1)
    hand.press(page.get_by_role("button", name="Watch", exact=True))
    told = page.locator("summary").filter(has_text=re.compile(r"Request \d+: (read|write) of"))
    expect(told.first).to_be_visible(timeout=SLOW)
    hand.press(page.get_by_role("button", name="Stop watching"))
    hand.press(told.first)
    expect(page.get_by_role("cell", name=re.compile("^the client's request|arrived|received|asked", re.I)).first).to_be_visible()


def light(page, hand, service):
    """The light of a bay is switched on, and off."""
    drive = f"{service.folder}/new1"
    hand.press(page.get_by_role("button", name=f"Locate {drive}", exact=True))
    hand.press(page.get_by_role("button", name="Light on"))
    hand.press(page.get_by_role("button", name="Light off"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    lights = (service.folder / "lights").read_text()
    assert lights == f"locate {drive}\nlocate_off {drive}\n", lights


def pull_a_drive(page, hand, service):
    # So slowly that it can be watched.
    settings(page, hand, "rebuild.rate", "1M")
    assert the_array(service)["settings"]["rebuild_rate"] == 1 << 20
    hand.press(page.get_by_role("button", name=f"Fail {service.folder}/new1", exact=True))
    confirm = page.get_by_role("button", name="Fail this member")
    expect(confirm).to_be_disabled()
    hand.fill(page.get_by_label("Type made to confirm"), "maid")
    expect(confirm).to_be_disabled()
    hand.fill(page.get_by_label("Type made to confirm"), "made")
    hand.press(confirm)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("cell", name="by administrator")).to_be_visible(timeout=20000)
    # The spare is being filled, and every page says that the array is degraded.
    expect(page.get_by_role("progressbar", name=re.compile("^rebuild")).first).to_be_visible(timeout=20000)
    expect(page.locator("header .health")).to_contain_text("made is degraded: without slot 1.")


def acknowledge(page, hand, service):
    """The alarm is read, and acknowledged by its own button, while it holds."""
    hand.press(page.get_by_role("link", name="Events", exact=True))
    alarms = page.get_by_role("region", name="Alarms")
    row = alarms.get_by_role("row").filter(has_text="degraded: without slot 1")
    expect(row).to_contain_text("the loss of one more member loses data", timeout=20000)
    expect(row).to_contain_text("openraid show made --follow")
    button = row.get_by_role("button", name="Acknowledge")
    name = button.get_attribute("aria-label").removeprefix("Acknowledge ")
    hand.press(button)
    expect(row.locator("td.act")).to_have_text("acknowledged", timeout=20000)
    own = [alarm for alarm in the_array(service)["alarms"] if alarm["id"] == name]
    assert own and own[0]["acknowledged_seconds"], (name, own)
    # The other alarm, of the failed member, is still open.
    expect(alarms.get_by_role("row").filter(has_text="failed: by administrator").get_by_role("button", name="Acknowledge")).to_be_visible()
    # The log is searched, whatever the letters' case.
    log = page.get_by_role("region", name="Events")
    hand.fill(page.get_by_label("Search"), "REBUILD BEGINS")
    expect(log.get_by_role("row").filter(has_text="RebuildStarted").first).to_be_visible()
    expect(log.get_by_role("row").filter(has_text="ServerStarted")).to_have_count(0)
    hand.fill(page.get_by_label("Search"), "no such words")
    expect(page.get_by_text("No event has these words.")).to_be_visible()
    hand.fill(page.get_by_label("Search"), "")
    # The log has what happened, with what was acknowledged.
    hand.choose(page.get_by_label("Level"), "critical")
    log = page.get_by_role("region", name="Events")
    expect(log.get_by_role("row").filter(has_text="Fail").first).to_be_visible(timeout=20000)
    hand.press(log.get_by_role("button", name="Acknowledge event").first)
    expect(log.get_by_text("acknowledged", exact=True).first).to_be_visible()


def rebuilt(page, hand, service):
    """The rebuild goes on, and ends; the failed drive is taken out by the next step that the page names."""
    hand.press(page.get_by_role("link", name="Overview", exact=True))
    hand.press(page.get_by_role("main").get_by_role("link", name="made", exact=True))
    bar = page.get_by_role("progressbar", name=re.compile("^rebuild")).first
    before = bar.get_attribute("value")
    expect(bar).not_to_have_attribute("value", before, timeout=SLOW)
    settings(page, hand, "rebuild.rate", "none")
    expect(page.locator("main .health")).to_contain_text("made is optimal.", timeout=SLOW)
    expect(page.locator("#next-step")).to_contain_text("Remove", timeout=SLOW)
    hand.press(page.locator("#next-step"))
    hand.press(page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True))
    expect(page.get_by_role("cell", name="by administrator")).to_have_count(0)
    own = the_array(service)
    assert own["health"] == "optimal" and f"{service.folder}/new4" in [member["member"] for member in own["members"]], own


def change_profile(page, hand, service):
    settings(page, hand, "profile", "protection")
    expect(page.locator("dd").filter(has_text="protection").first).to_be_visible()
    assert the_array(service)["profile"]["name"] == "protection"


def values_of_the_class(page, hand, service):
    """The drives of the other array are SSDs: the values for them are filled in and applied."""
    hand.press(page.get_by_role("link", name="Drives", exact=True))
    expect(page.get_by_role("row").filter(has_text="/e0")).to_contain_text("SSD")
    expect(page.get_by_role("row").filter(has_text="/new0")).to_contain_text("not known")
    hand.press(page.get_by_role("main").get_by_role("link", name="pair", exact=True).first)
    hand.press(page.get_by_role("button", name="Change settings"))
    expect(page.locator("#class")).to_have_text("The drives are SSDs.")
    hand.press(page.get_by_role("button", name="Fill in the values for SSDs"))
    hand.press(page.get_by_role("button", name="Apply"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    own = the_array(service, "pair")["settings"]
    assert (own["rebuild_rate"], own["scrub_rate"]) == (500 << 20, 250 << 20), own
    hand.press(page.get_by_role("link", name="Overview", exact=True))
    hand.press(page.get_by_role("main").get_by_role("link", name="made", exact=True))


def stripe_map(page, hand):
    chunk = int(page.get_by_role("button", name=re.compile("^Chunk 1, byte ")).get_attribute("aria-label").split()[-1])
    hand.press(page.get_by_role("button", name=f"Chunk 4, byte {4 * chunk}"))
    expect(page.locator(".cell.data")).to_have_count(1)
    # Three data chunks a stripe: chunk 4 is the second one of stripe 1.
    expect(page.get_by_text(re.compile(rf"^Byte {4 * chunk}, stripe 1: .*\(slot \d\), byte {chunk} of its data\."))).to_be_visible()
    expect(page.locator(".cell.p")).to_have_count(1)
    # By the arrow keys in both stories: the next chunk.
    page.get_by_label("Address").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Byte of the array")).to_have_value(str(5 * chunk))
    hand.fill(page.get_by_label("Byte of the array"), "99999999999")
    hand.press(page.get_by_role("button", name="Show"))
    expect(page.get_by_text("offset=99999999999")).to_be_visible()


def laboratory(page, hand, reviews):
    hand.press(page.get_by_role("link", name="Lab", exact=True))

    def begin(name, kind):
        hand.choose(page.get_by_label("What", exact=True), kind)
        hand.fill(page.get_by_label("Name of the report"), name)
        hand.press(page.get_by_role("button", name="Begin"))
        row = page.get_by_role("region", name="Jobs").get_by_role("row").filter(has_text=name)
        expect(row).to_contain_text("done", timeout=SLOW)

    begin("what-if", "plan")
    hand.press(page.get_by_role("region", name="Reports").get_by_role("link", name="what-if", exact=True))
    expect(page.get_by_text(re.compile("^Recommended: raid")).first).to_be_visible()
    hand.press(page.get_by_role("link", name="All reports"))
    hand.choose(page.get_by_label("What", exact=True), "review")
    hand.fill(page.get_by_label("Arrays"), "single, raid5x4")
    hand.choose(page.get_by_label("Methods"), "latency")
    names = ["slow", "fast"][:reviews]
    for name, drive in zip(names, ["wd740gd", "evo870_1tb"]):
        hand.choose(page.get_by_label("Drive", exact=True), drive)
        begin(name, "review")
    if reviews == 2:
        for name in names:
            hand.check(page.get_by_role("checkbox", name=f"Choose {name}"))
        hand.press(page.get_by_role("button", name="Compare the two chosen reviews"))
        hand.press(page.get_by_role("button", name="Compare", exact=True))
        expect(page.get_by_role("region", name="Jobs").get_by_role("row").filter(has_text="times as fast")).to_have_count(1, timeout=SLOW)
    for report in names:
        with page.expect_popup() as opened:
            hand.press(page.get_by_role("region", name="Reports").get_by_role("link", name=report, exact=True))
        expect(opened.value.get_by_role("heading", level=1)).to_contain_text("Review of sim:openraid")
        assert opened.value.locator("svg").count() > 0
        opened.value.close()
        page.bring_to_front()


def users(page, hand):
    """A schedule that the server keeps; and a user, who may come in with a password."""
    hand.press(page.get_by_role("link", name="Settings", exact=True))
    hand.press(page.get_by_role("button", name="Test script"))
    expect(page.get_by_text("script: the test alarm is delivered.")).to_be_visible()
    hand.press(page.get_by_role("button", name="Add a sink"))
    dialog = page.get_by_role("dialog")
    hand.fill(dialog.get_by_label("Name"), "chat")
    hand.fill(dialog.get_by_label("Address"), "not-an-address")
    hand.press(dialog.get_by_role("button", name="Add", exact=True))
    # The browser itself asks for an address.
    expect(dialog).to_be_visible()
    hand.fill(dialog.get_by_label("Address"), "http://127.0.0.1:9/")
    hand.press(dialog.get_by_role("button", name="Add", exact=True))
    hand.press(page.get_by_role("button", name="Remove sink chat"))
    expect(page.get_by_role("button", name="Remove sink chat")).to_have_count(0)
    hand.press(page.get_by_role("button", name="Add a schedule"))
    dialog = page.get_by_role("dialog")
    hand.fill(dialog.get_by_label("Name"), "weekly")
    hand.fill(dialog.get_by_label("Every"), "1s")
    hand.press(dialog.get_by_role("button", name="Add", exact=True))
    expect(dialog).to_contain_text("every")
    hand.fill(dialog.get_by_label("Every"), "1w")
    hand.press(dialog.get_by_role("button", name="Add", exact=True))
    row = page.get_by_role("row").filter(has_text="weekly")
    expect(row).to_contain_text("7 days")
    hand.press(row.get_by_role("button", name="Remove"))
    expect(page.get_by_text("Nothing is scheduled.")).to_be_visible()
    hand.press(page.get_by_role("button", name="Add a user"))
    dialog = page.get_by_role("dialog")
    hand.fill(dialog.get_by_label("Name"), "ann")
    hand.fill(dialog.get_by_label("Password"), "correct horse")
    hand.press(dialog.get_by_role("button", name="Add", exact=True))
    expect(page.get_by_role("cell", name="ann")).to_be_visible()
    hand.press(page.get_by_role("button", name="Sign out"))
    hand.fill(page.get_by_label("Name"), "ann")
    hand.fill(page.get_by_label("Password"), "correct horse")
    hand.press(page.get_by_role("button", name="Sign in"))
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()


def judge(page, axe, what):
    """What axe finds: nothing."""
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, { runOnly: rules })", RULES)
    assert len(found["passes"]) > 10, what
    assert not found["violations"], (what, [(own["id"], [node["html"] for node in own["nodes"]]) for own in found["violations"]])


def look(browser, link, width, scheme, axe, out):
    page, wrong = open_page(browser, link, width, scheme)
    shots = [(path, None) for path in PAGES] + [("array/data", "Change settings"), ("array/pair", "Change settings"), ("array/data", "Stop or delete this array"), ("settings", "Add a schedule"), ("settings", "Add a sink"), ("settings", "Set the journal"), ("array/data", "Names for clients"), ("settings", "Add a user")]
    for path, dialog in shots:
        go(page, path)
        page.wait_for_timeout(1500)
        closed = page.locator("details:not([open]) > summary")
        while closed.count():
            closed.first.click()
        if dialog:
            page.get_by_role("button", name=dialog).click()
            expect(page.get_by_role("dialog")).to_be_visible()
        what = f"{path or 'overview'}{'-' + dialog.split()[-1].lower() if dialog else ''}-{width}-{scheme}".replace("/", "-")
        hidden = page.evaluate("[...document.querySelectorAll('.scroll')].filter((own) => own.scrollWidth > own.clientWidth + 1).map((own) => own.ariaLabel)")
        assert not hidden, f"{what}: parts of the tables {hidden} are outside of the window"
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{what} is {wide} pixels wide"
        no_holes(page)
        judge(page, axe, what)
        if out:
            out.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=out / f"{what}.png", full_page=not dialog)
        if dialog:
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    judge(page, axe, f"sign-in-{width}-{scheme}")
    assert not [text for text in wrong if "401" not in text], wrong
    page.close()


NAMED = """() => [...document.querySelectorAll('button:not(:disabled), a[href], input:not(:disabled), select, textarea, summary')]
    .filter((own) => own.checkVisibility()).map((own) => own.tagName + ' ' + (own.ariaLabel || own.labels?.[0]?.textContent || own.textContent))"""
FOCUSED = """() => { const own = document.activeElement; return own === document.body ? null
    : own.tagName + ' ' + (own.ariaLabel || own.labels?.[0]?.textContent || own.textContent); }"""
OUTLINED = "() => document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'"


def tab(browser, link, width):
    """Every control of every page is reached by the Tab key, and the focus can be seen."""
    page, _ = open_page(browser, link, width)
    for path in PAGES:
        go(page, path)
        page.wait_for_timeout(1500)
        before = set(page.evaluate(NAMED))
        page.evaluate("document.activeElement.blur()")
        reached = set()
        for _ in range(3 * len(before) + 60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(FOCUSED))
            assert page.evaluate(OUTLINED), f"{path}: the focus on {page.evaluate(FOCUSED)} cannot be seen"
            if before <= reached:
                break
        # What was replaced meanwhile is another control by now.
        missed = (before & set(page.evaluate(NAMED))) - reached
        assert not missed, (path, missed)
    page.close()


if __name__ == "__main__":
    main()
