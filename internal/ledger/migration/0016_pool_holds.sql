-- The procs that htcd holds because their pool is suspended: usually there are none.
CREATE INDEX IF NOT EXISTS htcjobs_pool_holds ON htcjobs (run) WHERE reason = 'PoolSuspended' AND run IS NOT NULL;
