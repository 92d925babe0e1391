-- What scripts of nodes have measured: the names, each once for a step, and the newest value of each node.
CREATE TABLE IF NOT EXISTS metrics (
    run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    metric INTEGER NOT NULL, -- counts them, from 0
    step   INTEGER NOT NULL,
    name   TEXT    NOT NULL,
    PRIMARY KEY (run, metric)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS metrics_name ON metrics (run, step, name);

CREATE TABLE IF NOT EXISTS results (
    run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    metric INTEGER NOT NULL,
    node   INTEGER NOT NULL,
    value  REAL    NOT NULL,
    PRIMARY KEY (run, metric, node)
) WITHOUT ROWID;

-- What the rules of a workflow have done in an attempt. The run is the attempt's first.
CREATE TABLE IF NOT EXISTS rules (
    run     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rule    INTEGER NOT NULL, -- in spec.rules, from 0
    acted   INTEGER NOT NULL, -- when it did
    dag     INTEGER NOT NULL, -- the attempt of the run that it acted on
    message TEXT    NOT NULL, -- of the Event about it
    told    INTEGER NOT NULL, -- 1: there was that Event
    PRIMARY KEY (run, rule)
) WITHOUT ROWID;
