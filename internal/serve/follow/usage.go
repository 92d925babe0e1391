package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/usage"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// Usage finds what the jobs of an attempt have used: the ended ones by the ledger, the others by HTCondor's queue.
func (r *Reader) Usage(ctx context.Context, q aggregate.Query) (*aggregate.Answer, error) {
	f, err := r.find(ctx, q)
	if err != nil {
		return nil, err
	}
	if f.run == nil {
		return nil, notYet(q, "%s: no job has started yet", f.at.why)
	}
	report, err := shared(
		ctx,
		r,
		q,
		fmt.Sprint(f.run.UID, "/", f.run.Attempt),
		func(ctx context.Context) (usage.Report, error) {
			return r.report(ctx, *f.run)
		},
	)
	if err != nil {
		return nil, err
	}
	return &aggregate.Answer{
		Attempt: f.run.Attempt, Jobs: f.run.All(), Close: func() {},
		Write: func(_ context.Context, w io.Writer) error { return json.NewEncoder(w).Encode(report) },
	}, nil
}

// shared makes a report about something once for however many users ask for it at the same time; one of them leaving
// does not end that.
func shared[R any](
	ctx context.Context,
	r *Reader,
	q aggregate.Query,
	about string,
	do func(context.Context) (R, error),
) (report R, err error) {
	made, err, _ := r.reports.Do(about, func() (_ any, err error) {
		ctx := context.WithoutCancel(ctx)
		var report R
		err = r.question(ctx, requester{q.User, q.Namespace}, r.o.Wait, func() (err error) {
			report, err = do(ctx)
			return err
		})
		return report, err
	})
	if err != nil {
		return report, err
	}
	return made.(R), nil
}

// usagePage is how many rows are read at once: a Read delays commits.
const usagePage = 5000

// report sums up the rows of a run, and the ads of those of its jobs that have not ended.
func (r *Reader) report(ctx context.Context, run ledger.Run) (usage.Report, error) {
	report := usage.Report{Attempt: run.Attempt, Jobs: run.Procs}
	var tally usage.Tally
	var counts ledger.Counts
	known := map[int]bool{}
	for from, read := 0, usagePage; read == usagePage; {
		read = 0
		err := r.o.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) {
			if counts, err = tx.Counts(run.UID, run.Attempt); err != nil {
				return err
			}
			return tx.Usage(run.UID, run.Attempt, from, usagePage, func(proc int, used string) {
				read, from = read+1, proc+1
				if used != "" {
					known[proc] = true
					tally.Add(proc, usage.Parse(used))
				}
			})
		})
		if err != nil {
			return report, fmt.Errorf("ask the ledger: %w", err)
		}
	}
	report.Ended = len(known)
	if run.State == ledger.Submitted && (counts.Active > 0 || !run.Confirmed) {
		r.ask(ctx, run, &report, &tally, known)
	}
	report.Usage = tally.Usage()
	return report, nil
}

// ask adds what HTCondor's queue says of the jobs that are not known.
func (r *Reader) ask(
	ctx context.Context,
	run ledger.Run,
	report *usage.Report,
	tally *usage.Tally,
	known map[int]bool,
) {
	tag := condor.Tag{UID: run.UID, Attempt: run.Attempt}
	question := schedd.Query{Where: tag.Constraint().In(run.Cluster)}
	report.Asked, report.Unknown = r.queued(ctx, run, question, func(j condor.Job, used usage.Use) {
		proc := j.Number()
		if known[proc] {
			return
		}
		known[proc] = true
		tally.Add(proc, used)
		counted(report, j)
	})
}

// queued calls fn for the jobs of a run in HTCondor's queue that have used something. It returns when HTCondor was
// asked, or why nothing is known.
func (r *Reader) queued(
	ctx context.Context,
	run ledger.Run,
	question schedd.Query,
	fn func(condor.Job, usage.Use),
) (asked *time.Time, unknown string) {
	id, err := r.o.Identity(ctx, run)
	if err == nil {
		err = r.o.Schedd.Query(ctx, id, question, func(j condor.Job) error {
			if used := j.Use(time.Now()); used != (usage.Use{}) {
				fn(j, used)
			}
			return nil
		})
	}
	if err != nil {
		return nil, err.Error()
	}
	return new(time.Now().UTC().Truncate(time.Second)), ""
}

// counted adds a job of the queue to a report.
func counted(report *usage.Report, j condor.Job) {
	if j.Outcome().State == condor.OutcomeOpen {
		report.Running++
	} else {
		report.Ended++
	}
}
