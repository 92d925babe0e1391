-- What was sent, to tell a changed spec from one whose life alone was edited; why
-- htcd itself ends a run; where it was sent; and where its output goes.
ALTER TABLE runs ADD COLUMN specHash TEXT NOT NULL DEFAULT ''; -- empty: an older htcd sent it
ALTER TABLE runs ADD COLUMN rerun TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN stop TEXT NOT NULL DEFAULT ''; -- empty: it goes on
ALTER TABLE runs ADD COLUMN collector TEXT NOT NULL DEFAULT ''; -- empty: the usual one
ALTER TABLE runs ADD COLUMN secret TEXT NOT NULL DEFAULT ''; -- empty: the usual one
ALTER TABLE runs ADD COLUMN outputDir TEXT NOT NULL DEFAULT ''; -- empty: the output is not fetched

ALTER TABLE htcjobs ADD COLUMN fetched INTEGER NOT NULL DEFAULT 0; -- 0 no, 1 yes, 2 given up
ALTER TABLE htcjobs ADD COLUMN stderr TEXT NOT NULL DEFAULT '';

-- The completed jobs whose output is still to be fetched. A callback leaves jobStatus at 0, and so this index alone.
CREATE INDEX htcjobs_unfetched ON htcjobs (run, proc) WHERE jobStatus = 4 AND fetched = 0 AND run IS NOT NULL;
