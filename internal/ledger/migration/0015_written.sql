-- Outputs that are not only brought back: where those of a run go. {proc} stands for a proc's number.
CREATE TABLE IF NOT EXISTS destinations (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number   INTEGER NOT NULL, -- in spec.outputs, from 0
    path     TEXT    NOT NULL,
    url      TEXT    NOT NULL, -- to which the execute node writes it; or empty
    artifact TEXT    NOT NULL, -- to which htcd pushes it; or empty
    PRIMARY KEY (run, number)
) WITHOUT ROWID;

-- What single procs have written there.
CREATE TABLE IF NOT EXISTS written (
    run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    proc   INTEGER NOT NULL,
    size   INTEGER NOT NULL, -- in bytes; -1: not known
    digest TEXT    NOT NULL, -- empty: not known
    push   INTEGER NOT NULL, -- 0 written by the node, 1 to be pushed, 2 pushed, 3 cannot be pushed
    note   TEXT    NOT NULL, -- why it cannot
    PRIMARY KEY (run, proc, number)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS written_unpushed ON written (run, number, proc) WHERE push = 1;
CREATE INDEX IF NOT EXISTS written_given_up ON written (run, number, proc) WHERE push = 3;
