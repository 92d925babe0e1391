-- Rules that act more than once: the condition held when it was last looked at; how often the rule has acted, and what it did; for
-- Grow and Shrink what they made of spec.sequences.maxConcurrent, and whether the DAG has been told.
ALTER TABLE rules ADD COLUMN action        TEXT    NOT NULL DEFAULT 'Finish';
ALTER TABLE rules ADD COLUMN holds         INTEGER NOT NULL DEFAULT 1;
ALTER TABLE rules ADD COLUMN acts          INTEGER NOT NULL DEFAULT 1;
ALTER TABLE rules ADD COLUMN maxConcurrent INTEGER NOT NULL DEFAULT 0; -- 0: unchanged
ALTER TABLE rules ADD COLUMN applied       INTEGER NOT NULL DEFAULT 1;
