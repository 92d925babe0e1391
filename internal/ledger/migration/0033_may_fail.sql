-- How many nodes of a step may fail in each sequence without the sequence having failed, and how many have. Steps that allow none have no row there.
CREATE TABLE IF NOT EXISTS tolerated (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    sequence INTEGER NOT NULL,
    step     INTEGER NOT NULL,
    most     INTEGER NOT NULL,
    failed   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run, sequence, step)
) WITHOUT ROWID;

DROP TRIGGER IF EXISTS nodes_turned;

-- Status 7 is a failure; 8 is futile, which nothing allows.
CREATE TRIGGER nodes_turned AFTER UPDATE OF status ON nodes
    WHEN NEW.status IS NOT OLD.status AND NEW.sequence >= 0
BEGIN
    UPDATE sequences SET open = open + (NEW.status = 1) - (OLD.status = 1), failed = failed + (NEW.status > 4) - (OLD.status > 4)
        WHERE run = NEW.run AND sequence = NEW.sequence
            AND NOT EXISTS (SELECT 1 FROM tolerated WHERE run = NEW.run AND sequence = NEW.sequence AND step = NEW.step);
    UPDATE sequences SET open = open + (NEW.status = 1) - (OLD.status = 1), failed = failed + (NEW.status > 7) - (OLD.status > 7)
        WHERE run = NEW.run AND sequence = NEW.sequence
            AND EXISTS (SELECT 1 FROM tolerated WHERE run = NEW.run AND sequence = NEW.sequence AND step = NEW.step);
    UPDATE tolerated SET failed = failed + (NEW.status = 7) - (OLD.status = 7)
        WHERE run = NEW.run AND sequence = NEW.sequence AND step = NEW.step;
END;

CREATE TRIGGER IF NOT EXISTS tolerated_changed AFTER UPDATE OF failed ON tolerated
    WHEN (NEW.failed > NEW.most) IS NOT (OLD.failed > OLD.most)
BEGIN
    UPDATE sequences SET failed = failed + (NEW.failed > NEW.most) - (OLD.failed > OLD.most)
        WHERE run = NEW.run AND sequence = NEW.sequence;
END;
