-- Runs that were recorded again after the ledger had lost them. Until here they were those without a token whose ends only
-- HTCondor decides.
ALTER TABLE runs ADD COLUMN restored INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET restored = 1 WHERE deferred AND coalesce(length(tokenHash), 0) = 0;
