-- The few procs whose output lacks files are counted whenever the status of an ended run is written.
CREATE INDEX htcjobs_incomplete ON htcjobs (run) WHERE fetched = 3 AND run IS NOT NULL;
