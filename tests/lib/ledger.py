"""What producers and consumers noted, and whether what is found at the end can be true.

Each worker keeps a file of its own outside the mount: a line before every call (intent) and one after it (outcome):

    ok        it happened
    no        it did not: an errno says why
    unknown   the daemon died under it: it happened or it did not

`check` is given all calls and what a drained mount contained, and returns the invariants that do not hold. It is a pure function,
so that it can be shown to turn red: SABOTAGE lists changes of a true record, each of which it must find.
"""
import collections
import copy
import json
import os
import time
import zlib

SLACK = 0.05  # seconds that a clock reading may be off against the daemon's
SEEN_LATER = "seen later"  # the answer was lost; what had happened was seen after the daemon came back
Call = collections.namedtuple("Call", "worker number op id queue start end outcome detail")
Found = collections.namedtuple("Found", "queue name id stage")


def payload(identity, stage, length):
    """A header line with identity, stage, length and checksum, and so many bytes that depend on all of it."""
    seed = f"{identity}/{stage}/".encode()
    body = (seed * (length // len(seed) + 1))[:length]
    return f"{identity} {stage} {length} {zlib.crc32(body, zlib.crc32(seed))}\n".encode() + body


def parse(data):
    """(identity, stage) of a whole payload, None for anything else."""
    header, newline, body = data.partition(b"\n")
    try:
        identity, stage, length, checksum = header.decode().split(" ")
        seed = f"{identity}/{stage}/".encode()
        if newline and len(body) == int(length) and zlib.crc32(body, zlib.crc32(seed)) == int(checksum):
            return identity, int(stage)
    except ValueError:
        pass
    return None


class Ledger:
    """The notes of one worker."""

    def __init__(self, path, worker):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.worker, self.number = worker, 0

    def intent(self, op, identity, queue):
        self.number += 1
        self.line("intent", op, identity, queue, None)

    def outcome(self, op, identity, queue, outcome, detail=None):
        self.line(outcome, op, identity, queue, detail)

    def line(self, kind, op, identity, queue, detail):
        os.write(self.fd, (json.dumps([self.worker, self.number, kind, op, identity, queue, time.monotonic(), detail]) + "\n").encode())


def read_calls(directory):
    calls = []
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".ledger"):
            continue
        open_call = None
        with open(os.path.join(directory, name)) as file:
            for line in file:
                worker, number, kind, op, identity, queue, when, detail = json.loads(line)
                if kind == "intent":
                    if open_call:
                        calls.append(open_call)
                    open_call = Call(worker, number, op, identity, queue, when, float("inf"), "unknown", None)
                else:
                    calls.append(open_call._replace(id=identity, end=when, outcome=kind, detail=detail))
                    open_call = None
        if open_call:
            calls.append(open_call)
    return sorted(calls, key=lambda call: call.start)


def check(calls, found, orders, counters, lease):
    """calls: of all workers; found: what was drained, in order; orders: {queue: names listed at the end};
    counters: {queue: {name: value}} from .stats before the draining. Returns a list of (invariant, sentence)."""
    wrong = []
    by_id = collections.defaultdict(list)
    for call in calls:
        if call.op == "error":
            wrong.append(call.detail)
        else:
            by_id[call.id].append(call)
    copies = collections.defaultdict(list)
    for item in found:
        if item.id is None:
            wrong.append(("no partial", f"{item.queue}/{item.name} is not whole"))
        else:
            copies[item.id].append(item)
    for identity in copies.keys() - by_id.keys():
        wrong.append(("no resurrection", f"{identity} is there, which nobody published"))
    for identity, history in by_id.items():
        check_message(identity, history, copies[identity], lease, wrong)
    for queue, names in orders.items():
        last = {}
        for name in names:
            producer, _, number = name.partition("-")
            if number.isdigit():
                if int(number) <= last.get(producer, -1):
                    wrong.append(("order", f"{queue}: {name} is listed after {producer}-{last[producer]:06}"))
                last[producer] = int(number)
    check_counters(calls, counters, wrong)
    return wrong


def check_message(identity, history, copies, lease, wrong):
    def some(*ops):
        return [call for call in history if call.op in ops]

    published = [call.outcome for call in some("publish")]
    gone = some("ack")
    if published == ["ok"] and not any(call.outcome in ("ok", "unknown") for call in gone) and not copies:
        wrong.append(("no loss", f"{identity} was published, never acknowledged, and is not there"))
    if published == ["no"] and (copies or any(call.outcome == "ok" for call in some("claim"))):
        wrong.append(("unknown is 0 or 1", f"publishing {identity} was refused, and it is there"))
    if len(copies) > 1:
        wrong.append(("unknown is 0 or 1", f"{identity} is there {len(copies)} times: {copies}"))
    for end in gone + some("forward"):
        if end.outcome != "ok":
            continue
        if end.op == "ack" and copies:
            wrong.append(("no resurrection", f"{identity} was acknowledged and is there: {copies}"))
        for claim in some("claim"):
            if claim.outcome == "ok" and claim.start > end.end and (end.op == "ack" or claim.queue == end.queue):
                wrong.append(("no resurrection", f"{identity} was claimed from {claim.queue} after its {end.op}"))
    check_holders(identity, history, lease, wrong)
    stage = 0
    for call in some("checkpoint", "read"):
        if call.op == "checkpoint" and call.outcome == "ok":
            stage = max(stage, call.detail)
        if call.op == "read" and call.outcome == "ok" and call.detail < stage:
            wrong.append(("checkpoints", f"{identity} was read at stage {call.detail} after a checkpoint of stage {stage}"))
    if copies and copies[0].stage < stage:
        wrong.append(("checkpoints", f"{identity} is at stage {copies[0].stage} after a checkpoint of stage {stage}"))


def check_holders(identity, history, lease, wrong):
    """Leases of one message never overlap, and none is lost before its end.
    A call that ends a lease counts from its start, all others from their answer."""
    ending = ("ack", "forward", "release")

    def moment(call):
        return call.start if call.op in ending and call.outcome != "no" else call.end

    holder, until, since = None, 0, 0
    for call in sorted((call for call in history if call.op in ending + ("claim", "renew", "checkpoint")), key=moment):
        if call.op == "claim":
            if call.outcome == "ok":
                if holder and call.end + SLACK < until:
                    wrong.append(("one holder", f"{identity}: {call.worker} claimed it {until - call.end:.2f} s before the end of {holder}'s lease"))
                holder, since, until = call.worker, call.start, call.start + lease
        elif call.worker != holder or call.start < since:
            continue
        elif call.outcome == "no":
            if call.detail != SEEN_LATER and call.end + SLACK < until:
                wrong.append(("leases stand", f"{identity}: {call.worker}'s {call.op} said {call.detail} {until - call.end:.2f} s before the end of its lease"))
        elif call.op in ending:
            holder = None
        elif call.op == "renew" and call.outcome == "ok":
            until = max(until, call.start + lease)


def check_counters(calls, counters, wrong):
    """The daemon's counters since creation are the ledger's, give or take what is unknown."""
    def count(outcome, op, queue):
        return sum(1 for call in calls if (call.op, call.queue, call.outcome) == (op, queue, outcome))

    for queue, values in counters.items():
        sides = [("acknowledged", ("ack", queue), ("forward", queue))]
        if queue == "first":
            sides.append(("published", ("publish", queue), None))
        else:
            sides.append(("published", ("publish", queue), ("forward", "first")))
        for name, *ways in sides:
            low = sum(count("ok", *way) for way in ways if way)
            high = low + sum(count("unknown", *way) for way in ways if way)
            if not low <= values[name] <= high:
                wrong.append(("counters", f"{queue}: {name} is {values[name]}, the ledgers say {low} to {high}"))


def acknowledged(calls):
    """A message with one certain publish and one certain acknowledgement, and nothing unknown about it."""
    unknown = {call.id for call in calls if call.outcome == "unknown"}
    return next(call for call in calls if call.op == "ack" and call.outcome == "ok" and call.id not in unknown)


def drop_acknowledgement(calls, found):
    victim = acknowledged(calls)
    return [call for call in calls if not (call.op == "ack" and call.id == victim.id)], found


def forget_message(calls, found):
    return calls, found[1:]


def repeat_message(calls, found):
    return calls, found + found[:1]


def resurrect(calls, found):
    return calls, found + [Found("first", "back", acknowledged(calls).id, 99)]


def tear(calls, found):
    return calls, [found[0]._replace(id=None)] + found[1:]


def overlap(calls, found):
    claim = next(call for call in calls if call.op == "claim" and call.outcome == "ok" and call.id == acknowledged(calls).id)
    return calls + [claim._replace(worker="somebody", start=claim.start + 1e-4, end=claim.end + 1e-4)], found


def lose_lease(calls, found):
    victim = acknowledged(calls)
    return [call._replace(outcome="no", detail="ENOENT") if call is victim else call for call in calls], found + [
        Found(victim.queue, "kept", victim.id, 99)]


SABOTAGE = [drop_acknowledgement, forget_message, repeat_message, resurrect, tear, overlap, lose_lease]


def unnoticed_sabotage(calls, found, orders, counters, lease):
    """The names of the changes that `check` does not find."""
    return [change.__name__ for change in SABOTAGE
            if not check(*change(copy.copy(calls), copy.copy(found)), orders, counters, lease)]
