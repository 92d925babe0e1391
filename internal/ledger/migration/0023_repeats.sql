-- What rules have sequences repeat: each row is an occasion, of the DAG that repeats.
CREATE TABLE IF NOT EXISTS repeats (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rule     INTEGER NOT NULL, -- in spec.rules, from 0
    sequence INTEGER NOT NULL,
    value    REAL    NOT NULL, -- that led to it
    PRIMARY KEY (run, rule, sequence)
) WITHOUT ROWID;
