-- What identifies the content of spec.inputs, and which of these files are never kept as output.
ALTER TABLE runs ADD COLUMN inputsDigest TEXT NOT NULL DEFAULT ''; -- empty: there are none
ALTER TABLE runs ADD COLUMN secretInputs TEXT NOT NULL DEFAULT ''; -- names, separated by spaces
