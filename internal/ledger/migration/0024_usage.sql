-- What a proc used of what it asked for, in the form of usage.Use (empty: not known), and the summary of a run's procs (JSON; empty: not yet).
ALTER TABLE htcjobs ADD COLUMN usage TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN usage TEXT NOT NULL DEFAULT '';
