-- The nodes that htcd holds because their pool is suspended: usually there are none.
CREATE INDEX IF NOT EXISTS nodes_pool_holds ON nodes (run) WHERE reason = 'PoolSuspended';
