#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A second model of the migration rate limiter's races (spec migrate.md 1.6).

Written from the specification, not from replay/policies/migrate_ratelimit_race.c, to compare the
two: each call is a small program of instructions on shared memory, and the sets of states
reachable after 0, 1, 2.. steps are computed breadth first. The grid window is found by the
kernel's loop. For two calls every single schedule is replayed as well, with nothing remembered
between schedules. No test calls this; run it by hand:

    tests/tools/race_oracle.py              the scenarios of the table in 1.6
    tests/tools/race_oracle.py V Q I W NR j:n [j:n [j:n]]    one case: variant, quota, interval,
                                            window end, pages charged, calls

Printed per case: one line "admitted resets end pages" per outcome, sorted; admitted is a bit mask.
"""
import itertools
import sys
from collections import namedtuple

MASK = (1 << 64) - 1
Shared = namedtuple("Shared", "nr end holder resets")
Local = namedtuple("Local", "pc reg verdict")  # reg: w, later the loaded nr
DENY, ADMIT = 0, 1
HALT = "halt"


def after(a, b):
    return ((b - a) & MASK) >> 63 == 1


def program(variant, quota, interval):
    """label -> function(shared, local, call id, j, n) -> (shared, local) or None (must wait)."""
    trylock = variant in ("trylock", "trylock-stretch")
    grid = variant in ("trylock", "spin-grid")

    def goto(local, pc, **kw):
        return local._replace(pc=pc, **kw)

    def test(s, l, me, j, n):
        if after(j, s.end):
            return s, goto(l, "lock", reg=s.end)
        return s, goto(l, "compare", reg=None)

    def lock(s, l, me, j, n):
        if s.holder is None:
            return s._replace(holder=me), goto(l, "zero")
        return (s, goto(l, "compare", reg=None)) if trylock else None

    def zero(s, l, me, j, n):
        return s._replace(nr=0, resets=s.resets + 1), goto(l, "end")

    def end(s, l, me, j, n):
        new = (l.reg if trylock else s.end) if grid else j + interval
        while grid and after(j, new):
            new = (new + interval) & MASK
        return s._replace(end=new & MASK), goto(l, "unlock", reg=None)

    def unlock(s, l, me, j, n):
        assert s.holder == me
        return s._replace(holder=None), goto(l, "compare")

    def compare(s, l, me, j, n):
        return s, goto(l, HALT, verdict=DENY) if s.nr > quota else goto(l, "load")

    def load(s, l, me, j, n):
        return s, goto(l, "store", reg=s.nr)

    def store(s, l, me, j, n):
        return s._replace(nr=(l.reg + n) & MASK), goto(l, HALT, reg=None, verdict=ADMIT)

    return {f.__name__: f for f in (test, lock, zero, end, unlock, compare, load, store)}


def start(end, nr, calls):
    return Shared(nr, end, None, 0), tuple(Local("test", None, None) for _ in calls)


def advance(code, state, who, calls):
    shared, locals_ = state
    if locals_[who].pc == HALT:
        return None
    done = code[locals_[who].pc](shared, locals_[who], who, *calls[who])
    if done is None:
        return None
    return done[0], locals_[:who] + (done[1],) + locals_[who + 1 :]


def outcome(state):
    shared, locals_ = state
    admitted = sum(1 << i for i, l in enumerate(locals_) if l.verdict == ADMIT)
    return admitted, shared.resets, shared.end, shared.nr


def breadth_first(variant, quota, interval, end, nr, calls):
    if variant == "none":
        return {((1 << len(calls)) - 1, 0, end, nr)}
    code = program(variant, quota, interval)
    layer, found = {start(end, nr, calls)}, set()
    while layer:
        following = set()
        for state in layer:
            if all(l.pc == HALT for l in state[1]):
                found.add(outcome(state))
            for who in range(len(calls)):
                after_step = advance(code, state, who, calls)
                if after_step:
                    following.add(after_step)
        layer = following
    return found


def all_schedules(variant, quota, interval, end, nr, calls):
    """Two calls: replay every order of 8 + 8 turns; a turn that cannot be used is skipped."""
    code = program(variant, quota, interval)
    found = set()
    for turns in itertools.combinations(range(16), 8):
        state = start(end, nr, calls)
        schedule = [0 if t in turns else 1 for t in range(16)]
        for who in schedule + [0] * 8 + [1] * 8 + [0] * 8:  # whoever waited finishes at the end
            state = advance(code, state, who, calls) or state
        assert all(l.pc == HALT for l in state[1])
        found.add(outcome(state))
    return found


def show(title, variant, *case):
    found = breadth_first(variant, *case)
    if variant != "none" and len(case[-1]) == 2:
        assert all_schedules(variant, *case) == found, title
    print(f"# {title}")
    for line in sorted(found):
        print(*line)


def main(args):
    if args:
        variant, numbers = args[0], [int(a, 0) for a in args[1:5]]
        calls = [tuple(int(x, 0) for x in a.split(":")) for a in args[5:]]
        show(" ".join(args), variant, *numbers, calls)
        return
    rows = [
        (10, 9, [(11, 1)] * 2),
        (10, 9, [(11, 1)] * 3),
        (10, 3, [(11, 1)] * 2),
        (10, 3, [(10, 1), (11, 1)]),
        (10, 4, [(10, 1), (11, 1)]),
        (10, 9, [(10, 1), (11, 1)]),
        (20, 4, [(15, 1)] * 2),
    ]
    for (end, nr, calls), variant in itertools.product(
        rows, ("spin", "trylock", "spin-grid", "trylock-stretch", "none")
    ):
        text = " ".join(f"{j}:{n}" for j, n in calls)
        show(f"{variant} 4 10 {end} {nr} {text}", variant, 4, 10, end, nr, calls)


if __name__ == "__main__":
    main(sys.argv[1:])
