-- How many of a factory's jobs may wait for a slot, as HTCondor was told; -1: that is not known.
ALTER TABLE runs ADD COLUMN factoryIdle INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET factoryIdle = -1 WHERE factory > 0;
-- The sum of what is in use of a pool looks for its factories, which are few among its runs.
CREATE INDEX runs_factories ON runs (pool) WHERE factory > 0 AND confirmed = 0;
