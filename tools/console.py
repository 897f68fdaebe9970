#!/usr/bin/env python3
"""The console in Debian's Chromium, against a real server.

    tools/console.py PROGRAM [FOLDER]

Signs in by the link of the first start, makes an array with the wizard, pulls a drive, watches the rebuild, acknowledges an
alarm, changes a profile, clicks the stripe map, adds a user; at 1280 and 360 pixels, light and dark. Pages must not be wider
than the window, and the browser's console must have no error. With FOLDER, the screenshots are left there. Needs the
Python package playwright.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from playwright.sync_api import expect, sync_playwright

PAGES = ["", "array/data", "array/made", "drives", "journal", "create", "events", "settings"]


def main():
    program = os.path.abspath(sys.argv[1])
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
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
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                story(browser, ready, folder)
                for width, scheme in [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]:
                    link = json.loads(run("login", "--json"))["link"]
                    look(browser, link, width, scheme, out)
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


def go(page, base, path):
    page.evaluate("path => { location.hash = '#/' + path; }", path)


def story(browser, ready, folder):
    page, wrong = open_page(browser, ready["login"], 1280)
    base = ready["console"]
    # Make an array.
    page.get_by_role("link", name="Create", exact=True).click()
    page.get_by_label("Name").fill("made")
    page.get_by_label("Level").select_option("5")
    page.get_by_label("Members").fill("\n".join(f"{folder}/new{n}" for n in range(3)))
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#cli")).to_contain_text("openraid create made --level 5")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="made", exact=True)).to_be_visible()
    # Change the profile.
    page.get_by_role("button", name="Change settings").click()
    page.get_by_label("profile").select_option("protection")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("dd").filter(has_text="protection").first).to_be_visible()
    # Pull a drive, by the keyboard alone.
    go(page, base, "array/data")
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
    # The spare takes over, and the failed drive is taken out by the next step.
    expect(page.locator("#next-step")).to_contain_text("Remove", timeout=120000)
    page.locator("#next-step").click()
    page.get_by_role("button", name="Remove", exact=True).last.click()
    expect(page.get_by_role("cell", name="by administrator")).to_have_count(0)
    # The stripe map.
    page.get_by_label("Byte of the array").fill("262144")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".cell.data")).to_contain_text("of its data")
    expect(page.locator(".cell.p")).to_have_count(1)
    # The alarm.
    page.get_by_role("link", name="Events", exact=True).click()
    page.get_by_label("Level").select_option("critical")
    button = page.get_by_role("button", name="Acknowledge event").first
    expect(button).to_be_visible(timeout=20000)
    button.click()
    expect(page.get_by_text("acknowledged", exact=True).first).to_be_visible()
    # A user, who may come in with a password.
    page.get_by_role("link", name="Settings", exact=True).click()
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
    assert not [text for text in wrong if "Failed to load resource" not in text], wrong  # refusals are answers
    page.close()


def look(browser, link, width, scheme, out):
    page, wrong = open_page(browser, link, width, scheme)
    for path in PAGES:
        go(page, "", path)
        page.wait_for_timeout(2500)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{path or 'overview'} is {wide} pixels wide at {width}"
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, a, input, select, textarea')].filter((own) => !(own.textContent.trim() || own.ariaLabel || own.labels?.length)).map((own) => own.outerHTML)")
        assert not unnamed, unnamed
        if out:
            out.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=out / f"{path.replace('/', '-') or 'overview'}-{width}-{scheme}.png", full_page=True)
    assert not wrong, wrong
    page.close()


main()
