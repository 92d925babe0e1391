-- What a node used, in the form of usage.Use; empty: not known.
ALTER TABLE nodes ADD COLUMN usage TEXT NOT NULL DEFAULT '';
