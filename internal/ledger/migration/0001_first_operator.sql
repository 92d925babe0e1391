-- The public table as the first operator of this kind made it. Where such a
-- file is opened the table is there, with a fifth column uniqid (or uniqIdent),
-- and stays as it is.
CREATE TABLE IF NOT EXISTS htcjobs (
    htcjobName varchar,
    jobId      char(10),
    status     integer, -- 1 open, 4 succeeded, 7 failed
    tempDir    varchar  -- staging directory of the run
);
