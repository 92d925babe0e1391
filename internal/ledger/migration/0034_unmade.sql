-- How many of the last jobs of an attempt its factory does not make, as the attempt was stopped or the factory has gone: they have failed, for the
-- reason in stop, and have no rows.
ALTER TABLE runs ADD COLUMN unmade INTEGER NOT NULL DEFAULT 0;
