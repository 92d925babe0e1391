-- How many of the last jobs of an attempt its factory does not make, as the attempt was stopped or the factory has gone: they have failed, for the
-- reason in stop, and have no rows.
ALTER TABLE runs ADD COLUMN unmade INTEGER NOT NULL DEFAULT 0;

DROP VIEW IF EXISTS attempts;
CREATE VIEW attempts AS
    SELECT r.kind, r.namespace, r.name, r.uid, r.attempt, r.account, r.pool, r.schedd, r.cluster, r.state, r.reason,
        r.created, r.submitted, r.started, r.finished, r.ended, r.usage, 0 AS gone,
        CASE r.kind WHEN 'workflow' THEN (SELECT coalesce(sum(n), 0) FROM nodeTallies WHERE run = r.id)
            ELSE max(r.procs, r.jobs) END AS jobs,
        CASE r.kind WHEN 'workflow' THEN (SELECT coalesce(sum(n), 0) FROM nodeTallies WHERE run = r.id AND status = 4)
            ELSE (SELECT coalesce(sum(n), 0) FROM tallies WHERE run = r.id AND status = 4) END AS succeeded,
        CASE r.kind WHEN 'workflow' THEN (SELECT coalesce(sum(n), 0) FROM nodeTallies WHERE run = r.id AND status = 7)
            ELSE r.unmade + (SELECT coalesce(sum(n), 0) FROM tallies WHERE run = r.id AND status = 7) END AS failed,
        r.id
    FROM runs r;
