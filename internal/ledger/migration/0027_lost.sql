-- The procs and nodes that were called lost, of which HTCondor is asked now and then.
CREATE INDEX IF NOT EXISTS htcjobs_lost ON htcjobs (run) WHERE status = 7 AND reason = 'Lost' AND source = 'crosscheck' AND run IS NOT NULL;
CREATE INDEX IF NOT EXISTS nodes_lost ON nodes (run) WHERE status = 7 AND reason = 'Lost' AND source = 'crosscheck' AND cluster > 0;
