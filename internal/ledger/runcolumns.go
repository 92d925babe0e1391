package ledger

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// column is one of a table: its name, and a pointer to what a row has there, from which it is written and into which it
// is read.
type column struct {
	name  string
	value any
	fixed bool // it is written once, with the row
}

// columns are those of the table runs.
func (r *Run) columns() []column {
	return []column{
		{"uid", &r.UID, true},
		{"attempt", &r.Attempt, true},
		{"namespace", &r.Namespace, true},
		{"name", &r.Name, true},
		{"kind", &r.Kind, true},
		{"created", (*moment)(&r.Created), true},
		{"generation", &r.Generation, false},
		{"state", &r.State, false},
		{"reason", &r.Reason, false},
		{"message", &r.Message, false},
		{"schedd", &r.Schedd, false},
		{"cluster", &r.Cluster, false},
		{"procs", &r.Procs, false},
		{"tokenHash", &r.TokenHash, false},
		{"tempDir", &r.TempDir, false},
		{"submitted", (*moment)(&r.Submitted), false},
		{"ended", (*moment)(&r.Ended), false},
		{"checked", (*moment)(&r.Checked), false},
		{"deferred", &r.Deferred, false},
		{"confirmed", &r.Confirmed, false},
		{"specHash", &r.SpecHash, false},
		{"rerun", &r.Rerun, false},
		{"stop", &r.Stop, false},
		{"collector", &r.Collector, false},
		{"secret", &r.Secret, false},
		{"outputDir", &r.OutputDir, false},
		{"restored", &r.Restored, false},
		{"inputsDigest", &r.InputsDigest, false},
		{"secretInputs", &r.SecretInputs, false},
		{"itemsDigest", &r.ItemsDigest, false},
		{"pool", &r.Pool, false},
		{"poolSpec", &r.PoolSpec, false},
		{"effective", &r.Effective, false},
		{"account", &r.Account, false},
		{"started", (*moment)(&r.Started), false},
		{"finished", (*moment)(&r.Finished), false},
		{"sent", &r.Sent, false},
		{"jobs", &r.Jobs, false},
		{"keptFailed", &r.KeptFailed, false},
		{"usage", &r.Usage, false},
		{"earlier", &r.Earlier, false},
		{"factory", &r.Factory, false},
		{"factoryIdle", &r.FactoryIdle, false},
		{"unmade", &r.Unmade, true},
		{"unsent", &r.Unsent, false},
	}
}

// The texts that follow from columns.
var (
	runColumns    = strings.Join(namesOf(new(Run).columns(), "%s"), ", ")
	insertRunText = `INSERT INTO runs (` + runColumns + `) VALUES (?` + strings.Repeat(
		`, ?`,
		len(new(Run).columns())-1,
	) + `)
		ON CONFLICT (uid, attempt) DO NOTHING`
	updateRunText = `UPDATE runs SET ` + strings.Join(
		namesOf(changing(new(Run).columns()), "%s = ?"),
		", ",
	) + ` WHERE uid = ? AND attempt = ?`
)

// changing returns those that are not fixed.
func changing(all []column) []column {
	var some []column
	for _, c := range all {
		if !c.fixed {
			some = append(some, c)
		}
	}
	return some
}

func namesOf(all []column, format string) []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = fmt.Sprintf(format, c.name)
	}
	return names
}

func valuesOf(all []column) []any {
	values := make([]any, len(all))
	for i, c := range all {
		values[i] = c.value
	}
	return values
}

// moment is a time as the file has it, see millis.
type moment time.Time

// Value implements driver.Valuer.
func (m *moment) Value() (driver.Value, error) { return millis(time.Time(*m)), nil }

// Scan implements sql.Scanner.
func (m *moment) Scan(src any) error {
	ms, is := src.(int64)
	if !is {
		return fmt.Errorf("expected milliseconds, found %T", src)
	}
	*m = moment(fromMillis(ms))
	return nil
}
