-- An attempt that sends only some of an HTCJob's jobs: their numbers, such as 3,7-9, in the order of the cluster's procs (empty: all, from 0), and
-- how many jobs there are with those whose ends it has from the attempt before (0: as many as procs), and how many of these have failed.
ALTER TABLE runs ADD COLUMN sent TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN jobs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN keptFailed INTEGER NOT NULL DEFAULT 0;
