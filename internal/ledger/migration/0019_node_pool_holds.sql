-- The nodes that htcd holds because their pool is suspended: usually there are none.
CREATE INDEX IF NOT EXISTS nodes_pool_holds ON nodes (run) WHERE reason = 'PoolSuspended';

-- Whether a node's output was fetched before its DAG had ended, and the nodes of which it may be fetched.
ALTER TABLE nodes ADD COLUMN fetched INTEGER NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS nodes_unfetched ON nodes (run, node) WHERE fetched = 0 AND cluster > 0 AND status <> 1 AND source <> 'callback';
