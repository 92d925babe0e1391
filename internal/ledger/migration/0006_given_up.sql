-- The few procs whose output cannot be had are counted whenever the status of an ended run is written.
CREATE INDEX htcjobs_given_up ON htcjobs (run) WHERE fetched = 2 AND run IS NOT NULL;
