"""A Linux kernel as an ordinary process (the Debian package user-mode-linux), with md and image files as drives; no root.

As the crate openraid-oracle runs it: its first program and its words for jobs are in crates/oracle/src."""

import os
import re
import shutil
import signal
import subprocess
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/crates/oracle/src"
MEMORY = "384M"
POLL_S = 0.02


class Guest:
    """A guest that runs a job in a folder. The images are /dev/ubda, /dev/ubdb, ...: their writes reach the files at once."""

    def __init__(self, folder, images, job):
        self.folder = os.path.realpath(folder)
        os.makedirs(self.folder, exist_ok=True)
        for name in ("results", "job.rc"):
            if os.path.exists(f"{self.folder}/{name}"):
                os.remove(f"{self.folder}/{name}")
        open(f"{self.folder}/results", "wb").close()
        shutil.copy(SOURCE + "/guest-lib.sh", self.folder)
        shutil.copy(SOURCE + "/guest-init.pl", self.folder + "/init.pl")
        os.chmod(self.folder + "/init.pl", 0o755)
        with open(self.folder + "/job.sh", "w", encoding="ascii") as file:
            file.write(f". ./guest-lib.sh\n{job}\nsync\n")
        words = ["linux.uml", f"mem={MEMORY}", "rootfstype=hostfs", "rootflags=/", "ro", "quiet", "con=null", "con0=null,fd:1",
                 "umid=guest", "pty.legacy_count=0", f"init={self.folder}/init.pl", f"OUT={self.folder}", f"uml_dir={self.folder}"]
        words += [f"ubd{letter}={os.path.realpath(image)}" for letter, image in zip("abcdefghijklmnop", images)]
        with open(self.folder + "/console.log", "wb") as console:
            # A process group of its own: the kernel is several processes, and all of them must end together.
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                                            env={**os.environ, **self.library()}, start_new_session=True)

    def library(self):
        """On processors with AMX a library in front of the C library; its source has the reason."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            if " amx_tile" not in file.read():
                return {}
        built = self.folder + "/extended-state.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", built, SOURCE + "/extended-state.c", "-ldl"], check=True)
        return {"LD_PRELOAD": built}

    def text(self, name):
        try:
            with open(f"{self.folder}/{name}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def results(self):
        """What the job has said so far."""
        return dict(re.findall(r"(?m)^([^=\n]+)=(.*)\n", self.text("results")))

    def wait_for(self, key, seconds):
        """Waits until the job has said this."""
        end = time.monotonic() + seconds
        while key not in self.results():
            if self.process.poll() is not None or time.monotonic() > end:
                self.cut()
                raise RuntimeError(f"the guest did not say `{key}`:\n{self.text('job.log')[-1500:]}{self.text('console.log')[-500:]}")
            time.sleep(POLL_S)
        return self.results()

    def wait(self, seconds):
        """Waits until the job has ended well, and returns what it has said."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        self.cut()
        if self.text("job.rc").strip() != "0":
            raise RuntimeError(f"the job in the guest failed:\n{self.text('job.log')[-1500:]}{self.text('console.log')[-500:]}")
        return self.results()

    def cut(self):
        """Ends all processes of the guest at once: a power cut that loses what was under way."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        # A process that is still dying may still write.
        for _ in range(200):
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return
            time.sleep(POLL_S)
