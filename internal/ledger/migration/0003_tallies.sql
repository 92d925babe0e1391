-- How many procs of a run are in which state. Triggers keep it, so that no
-- writer can forget to, and a hand with the sqlite3 shell neither.
CREATE TABLE tallies (
    run       INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    status    INTEGER NOT NULL,
    jobStatus INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    PRIMARY KEY (run, status, jobStatus)
) WITHOUT ROWID;

CREATE TRIGGER htcjobs_inserted AFTER INSERT ON htcjobs WHEN NEW.run IS NOT NULL
BEGIN
    INSERT INTO tallies VALUES (NEW.run, NEW.status, NEW.jobStatus, 1)
        ON CONFLICT (run, status, jobStatus) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER htcjobs_updated AFTER UPDATE OF status, jobStatus ON htcjobs
    WHEN NEW.run IS NOT NULL AND (NEW.status IS NOT OLD.status OR NEW.jobStatus IS NOT OLD.jobStatus)
BEGIN
    UPDATE tallies SET n = n - 1 WHERE run = OLD.run AND status = OLD.status AND jobStatus = OLD.jobStatus;
    INSERT INTO tallies VALUES (NEW.run, NEW.status, NEW.jobStatus, 1)
        ON CONFLICT (run, status, jobStatus) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER htcjobs_deleted AFTER DELETE ON htcjobs WHEN OLD.run IS NOT NULL
BEGIN
    UPDATE tallies SET n = n - 1 WHERE run = OLD.run AND status = OLD.status AND jobStatus = OLD.jobStatus;
END;
