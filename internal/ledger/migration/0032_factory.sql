-- An attempt whose jobs are made by a factory of HTCondor as others end: how many of them are there at a time (0: it is an ordinary cluster).
-- Such an attempt has rows only for the jobs that were made.
ALTER TABLE runs ADD COLUMN factory INTEGER NOT NULL DEFAULT 0;
