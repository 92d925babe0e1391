-- What the pool made of what a step's jobs ask for, as in runs.effective: the limits of pools count it.
ALTER TABLE steps ADD COLUMN effective TEXT NOT NULL DEFAULT '';
