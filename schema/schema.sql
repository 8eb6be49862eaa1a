-- SPDX-License-Identifier: GPL-2.0-or-later
--
-- The numareplay database, what was in schema version 1 (user_version); application_id 0x6e72706c "nrpl".
-- One file holds one or several captures and the results of replays of them.
--
-- Conventions. Every table is STRICT; ids count from 1; an unknown value is NULL, never 0 or -1.
-- Times are ns of the capture's own clock; no wall-clock time is stored anywhere. Unsigned 64-bit
-- values (times, addresses, pointers, event counts, checksums) are stored in INTEGER as two's
-- complement: a value of 2^63 or more reads as a negative number, with the same 64 bits.
-- The comment after a column describes it; documentation is generated from these comments.

-- ---- samples ------------------------------------------------------------------------------

-- One imported or recorded capture of one host, with what is known about that host.
CREATE TABLE capture (
	id INTEGER PRIMARY KEY,            -- number of the capture in this file
	name TEXT NOT NULL UNIQUE,         -- file name without directory and ending, or --name
	source TEXT NOT NULL,              -- format it came from: 'trace.dat', 'text', ...
	hash BLOB UNIQUE,                  -- 32 bytes, hash of the capture's bytes; NULL: unknown
	host_id TEXT,                      -- stable id of the host
	cohort TEXT,                       -- labels of the fleet cohort, JSON
	probe_set TEXT,                    -- events that were recorded: names, JSON array
	first_time INTEGER NOT NULL,       -- ns; first event (0 if there is none)
	last_time INTEGER NOT NULL,        -- ns; last event (0 if there is none)
	events INTEGER NOT NULL,           -- events read, of every kind
	lost_events INTEGER NOT NULL,      -- events known to be lost
	loss_gaps INTEGER NOT NULL,        -- gaps in which an unknown number of events was lost
	probe_misses INTEGER,              -- probe hits that the kernel dropped
	unjoined_events INTEGER NOT NULL,  -- events that belong to no record
	other_events INTEGER NOT NULL,     -- events of kinds that no record holds
	kernel TEXT,                       -- uname line; for people, never used to decide anything
	clock TEXT,                        -- ftrace clock of the times: local, global, mono, ...
	hz INTEGER,                        -- kernel ticks per second
	page_size INTEGER,                 -- bytes of a base page
	huge_pages INTEGER,                -- base pages in one PMD-sized huge page
	cpupid_shift INTEGER,              -- lowest bit of last_cpupid in page_flags
	cpupid_bits INTEGER,               -- width of last_cpupid in bits, 8 of them pid bits
	nid_shift INTEGER,                 -- node id = page_flags >> nid_shift
	balancing INTEGER,                 -- numa_balancing: 0 off, 1 normal, 2 tiering, 3 both
	scan_delay_ms INTEGER,             -- ms; numa_balancing scan_delay_ms
	scan_period_min_ms INTEGER,        -- ms; numa_balancing scan_period_min_ms
	scan_period_max_ms INTEGER,        -- ms; numa_balancing scan_period_max_ms
	scan_size_mb INTEGER,              -- MiB; numa_balancing scan_size_mb
	moved_result INTEGER,              -- migrate_end.ret of a moved page: 1 (up to 6.1) or 0
	nr_cpus INTEGER NOT NULL,          -- CPU ids below this occur
	nr_nodes INTEGER NOT NULL,         -- node ids below this occur
	topology_inferred INTEGER NOT NULL,   -- 1: node of each CPU inferred from the events
	has_ratelimit_event INTEGER NOT NULL, -- 1: has mm_numa_migrate_ratelimit (to 4.18)
	has_prepare_step INTEGER NOT NULL,    -- 1: has migrate_misplaced_folio_prepare (6.11+)
	has_thp_function INTEGER NOT NULL,    -- 1: has migrate_misplaced_transhuge_page (to 5.13)
	has_task_fault INTEGER NOT NULL,      -- 1: task_numa_fault was probed
	has_fault_probe INTEGER NOT NULL      -- 1: mpol_misplaced was probed (tier 3 evidence)
) STRICT;

-- One memory node of a capture's host.
CREATE TABLE host_node (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	nid INTEGER NOT NULL,              -- node id, from 0
	mem_kb INTEGER,                    -- KiB of memory on the node
	PRIMARY KEY (capture_id, nid)
) STRICT, WITHOUT ROWID;

-- One CPU of a capture's host.
CREATE TABLE host_cpu (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	cpu INTEGER NOT NULL,              -- CPU id, from 0
	nid INTEGER,                       -- node of the CPU
	PRIMARY KEY (capture_id, cpu)
) STRICT, WITHOUT ROWID;

-- One setting of a capture's host as it was read: sysctls and other facts, kept as text.
CREATE TABLE host_setting (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	name TEXT NOT NULL,                -- name, for example 'kernel.numa_balancing'
	value TEXT NOT NULL,               -- value as the host printed it
	PRIMARY KEY (capture_id, name)
) STRICT, WITHOUT ROWID;

-- Interned strings (comm, file name of an exec) that records refer to by id.
CREATE TABLE name (
	id INTEGER PRIMARY KEY,            -- number used in records, for example task_life.name
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	text TEXT NOT NULL,                -- the string
	UNIQUE (capture_id, text)
) STRICT;

-- Counters of /proc/vmstat around a capture.
CREATE TABLE counter (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	name TEXT NOT NULL,                -- name in /proc/vmstat, for example 'numa_hint_faults'
	snapshot INTEGER NOT NULL CHECK (snapshot IN (0, 1)), -- 0 before, 1 after the capture
	value INTEGER NOT NULL,            -- value; unit by name, mostly events or pages
	PRIMARY KEY (capture_id, name, snapshot)
) STRICT, WITHOUT ROWID;

-- One block of up to 65536 records of one kind, sorted by time, as compressed columns. Read them
-- as the virtual tables hint_fault, scan_pass, ... (numareplay query, or the loadable extension).
CREATE TABLE block (
	id INTEGER PRIMARY KEY,            -- number of the block, in order of writing
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	kind INTEGER NOT NULL,             -- record kind, from 0: hint_fault, group_weight, ...
	rows INTEGER NOT NULL,             -- records in the block
	time_min INTEGER NOT NULL,         -- ns; time of the first record
	time_max INTEGER NOT NULL,         -- ns; time of the last record
	tgid_min INTEGER,                  -- smallest tgid in the block; NULL: the kind has none
	tgid_max INTEGER,                  -- largest tgid in the block
	nid_min INTEGER,                   -- smallest node id of its main node columns; -1: none
	nid_max INTEGER,                   -- largest node id of its main node columns
	epoch INTEGER NOT NULL DEFAULT 0,  -- sampling epoch
	probability REAL NOT NULL DEFAULT 1.0, -- sampling probability of the epoch; 1: census
	codec INTEGER NOT NULL,            -- 1: zstd byte planes (schema/block.h)
	checksum INTEGER NOT NULL,         -- XXH3-64 of data
	raw_size INTEGER NOT NULL,         -- bytes of data when decompressed
	data BLOB NOT NULL                 -- the columns
) STRICT;
-- Covers the list of blocks of a cursor and the row counts of report_capture.
CREATE INDEX block_order ON block (capture_id, kind, time_min, time_max, rows);

-- ---- results ------------------------------------------------------------------------------

-- One replay of a capture: an old and a new lane.
CREATE TABLE replay (
	id INTEGER PRIMARY KEY,            -- number; the highest is the newest
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	key TEXT NOT NULL UNIQUE,          -- stable id of (capture, old, new, parameters, plug-ins)
	old_name TEXT NOT NULL,            -- old lane as the user named it, like 'host'
	new_name TEXT NOT NULL,            -- new lane as the user named it, like 'linux-6.12'
	old_set TEXT NOT NULL,             -- variants and parameters of the old lane, JSON
	new_set TEXT NOT NULL              -- variants and parameters of the new lane, JSON
) STRICT;
CREATE INDEX replay_capture ON replay (capture_id);

-- One metric of a replay for both lanes and their difference (avoided = old - new). A NULL value:
-- not observable; a NULL lower or upper bound of a value: unbounded.
CREATE TABLE lane_metric (
	id INTEGER PRIMARY KEY,            -- number, in order of printing
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	metric TEXT NOT NULL,              -- name, for example 'migrated_pages'
	unit TEXT NOT NULL,                -- unit, for example 'pages'
	old_value REAL,                    -- old lane: value
	old_lower REAL,                    -- old lane: lower bound
	old_upper REAL,                    -- old lane: upper bound
	old_class TEXT NOT NULL,           -- old lane: exact, bounded, modelled or not_observable
	old_tier INTEGER NOT NULL,         -- old lane: evidence, 0 counters .. 3 probes
	new_value REAL,                    -- new lane: value
	new_lower REAL,                    -- new lane: lower bound
	new_upper REAL,                    -- new lane: upper bound
	new_class TEXT NOT NULL,           -- new lane: exact, bounded, modelled or not_observable
	new_tier INTEGER NOT NULL,         -- new lane: evidence, 0 counters .. 3 probes
	avoided_value REAL,                -- old - new: value; negative when the new policy adds
	avoided_lower REAL,                -- old - new: paired lower bound
	avoided_upper REAL,                -- old - new: paired upper bound
	avoided_class TEXT NOT NULL,       -- old - new: exact, bounded, modelled or not_observable
	avoided_tier INTEGER NOT NULL,     -- old - new: evidence, 0 counters .. 3 probes
	UNIQUE (replay_id, metric),
	CHECK (old_class IN ('exact', 'bounded', 'modelled', 'not_observable')),
	CHECK (new_class IN ('exact', 'bounded', 'modelled', 'not_observable')),
	CHECK (avoided_class IN ('exact', 'bounded', 'modelled', 'not_observable'))
) STRICT;

-- One decision that the two lanes of a replay answer differently.
CREATE TABLE decision (
	id INTEGER PRIMARY KEY,            -- number
	replay_id INTEGER NOT NULL REFERENCES replay(id) ON DELETE CASCADE, -- replay
	ordinal INTEGER NOT NULL,          -- position among the decisions of the replay
	time INTEGER NOT NULL,             -- ns; when it was taken
	tid INTEGER,                       -- thread that took it
	cpu INTEGER,                       -- CPU that it ran on
	mm INTEGER,                        -- address space, the kernel's pointer
	addr INTEGER,                      -- bytes; address of the page or range
	nid INTEGER,                       -- node concerned
	pages INTEGER,                     -- base pages concerned
	family TEXT NOT NULL,              -- policy family, for example 'migrate.filter'
	old_answer INTEGER,                -- answer of the old lane: 0 no, 1 yes
	new_answer INTEGER,                -- answer of the new lane: 0 no, 1 yes
	certain INTEGER NOT NULL,          -- 1: holds whatever the unknowns are; 0: it may differ
	note TEXT,                         -- rule behind the difference
	UNIQUE (replay_id, ordinal)
) STRICT;

-- A remark on a capture or on one replay of it.
CREATE TABLE note (
	id INTEGER PRIMARY KEY,            -- number, in order of printing
	replay_id INTEGER REFERENCES replay(id) ON DELETE CASCADE, -- replay; NULL: none
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	code TEXT NOT NULL,                -- published code, for example 'identical_on_trace'
	text TEXT NOT NULL,                -- one sentence
	detail TEXT                        -- further members, a JSON object
) STRICT;
CREATE INDEX note_capture ON note (capture_id);
CREATE INDEX note_replay ON note (replay_id);

-- How well one variant of a policy family reproduces the decisions that the host's kernel recorded.
CREATE TABLE fidelity (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	family TEXT NOT NULL,              -- policy family, for example 'scan.vma'
	variant TEXT NOT NULL,             -- variant, for example 'P3'
	chosen INTEGER NOT NULL,           -- 1: the variant that the host is taken to run
	decisions INTEGER NOT NULL,        -- recorded decisions
	agree INTEGER NOT NULL,            -- decisions that the variant takes the same way
	disagree INTEGER NOT NULL,         -- decisions that it takes the other way
	undecided INTEGER NOT NULL,        -- decisions that the capture cannot settle
	PRIMARY KEY (capture_id, family, variant)
) STRICT, WITHOUT ROWID;

-- The decisions of a family by the rule that settled them, for the chosen variant.
CREATE TABLE fidelity_rule (
	capture_id INTEGER NOT NULL REFERENCES capture(id) ON DELETE CASCADE, -- capture
	family TEXT NOT NULL,              -- policy family
	rule TEXT NOT NULL,                -- rule of the family, for example 'D5'
	decisions INTEGER NOT NULL,        -- decisions that this rule settled; 0: never exercised
	agree INTEGER NOT NULL,            -- of these, answered as the kernel did
	PRIMARY KEY (capture_id, family, rule)
) STRICT, WITHOUT ROWID;

-- ---- views --------------------------------------------------------------------------------

-- The metrics of every replay together with the names of capture and lanes.
CREATE VIEW report_metrics AS
SELECT r.id AS replay_id, r.key AS replay_key, c.id AS capture_id, c.name AS capture,
	r.old_name, r.new_name, m.metric, m.unit,
	m.old_value, m.old_lower, m.old_upper, m.old_class, m.old_tier,
	m.new_value, m.new_lower, m.new_upper, m.new_class, m.new_tier,
	m.avoided_value, m.avoided_lower, m.avoided_upper, m.avoided_class, m.avoided_tier
FROM lane_metric m
JOIN replay r ON r.id = m.replay_id
JOIN capture c ON c.id = r.capture_id;
