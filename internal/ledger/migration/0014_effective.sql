-- What holds for a run after its pool's defaults and adjustments, JSON; empty: it was sent by no pool.
ALTER TABLE runs ADD COLUMN effective TEXT NOT NULL DEFAULT '';
