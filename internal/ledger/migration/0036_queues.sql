-- With which queue each schedd has answered, and since when: one row for each change. A queue is known by when it was set up (Unix seconds).
CREATE TABLE IF NOT EXISTS queues (
    collector TEXT NOT NULL,
    schedd    TEXT NOT NULL,
    since     INTEGER NOT NULL, -- milliseconds
    born      INTEGER NOT NULL,
    PRIMARY KEY (collector, schedd, since)
) WITHOUT ROWID;
