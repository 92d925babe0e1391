-- What is said of an attempt, also after its rows are gone. An HTCWorkflow's jobs are its nodes.
CREATE VIEW IF NOT EXISTS attempts AS
    SELECT r.kind, r.namespace, r.name, r.uid, r.attempt, r.account, r.pool, r.schedd, r.cluster, r.state, r.reason,
        r.created, r.submitted, r.started, r.finished, r.ended, r.usage, 0 AS gone,
        CASE r.kind WHEN 'workflow' THEN (SELECT coalesce(sum(n), 0) FROM nodeTallies WHERE run = r.id)
            ELSE max(r.procs, r.jobs) END AS jobs,
        CASE r.kind WHEN 'workflow' THEN (SELECT coalesce(sum(n), 0) FROM nodeTallies WHERE run = r.id AND status = 4)
            ELSE (SELECT coalesce(sum(n), 0) FROM tallies WHERE run = r.id AND status = 4) END AS succeeded,
        CASE r.kind WHEN 'workflow' THEN (SELECT coalesce(sum(n), 0) FROM nodeTallies WHERE run = r.id AND status = 7)
            ELSE (SELECT coalesce(sum(n), 0) FROM tallies WHERE run = r.id AND status = 7) END AS failed,
        r.id
    FROM runs r;
CREATE INDEX IF NOT EXISTS runs_created ON runs (created, uid, attempt);

-- The attempts whose rows are gone. A trigger keeps them, so that no way of deleting can forget to.
CREATE TABLE IF NOT EXISTS history (
    kind      TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    uid       TEXT    NOT NULL,
    attempt   INTEGER NOT NULL,
    account   TEXT    NOT NULL,
    pool      TEXT    NOT NULL,
    schedd    TEXT    NOT NULL,
    cluster   INTEGER NOT NULL,
    state     TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    created   INTEGER NOT NULL,
    submitted INTEGER NOT NULL,
    started   INTEGER NOT NULL,
    finished  INTEGER NOT NULL,
    ended     INTEGER NOT NULL,
    usage     TEXT    NOT NULL, -- JSON, empty: not known
    gone      INTEGER NOT NULL, -- when its rows were deleted
    jobs      INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS history_created ON history (created, uid, attempt);
CREATE INDEX IF NOT EXISTS history_namespace ON history (namespace, created, uid, attempt);

CREATE TRIGGER IF NOT EXISTS runs_deleted BEFORE DELETE ON runs
BEGIN
    INSERT INTO history SELECT kind, namespace, name, uid, attempt, account, pool, schedd, cluster, state, reason,
        created, submitted, started, finished, ended, usage, CAST(unixepoch('subsec') * 1000 AS INTEGER), jobs, succeeded, failed
        FROM attempts WHERE id = OLD.id;
END;
