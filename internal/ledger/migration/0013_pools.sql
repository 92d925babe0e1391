-- The HTCPool by way of which a run was sent, and its spec at that time. One spec serves all runs that were sent with it.
CREATE TABLE IF NOT EXISTS poolSpecs (
    hash TEXT PRIMARY KEY,
    spec TEXT NOT NULL -- JSON
) WITHOUT ROWID;
ALTER TABLE runs ADD COLUMN pool TEXT NOT NULL DEFAULT ''; -- empty: none, htcd's flags decided
ALTER TABLE runs ADD COLUMN poolSpec TEXT NOT NULL DEFAULT ''; -- the hash
-- The open runs of a pool are counted before its submissions.
CREATE INDEX IF NOT EXISTS runs_pool ON runs (pool, namespace) WHERE confirmed = 0;
DROP INDEX IF EXISTS runs_open; -- it served the same per namespace
