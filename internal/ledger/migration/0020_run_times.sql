-- What HTCondor's ads say about a run: the account of its jobs, when the first of them first started and when the last one ended.
ALTER TABLE runs ADD COLUMN account TEXT NOT NULL DEFAULT ''; -- empty: not known yet
ALTER TABLE runs ADD COLUMN started INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN finished INTEGER NOT NULL DEFAULT 0;
