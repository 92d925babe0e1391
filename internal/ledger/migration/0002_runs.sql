-- One row per run: an HTCJob's UID and the attempt. Times are Unix
-- milliseconds, 0 is never.
CREATE TABLE runs (
    id         INTEGER PRIMARY KEY,
    uid        TEXT    NOT NULL,
    attempt    INTEGER NOT NULL,
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    state      TEXT    NOT NULL, -- Intent, Submitted, Refused, Removing, Removed
    reason     TEXT    NOT NULL,
    message    TEXT    NOT NULL,
    schedd     TEXT    NOT NULL,
    cluster    INTEGER NOT NULL,
    procs      INTEGER NOT NULL,
    tokenHash  BLOB,
    tempDir    TEXT    NOT NULL,
    created    INTEGER NOT NULL,
    submitted  INTEGER NOT NULL,
    ended      INTEGER NOT NULL,
    checked    INTEGER NOT NULL,
    deferred   INTEGER NOT NULL, -- only HTCondor may say how its jobs ended
    confirmed  INTEGER NOT NULL, -- it has said so of every proc
    UNIQUE (uid, attempt)
);

CREATE INDEX runs_name ON runs (namespace, name);
CREATE INDEX runs_unconfirmed ON runs (id) WHERE confirmed = 0;

-- What htcd knows of a proc beyond the public columns. Rows of the first
-- operator have no run, and everything below passes them by.
ALTER TABLE htcjobs ADD COLUMN run INTEGER REFERENCES runs (id) ON DELETE CASCADE;
ALTER TABLE htcjobs ADD COLUMN proc INTEGER;
ALTER TABLE htcjobs ADD COLUMN jobStatus INTEGER NOT NULL DEFAULT 0; -- HTCondor's, 0 unknown
ALTER TABLE htcjobs ADD COLUMN exitCode INTEGER;
ALTER TABLE htcjobs ADD COLUMN exitSignal INTEGER;
ALTER TABLE htcjobs ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE htcjobs ADD COLUMN message TEXT NOT NULL DEFAULT '';
ALTER TABLE htcjobs ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE htcjobs ADD COLUMN absent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE htcjobs ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE htcjobs ADD COLUMN checked INTEGER NOT NULL DEFAULT 0;

CREATE UNIQUE INDEX htcjobs_proc ON htcjobs (run, proc) WHERE run IS NOT NULL;

-- What is listed often. Those that HTCondor has not confirmed, the open ones
-- among them, are what a cross-check asks about; a callback leaves this index as
-- it is, and so dirties one page less.
CREATE INDEX htcjobs_unconfirmed ON htcjobs (run, proc) WHERE (status = 1 OR source = 'callback') AND run IS NOT NULL;
CREATE INDEX htcjobs_failed ON htcjobs (run, proc) WHERE status = 7 AND run IS NOT NULL;
