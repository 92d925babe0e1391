-- How many attempts of the workflow came before the one that begins with this DAG and are no longer in the ledger.
ALTER TABLE runs ADD COLUMN earlier INTEGER NOT NULL DEFAULT 0;
