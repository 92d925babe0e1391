-- The variables of single procs, for runs that have such: blocks of texts, compressed. They are part of the attempt, and name
-- its jobs later.
CREATE TABLE IF NOT EXISTS items (
    run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    first INTEGER NOT NULL, -- the number of the block's first proc
    texts BLOB    NOT NULL,
    PRIMARY KEY (run, first)
) WITHOUT ROWID;
