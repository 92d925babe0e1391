-- HTCJobs whose objects vanished, many at once and without a deletion: nothing of them is removed until somebody says so.
CREATE TABLE orphans (
    uid TEXT PRIMARY KEY,
    remove INTEGER NOT NULL DEFAULT 0 -- 1: somebody has said so
) WITHOUT ROWID;
