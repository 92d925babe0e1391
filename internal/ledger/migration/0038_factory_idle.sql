-- How many of a factory's jobs may wait for a slot, as HTCondor was told; -1: that is not known.
ALTER TABLE runs ADD COLUMN factoryIdle INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET factoryIdle = -1 WHERE factory > 0;
