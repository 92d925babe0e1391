-- Whether the newest submission of an intent certainly left nothing at the schedd.
ALTER TABLE runs ADD COLUMN unsent INTEGER NOT NULL DEFAULT 0;
