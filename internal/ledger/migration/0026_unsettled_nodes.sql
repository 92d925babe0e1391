-- The nodes of DAGs of which HTCondor is asked by name, also when nothing of them has changed.
CREATE INDEX IF NOT EXISTS nodes_unsettled ON nodes (run, node)
    WHERE ((status = 1 AND (source <> 'crosscheck' OR absent > 0 OR jobStatus NOT IN (1, 2, 5))) OR (status <> 1 AND source = 'callback'))
    AND cluster > 0;
