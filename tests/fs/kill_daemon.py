#!/usr/bin/python3
"""kill -9 of the daemon, over and over, under load: nothing answered is lost, nothing is doubled, nothing is torn.

    kill_daemon.py [--kills 200] [--seed N] [--sabotage steal|rollback] [--self-test]

Four producers (by close and by rename, small payloads and some above 128 KiB) and four consumers (claim into a directory of their
own, verify, sometimes renew, checkpoint, release, forward to a second queue or walk away, else acknowledge) work on a mount whose
daemon is killed at random moments and mounted again. Everybody keeps a ledger (tests/lib/ledger.py). At the end the mount is drained and
compared with the ledgers: no loss, no partial, no resurrection, unknown is 0 or 1, leases do not overlap and stand for their time,
order, counters; then `spool check` looks at the database.

It can fail, and each run shows it: the checker is given the true record with one entry changed, for each kind of change in
ledger.py, and has to find every one. Beyond that `--sabotage steal` removes a waiting message behind the ledgers' back, and
`--sabotage rollback` puts back an older copy of the database after one of the kills, as a lost flush would; both must end red.
`--self-test` is a short good run and one of each of those.

Choices follow from the seed, which is printed; moments do not. SPOOLFS and SPOOL name the programs (default: those of build/).
"""
import argparse
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
import ledger as notes  # noqa: E402
from workers import LEASE, QUEUES, Consumer, Producer  # noqa: E402

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPOOLFS = os.environ.get("SPOOLFS", f"{PROJECT}/build/spoolfs")
SPOOL = os.environ.get("SPOOL", f"{PROJECT}/build/spool")
PRODUCERS, CONSUMERS = 4, 4


class Daemon:
    def __init__(self, scratch):
        self.scratch, self.db, self.mount, self.process, self.number = scratch, f"{scratch}/spool.db", f"{scratch}/mnt", None, 1
        os.mkdir(self.mount)
        self.note_generation(1)

    def note_generation(self, number):
        self.number = number
        fd = os.open(f"{self.scratch}/generation", os.O_WRONLY | os.O_CREAT, 0o600)
        os.pwrite(fd, f"{number:<19}".encode(), 0)
        os.close(fd)

    def start(self):
        with open(f"{self.scratch}/daemon.log", "a") as log:
            self.process = subprocess.Popen([SPOOLFS, "-f", self.db, self.mount], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while True:
            if self.process.poll() is not None:
                sys.exit(f"Bail out! spoolfs ended with {self.process.returncode}: {self.last_words()}")
            try:
                os.stat(f"{self.mount}/.stats")
                break
            except OSError:
                if time.monotonic() > deadline:
                    sys.exit("Bail out! the mount does not answer")
                time.sleep(0.002)
        self.note_generation(self.number + 1)

    def last_words(self):
        with open(f"{self.scratch}/daemon.log") as log:
            return log.read()[-2000:]

    def kill(self):
        """False when it had ended by itself before."""
        self.note_generation(self.number + 1)
        alive = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        return alive

    def unmount(self):
        self.note_generation(self.number + 1)
        subprocess.run(["umount", self.mount], check=True)
        self.process.wait(20)

    def clean_up(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        while os.path.ismount(self.mount) or self.is_dead():
            subprocess.run(["umount", "-l", self.mount], check=False)

    def is_dead(self):
        try:
            os.stat(self.mount)
            return False
        except OSError as error:
            return error.errno == errno.ENOTCONN


class Harness:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(f"{options.seed}/controller")
        self.scratch = tempfile.mkdtemp(prefix="spool-kill.")
        os.mkdir(f"{self.scratch}/ledger")
        self.daemon = Daemon(self.scratch)
        self.workers, self.wrong, self.tests, self.failed = [], [], 0, 0

    def run(self):
        try:
            self.daemon.start()
            for queue in QUEUES:
                os.mkdir(f"{self.daemon.mount}/{queue}")
                for setting, value in (("lease", f"{LEASE:.0f}s"), ("retry_delay", "100ms"), ("max_attempts", "0")):
                    with open(f"{self.daemon.mount}/{queue}/.config/{setting}", "w") as file:
                        file.write(value)
                for number in range(CONSUMERS):
                    os.mkdir(f"{self.daemon.mount}/{queue}/claimed/c{number}")
            self.start_workers()
            self.kill_again_and_again()
            self.stop_workers()
            self.judge()
        finally:
            for pid in self.workers:
                os.kill(pid, signal.SIGKILL)
            self.daemon.clean_up()
            if self.options.keep:
                print(f"# kept: {self.scratch}")
            else:
                shutil.rmtree(self.scratch)
        return self.failed

    def start_workers(self):
        for kind, letter, count in ((Producer, "p", PRODUCERS), (Consumer, "c", CONSUMERS)):
            for number in range(count):
                pid = os.fork()
                if pid == 0:
                    status = 1
                    try:
                        kind(self.scratch, f"{letter}{number}", self.options.seed).run()
                        status = 0
                    finally:
                        os._exit(status)
                self.workers.append(pid)

    def stop_workers(self):
        with open(f"{self.scratch}/stop", "w"):
            pass
        deadline = time.monotonic() + 30
        for pid in list(self.workers):
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    self.workers.remove(pid)
                    if status:
                        self.wrong.append(("errors", f"worker {pid} ended with {status}"))
                    break
                if time.monotonic() > deadline:
                    self.wrong.append(("errors", f"worker {pid} hangs"))
                    break
                time.sleep(0.01)

    def kill_again_and_again(self):
        copy = f"{self.scratch}/older"
        for number in range(1, self.options.kills + 1):
            time.sleep(self.random.choice([0.005, 0.05, 0.1, 0.2, 0.3]) * (0.5 + self.random.random()))
            if self.options.sabotage == "steal" and number == max(2, self.options.kills // 2):
                self.steal()
            if not self.daemon.kill():
                self.wrong.append(("errors", f"the daemon had ended by itself before kill {number}: {self.daemon.last_words()}"))
            if self.options.sabotage == "rollback" and number == max(1, self.options.kills // 4):
                self.copy_database(self.scratch, copy)
            if self.options.sabotage == "rollback" and number == max(2, self.options.kills // 2):
                self.copy_database(copy, self.scratch)
            self.daemon.start()

    def copy_database(self, source, target):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(target):
            if name.startswith("spool.db"):
                path = f"{target}/{name}"
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        for name in os.listdir(source):
            if name.startswith("spool.db"):
                path = f"{source}/{name}"
                (shutil.copytree if os.path.isdir(path) else shutil.copy2)(path, f"{target}/{name}")

    def steal(self):
        while True:
            for name in os.listdir(f"{self.daemon.mount}/first"):
                if name[0] == "p" and os.stat(f"{self.daemon.mount}/first/{name}").st_mtime < time.time() - 0.05:
                    try:
                        os.unlink(f"{self.daemon.mount}/first/{name}")
                        return
                    except OSError:
                        pass

    def stats(self, queue):
        with open(f"{self.daemon.mount}/{queue}/.stats") as file:
            return {name: float(value) for name, value in (line.split() for line in file)}

    def listed(self, queue):
        top = f"{self.daemon.mount}/{queue}"
        names = [name for name in os.listdir(top) if name not in ("claimed", "dead")]
        staged = [name for name in names if name[0] == "."]
        claimed = sum(len(files) for _, _, files in os.walk(f"{top}/claimed"))
        return {"waiting": len(names) - len(staged), "claimed": claimed, "dead": len(os.listdir(f"{top}/dead")), "staged": len(staged)}

    def counters_equal_contents(self):
        for queue in QUEUES:
            for _ in range(10):  # a lease may run out between the two looks
                stats, listed = self.stats(queue), self.listed(queue)
                if all(stats[name] == listed[name] for name in listed):
                    break
            else:
                self.wrong.append(("counters", f"{queue}: .stats says {stats}, the listing {listed}"))

    def drain(self):
        """Claims, reads and acknowledges all there is; leases that were walked away from run out and come back."""
        found, deadline = [], time.monotonic() + 30
        for queue in QUEUES:
            os.mkdir(f"{self.daemon.mount}/{queue}/claimed/drain")
            while self.stats(queue)["waiting"] + self.stats(queue)["claimed"] > 0:
                if time.monotonic() > deadline:
                    self.wrong.append(("no loss", f"{queue} cannot be drained: {self.listed(queue)}"))
                    break
                for name in os.listdir(f"{self.daemon.mount}/{queue}"):
                    if name in ("claimed", "dead") or name[0] == ".":
                        continue
                    path = f"{self.daemon.mount}/{queue}/claimed/drain/{name}"
                    try:
                        os.rename(f"{self.daemon.mount}/{queue}/{name}", path)
                    except OSError as error:
                        if error.errno not in (errno.EAGAIN, errno.ETXTBSY, errno.ENOENT):
                            self.wrong.append(("errors", f"draining {name}: {error}"))
                        continue
                    with open(path, "rb") as file:
                        found.append(notes.Found(queue, name, *(notes.parse(file.read()) or (None, 0))))
                    os.unlink(path)
                time.sleep(0.02)
        return found

    def judge(self):
        mount = self.daemon.mount
        self.counters_equal_contents()
        counters = {queue: self.stats(queue) for queue in QUEUES}
        orders = {"first": os.listdir(f"{mount}/first")}
        found = self.drain()
        for queue in QUEUES:
            for name in os.listdir(f"{mount}/{queue}"):
                if name[0] == ".":
                    os.unlink(f"{mount}/{queue}/{name}")
            if any(self.stats(queue)[name] for name in ("waiting", "claimed", "dead", "staged", "bytes")):
                self.wrong.append(("counters", f"{queue} is empty, .stats says {self.stats(queue)}"))
        deadline = time.monotonic() + 5
        while os.listdir(f"{self.daemon.db}.payloads") and time.monotonic() < deadline:
            time.sleep(0.02)
        left = os.listdir(f"{self.daemon.db}.payloads")
        if left:
            self.wrong.append(("check is clean", f"payload files of nothing: {left[:5]}"))
        self.daemon.unmount()
        calls = notes.read_calls(f"{self.scratch}/ledger")
        self.wrong += notes.check(calls, found, orders, counters, LEASE)
        self.report(calls, found)
        if not self.options.sabotage:
            unnoticed = notes.unnoticed_sabotage(calls, found, orders, counters, LEASE)
            self.verdict("the checker finds every change of a true record", [f"not noticed: {name}" for name in unnoticed])

    def report(self, calls, found):
        for op in ("publish", "claim", "checkpoint", "release", "forward", "ack"):
            outcomes = [call.outcome for call in calls if call.op == op]
            print(f"# {op}: {outcomes.count('ok')} ok, {outcomes.count('no')} no, {outcomes.count('unknown')} unknown")
        print(f"# {len(found)} drained at the end")
        for invariant in ("no loss", "no partial", "no resurrection", "unknown is 0 or 1", "one holder", "leases stand", "checkpoints",
                          "order", "counters", "errors"):
            self.verdict(invariant, [sentence for kind, sentence in self.wrong if kind == invariant])
        clean = [sentence for kind, sentence in self.wrong if kind == "check is clean"]
        if os.access(SPOOL, os.X_OK):
            done = subprocess.run([SPOOL, "check", self.daemon.db], capture_output=True, text=True, check=False)
            if done.returncode:
                clean.append(f"spool check exits with {done.returncode}: {done.stdout}{done.stderr}")
        self.verdict("check is clean", clean)

    def verdict(self, sentence, details):
        self.tests += 1
        print(f"{'not ok' if details else 'ok'} {self.tests} - {sentence}")
        self.failed += bool(details)
        for detail in details[:8]:
            print(f"#   {detail}")
        if len(details) > 8:
            print(f"#   and {len(details) - 8} more")


def self_test(seed):
    """A short good run must be green, the same with each sabotage red."""
    bad = 0
    for number, (sabotage, expected) in enumerate((([], 0), (["--sabotage", "steal"], 1), (["--sabotage", "rollback"], 1)), 1):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--kills", "12", "--seed", str(seed), *sabotage],
                              capture_output=True, text=True, check=False)
        good = done.returncode == expected
        bad += not good
        print(f"{'ok' if good else 'not ok'} {number} - a run with {' '.join(sabotage) or 'nothing wrong'} is {'red' if expected else 'green'}")
        if not good:
            print("".join(f"#   {line}\n" for line in (done.stdout + done.stderr).splitlines()), end="")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--sabotage", choices=["steal", "rollback"])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the scratch directory")
    options = parser.parse_args()
    if not os.path.exists("/dev/fuse"):
        print("1..0 # SKIP /dev/fuse is absent")
        return 0
    sys.stdout.reconfigure(line_buffering=True)
    print(f"# repeat with: {os.path.basename(__file__)} --kills {options.kills} --seed {options.seed}")
    if options.self_test:
        bad = self_test(options.seed)
        print("1..3")
        return bool(bad)
    harness = Harness(options)
    failed = harness.run()
    print(f"1..{harness.tests}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
