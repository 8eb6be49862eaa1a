-- SPDX-License-Identifier: GPL-2.0-or-later
-- What came with schema versions 2 (results), 3 (ranges of blocks) and later. Run on new databases behind
-- schema.sql, and on those of earlier versions when something is written to them.

-- Smallest and largest value of a column in a block; cursors leave blocks out by it. None: not known
-- (blocks of earlier versions), or no range of signed numbers. The time's is in table block.
CREATE TABLE IF NOT EXISTS block_range (
	block_id INTEGER NOT NULL REFERENCES block(id) ON DELETE CASCADE, -- block
	column INTEGER NOT NULL,           -- number of the column in its kind's list, from 0: time
	min INTEGER,                       -- smallest value; NULL: every row is NULL
	max INTEGER,                       -- largest value
	PRIMARY KEY (block_id, column)
) STRICT, WITHOUT ROWID;

-- Touch rates: how often armed pages of a VMA were touched from one node. They belong to the capture,
-- and are kept with each replay of it.
CREATE TABLE IF NOT EXISTS touch_rate (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	ordinal INTEGER NOT NULL,          -- position
	mm INTEGER NOT NULL,               -- address space, the kernel's pointer
	vm_start INTEGER NOT NULL,         -- bytes; of the first of VMAs that map the same pages; 0: pages
	                                   -- that no range on record covers
	vm_end INTEGER NOT NULL,           -- bytes
	address_spaces INTEGER NOT NULL,   -- that are known to map its pages
	nid INTEGER NOT NULL,              -- accessing node
	touches INTEGER NOT NULL,          -- faults on armed pages from there
	armed_page_seconds REAL NOT NULL,  -- page-seconds of observation
	remote_page_seconds REAL NOT NULL, -- page-seconds on record for which pages lay elsewhere
	rate REAL NOT NULL,                -- touches per page-second
	rate_lower REAL NOT NULL,          -- 95 % sampling error
	rate_upper REAL NOT NULL,          -- 95 % sampling error
	borrowed INTEGER NOT NULL,         -- 1: nothing was observed from this node; a rate from all nodes
	PRIMARY KEY (replay_id, ordinal)
) STRICT, WITHOUT ROWID;

-- Waits for pages under migration, and what they waited for.
CREATE TABLE IF NOT EXISTS wait_cause (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	ordinal INTEGER NOT NULL,          -- position, by time
	time INTEGER NOT NULL,             -- ns; when the wait began
	ns INTEGER,                        -- ns; how long; NULL: its end is not on record
	tid INTEGER NOT NULL,              -- thread that waited
	mm INTEGER,                        -- its address space
	addr INTEGER,                      -- bytes; the address it wanted
	cause TEXT NOT NULL,               -- 'hint_fault', 'other_migration' or 'unattributed'
	certainty TEXT NOT NULL,           -- 'exact', 'late', 'ambiguous' or 'unknown'
	cause_time INTEGER,                -- ns; of the hinting fault or migration
	cause_tid INTEGER,                 -- thread that migrated the page
	cause_mm INTEGER,                  -- its address space
	PRIMARY KEY (replay_id, ordinal)
) STRICT, WITHOUT ROWID;

-- How often the scanner came round, and how often pages were seen, per address space (those with most
-- faults).
CREATE TABLE IF NOT EXISTS coverage (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	mm INTEGER NOT NULL,               -- address space, the kernel's pointer
	tgid INTEGER,                      -- process, if an event named it
	faults INTEGER NOT NULL,           -- hinting faults
	passes INTEGER NOT NULL,           -- full scans finished
	pages_once INTEGER NOT NULL,       -- pages with one hinting fault
	pages_twice INTEGER NOT NULL,      -- pages with two
	pages_more INTEGER NOT NULL,       -- pages with more
	needs_seconds REAL,                -- length of a capture with two passes, at this pace; NULL: no pass
	PRIMARY KEY (capture_id, mm)
) STRICT, WITHOUT ROWID;

-- What scans did with each VMA that they can arm: on record, and in a lane with another scan.vma.
-- Passes that the capture cuts off or that lost events are left out.
CREATE TABLE IF NOT EXISTS scan_vma (
	id INTEGER PRIMARY KEY,            -- number
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	replay_id INTEGER REFERENCES replay(id) ON DELETE CASCADE, -- replay; NULL: the recorded scans
	lane TEXT NOT NULL,                -- 'record', 'old' or 'new'
	mm INTEGER NOT NULL,               -- address space, the kernel's pointer
	vm_start INTEGER NOT NULL,         -- bytes; as last seen
	vm_end INTEGER NOT NULL,           -- bytes; as last seen
	vm_flags INTEGER,                  -- VM_* bits; NULL: no range on record showed them
	first_seen INTEGER NOT NULL,       -- ns; first pass over its address space that could know it
	last_seen INTEGER NOT NULL,        -- ns; last pass over its address space while it was there
	passes INTEGER NOT NULL,           -- passes over its address space while it was there
	visits INTEGER,                    -- passes that came by it; NULL: skips are not on record (before 6.7)
	armed_passes INTEGER NOT NULL,     -- passes that armed a range of it
	armed_ranges INTEGER NOT NULL,     -- ranges
	armed_pages INTEGER,               -- entries armed; NULL: not known of all ranges, or the lane's
	                                   -- address space has left the record
	completed INTEGER NOT NULL,        -- times armed up to its end
	last_complete INTEGER,             -- ns; the last time; NULL: never
	since_ns INTEGER NOT NULL,         -- ns from then, or from first_seen, to last_seen
	passes_since INTEGER NOT NULL,     -- passes over its address space since then
	sequences_since INTEGER NOT NULL,  -- full sequences of its address space since then
	skips_ineligible INTEGER,          -- decisions that left it out: unsuitable, shared_ro, inaccessible
	skips_scan_delay INTEGER,          -- too new
	skips_pid_inactive INTEGER,        -- not used by the thread that scans
	skips_seq_completed INTEGER,       -- scanned in this sequence
	row_scan_delay INTEGER,            -- of these, since it was last armed
	row_pid_inactive INTEGER,          -- of these, since it was last armed
	row_seq_completed INTEGER,         -- of these, since it was last armed
	inactive_never_set INTEGER,        -- of row_pid_inactive: no thread's bit was ever set
	inactive_cleared INTEGER,          -- the thread's bit had been set; the window's reset cleared it
	inactive_others INTEGER,           -- only bits of other threads had been set
	starved INTEGER,                   -- 1: there at the end, more than nr_threads + 1 sequences since, and
	                                   -- pid_inactive; NULL: skips are not on record
	certain INTEGER NOT NULL           -- 1: starved is the same whatever unknown facts are
) STRICT;

CREATE INDEX IF NOT EXISTS scan_vma_owner ON scan_vma (capture_id, replay_id);

-- Where a lane with another scan.vma leaves the record, per address space.
CREATE TABLE IF NOT EXISTS scan_divergence (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	lane TEXT NOT NULL,                -- 'old' or 'new'
	ordinal INTEGER NOT NULL,          -- position; a pointer may serve several address spaces in turn
	mm INTEGER NOT NULL,               -- address space, the kernel's pointer
	passes INTEGER NOT NULL,           -- passes over it
	diverged INTEGER,                  -- ns; first pass that arms other ranges than on record; NULL: none
	uncertain INTEGER,                 -- ns; first pass that hangs on unknown facts; NULL: none
	added_time INTEGER,                -- ns; pass of the first range that the record does not have; NULL: none
	added_start INTEGER,               -- bytes; that range
	added_end INTEGER,                 -- bytes; that range
	added_by TEXT,                     -- rule that let its VMA through
	added_certain INTEGER,             -- 1: whatever unknown facts are
	PRIMARY KEY (replay_id, lane, ordinal)
) STRICT, WITHOUT ROWID;

-- How hinting faults ended: those that led nowhere, and those that moved their page.
CREATE TABLE IF NOT EXISTS fault_outcome (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	lane TEXT NOT NULL,                -- 'record'; 'old', 'new': of a lane that did not run on the host
	outcome TEXT NOT NULL,             -- 'local' (the page was on the thread's node), 'refused' (left
	                                   -- elsewhere by policy or filter), 'limited' (by the rate limiter),
	                                   -- 'failed' (the attempt), 'moved', 'moved_back' (of moved: a later fault
	                                   -- took the page back to where it came from), 'open' (outcome not on
	                                   -- record), 'unplaced' (a node is not known)
	pages INTEGER,                     -- base pages of these faults; NULL: a lane's
	value REAL,                        -- faults; NULL: only the bounds are known
	lower REAL,                        -- faults; at least
	upper REAL,                        -- faults; at most; NULL: no bound
	PRIMARY KEY (replay_id, lane, outcome)
) STRICT, WITHOUT ROWID;

-- Pages by the number of nodes whose threads faulted on them.
CREATE TABLE IF NOT EXISTS faulter_nodes (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	pages_of TEXT NOT NULL,            -- 'all': pages or folios of each address space for itself; 'shared':
	                                   -- base pages that were mapped more than once, under all their names
	nodes INTEGER NOT NULL,            -- distinct nodes of the faulting threads; 16: so many or more
	pages INTEGER NOT NULL,            -- pages
	faults INTEGER NOT NULL,           -- hinting faults on them
	PRIMARY KEY (replay_id, pages_of, nodes)
) STRICT, WITHOUT ROWID;

-- What single address spaces have on record and in the lanes.
CREATE TABLE IF NOT EXISTS lane_process (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	lane TEXT NOT NULL,                -- 'record'; 'old', 'new': of a lane that did not run on the host
	measure TEXT NOT NULL,             -- 'hint_faults', 'migrated_pages', 'page_migration_waits' or
	                                   -- 'page_migration_wait_ns' (of its tasks, whoever moved the page)
	mm INTEGER NOT NULL,               -- address space, the kernel's pointer
	value REAL NOT NULL,               -- on record; in the lane's central world
	lower REAL NOT NULL,               -- at least
	upper REAL,                        -- at most; NULL: no bound
	PRIMARY KEY (replay_id, lane, measure, mm)
) STRICT, WITHOUT ROWID;

-- The last ablation of scan.vma of a capture: what each rule between P0 and P3 adds.
CREATE TABLE IF NOT EXISTS ablation (
	capture_id INTEGER PRIMARY KEY REFERENCES capture(id) ON DELETE CASCADE, -- capture
	settings TEXT NOT NULL             -- parameters of all steps, JSON
) STRICT;

CREATE TABLE IF NOT EXISTS ablation_step (
	capture_id INTEGER NOT NULL REFERENCES ablation(capture_id) ON DELETE CASCADE, -- ablation
	step INTEGER NOT NULL,             -- position, from 1
	name TEXT NOT NULL,                -- 'P0', '+delay', ...: the rule that it adds
	policy TEXT NOT NULL,              -- lane, as replay --new takes it
	switched_off TEXT NOT NULL,        -- rules of scan.vma that are set to 0, by commas
	host INTEGER NOT NULL,             -- 1: it makes every recorded decision
	discriminated INTEGER,             -- 0: arms the same ranges as the step before, in every pass and whatever
	                                   -- unknown facts are; NULL: the first
	PRIMARY KEY (capture_id, step)
) STRICT, WITHOUT ROWID;

-- A metric of a step. A NULL value: not observable; a NULL bound of a value: unbounded.
CREATE TABLE IF NOT EXISTS ablation_metric (
	capture_id INTEGER NOT NULL REFERENCES ablation(capture_id) ON DELETE CASCADE, -- ablation
	step INTEGER NOT NULL,             -- of ablation_step
	ordinal INTEGER NOT NULL,          -- position, from 1
	metric TEXT NOT NULL,              -- name, for example 'migrated_pages'
	unit TEXT NOT NULL,                -- unit, for example 'pages'
	value REAL,                        -- of the step
	lower REAL,                        -- lower bound
	upper REAL,                        -- upper bound
	class TEXT NOT NULL,               -- exact, bounded, modelled or not_observable
	tier INTEGER NOT NULL,             -- evidence, 0 counters .. 3 probes
	change_value REAL,                 -- step minus the step before
	change_lower REAL,                 -- paired lower bound
	change_upper REAL,                 -- paired upper bound
	change_class TEXT,                 -- as class; NULL: the first step
	change_tier INTEGER,               -- as tier; NULL: the first step
	PRIMARY KEY (capture_id, step, metric)
) STRICT, WITHOUT ROWID;

-- Scan windows lost to the mmap_lock: attempts whose trylock fails, on record or in a lane.
CREATE TABLE IF NOT EXISTS lost_scan (
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	ordinal INTEGER NOT NULL,          -- position, by address space and time
	mm INTEGER NOT NULL,               -- address space, the kernel's pointer
	time INTEGER NOT NULL,             -- ns; of the attempt
	tid INTEGER NOT NULL,              -- thread that tried
	on_record INTEGER NOT NULL,        -- 1: lost on record
	old_lane INTEGER NOT NULL,         -- 1: lost in the old lane
	new_lane INTEGER NOT NULL,         -- 1: lost in the new lane
	period_ns INTEGER,                 -- ns by which the attempt put off the next one; NULL: not known
	gap_ns INTEGER NOT NULL,           -- ns to the next attempt, or to the end of the capture: the window
	                                   -- is marked later by 0 to so much
	followed INTEGER NOT NULL,         -- 1: there is a next attempt
	window_time INTEGER,               -- ns; pass that arms the window on record; NULL: none did
	pages INTEGER,                     -- entries that it armed
	remote_faults INTEGER,             -- hinting faults on them from another node
	remote_pages INTEGER,              -- base pages of these
	moved_pages INTEGER,               -- of them, moved by the fault
	touches REAL,                      -- touches of these pages per second, by touch rates
	touches_upper REAL,                -- the same with 95 % sampling error
	PRIMARY KEY (replay_id, ordinal)
) STRICT, WITHOUT ROWID;

-- ---- views --------------------------------------------------------------------------------

DROP VIEW IF EXISTS report_capture;

-- One line per capture: where it comes from, its losses, and its number of records of each kind.
CREATE VIEW report_capture AS
SELECT c.id, c.name, c.source, c.kernel, c.clock, c.nr_nodes, c.nr_cpus,
	c.first_time, c.last_time, c.events, c.lost_events, c.loss_gaps, c.probe_misses,
	c.unjoined_events, c.other_events,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 0), 0) AS hint_fault,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 1), 0) AS group_weight,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 2), 0) AS scan_pass,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 3), 0) AS scan_range,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 4), 0) AS scan_skip,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 5), 0) AS migration,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 6), 0) AS migration_entry,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 7), 0) AS ratelimit,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 8), 0) AS migration_wait,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 9), 0) AS task_move,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 10), 0) AS preferred,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 11), 0) AS task_life,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 12), 0) AS "lock",
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 13), 0) AS munmap,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 14), 0) AS mm_call,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 15), 0) AS page_fault,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 16), 0) AS hugetlb,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 17), 0) AS loss,
	coalesce(sum(b.rows) FILTER (WHERE b.kind = 18), 0) AS memory_sample
FROM capture c
LEFT JOIN block b ON b.capture_id = c.id
GROUP BY c.id;

-- Who waited for whose migration, by thread, longest first.
DROP VIEW IF EXISTS report_waits;
CREATE VIEW report_waits AS
SELECT replay_id, tid AS waiter, cause_tid AS blocker, cause, count(*) AS waits, sum(ns) AS ns,
	max(ns) AS longest_ns
FROM wait_cause
GROUP BY replay_id, tid, cause_tid, cause
ORDER BY replay_id, sum(ns) DESC;

-- Starved VMAs, the worst first: those without a complete scan for most sequences; of these the largest.
DROP VIEW IF EXISTS report_starved;
CREATE VIEW report_starved AS
SELECT v.capture_id, v.replay_id, v.lane,
	row_number() OVER (PARTITION BY v.capture_id, v.replay_id, v.lane ORDER BY v.sequences_since DESC,
		v.vm_end - v.vm_start DESC, v.mm, v.vm_start) AS rank,
	v.mm, v.vm_start, v.vm_end, v.vm_end - v.vm_start AS bytes, v.last_complete, v.since_ns,
	v.passes_since, v.sequences_since, v.row_pid_inactive, v.inactive_never_set, v.inactive_cleared,
	v.inactive_others,
	CAST(v.armed_pages * coalesce(c.page_size, 4096) AS REAL) / nullif(v.armed_passes, 0)
		AS armed_bytes_per_pass,
	v.certain
FROM scan_vma v
JOIN capture c ON c.id = v.capture_id
WHERE v.starved
ORDER BY v.capture_id, v.replay_id, v.lane, rank;
