package outputpush

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output"
)

// step pushes the next artifact of an HTCJob and reports whether the pass goes on.
func (p *Pusher) step(ctx context.Context, key string) (more bool, err error) {
	run, w, err := p.next(ctx, key)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, p.passes.end(key)
	}
	if err != nil {
		return false, err
	}
	done, err := p.push(ctx, key, run, w)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if errors.Is(err, ErrGone) {
		_ = p.passes.end(key)
		return false, nil
	}
	reference := of(w.Artifact, w.Proc)
	what := fmt.Sprintf("%s of job %d.%d to %s", w.Path, run.Cluster, w.Proc, reference)
	if e, is := errors.AsType[*artifact.Unusable](err); is && e.Reason == artifact.ReasonUnsuitable {
		w.Push, w.Note = ledger.NotPushed, what+": "+e.Message
		err = p.record(ctx, run, w)
		if err == nil {
			p.Log.Warn().Str("job", key).Msg("not pushed: " + w.Note)
			p.Observer.NotPushed(run, w.Note)
		}
		return err == nil, err
	}
	if err != nil {
		p.passes.failed(key, w.Number, fmt.Errorf("%s: %w", what, err))
		return true, nil
	}
	w.Push, w.Size, w.Digest = ledger.Pushed, done.Size, done.Digest
	if err := p.record(ctx, run, w); err != nil {
		return false, err
	}
	p.Log.Debug().Str("job", key).Int("proc", w.Proc).Str("artifact", reference).Msg("pushed")
	p.Observer.Pushed(run, done.Size)
	return true, nil
}

func (p *Pusher) record(ctx context.Context, run ledger.Run, w ledger.Written) error {
	return p.Ledger.Write(ctx, func(tx *ledger.Tx) error { return tx.SetWritten(run.UID, run.Attempt, w) })
}

// push pushes one artifact.
func (p *Pusher) push(ctx context.Context, key string, run ledger.Run, w ledger.Written) (artifact.Pushed, error) {
	configs, digest, err := p.credentials(ctx, run)
	if err != nil || len(configs) > 0 {
		p.logins.use(key, digest)
	}
	if err != nil {
		return artifact.Pushed{}, err
	}
	at := output.Attempt{Namespace: run.Namespace, Name: run.Name, Number: run.Attempt}
	names, err := p.Store.Matching(ctx, at, w.Proc, w.Path, artifact.MaxFiles+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return artifact.Pushed{}, fmt.Errorf("list the files: %w", err)
	}
	var files []artifact.Upload
	for _, name := range names {
		files = append(files, artifact.Upload{Name: name, Open: func() (io.ReadCloser, error) { return p.Store.Open(at, w.Proc, name) }})
	}
	last := func() error { return p.stillNewest(ctx, key, run) }
	done, err := p.Registries.Push(ctx, of(w.Artifact, w.Proc), files, last, configs...)
	if errors.Is(err, fs.ErrNotExist) { // the HTCJob may have been deleted meanwhile
		err = errors.Join(p.stillNewest(ctx, key, run), err)
	}
	return done, err
}

// stillNewest returns ErrGone if a run is no longer the newest of an HTCJob that exists.
func (p *Pusher) stillNewest(ctx context.Context, key string, run ledger.Run) error {
	var now ledger.Run
	err := p.Ledger.Read(ctx, func(tx *ledger.Tx) (err error) { now, err = newest(tx, key); return err })
	if errors.Is(err, ledger.ErrNotFound) || err == nil && (now.UID != run.UID || now.Attempt != run.Attempt) {
		return ErrGone
	}
	if err == nil {
		_, err = p.Credentials(ctx, run)
	}
	return err
}
