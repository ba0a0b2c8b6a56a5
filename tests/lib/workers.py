"""The producers and consumers of kill_daemon.py: one process each, whose every call is noted in a ledger.

A call has three ends: it is answered, it is refused with an errno, or the daemon dies under it. The file `generation` tells the last
two apart: an odd number while the daemon is down, even while it is up, another one after each kill.
"""
import errno
import os
import random
import sys
import time

import ledger as notes

LEASE = 4.0  # seconds: the setting of both queues
QUEUES = ("first", "second")
DOWN = {errno.ENOTCONN, errno.ECONNABORTED, errno.ENODEV, errno.ENXIO}


class Down(Exception):
    """The daemon died, or may have, before this call was answered."""


class Refused(Exception):
    """A call was answered with an errno."""


class Worker:
    """One process: a ledger, a seed of its own, and calls that tell an answer from a daemon that died."""

    def __init__(self, scratch, name, seed):
        self.name, self.mount = name, f"{scratch}/mnt"
        self.random = random.Random(f"{seed}/{name}")
        self.ledger = notes.Ledger(f"{scratch}/ledger/{name}.ledger", name)
        self.generation_fd = os.open(f"{scratch}/generation", os.O_RDONLY)
        self.stop = f"{scratch}/stop"

    def generation(self):
        return int(os.pread(self.generation_fd, 20, 0))

    def wait_until_up(self):
        while self.generation() % 2 and not os.path.exists(self.stop):
            time.sleep(0.005)

    def answered(self, function, *arguments):
        """The result of a call, or Refused(errno), or Down. While the mount is replaced the bare mount point says ENOENT."""
        before = self.generation()
        try:
            return function(*arguments)
        except OSError as error:
            if error.errno in DOWN or before % 2 or before != self.generation():
                raise Down from error
            raise Refused(error.errno) from error

    def noted(self, op, identity, queue, function, *arguments, detail=None):
        """The same, with intent and outcome in the ledger. Returns ok, unknown, or the errno's name."""
        self.ledger.intent(op, identity, queue)
        try:
            self.answered(function, *arguments)
        except Down:
            outcome = "unknown"
            self.ledger.outcome(op, identity, queue, outcome, detail)
        except Refused as refused:
            outcome = errno.errorcode[refused.args[0]]
            self.ledger.outcome(op, identity, queue, "no", outcome)
        else:
            outcome = "ok"
            self.ledger.outcome(op, identity, queue, outcome, detail)
        return outcome

    def error(self, invariant, sentence):
        self.ledger.intent("error", None, None)
        self.ledger.outcome("error", None, None, "no", (invariant, sentence))


class Producer(Worker):
    def write(self, path, data):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            for start in range(0, len(data), 65536):
                os.write(fd, data[start:start + 65536])
        finally:
            os.close(fd)

    def write_and_rename(self, staged, final, data):
        self.write(staged, data)
        os.rename(staged, final)

    def run(self):
        number = 0
        while not os.path.exists(self.stop):
            number += 1
            name = f"{self.name}-{number:06}"
            length = self.random.choice([0, 10, 100, 1000, 4000, 4000, 20000, 100000, 200000, 700000])
            data = notes.payload(name, 0, length)
            final = f"{self.mount}/first/{name}"
            if self.random.random() < 0.5:
                outcome = self.noted("publish", name, "first", self.write, final, data)
            else:
                outcome = self.noted("publish", name, "first", self.write_and_rename, f"{self.mount}/first/.{name}", final, data)
            if outcome not in ("ok", "unknown"):
                self.error("errors", f"publishing {name}: {outcome}")
            self.wait_until_up()
            time.sleep(self.random.random() * 0.01)
            if number % 20 == 0:
                self.let_consumers_catch_up()

    def let_consumers_catch_up(self):
        try:
            while len(os.listdir(f"{self.mount}/first")) > 300 and not os.path.exists(self.stop):
                time.sleep(0.02)
        except OSError:
            pass


class Consumer(Worker):
    def run(self):
        while not os.path.exists(self.stop):
            self.wait_until_up()
            queue = self.random.choice(QUEUES)
            try:
                names = [name for name in self.answered(os.listdir, f"{self.mount}/{queue}") if name[0] == "p"]
            except (Down, Refused):
                continue
            if not names:
                time.sleep(0.005)
                continue
            name = names[self.random.randrange(min(8, len(names)))]
            if self.claim(queue, name):
                self.work(queue, name)

    def claim(self, queue, name):
        source, path = f"{self.mount}/{queue}/{name}", f"{self.mount}/{queue}/claimed/{self.name}/{name}"
        self.ledger.intent("claim", name, queue)
        try:
            self.answered(os.rename, source, path)
        except Refused as refused:
            code = errno.errorcode[refused.args[0]]
            self.ledger.outcome("claim", name, queue, "no", code)
            if code not in ("ENOENT", "ETXTBSY", "EAGAIN"):
                self.error("errors", f"claiming {name}: {code}")
            return False
        except Down:
            held = self.exists(path)
            self.ledger.outcome("claim", name, queue, "ok" if held else "no", notes.SEEN_LATER)
            return held
        self.ledger.outcome("claim", name, queue, "ok")
        return True

    def exists(self, path):
        """Whether a lease is in this worker's own directory, asked once the daemon is back."""
        while True:
            self.wait_until_up()
            try:
                self.answered(os.stat, path)
                return True
            except Refused:
                return False
            except Down:
                if os.path.exists(self.stop):
                    sys.exit(0)

    def work(self, queue, name):
        path = f"{self.mount}/{queue}/claimed/{self.name}/{name}"
        stage = self.read(queue, name, path)
        if stage is None:
            return
        choice = self.random.random()
        if choice < 0.02:
            return  # walks away: the lease runs out
        if choice < 0.10:
            self.noted("renew", name, queue, os.utime, path)
        if choice < 0.25:
            data = notes.payload(name, stage + 1, self.random.choice([10, 1000, 50000, 200000]))
            self.noted("checkpoint", name, queue, self.rewrite, path, data, detail=stage + 1)
            self.wait_until_up()
        if choice < 0.30:
            self.finish("release", queue, name, path, os.rename, path, f"{self.mount}/{queue}/{name}")
        elif choice < 0.50 and queue == "first":
            self.finish("forward", queue, name, path, os.rename, path, f"{self.mount}/second/{name}")
        else:
            self.finish("ack", queue, name, path, os.unlink, path)

    def read(self, queue, name, path):
        """The stage of the leased payload, None when it was lost."""
        for _ in range(20):
            self.wait_until_up()
            self.ledger.intent("read", name, queue)
            try:
                data = self.answered(self.slurp, path)
            except (Down, Refused):
                self.ledger.outcome("read", name, queue, "no")
                continue
            whole = notes.parse(data)
            if whole is None or whole[0] != name:
                self.ledger.outcome("read", name, queue, "no")
                self.error("no partial", f"{queue}/{name} has {len(data)} bytes that begin with {data[:60]!r}")
                return None
            self.ledger.outcome("read", name, queue, "ok", whole[1])
            return whole[1]
        return None

    @staticmethod
    def slurp(path):
        with open(path, "rb") as file:
            return file.read()

    @staticmethod
    def rewrite(path, data):
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC)  # without O_CREAT: a lost lease is ENOENT
        try:
            os.write(fd, data)
        finally:
            os.close(fd)

    def finish(self, op, queue, name, path, function, *arguments):
        """Ends the lease; when the daemon dies under it, looks whether that happened, and else tries again."""
        claimed_about = time.monotonic()
        while True:
            self.ledger.intent(op, name, queue)
            try:
                self.answered(function, *arguments)
            except Refused as refused:
                self.ledger.outcome(op, name, queue, "no", errno.errorcode[refused.args[0]])
                return
            except Down:
                if self.exists(path):
                    self.ledger.outcome(op, name, queue, "no", notes.SEEN_LATER)
                    continue
                ran_out = time.monotonic() > claimed_about + LEASE / 2
                self.ledger.outcome(op, name, queue, "unknown" if ran_out else "ok", notes.SEEN_LATER)
                return
            self.ledger.outcome(op, name, queue, "ok")
            return
