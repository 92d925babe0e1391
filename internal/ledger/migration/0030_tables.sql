-- The tables that an attempt of a workflow was begun with, by their names, as the items are stored; n counts the texts of a block.
CREATE TABLE IF NOT EXISTS tables (
    run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name  TEXT    NOT NULL,
    first INTEGER NOT NULL,
    n     INTEGER NOT NULL,
    texts BLOB    NOT NULL,
    PRIMARY KEY (run, name, first)
) WITHOUT ROWID;

-- The name that a node has within its step; empty: its sequence and item are its name.
ALTER TABLE nodes ADD COLUMN name TEXT NOT NULL DEFAULT '';
