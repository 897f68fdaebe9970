#!/usr/bin/env python3
"""The console in Debian's Chromium, against a real server.

    tools/console.py PROGRAM AXE [FOLDER]

Signs in by the link of the first start, makes an array with the wizard, loads it, reads the story of a slow request, pulls a
drive, watches the rebuild, acknowledges an alarm, changes the profile, clicks the stripe map, runs two reviews and compares
them, adds a user. Then each page at 1280 and 360 pixels, light and dark: axe (the file AXE) finds nothing, no page is wider
than the window, every control is reached by the Tab key, and the browser's console has no error. With FOLDER, the screenshots
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

PAGES = ["", "array/data", "array/made", "drives", "journal", "create", "lab", "lab/what-if", "events", "settings"]
SIZE_MAX = 80 * 1024
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Jobs have the lowest priority: on a busy machine they wait.
SLOW = 900000


def main():
    program = os.path.abspath(sys.argv[1])
    axe = pathlib.Path(sys.argv[2]).read_text()
    out = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory(prefix="openraid-console-") as folder:
        folder = pathlib.Path(folder)
        environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": f"{folder}/run"}
        environment.pop("OPENRAID_CONTROL", None)

        def run(*words):
            done = subprocess.run([program, *words], cwd=folder, env=environment, capture_output=True, text=True)
            assert done.returncode in (0, 1), (words, done.stdout, done.stderr)
            return done.stdout

        run("create", "data", "--level", "6", "--chunk", "64K", "--assume-clean", "--file-size", "32M", "--spare", "d6", *[f"d{n}" for n in range(6)])
        with open(folder / "battery", "wb") as file:
            file.truncate(64 << 20)
        run("journal", "create", "battery")
        for number in range(4):
            with open(folder / f"new{number}", "wb") as file:
                file.truncate(32 << 20)
        server = subprocess.Popen(
            [program, "serve", "data", "--json", "--nbd-unix", f"{folder}/nbd.sock", "--http", "127.0.0.1:0", "--journal", "battery"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            ready = json.loads(server.stdout.readline())
            run("set", "data", "rebuild.rate=2M")

            def link():
                return json.loads(run("login", "--json"))["link"]

            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                size(browser, ready["console"])
                story(browser, ready, folder)
                for width, scheme in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]:
                    look(browser, link(), width, scheme, axe, out)
                tab(browser, link())
                first_page(browser, link)
                browser.close()
        finally:
            server.terminate()
            server.wait()
    print("console: all well")


def open_page(browser, link, width, scheme="light"):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(link)
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    return page, wrong


def go(page, path):
    page.evaluate("path => { location.hash = '#/' + path; }", path)


def size(browser, base):
    """All files of the console, each compressed by itself, as a proxy would send them."""
    page = browser.new_page()
    files = {}
    page.on("response", lambda answer: files.update({answer.url: answer.body()}) if answer.url.startswith(base) and "/api/" not in answer.url else None)
    page.goto(base)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.close()
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


def story(browser, ready, folder):
    page, wrong = open_page(browser, ready["login"], 1280)
    create(page, folder)
    change_profile(page)
    load = subprocess.Popen(
        ["fio", "--name=load", "--ioengine=nbd", f"--uri=nbd+unix:///data?socket={folder}/nbd.sock", "--rw=randrw", "--bs=8k", "--size=32M", "--iodepth=4", "--runtime=600", "--time_based"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        explain(page)
        pull_a_drive(page, folder)
    finally:
        load.terminate()
        load.wait()
    stripe_map(page)
    acknowledge(page)
    laboratory(page)
    users(page)
    # Refusals are answers, not errors of the page.
    assert not [text for text in wrong if "Failed to load resource" not in text], wrong
    page.close()


def create(page, folder):
    page.get_by_role("link", name="Create", exact=True).click()
    page.get_by_label("Name").fill("made")
    page.get_by_label("Level").first.select_option("6")
    page.get_by_label("Members").fill("\n".join(f"{folder}/new{n}" for n in range(4)))
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#cli")).to_contain_text("openraid create made --level 6")
    # The simulator's figures come for each level, with the profile that they are for.
    row = page.get_by_role("row").filter(has=page.get_by_role("button", name="Choose level 5", exact=True))
    expect(row).to_contain_text("requests/s", timeout=SLOW)
    expect(row).to_contain_text("any member")
    expect(page.locator("#stands-for")).to_contain_text("openraid plan --effort quick --drives 4")
    page.get_by_role("button", name="Choose level 5", exact=True).click()
    expect(page.locator("#cli")).to_contain_text("openraid create made --level 5")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="made", exact=True)).to_be_visible()


def change_profile(page):
    page.get_by_role("button", name="Change settings").click()
    page.get_by_label("profile", exact=True).select_option("protection")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("dd").filter(has_text="protection").first).to_be_visible()


def explain(page):
    go(page, "array/data")
    panel = page.locator("section").filter(has=page.get_by_role("heading", name="Explain"))
    expect(panel).to_contain_text("requests a second", timeout=SLOW)
    expect(panel.get_by_role("row").filter(has_text="slot 0")).to_have_count(1)
    page.get_by_role("button", name="Watch", exact=True).click()
    told = page.locator("summary").filter(has_text=re.compile(r"Request \d+: (read|write) of"))
    expect(told.first).to_be_visible(timeout=SLOW)
    told.first.click()
    expect(page.get_by_role("cell", name=re.compile("^the client's request|arrived|received|asked", re.I)).first).to_be_visible()
    page.get_by_role("button", name="Stop watching").click()


def pull_a_drive(page, folder):
    """By the keyboard alone."""
    fail = page.get_by_role("button", name=f"Fail {folder}/d1", exact=True)
    fail.focus()
    page.keyboard.press("Enter")
    confirm = page.get_by_role("button", name="Fail this member")
    expect(confirm).to_be_disabled()
    page.get_by_label("Type data to confirm").fill("date")
    expect(confirm).to_be_disabled()
    page.get_by_label("Type data to confirm").fill("data")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("by administrator")).to_be_visible(timeout=20000)
    # The rebuild is watched, and every page says that the array is degraded.
    expect(page.get_by_role("progressbar", name=re.compile("^rebuild")).first).to_be_visible(timeout=20000)
    expect(page.locator("header .health")).to_contain_text("data is degraded")
    # The spare has taken over, and the failed drive is taken out by the next step.
    expect(page.locator("#next-step")).to_contain_text("Remove", timeout=SLOW)
    page.locator("#next-step").click()
    page.get_by_role("button", name="Remove", exact=True).last.click()
    expect(page.get_by_role("cell", name="by administrator")).to_have_count(0)


def stripe_map(page):
    page.get_by_role("button", name="Chunk 4, byte 262144").click()
    expect(page.locator(".cell.data")).to_have_count(1)
    expect(page.get_by_text(re.compile(r"^Byte 262144, stripe 1: .*\(slot \d\), byte 65536 of its data\."))).to_be_visible()
    expect(page.locator(".cell.p")).to_have_count(1)
    # By the keyboard: the next chunk.
    page.get_by_label("Address").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Byte of the array")).to_have_value("327680")
    page.get_by_label("Byte of the array").fill("99999999999")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("offset=99999999999")).to_be_visible()


def acknowledge(page):
    page.get_by_role("link", name="Events", exact=True).click()
    page.get_by_label("Level").select_option("critical")
    button = page.get_by_role("button", name="Acknowledge event").first
    expect(button).to_be_visible(timeout=20000)
    button.click()
    expect(page.get_by_text("acknowledged", exact=True).first).to_be_visible()


def laboratory(page):
    page.get_by_role("link", name="Lab", exact=True).click()

    def begin(name, kind):
        page.get_by_label("What", exact=True).select_option(kind)
        page.get_by_label("Name of the report").fill(name)
        page.get_by_role("button", name="Begin").click()
        row = page.get_by_role("region", name="Jobs").get_by_role("row").filter(has_text=name)
        expect(row).to_contain_text("done", timeout=SLOW)

    begin("what-if", "plan")
    page.get_by_role("link", name="what-if", exact=True).click()
    expect(page.get_by_text(re.compile("^Recommended: raid")).first).to_be_visible()
    page.get_by_role("link", name="All reports").click()
    page.get_by_label("What", exact=True).select_option("review")
    page.get_by_label("Arrays").fill("single, raid5x4")
    page.get_by_label("Methods").select_option("latency")
    page.get_by_label("Drive", exact=True).select_option("wd740gd")
    begin("slow", "review")
    page.get_by_label("Drive", exact=True).select_option("evo870_1tb")
    begin("fast", "review")
    page.get_by_role("checkbox", name="Choose slow").check()
    page.get_by_role("checkbox", name="Choose fast").check()
    page.get_by_role("button", name="Compare the two chosen reviews").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("region", name="Jobs").get_by_role("row").filter(has_text="times as fast")).to_have_count(1, timeout=SLOW)
    for report in ["slow", "fast"]:
        with page.expect_popup() as opened:
            page.get_by_role("region", name="Reports").get_by_role("link", name=report, exact=True).click()
        expect(opened.value.get_by_role("heading", level=1)).to_contain_text("Review of sim:openraid")
        assert opened.value.locator("svg").count() > 0
        opened.value.close()


def users(page):
    """A schedule that the server keeps; and a user, who may come in with a password."""
    page.get_by_role("link", name="Settings", exact=True).click()
    page.get_by_role("button", name="Add a schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("weekly")
    dialog.get_by_label("Every").fill("1s")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_contain_text("every")
    dialog.get_by_label("Every").fill("1w")
    dialog.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row").filter(has_text="weekly")
    expect(row).to_contain_text("7 days")
    row.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("Nothing is scheduled.")).to_be_visible()
    page.get_by_role("button", name="Add a user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ann")
    dialog.get_by_label("Password").fill("correct horse")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("cell", name="ann")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()


def judge(page, axe, what):
    """What axe finds: nothing."""
    page.evaluate(axe)
    found = page.evaluate("rules => axe.run(document, { runOnly: rules })", RULES)
    assert len(found["passes"]) > 10, what
    assert not found["violations"], (what, [(own["id"], [node["html"] for node in own["nodes"]]) for own in found["violations"]])


def look(browser, link, width, scheme, axe, out):
    page, wrong = open_page(browser, link, width, scheme)
    shots = [(path, None) for path in PAGES] + [("array/data", "Change settings"), ("array/data", "Stop or delete this array"), ("settings", "Add a schedule"), ("settings", "Add a user")]
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
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{what} is {wide} pixels wide"
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


def tab(browser, link):
    """Every control of every page is reached by the Tab key, and the focus can be seen."""
    page, _ = open_page(browser, link, 1280)
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


main()
