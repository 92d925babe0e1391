-- Runs of workflows: each is one DAG, whose only proc is DAGMan's job.
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT ''; -- empty: of an HTCJob; or workflow
CREATE INDEX IF NOT EXISTS runs_kind ON runs (kind) WHERE kind = 'workflow';

-- The steps of a DAG.
CREATE TABLE IF NOT EXISTS steps (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    step     INTEGER NOT NULL, -- in spec.steps, from 0; finally comes after the last
    name     TEXT    NOT NULL,
    deferred INTEGER NOT NULL, -- only HTCondor decides how its jobs failed: it may run them again
    PRIMARY KEY (run, step)
) WITHOUT ROWID;

-- The jobs of a DAG. They are inserted with the run and deleted with it, never alone.
CREATE TABLE IF NOT EXISTS nodes (
    run        INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    node       INTEGER NOT NULL, -- its number in the DAG, from 0
    step       INTEGER NOT NULL,
    sequence   INTEGER NOT NULL, -- -1: one for all sequences
    item       INTEGER NOT NULL, -- counts the parallel jobs of its step and sequence
    cluster    INTEGER NOT NULL DEFAULT 0, -- 0: no job of it was seen yet
    claimed    INTEGER NOT NULL DEFAULT 0, -- 1: only a callback has named the cluster
    status     INTEGER NOT NULL DEFAULT 1, -- as htcjobs; 8: never to run, because one before it failed
    jobStatus  INTEGER NOT NULL DEFAULT 0,
    exitCode   INTEGER,
    exitSignal INTEGER,
    reason     TEXT    NOT NULL DEFAULT '',
    message    TEXT    NOT NULL DEFAULT '',
    source     TEXT    NOT NULL DEFAULT '',
    absent     INTEGER NOT NULL DEFAULT 0,
    changed    INTEGER NOT NULL DEFAULT 0,
    checked    INTEGER NOT NULL DEFAULT 0,
    stderr     TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (run, node)
) WITHOUT ROWID;

-- Those whose end HTCondor has not confirmed: first the many that no job was seen of, then those that a pass asks about.
CREATE INDEX IF NOT EXISTS nodes_waiting ON nodes (run, node) WHERE status = 1 AND cluster = 0;
CREATE INDEX IF NOT EXISTS nodes_unconfirmed ON nodes (run, node) WHERE (status = 1 OR source = 'callback') AND cluster > 0;
CREATE INDEX IF NOT EXISTS nodes_failed ON nodes (run, node) WHERE status = 7;
CREATE INDEX IF NOT EXISTS nodes_stderr ON nodes (run) WHERE stderr <> '';

-- How many nodes of a step are in which state, and how many nodes of a sequence are open or failed (futile ones among them).
-- They are counted when the nodes are inserted; from then on triggers keep them.
CREATE TABLE IF NOT EXISTS nodeTallies (
    run       INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    step      INTEGER NOT NULL,
    status    INTEGER NOT NULL,
    jobStatus INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    PRIMARY KEY (run, step, status, jobStatus)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS sequences (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    open     INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    status   INTEGER NOT NULL AS (CASE WHEN failed > 0 THEN 7 WHEN open > 0 THEN 1 ELSE 4 END) STORED,
    PRIMARY KEY (run, sequence)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS sequenceTallies (
    run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    status INTEGER NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (run, status)
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS nodes_updated AFTER UPDATE OF status, jobStatus ON nodes
    WHEN NEW.status IS NOT OLD.status OR NEW.jobStatus IS NOT OLD.jobStatus
BEGIN
    UPDATE nodeTallies SET n = n - 1 WHERE run = OLD.run AND step = OLD.step AND status = OLD.status AND jobStatus = OLD.jobStatus;
    INSERT INTO nodeTallies VALUES (NEW.run, NEW.step, NEW.status, NEW.jobStatus, 1)
        ON CONFLICT (run, step, status, jobStatus) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER IF NOT EXISTS nodes_turned AFTER UPDATE OF status ON nodes
    WHEN NEW.status IS NOT OLD.status AND NEW.sequence >= 0
BEGIN
    UPDATE sequences SET open = open + (NEW.status = 1) - (OLD.status = 1), failed = failed + (NEW.status > 4) - (OLD.status > 4)
        WHERE run = NEW.run AND sequence = NEW.sequence;
END;

CREATE TRIGGER IF NOT EXISTS sequences_turned AFTER UPDATE OF open, failed ON sequences
    WHEN NEW.status IS NOT OLD.status
BEGIN
    UPDATE sequenceTallies SET n = n - 1 WHERE run = OLD.run AND status = OLD.status;
    INSERT INTO sequenceTallies VALUES (NEW.run, NEW.status, 1) ON CONFLICT (run, status) DO UPDATE SET n = n + 1;
END;
