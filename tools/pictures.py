#!/usr/bin/env python3
"""The pictures of the README and the books, from the real programs.

    tools/pictures.py PROGRAM FOLDER

`demo.svg` is a terminal in which the demo runs (its words, with colours added), `console.png` the console while the demo's drive is rebuilt, and `chart.svg` the chart
of a review that openraid-lab, next to PROGRAM, has written. Each file is replaced when its picture is complete. Needs the Python package playwright.
"""

import fcntl
import html
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

from playwright.sync_api import expect, sync_playwright

COLUMNS = 92
ROWS = 21
# Pixels of one character, of the space around the text, and of the bar above it.
WIDTH, HEIGHT, EDGE, BAR = 8.43, 18, 14, 30
# Seconds between two pictures of the terminal, of its longest rest, and of the last picture.
STEP, REST_MAX, LAST = 0.5, 1.5, 6.0
# The demo's last words before it lists the commands, which the README has too.
END = "a spare took its place."
# The end of the array's card on the page.
CONSOLE = {"width": 1280, "height": 884}
# Milliseconds until the drive is pulled.
REBUILD_MAX = 120000
REVIEW = ["--target", "sim:openraid", "--drive", "exos_x18_18tb", "--arrays", "raid0x8,raid10x8,raid5x8,raid6x8", "--methods", "file-server", "--effort", "quick"]
# Rules of a report that its charts need: the colours, light and dark, and what is inside of an SVG.
CHART_RULES = re.compile(r"^(?::root\{|@media \(prefers-color-scheme|svg text|\.grid|\.c-)")


def main():
    program, out = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="openraid-pictures-") as folder:
        os.environ |= {"XDG_STATE_HOME": f"{folder}/state", "XDG_RUNTIME_DIR": f"{folder}/run", "TERM": "xterm-256color"}
        os.environ.pop("OPENRAID_CONTROL", None)
        for name, make in [("chart.svg", lambda: chart(program, folder)), ("console.png", lambda: console(program)), ("demo.svg", lambda: demo(program))]:
            data = make()
            (out / name).write_bytes(data)
            print(f"pictures: {out / name}, {len(data)} bytes")


class Terminal:
    """The screen of a program that knows it is on a terminal: the few sequences that the demo writes."""

    def __init__(self):
        self.lines, self.row = [""], 0

    def feed(self, text):
        for part in re.findall(r"\x1b\[\??\d*[A-Za-z]|\r\n|[^\x1b\r\n]+", text):
            if part == "\r\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            elif part.endswith("A") and part[0] == "\x1b":
                self.row -= int(part[2:-1])
            elif part == "\x1b[J":
                self.lines[self.row:] = [""]
            elif part[0] == "\x1b":
                assert part in ("\x1b[?7l", "\x1b[?7h"), part
            else:
                self.lines[self.row] += part

    def screen(self):
        shown = []
        for line in self.lines:
            line = re.sub(r"(#login=[0-9a-f]{8})[0-9a-f]+", r"\1...", line)
            shown += [line[at:at + COLUMNS] for at in range(0, max(len(line), 1), COLUMNS)]
        return shown[-ROWS:]


def on_a_terminal(words):
    """Starts a program on a terminal. Returns its process and what yields pieces of its output, each with its time."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)

    def pieces():
        begin = time.monotonic()
        while True:
            try:
                piece = os.read(master, 1 << 16)
            except OSError:
                break
            yield time.monotonic() - begin, piece.decode("ascii")
        os.close(master)

    return process, pieces()


def demo(program):
    """The demo, as one moving picture."""
    terminal, frames, at, last = Terminal(), [], 0.0, 0.0
    typed = "$ openraid demo"
    for end in range(2, len(typed) + 1):
        frames.append((0.06, [typed[:end]]))
    terminal.feed(typed + "\r\n")
    process, pieces = on_a_terminal([program, "demo"])
    for now, piece in pieces:
        at += min(now - last, REST_MAX)
        last = now
        terminal.feed(piece)
        if terminal.row == len(terminal.lines) - 1 and at >= STEP:
            frames.append((at, terminal.screen()))
            at = 0.0
    assert process.wait() == 0, "the demo has failed"
    lines = terminal.lines
    last = next(index for index, line in enumerate(lines) if line.endswith(END))
    terminal.lines = lines[:last + 1]
    frames.append((at, terminal.screen()))
    return moving(frames).encode("ascii")


def moving(frames):
    """An SVG of screens, each with the seconds before it. They are one above the other and pass a window; a reader without motion sees the last one."""
    texts, uses = {}, []
    high = ROWS * HEIGHT
    for number, (_, lines) in enumerate(frames):
        for row, line in enumerate(lines):
            if line.strip():
                name = texts.setdefault(line, f"t{len(texts)}")
                uses.append(f'<use href="#{name}" y="{number * high + row * HEIGHT}"/>')
    durations = [seconds for seconds, _ in frames[1:]] + [LAST]
    total, now, steps = sum(durations), 0.0, []
    for number, seconds in enumerate(durations):
        steps.append(f"{100 * now / total:.2f}%{{transform:translateY({-number * high}px)}}")
        now += seconds
    width, height = round(COLUMNS * WIDTH + 2 * EDGE), high + BAR + 2 * EDGE
    lines = [f'<text id="{name}"{colour(line)}>{html.escape(line)}</text>' for line, name in texts.items()]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-labelledby="t d">
<title id="t">openraid demo</title>
<desc id="d">{html.escape(" / ".join(line for line in frames[-1][1] if line))}</desc>
<style>
text{{font:14px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d7dde4;white-space:pre}}
.good{{fill:#7bd88f}}.bad{{fill:#ff8a80}}.work{{fill:#ffd479}}.typed{{fill:#fff;font-weight:700}}
.film{{transform:translateY({-(len(frames) - 1) * high}px);animation:film {total:.1f}s step-end infinite}}
@keyframes film{{{"".join(steps)}}}
@media (prefers-reduced-motion:reduce){{.film{{animation:none}}}}
</style>
<defs>
{chr(10).join(lines)}
</defs>
<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="#171b21" stroke="#3b424c"/>
<circle cx="20" cy="16" r="5.5" fill="#ff5f57"/><circle cx="38" cy="16" r="5.5" fill="#febc2e"/><circle cx="56" cy="16" r="5.5" fill="#28c840"/>
<svg x="{EDGE}" y="{BAR + EDGE}" width="{width - 2 * EDGE}" height="{high}"><g transform="translate(0 14)"><g class="film">
{chr(10).join(uses)}
</g></g></svg>
</svg>
"""


def colour(line):
    for name, words in [("typed", r"^\$ "), ("bad", r"PULLED|: failed"), ("work", r"degraded|rebuild \d"), ("good", r"optimal|full redundancy|was right")]:
        if re.search(words, line):
            return f' class="{name}"'
    return ""


def console(program):
    """The first page of the console, while the demo's spare is filled under load."""
    process, pieces = on_a_terminal([program, "demo", "--seconds", "100"])
    try:
        link = next(found[0] for _, piece in pieces if (found := re.search(r"http://\S+#login=[0-9a-f]+", piece)))
        # Nothing stops the demo: what it writes is read.
        rest = threading.Thread(target=lambda: all(True for _ in pieces))
        rest.start()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page(viewport=CONSOLE, color_scheme="light")
            page.goto(link)
            expect(page.get_by_role("heading", name="Overview")).to_be_visible()
            bar = page.get_by_role("progressbar", name=re.compile("^rebuild")).first
            bar.wait_for(timeout=REBUILD_MAX)
            while float(bar.get_attribute("value")) < 0.4 * float(bar.get_attribute("max") or 1):
                page.wait_for_timeout(200)
            picture = page.screenshot()
            browser.close()
    finally:
        process.terminate()
        process.wait()
    return picture


def chart(program, folder):
    """The first chart of a review's report, with the rules of the report that it needs."""
    subprocess.run([f"{program}-lab", "review", *REVIEW, "--out", f"{folder}/review"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report = pathlib.Path(f"{folder}/review/report.html").read_text()
    style = re.search(r"<style>(.*?)</style>", report, re.S)[1]
    rules = "\n".join(line for line in style.splitlines() if CHART_RULES.match(line))
    drawing = re.search(r'<svg class="chart" viewBox="0 0 (\d+) (\d+)"(.*?>)(.*?)</svg>', report, re.S)
    width, height = int(drawing[1]), int(drawing[2])
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -4 {width + 16} {height + 8}" width="{width + 16}" height="{height + 8}"{drawing[3]}
<style>{rules}</style>
<rect x="-8" y="-4" width="{width + 16}" height="{height + 8}" rx="6" style="fill:var(--paper)"/>{drawing[4]}</svg>
""".encode("ascii")


if __name__ == "__main__":
    main()
