#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A second model of a replay's limiter decisions (E0) and worlds (E1), slow and plain.

Written from docs/method.md and the specification (migrate.md 1 and 6), not from replay/*.c, to
compare the two. It reads the records of a database through `numareplay query` and works page by page
and world by world: the limiter is the kernel's loop, time remote and missing faults are summed from
each page's history after the run. No test calls this; run it by hand:

    replay_oracle.py e0 DB [--capture NAME] VARIANT QUOTA [START]     decisions, one line per attempt
    replay_oracle.py worlds DB [--capture NAME] OLD NEW QUOTA         raw results of all worlds, JSON
    replay_oracle.py check DB [--capture NAME] OLD NEW QUOTA          against `numareplay replay`

START is "fresh" (default), "END" or "END,spent": ticks from the node's first attempt (on a grid:
from the capture's first attempt) to the end of the first window. OLD and NEW are limiter variants; OLD
may be "host". NUMAREPLAY names the program (default: numareplay).
"""
import bisect
import collections
import csv
import io
import json
import os
import subprocess
import sys

PROGRAM = os.environ.get("NUMAREPLAY", "numareplay")
VM_EXEC, VM_SHARED = 0x4, 0x8
EACCES = -13
LOW_WORLDS = 6


def run(*args):
    return subprocess.run([PROGRAM, *args], check=True, capture_output=True, text=True).stdout


def rows(db, sql):
    for row in csv.DictReader(io.StringIO(run("query", db, sql))):
        yield {k: (None if v == "" else int(v) if v.lstrip("-").isdigit() else v)
               for k, v in row.items()}


class Capture:
    def __init__(self, db, name):
        where = "WHERE name = '%s'" % name if name else ""
        self.facts = next(rows(db, "SELECT id, name, hz, page_size, nr_nodes, nr_cpus, huge_pages, "
                               "cpupid_bits, first_time, last_time, scan_period_max_ms, "
                               "has_ratelimit_event, has_thp_function, balancing "
                               "FROM capture " + where))
        own = " WHERE capture_id = %d" % self.facts["id"]
        self.cpu_nid = {r["cpu"]: r["nid"] for r in rows(db, "SELECT cpu, nid FROM host_cpu" + own)}
        self.faults = list(rows(db, "SELECT time, cpu, tid, mm, addr, vm_flags, src_nid, this_nid, "
                                "last_cpupid, filter_delay, preferred_nid, scan_seq, numa_group, "
                                "group_cpu_src, group_cpu_dst, group_mem_src, group_mem_dst, "
                                "attempt, attempt_delay, attempt_ns, attempt_jiffies, attempt_nid, "
                                "prepare_result, moved, ratelimited, migrated_pages, pages "
                                "FROM hint_fault" + own))
        self.passes = list(rows(db, "SELECT time, tid, mm, mm_users, scan_period_max, "
                                "task_scan_seq, preferred_nid FROM scan_pass" + own))
        self.ranges = [r for r in rows(db, "SELECT time, mm, start, \"end\" FROM scan_range" + own)
                       if r["mm"] is not None]
        self.loss = list(rows(db, "SELECT time FROM loss" + own))
        self.facts["cpupid_bits"] = self.facts["cpupid_bits"] or 32
        self.hz = self.facts["hz"]
        self.interval = -(-100 * self.hz // 1000)
        for f in self.faults:
            f["n"] = f["pages"] or 1
            f["decided"] = f["time"] + (f["attempt_delay"] if f["attempt"] else 0)
            f["is_attempt"] = (f["attempt"] != 0 and f["attempt_nid"] is not None
                               and f["attempt_nid"] >= 0 and f["prepare_result"] != EACCES)
            if f["is_attempt"] and f["attempt_jiffies"] is None:
                f["attempt_jiffies"] = f["decided"] * self.hz // 10**9
                f["from_clock"] = True
        self.faults.sort(key=lambda f: (f["decided"], f["cpu"], f["tid"]))
        self.attempts = [f for f in self.faults if f["is_attempt"]]
        for f in self.attempts:
            f["verdict"] = self.verdict(f)

    @staticmethod
    def verdict(f):
        """What the record proves about the host's own limiter: True, False, None (unknown)."""
        if f["moved"] or f["migrated_pages"] is not None or f["prepare_result"] == 0:
            return True
        if f["ratelimited"]:
            return False
        if f["ratelimited"] == 0 and (f["attempt"] == 2 or (
                f["vm_flags"] is not None and not f["vm_flags"] & VM_EXEC)):
            return True
        return None

    def period_max_ms(self):
        longest = max([p["scan_period_max"] or 0 for p in self.passes], default=0)
        return longest or self.facts["scan_period_max_ms"] or 60000


# ---- the limiter, as the kernel has it ------------------------------------------------------------

class Limiter:
    """One node's window. end None: not yet seen."""

    def __init__(self, variant, quota, interval):
        self.variant, self.quota, self.interval = variant, quota, interval
        self.end, self.charged, self.resets = None, 0, 0

    def begin(self, start, now, origin):
        first_end, spent = start
        if self.variant in ("trylock", "spin-grid"):
            self.end = origin + first_end
            while now > self.end:
                self.end += self.interval
            if not spent:  # an empty window: as if it had ended just before it began
                self.end -= self.interval
        elif first_end is None:
            self.end = now - 1
        else:
            self.end = now + first_end
        self.charged = self.quota + 1 if spent else 0

    def ask(self, now, pages):
        if self.variant == "none":
            return True
        if now > self.end:
            self.resets += 1
            self.charged = 0
            if self.variant in ("trylock", "spin-grid"):
                while now > self.end:
                    self.end += self.interval
            else:
                self.end = now + self.interval
        if self.charged > self.quota:
            return False
        self.charged += pages
        return True


def nominal(variant, interval):
    return (interval - 1, False) if variant in ("trylock", "spin-grid") else (None, False)


def all_starts(variant, interval):
    if variant == "none":
        return [(None, False)]
    if variant in ("trylock", "spin-grid"):
        ends = [(e, s) for s in (False, True) for e in range(interval - 1, -1, -1)]
        return ends
    return [(None, False)] + [(e, s) for e in range(interval + 1) for s in (False, True)]


def e0(cap, variant, quota, start_of, charge="yes"):
    """Decisions of all attempts. @charge: are attempts of unknown evidence charged?"""
    nodes, out = {}, []
    for f in cap.attempts:
        nid = f["attempt_nid"]
        if nid not in nodes:
            nodes[nid] = Limiter(variant, quota, cap.interval)
            if variant != "none":
                nodes[nid].begin(start_of(nid), f["attempt_jiffies"],
                                 cap.attempts[0]["attempt_jiffies"])
        ok = nodes[nid].ask(f["attempt_jiffies"], f["n"])
        if ok and charge == "no" and f["verdict"] is None:
            nodes[nid].charged -= f["n"]
        out.append(ok)
    return out


class Lane:
    """E0 of one limiter: fitted to the record if asked and possible, and the ranges left open."""

    def __init__(self, cap, variant, quota, may_fit):
        self.variant, self.quota = variant, quota
        starts = all_starts(variant, cap.interval)
        grid = variant in ("trylock", "spin-grid")
        nids = sorted({f["attempt_nid"] for f in cap.attempts})
        certain = sum(f["verdict"] is not None for f in cap.attempts)
        score = {}  # (start, node or None on a grid) -> contradictions, unexplained, admitted..
        for s in starts:
            full = e0(cap, variant, quota, lambda nid: s)
            least = e0(cap, variant, quota, lambda nid: s, "no")
            for f, ok, low in zip(cap.attempts, full, least):
                key = (s, None if grid else f["attempt_nid"])
                c = score.setdefault(key, [0, 0, 0, 0, 0])
                c[0] += f["verdict"] is not None and ok != f["verdict"]
                c[1] += f["verdict"] is None and ok
                c[2] += ok
                c[3] += ok and low
                c[4] += ok or low
        groups = [None] if grid else nids
        best = {}
        for g in groups:
            best[g] = starts[0]
            for s in starts[1:]:
                if self.better(score[s, g], score[best[g], g]):
                    best[g] = s
        contradictions = sum(score[best[g], g][0] for g in groups)
        self.fitted = bool(may_fit and certain and contradictions <= 5 + certain // 1000)
        if not self.fitted:
            best = {g: starts[0] for g in groups}
        self.start = lambda nid: best.get(None if grid else nid, nominal(variant, cap.interval))
        self.decisions = e0(cap, variant, quota, self.start)
        self.low = self.high = 0
        for g in groups:
            left = [score[s, g] for s in starts if not self.fitted or not (
                self.better(score[s, g], score[best[g], g])
                or self.better(score[best[g], g], score[s, g]))]
            self.low += min(c[2 if self.fitted else 3] for c in left)
            self.high += max(c[2 if self.fitted else 4] for c in left)
        self.contradictions = sum(f["verdict"] is not None and ok != f["verdict"]
                                  for f, ok in zip(cap.attempts, self.decisions))

    @staticmethod
    def better(a, b):
        return a[0] < b[0] if a[0] != b[0] else a[1] + 16 < b[1]


# ---- the filter, for attempts that the record does not have ------------------------------------------

def filter_answer(cap, variant, tid, dst, last, task):
    """True, False, or None: rules D8 and D9 need weights that nobody recorded."""
    bits = cap.facts["cpupid_bits"]
    last &= (1 << bits) - 1
    pid, nobody = last & 0xff, last & 0xff == 0xff
    own = pid == tid & 0xff
    if variant != "4.18" and (task["pref"] == -1 or task["seq"] <= 4) and (nobody or own):
        return True
    if not nobody and cap.cpu_nid.get(last >> 8, -1) != dst:
        return False
    if own or not task["grouped"]:
        return True
    return None


# ---- one world ------------------------------------------------------------------------------------

class Page:
    def __init__(self):
        self.recorded = None  # node on record after its last fault
        self.here = None      # node in this world
        self.cpupid = None    # of this world, where it is not the recorded one
        self.history = []     # (time, pages, accessor, node on record, node here) after each fault
        self.apart = None     # since when it is remote here but local on record, private
        self.move = None      # last move on record: node before, end of the attempt
        self.missing = []     # closed intervals of that


class World:
    def __init__(self, cap, filter_variant, limiter, start_of, unknown, thin=False):
        self.cap, self.filter = cap, filter_variant
        self.limiter_args, self.start_of = limiter, start_of
        self.unknown, self.thin = unknown, thin
        self.r = collections.Counter()
        self.pages, self.nodes, self.tasks = {}, {}, {}
        self.mm = collections.defaultdict(lambda: {"single": False, "ranges": [], "keep": False,
                                                   "differs": None, "kept_at": None})
        self.tried = self.moved = 0
        self.luck = 0.0
        self.tick = None
        self.huge = [0, 0]  # faults on huge pages of single-threaded tasks: local, remote

    # scans

    def scan_pass(self, p):
        mm = self.mm[p["mm"]]
        mm["single"] = p["mm_users"] == 1
        period = self.cap.period_max_ms() * 10**6
        mm["keep"] = not (self.thin and None not in (mm["differs"], mm["kept_at"])
                          and p["time"] < mm["kept_at"] + period)
        if mm["keep"]:
            mm["kept_at"] = p["time"]
        if p["task_scan_seq"] is not None and p["preferred_nid"] is not None:
            task = self.tasks.setdefault(p["tid"], {"known": False, "grouped": False})
            task["seq"], task["pref"] = p["task_scan_seq"], p["preferred_nid"]

    def scan_range(self, g):
        mm = self.mm[g["mm"]]
        mm["ranges"].append((g["time"], g["start"], g["end"], mm["keep"]))

    # limiter

    def now(self, f):
        if f["is_attempt"] and not f.get("from_clock"):
            return f["attempt_jiffies"]
        if self.tick is None:
            return f["decided"] * self.cap.hz // 10**9
        t, j = self.tick
        return j + max(0, f["decided"] - t) * self.cap.hz // 10**9

    def admit(self, f, nid):
        variant, quota = self.limiter_args
        ok = True
        if variant != "none":
            if nid not in self.nodes:
                self.nodes[nid] = Limiter(variant, quota, self.cap.interval)
                self.nodes[nid].begin(self.start_of(nid), self.now(f),
                                      self.cap.attempts[0]["attempt_jiffies"])
            ok = self.nodes[nid].ask(self.now(f), f["n"])
        self.r["attempts"] += 1
        self.r["attempt_pages"] += f["n"]
        self.r["admitted" if ok else "denied"] += 1
        return ok

    def guess(self):
        """The outcome of an attempt that the record does not have."""
        if self.unknown != "expected":
            return self.unknown == "succeeds"
        self.luck += self.moved / self.tried if self.tried else 1.0
        if self.luck < 0.999999:
            return False
        self.luck -= 1.0
        return True

    # one fault

    def fault(self, f, refused):
        if f["mm"] is None or f["src_nid"] is None or f["this_nid"] is None:
            self.untracked(f, refused)
            return
        src, this, mm = f["src_nid"], f["this_nid"], self.mm[f["mm"]]
        if f["is_attempt"]:
            if not f.get("from_clock"):
                self.tick = (f["decided"], f["attempt_jiffies"])
            if not refused:
                self.tried += 1
                self.moved += bool(f["moved"])
        task = self.tasks.setdefault(f["tid"], {"known": False, "grouped": False, "seq": 0,
                                                "pref": 0})
        if None not in (f["filter_delay"], f["scan_seq"], f["preferred_nid"]):
            task.update(known=True, seq=f["scan_seq"], pref=f["preferred_nid"],
                        grouped=f["numa_group"] is not None)
            weights = [f["group_" + k] for k in ("cpu_src", "cpu_dst", "mem_src", "mem_dst")]
            if None not in weights and src != this:
                task["weights"] = {src: (weights[0], weights[2]), this: (weights[1], weights[3])}
        number = (f["addr"] & (1 << 64) - 1) // self.cap.facts["page_size"]
        page = self.pages.setdefault((f["mm"], number - number % f["n"]), Page())
        # Another fault was moving the page when this one began: it saw the old node.
        overtaken = (page.recorded not in (None, src) and not f["moved"] and page.move is not None
                     and page.move[0] == src and f["time"] < page.move[1])
        external = page.recorded not in (None, src) and not overtaken
        if page.recorded is None or external:
            page.here = src
        self.r["external"] += external
        after = src if not f["moved"] else f["attempt_nid"] if f["is_attempt"] else this
        private = self.private(f, mm)
        with_record = overtaken and page.here == page.recorded
        if overtaken:
            after = page.recorded
        if with_record:
            page.here = src  # as this fault saw it, for the time of the fault
        before = page.here
        tainted = before != src or (overtaken and not with_record)
        if page.cpupid is None:
            last = f["last_cpupid"]
        else:
            last = page.cpupid
        if private and page.apart is not None:
            page.missing.append((page.apart, f["time"]))
            page.apart = None
        armed = self.armed_pass(f, mm)
        if (private and tainted and before == this) or not armed:
            if f["moved"] and not tainted:
                self.r["suppressed"] += 1
            if page.cpupid is None and f["filter_delay"] is not None:
                page.cpupid = last  # the record's page remembers this access, this world's does not
        else:
            denied = self.r["denied"]
            page.here = self.take(f, refused or overtaken, page, task, last)
            if with_record:
                page.here = src
            if (self.r["denied"] > denied) != (f["is_attempt"] and refused) and mm["differs"] is None:
                mm["differs"] = f["decided"]
            called = self.filter in ("4.18", "4.19") or before != this
            if called:
                mark = ((f["cpu"] << 8) | (f["tid"] & 0xff)) & (1 << self.cap.facts["cpupid_bits"]) - 1
                page.cpupid = None if f["filter_delay"] is not None else mark
            elif f["filter_delay"] is not None:
                page.cpupid = last
            if page.here != before:
                self.r["moves"] += 1
                self.r["moved_pages"] += f["n"]
                self.r["added"] += not f["moved"] or tainted
            elif f["moved"] and not tainted:
                self.r["suppressed"] += 1
        if with_record:
            page.here = page.recorded
        if f["moved"]:
            page.move = (src, f["decided"] + (f["attempt_ns"] or 0 if f["is_attempt"] else 0))
        if private and page.here != this and after == this:
            page.apart = f["time"]
        page.recorded = after
        page.history.append((f["time"], f["n"], this, after, page.here))

    def private(self, f, mm):
        """Are local pages of this mapping left alone by the scanner?"""
        if not mm["single"] or f["vm_flags"] is None or f["vm_flags"] & VM_SHARED:
            return False
        if f["n"] >= (self.cap.facts["huge_pages"] or 512):
            self.huge[f["src_nid"] != f["this_nid"]] += 1
            return not (self.cap.facts["has_thp_function"] or self.huge[0] * 8 > self.huge[1])
        return True

    def armed_pass(self, f, mm):
        if mm["differs"] is None or not self.thin:
            return True
        for t, start, end, keep in reversed(mm["ranges"]):
            if t < f["time"] and start <= f["addr"] < end:
                return keep
        return True

    def take(self, f, outcome_open, page, task, last):
        src, this, here = f["src_nid"], f["this_nid"], page.here
        self.r["hint_faults"] += 1
        self.r["hint_fault_pages"] += f["n"]
        self.r["remote_faults"] += here != this
        if here == src and (f["is_attempt"] or f["moved"] or src != this):
            # The page is where it was: what the host's filter said stands, and what became of it.
            if not f["is_attempt"]:
                return this if f["moved"] else here
            if not self.admit(f, f["attempt_nid"]):
                return here
            moves = self.guess() if outcome_open else f["moved"]
            return f["attempt_nid"] if moves else here
        if here == this:
            return here
        answer = None
        if task["known"]:
            answer = filter_answer(self.cap, self.filter, f["tid"], this,
                                   last if last is not None else 0, task)
        if answer is None:
            self.r["undecided_filters"] += 1
            answer = self.unknown == "succeeds" or (self.unknown == "expected"
                                                    and self.by_old_weights(task, here, this))
        if not answer:
            return here
        self.r["model_attempts"] += 1
        return this if self.admit(f, this) and self.guess() else here

    @staticmethod
    def by_old_weights(task, src, dst):
        """D8 and D9 with the weights of the task's last filter call between these two nodes."""
        weights = task.get("weights", {})
        if not task["known"] or set(weights) != {src, dst}:
            return True
        (cpu_src, mem_src), (cpu_dst, mem_dst) = weights[src], weights[dst]
        return cpu_dst > 3 * cpu_src or cpu_dst * mem_src * 3 > cpu_src * mem_dst * 4

    def untracked(self, f, refused):
        self.r["hint_faults"] += 1
        self.r["hint_fault_pages"] += f["n"]
        if f["is_attempt"]:
            self.r["attempts"] += 1
            self.r["attempt_pages"] += f["n"]
            self.r["denied" if refused else "admitted"] += 1
        if f["moved"]:
            self.r["moves"] += 1
            self.r["moved_pages"] += f["n"]

    # sums over histories

    def finish(self):
        end = self.cap.facts["last_time"]
        out = {k: self.r[k] for k in ("hint_faults", "hint_fault_pages", "remote_faults", "attempts",
                                      "admitted", "denied", "attempt_pages", "moves", "moved_pages",
                                      "suppressed", "added", "model_attempts", "undecided_filters")}
        previous = following = tainted = 0.0
        missing = 0
        for (mm, number), page in self.pages.items():
            ends = [h[0] for h in page.history[1:]] + [end]
            users = [h[2] for h in page.history[1:]] + [None]
            for (t, n, user, recorded, here), until, user_next in zip(page.history, ends, users):
                seconds = max(0, until - t) * 1e-9 * n
                previous += seconds * (here != user)
                following += seconds * (user_next is not None and here != user_next)
                tainted += seconds * (here != recorded)
            if page.apart is not None:
                page.missing.append((page.apart, end))
            ranges = self.mm[mm]["ranges"]
            times = [g[0] for g in ranges]
            addr = number * self.cap.facts["page_size"]
            for t0, t1 in page.missing:
                for g in ranges[bisect.bisect_right(times, t0):bisect.bisect_right(times, t1)]:
                    missing += g[1] <= addr < g[2]
        out.update(extra_faults_max=missing, remote_seconds_previous=previous,
                   remote_seconds_next=following, tainted_seconds=tainted)
        return out


def feed(cap, world, refused):
    events = [(p["time"], 0, i, p) for i, p in enumerate(cap.passes)]
    events += [(g["time"], 1, i, g) for i, g in enumerate(cap.ranges)]
    events += [(f["decided"], 2, i, f) for i, f in enumerate(cap.faults)]
    events.sort(key=lambda e: e[:3])
    for _, kind, _, row in events:
        if kind == 0:
            world.scan_pass(row)
        elif kind == 1:
            world.scan_range(row)
        else:
            world.fault(row, refused.get(id(row), False))
    return world.finish()


def worlds(cap, filter_variant, lane, host):
    """Results of central, high, sparse, low.. for @lane; @host: the lane that explains unknown failures."""
    refused = {}
    for i, f in enumerate(cap.attempts):
        refused[id(f)] = f["verdict"] is False or (
            f["verdict"] is None and host is not None and not host.decisions[i])
    limiter = (lane.variant, lane.quota)
    out = [feed(cap, World(cap, filter_variant, limiter, lane.start, "expected"), refused),
           feed(cap, World(cap, filter_variant, ("none", 0), None, "succeeds"), refused),
           feed(cap, World(cap, filter_variant, limiter, lane.start, "succeeds", True), refused)]
    for k in range(LOW_WORLDS):
        start = lane.start
        if k and not lane.fitted and lane.variant != "none":
            end = (cap.interval - 1) * k // (LOW_WORLDS - 1)
            start = lambda nid, end=end: (end, True)
        out.append(feed(cap, World(cap, filter_variant, limiter, start, "fails", True), refused))
    return out


# ---- against the program --------------------------------------------------------------------------

def documents(db, name, old, new, quota):
    capture = ["--capture", name] if name else []
    verify = json.loads(subprocess.run([PROGRAM, "verify", db, *capture, "--json"],
                                       capture_output=True, text=True).stdout)
    old_spec = old if old == "host" else "migrate.ratelimit=" + old
    replay = json.loads(run("replay", db, *capture, "--old", old_spec, "--new",
                            "migrate.ratelimit=" + new, "--set", "quota=%d" % quota, "--json"))
    return verify, replay


def setting(db, name, old, new, quota):
    """Both sides: the program's documents, and this model's lanes and worlds."""
    cap = Capture(db, name)
    verify, replay = documents(db, name, old, new, quota)
    filter_variant = verify["checks"][0]["variant"]
    names = [replay[side]["variants"]["migrate.ratelimit"] for side in ("old", "new")]
    notes = {n["lane"]: n for n in replay["notes"] if n["code"] == "e0_decisions"}
    observed = [not any(n["code"] == "divergence" and n["lane"] == side for n in replay["notes"])
                for side in ("old", "new")]
    lanes = [Lane(cap, v, quota, i == 0 or notes.get("new", {}).get("fitted", False))
             for i, v in enumerate(names)]
    host = next((lane for lane, seen in zip(lanes, observed) if seen and lane.variant != "none"), None)
    return cap, replay, filter_variant, notes, observed, lanes, host


def check(db, name, old, new, quota):
    cap, replay, filter_variant, notes, observed, lanes, host = setting(db, name, old, new, quota)
    metric = {m["name"]: m for m in replay["metrics"]}
    wrong, compared = [], 0

    def same(what, ours, theirs):
        nonlocal compared
        compared += 1
        if theirs is None or abs(ours - theirs) > 1e-6 * max(1.0, abs(ours)):
            wrong.append("%s: %s here, %s there" % (what, ours, theirs))

    identical = any(n["code"] == "identical_on_trace" for n in replay["notes"])
    for side, lane, seen in zip(("old", "new"), lanes, observed):
        note = notes.get(side)
        if note:
            same(side + " e0 admitted", sum(lane.decisions), note["admitted"])
            same(side + " e0 denied", lane.decisions.count(False), note["denied"])
            same(side + " fitted", lane.fitted, note["fitted"])
            if not note["races"] and not cap.loss:
                same(side + " e0 lower", lane.low, note["admitted_lower"])
                same(side + " e0 upper", lane.high, note["admitted_upper"])
            elif note["admitted_lower"] > lane.low or note["admitted_upper"] < lane.high:
                wrong.append("%s e0 range %d..%d is not inside %d..%d" % (
                    side, lane.low, lane.high, note["admitted_lower"], note["admitted_upper"]))
        if seen or identical:
            continue
        w = worlds(cap, filter_variant, lane, host)
        for m, field in (("migrated_pages", "moved_pages"), ("migrations_admitted", "admitted"),
                         ("migration_attempts", "attempts"), ("migrations_denied", "denied"),
                         ("migration_attempt_pages", "attempt_pages")):
            theirs = metric[m][side]
            if m == "migrations_denied" and lane.variant == "none":
                continue
            same("%s %s" % (side, m), w[0][field], theirs["value"])
            same("%s %s lower" % (side, m), min(x[field] for x in w), theirs["lower"])
            if theirs["upper"] is not None:
                same("%s %s upper" % (side, m), max(x[field] for x in w), theirs["upper"])
        for m, field in (("hint_faults", "hint_faults"), ("hint_faults_remote", "remote_faults"),
                         ("hint_fault_pages", "hint_fault_pages"),
                         ("remote_residency", "remote_seconds_previous")):
            if metric[m][side]["value"] is not None:
                same("%s %s" % (side, m), w[0][field], metric[m][side]["value"])
        both = [x[k] for x in w for k in ("remote_seconds_previous", "remote_seconds_next")]
        same(side + " residency lower", min(both), metric["remote_residency"][side]["lower"])
        same(side + " residency upper", max(both), metric["remote_residency"][side]["upper"])
        for n in replay["notes"]:
            if n["code"] == "divergence" and n["lane"] == side:
                same(side + " suppressed", w[0]["suppressed"], n["suppressed_moves"])
                same(side + " added", w[0]["added"], n["added_moves"])
                same(side + " model attempts", w[0]["model_attempts"], n["model_attempts"])
    print("%s %s->%s quota %d: %d compared, %d differ" % (
        cap.facts["name"], lanes[0].variant, lanes[1].variant, quota, compared, len(wrong)))
    for line in wrong:
        print("    " + line)
    return not wrong


def main(argv):
    name = None
    if "--capture" in argv:
        i = argv.index("--capture")
        name = argv[i + 1]
        del argv[i:i + 2]
    if len(argv) < 4 or argv[0] not in ("e0", "worlds", "check"):
        sys.exit(__doc__)
    if argv[0] == "e0":
        cap = Capture(argv[1], name)
        variant, quota = argv[2], int(argv[3])
        start = nominal(variant, cap.interval)
        if len(argv) > 4 and argv[4] != "fresh":
            end, _, spent = argv[4].partition(",")
            start = (int(end), spent == "spent")
        for f, ok in zip(cap.attempts, e0(cap, variant, quota, lambda nid: start)):
            print(f["decided"], f["tid"], f["attempt_nid"], f["n"], int(ok))
        return True
    old, new, quota = argv[2], argv[3], int(argv[4])
    if argv[0] == "check":
        return check(argv[1], name, old, new, quota)
    cap, _, filter_variant, _, observed, lanes, host = setting(argv[1], name, old, new, quota)
    json.dump({side: None if seen else worlds(cap, filter_variant, lane, host)
               for side, lane, seen in zip(("old", "new"), lanes, observed)}, sys.stdout, indent=1)
    print()
    return True


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
