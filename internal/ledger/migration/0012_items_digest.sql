-- What identifies the table that a run's items are from.
ALTER TABLE runs ADD COLUMN itemsDigest TEXT NOT NULL DEFAULT ''; -- empty: they are from none
