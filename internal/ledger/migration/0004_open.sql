-- The open runs of a namespace are counted before each of its submissions where
-- a limit is set.
CREATE INDEX runs_open ON runs (namespace) WHERE ended = 0;
